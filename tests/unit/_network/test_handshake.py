from __future__ import annotations

import pytest

from tests.fakes.broker import API_VERSIONS, PRODUCE, Received

from .world import World


def test_invalid_api_versions_request() -> None:
    """M testInvalidApiVersionsRequest: INVALID_REQUEST ends the connection."""
    world = World()
    world.broker().script[API_VERSIONS] = lambda request: world.broker().answer_versions(request, error=42)
    world.settle()
    assert not world.client.is_ready(world.node(), world.now)
    assert not world.broker().links[0].open
    assert world.client.in_flight_count() == 0


def test_api_versions_request() -> None:
    """M testApiVersionsRequest: version 4 first, then ready, and the ranges are known."""
    world = World()
    world.until_ready()
    assert [request.version for request in world.broker().of(API_VERSIONS)] == [4, 4]  # bootstrap, then node 1
    versions = world.client.versions.get(1)
    assert versions is not None
    assert versions.ranges[PRODUCE] == (3, 13)


@pytest.mark.parametrize(("ranges", "second"), [({API_VERSIONS: (0, 2)}, 2), ({}, 0)])
def test_unsupported_api_versions_request(ranges: dict[int, tuple[int, int]], second: int) -> None:
    """M testUnsupportedApiVersionsRequestWithVersionProvidedByTheBroker, WithoutVersionProvided: 2, else 0."""
    world = World()
    broker = world.broker()

    def answer(request: Received) -> None:
        if request.version == 4:
            broker.answer_versions(request, error=35, ranges=ranges)
        else:
            broker.answer_versions(request)

    broker.script[API_VERSIONS] = answer
    world.settle()
    assert [request.version for request in broker.of(API_VERSIONS)][:2] == [4, second]
    assert world.client.is_ready(world.cluster.bootstrap()[0], world.now) or world.metadata.version == 1


def test_version_check_that_is_never_answered() -> None:
    world = World()
    world.broker().held.add(API_VERSIONS)
    world.client.ready(world.node(), world.now)
    world.poll()
    world.poll()
    world.clock.advance(1001)
    world.poll()
    assert world.client.states.failed(world.node().id)
