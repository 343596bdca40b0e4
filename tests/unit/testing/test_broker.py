"""The embedded broker's life and calls; what its faults do to a client is in tests/integration/test_support.py."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import psutil  # type: ignore[import-untyped]
import pytest

import forebay.testing.broker as module
from forebay.errors import IllegalArgumentError, IllegalStateError, NotLeaderOrFollowerError, RetriableError
from forebay.testing import EmbeddedBroker, EmbeddedBrokerError
from forebay.testing.broker import library_path
from tests.fakes.steps import at_step, each_step
from tests.support.pace import HANG_S

API_VERSIONS = 18

CHILD_THAT_IS_KILLED = """
import os, signal, sys
from forebay.testing import EmbeddedBroker
broker = EmbeddedBroker()
print(broker.pid, flush=True)
if sys.argv[1] == "forked":
    # A child that holds the pipe's other end open and lives on.
    if os.fork() == 0:
        signal.pause()
    print("forked", flush=True)
signal.pause()
"""


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(nodes=2, topics={"t": 3}) as broker:
        yield broker


def ask_api_versions(address: tuple[str, int]) -> dict[int, tuple[int, int]]:
    """ApiVersions v0 by hand: the versions a node advertises."""
    with socket.create_connection(address, HANG_S) as connection:
        request = struct.pack(">hhih", API_VERSIONS, 0, 1, -1)
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4))
            body = stream.read(size)
    _, error, count = struct.unpack_from(">ihi", body)
    assert error == 0
    entries = (struct.unpack_from(">hhh", body, 10 + 6 * number) for number in range(count))
    return {api: (lowest, highest) for api, lowest, highest in entries}


def gone(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(HANG_S)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_every_node_listens_where_it_says(broker: EmbeddedBroker) -> None:
    assert broker.nodes == (1, 2)
    addresses = [broker.address(node) for node in broker.nodes]
    assert broker.bootstrap_servers == ",".join(f"{host}:{port}" for host, port in addresses)
    assert all(API_VERSIONS in ask_api_versions(address) for address in addresses)


def test_every_node_listens_on_both_loopbacks(broker: EmbeddedBroker) -> None:
    """As localhost is ::1 first on many machines."""
    for node in broker.nodes:
        _host, port = broker.address(node)
        assert ask_api_versions(("::1", port)) == ask_api_versions(("127.0.0.1", port))


def test_group_versions_that_the_mock_would_misread_are_not_offered(broker: EmbeddedBroker) -> None:
    """kafka-python would send JoinGroup 6 and SyncGroup 4, at which the mock closes the connection."""
    found = ask_api_versions(broker.address())
    assert (found[11], found[14]) == ((0, 5), (0, 3))


def test_close_ends_the_process_and_may_be_called_twice(broker: EmbeddedBroker) -> None:
    pid = broker.pid
    assert pid is not None
    assert broker.alive
    broker.close()
    broker.close()
    assert broker.pid is None
    assert not broker.alive
    assert not psutil.pid_exists(pid)
    with pytest.raises(IllegalStateError, match="create_topic: this embedded broker is closed"):
        broker.create_topic("x")


def in_the_module(file: str) -> bool:
    return file == module.__file__


def test_a_handler_s_call_amid_a_call_is_refused(broker: EmbeddedBroker) -> None:
    def amid(number: int) -> bool:
        answers: list[object] = []

        def handler() -> None:
            try:
                answers.append(broker.requests())
            except IllegalStateError as refusal:
                answers.append(str(refusal))

        whole = at_step(number, broker.requests, handler, is_step=in_the_module)
        assert all(answer == [] or "in the middle of another call" in str(answer) for answer in answers)
        return whole

    assert each_step(amid, "a call with a handler") > 10


def test_a_handler_s_close_amid_a_call_ends_it() -> None:
    def amid(number: int) -> bool:
        with EmbeddedBroker() as broker:

            def call() -> None:
                with contextlib.suppress(IllegalStateError, EmbeddedBrokerError):
                    broker.requests()

            whole = at_step(number, call, broker.close, is_step=in_the_module)
            assert broker.alive != whole
            return whole

    assert each_step(amid, "a call that a handler closes") > 10


def test_a_call_that_was_given_up_leaves_the_next_its_own_answer(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert broker.pid is not None
    broker.push_node_errors(1, API_VERSIONS, (0, 0))
    os.kill(broker.pid, signal.SIGSTOP)
    with monkeypatch.context() as soon:
        soon.setattr(module, "CALL_TIMEOUT_S", 0.0)
        with pytest.raises(EmbeddedBrokerError, match="set_rtt: .* did not answer within"):
            broker.set_rtt(0)
    os.kill(broker.pid, signal.SIGCONT)
    assert broker.node_errors_left(1, API_VERSIONS) == 1
    assert broker.requests() == []


def test_a_call_that_ctrl_c_ends_leaves_the_next_its_own_answer(broker: EmbeddedBroker) -> None:
    broker.push_node_errors(1, API_VERSIONS, (0, 0))

    def amid(number: int) -> bool:
        def interrupt() -> None:
            raise KeyboardInterrupt

        whole = True
        with contextlib.suppress(KeyboardInterrupt):
            whole = at_step(number, broker.requests, interrupt, is_step=in_the_module)
        assert broker.node_errors_left(1, API_VERSIONS) == 1
        return whole

    assert each_step(amid, "a call that Ctrl-C ends") > 10


def test_a_process_that_died_is_an_error_of_the_next_call(broker: EmbeddedBroker) -> None:
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGKILL)
    os.waitid(os.P_PID, broker.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(
        EmbeddedBrokerError, match=r"set_rtt: the embedded broker's process \d+ has ended \(status -9\)"
    ):
        broker.set_rtt(1)


@pytest.mark.parametrize("way", ["plain", "forked"])
def test_the_process_ends_with_a_parent_that_is_killed(way: str) -> None:
    command = [sys.executable, "-c", CHILD_THAT_IS_KILLED, way]
    # What this process imports from, that one does too, installed or not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    assert parent.stdout is not None
    try:
        pid = int(parent.stdout.readline())
        if way == "forked":
            assert parent.stdout.readline() == "forked\n"
        parent.kill()
        parent.wait(HANG_S)
        assert gone(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):  # of the plain way: nobody is left in the group
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait(HANG_S)
        parent.stdout.close()


def test_a_forked_child_does_not_end_its_parents_broker(broker: EmbeddedBroker) -> None:
    child = os.fork()
    if child == 0:
        broker.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    broker.create_topic("still-there")
    assert broker.alive


def test_the_mocks_refusals_name_the_call_and_its_reason(broker: EmbeddedBroker) -> None:
    with pytest.raises(EmbeddedBrokerError, match="'t' with 4 partitions.*TOPIC_ALREADY_EXISTS"):
        broker.create_topic("t")
    with pytest.raises(EmbeddedBrokerError, match="leader of t-0 not set to 77: BROKER_NOT_AVAILABLE"):
        broker.set_leader("t", 0, 77)
    with pytest.raises(EmbeddedBrokerError, match="'none' not deleted: UNKNOWN_TOPIC_OR_PART"):
        broker.delete_topic("none")
    with pytest.raises(EmbeddedBrokerError, match="node 9 not taken down"):
        broker.node_down(9)


def test_arguments_that_make_no_sense_are_refused() -> None:
    with pytest.raises(IllegalArgumentError, match="nodes must be 1 to 100, not 0"):
        EmbeddedBroker(nodes=0)
    with pytest.raises(IllegalArgumentError, match="partitions must be at least 1, not 0"):
        EmbeddedBroker(partitions=0)
    with EmbeddedBroker() as broker:
        with pytest.raises(IllegalArgumentError, match=r"node 2 is not one of \(1,\)"):
            broker.address(2)
        with pytest.raises(IllegalArgumentError, match="'x' needs at least 1 partition, not 0"):
            broker.create_topic("x", 0)
        with pytest.raises(IllegalArgumentError, match="RetriableError is no answer of a broker"):
            broker.push_request_errors(0, RetriableError)


def test_a_failed_start_leaves_no_process() -> None:
    before = set(psutil.Process().children())
    with pytest.raises(IllegalArgumentError):
        EmbeddedBroker(topics={"x": 0})
    assert set(psutil.Process().children()) == before


def test_errors_for_a_node_are_counted(broker: EmbeddedBroker) -> None:
    broker.push_node_errors(1, API_VERSIONS, (0, 0), (NotLeaderOrFollowerError, 5))
    assert broker.node_errors_left(1, API_VERSIONS) == 2
    ask_api_versions(broker.address(1))
    assert broker.node_errors_left(1, API_VERSIONS) == 1
    assert broker.node_errors_left(2, API_VERSIONS) == 0


def test_the_request_log_keeps_node_and_api(broker: EmbeddedBroker) -> None:
    ask_api_versions(broker.address(1))
    broker.start_request_log()
    ask_api_versions(broker.address(2))
    ask_api_versions(broker.address(1))
    found = broker.requests()
    assert [(request.node, request.api_key) for request in found] == [(2, API_VERSIONS), (1, API_VERSIONS)]
    assert found[0].timestamp_us < found[1].timestamp_us
    assert broker.requests([0]) == []
    broker.clear_request_log()
    assert broker.requests() == []
    ask_api_versions(broker.address(1))
    assert len(broker.requests()) == 1
    broker.stop_request_log()
    ask_api_versions(broker.address(1))
    assert broker.requests() == []


def test_api_versions_are_narrowed_and_removed(broker: EmbeddedBroker) -> None:
    broker.set_api_versions(0, 3, 7)
    broker.set_api_versions(22, -1, -1)
    found = ask_api_versions(broker.address())
    assert found[0] == (3, 7)
    assert 22 not in found


def test_a_node_that_is_down_refuses_and_comes_back_on_its_port(broker: EmbeddedBroker) -> None:
    address = broker.address(1)
    broker.node_down(1)
    with pytest.raises(OSError, match="refused|reset|timed out"):
        ask_api_versions(address)
    with socket.create_connection(("::1", address[1]), HANG_S) as connection:
        assert connection.recv(1) == b""
    broker.node_up(1)
    assert ask_api_versions(address)


def test_calls_that_only_clients_can_see_are_taken(broker: EmbeddedBroker) -> None:
    broker.set_leader("t", 1, 2)
    broker.set_leader("t", 2, None)
    broker.push_leader_answer("t", 0, 2, 9)
    broker.set_coordinator("transaction", "id", 2)
    broker.set_topic_error("t", NotLeaderOrFollowerError)
    broker.set_rack(1, "r")
    broker.delete_records("t", 0, 0)
    broker.push_partition_errors("t", 0, 0, 6, NotLeaderOrFollowerError)
    broker.clear_request_errors(0)
    assert ask_api_versions(broker.address(1))


def test_without_confluent_kafka_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedBrokerError, match=r"pip install 'forebay\[testing\]'"):
        EmbeddedBroker()


def test_a_package_without_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIBRARY_PATTERNS", ("nothing/like-this",))
    with pytest.raises(EmbeddedBrokerError, match="holds no librdkafka .*nothing/like-this"):
        library_path()


def test_the_representation_says_where_and_whether() -> None:
    broker = EmbeddedBroker()
    assert repr(broker) == f"<EmbeddedBroker {broker.bootstrap_servers} (process {broker.pid})>"
    broker.close()
    assert repr(broker).endswith("(closed)>")
