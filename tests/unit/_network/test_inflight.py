from __future__ import annotations

import pytest

from forebay._network.inflight import ClientRequest, ClientResponse, InFlightRequests
from forebay.errors import DisconnectError, IllegalStateError, ProtocolError, UnsupportedVersionError


def request(deadline: float = float("inf"), **kwargs: object) -> ClientRequest:
    given = {"timeout_ms": 1000, "on_complete": lambda response: None, **kwargs}
    made = ClientRequest(1, 0, 3, 8, lambda version: [], lambda version, data: None, **given)  # type: ignore[arg-type]
    made.deadline = deadline
    return made


def queue(*requests: ClientRequest) -> InFlightRequests:
    made = InFlightRequests()
    for one in requests:
        made.add(one)
    return made


def test_complete_last_sent() -> None:
    """M InFlightRequestsTest testCompleteLastSent: the newest first."""
    first, second = request(), request()
    waiting = queue(first, second)
    assert waiting.count == 2
    assert waiting.complete_last_sent() is second
    assert waiting.complete_last_sent() is first
    assert waiting.count == 0


def test_clear_all() -> None:
    """M InFlightRequestsTest testClearAll: the oldest first."""
    requests = [request() for _ in range(3)]
    waiting = queue(*requests)
    assert waiting.clear() == requests
    assert waiting.count == 0
    assert waiting.clear() == []


def test_complete_next() -> None:
    """M InFlightRequestsTest testCompleteNext: in the order of sending."""
    first, second = request(), request()
    waiting = queue(first, second)
    assert waiting.first() is first
    assert waiting.complete_next() is first
    assert waiting.complete_next() is second


@pytest.mark.parametrize("method", ["first", "complete_next", "last_sent", "complete_last_sent"])
def test_nothing_in_flight(method: str) -> None:
    """M InFlightRequestsTest testCompleteNextThrowsIfNoInflights, testCompleteLastSentThrowsIfNoInFlights."""
    with pytest.raises(IllegalStateError, match="no in-flight requests"):
        getattr(InFlightRequests(), method)()


def test_timed_out() -> None:
    """M InFlightRequestsTest testTimedOutNodes: what counts is the earliest deadline, and only strictly past it."""
    node_a = queue(request(50))
    node_b = queue(request(200), request(100))

    def overdue(now: float) -> list[str]:
        return [name for name, waiting in (("A", node_a), ("B", node_b)) if now > waiting.deadline()]

    assert [overdue(at) for at in (50, 75, 125)] == [[], ["A"], ["A", "B"]]
    assert InFlightRequests().deadline() == float("inf")


def test_postpone_moves_every_deadline() -> None:
    requests = [request(100), request(50)]
    waiting = queue(*requests)
    waiting.postpone(25)
    assert [one.deadline for one in requests] == [125, 75]
    assert waiting.deadline() == 75
    assert waiting.waiting() == requests


def test_buffers_are_let_go_once() -> None:
    told: list[bool] = []
    one = request(on_written=told.append)
    one.release(True)
    one.release(False)
    assert told == [True]
    assert one.written


def test_a_failing_on_written_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def explode(written: bool) -> None:
        raise RuntimeError("no")

    one = request(on_written=explode)
    one.release(False)
    assert not one.written
    assert "on_written of <ClientRequest" in caplog.text


def test_response_tells_its_latency() -> None:
    one = request()
    one.sent = 100
    response = ClientResponse(one, 130, body=b"x")
    assert response.latency_ms == 30
    assert "b'x'" in repr(response)
    assert "disconnected" in repr(ClientResponse(one, 1, error=DisconnectError(), disconnected=True))


def test_senseless_bytes_are_a_lost_connection_to_the_requests_on_it() -> None:
    """The error tells what happened, the failure what it means for a request: it may be tried again."""
    senseless = ProtocolError("nonsense")
    failure = ClientResponse(request(), 0, error=senseless, disconnected=True).failure
    assert isinstance(failure, DisconnectError) and failure.retriable
    assert (str(failure), failure.__cause__) == ("nonsense", senseless)
    refused = UnsupportedVersionError("too old")
    assert ClientResponse(request(), 0, error=refused).failure is refused
    assert ClientResponse(request(), 0, error=senseless).failure is senseless
    assert ClientResponse(request(), 0, body=1).failure is None
