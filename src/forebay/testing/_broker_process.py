"""The embedded broker's own process: librdkafka's mock cluster behind a pipe of JSON lines.

Run as a script, with the library's path, the number of nodes and the parent's process id as arguments; it
imports nothing of the package, so that it starts in a fraction of a second and does not depend on how the
parent found ``forebay``.  Each line on standard input is ``{"call": name, "args": [...], "number": 1}``, each answer on
standard output ``{"ok": value, "number": 1}`` or ``{"error": text, "number": 1}``.  It ends when standard input closes
or when its parent is gone, whichever is seen first, so no broker outlives the test that started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import resource
import select
import signal
import sys
from ctypes import c_char_p, c_int, c_int16, c_int32, c_int64, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forebay.testing._forward import Forwarder

PRODUCER = 0
JOIN_GROUP, SYNC_GROUP = 11, 14
#: API key to the newest version that the mock reads as it is written.  It advertises one more of these, takes its
#: compact fields for plain ones, and closes the connection; librdkafka's own consumer sends none so new.
READABLE = {JOIN_GROUP: 5, SYNC_GROUP: 3}
# The mock takes its log calls from its own thread; this level keeps what went wrong and drops the chatter.
LOG_LEVEL = "3"
PARENT_CHECK_SECONDS = 1.0

# name -> (result, fixed arguments); what follows the fixed ones is variadic and typed by the caller.
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_conf_new": (c_void_p, []),
    "rd_kafka_conf_set": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_size_t]),
    "rd_kafka_new": (c_void_p, [c_int, c_void_p, c_char_p, c_size_t]),
    "rd_kafka_err2name": (c_char_p, [c_int]),
    "rd_kafka_version_str": (c_char_p, []),
    "rd_kafka_mem_free": (None, [c_void_p, c_void_p]),
    "rd_kafka_mock_cluster_new": (c_void_p, [c_void_p, c_int]),
    "rd_kafka_mock_cluster_bootstraps": (c_char_p, [c_void_p]),
    "rd_kafka_mock_topic_create": (c_int, [c_void_p, c_char_p, c_int, c_int]),
    "rd_kafka_mock_topic_delete": (c_int, [c_void_p, c_char_p]),
    "rd_kafka_mock_topic_set_error": (None, [c_void_p, c_char_p, c_int]),
    "rd_kafka_mock_push_request_errors_array": (None, [c_void_p, c_int16, c_size_t, c_void_p]),
    "rd_kafka_mock_clear_request_errors": (None, [c_void_p, c_int16]),
    "rd_kafka_mock_broker_push_request_error_rtts": (c_int, [c_void_p, c_int32, c_int16, c_size_t]),
    "rd_kafka_mock_broker_error_stack_cnt": (c_int, [c_void_p, c_int32, c_int16, c_void_p]),
    "rd_kafka_mock_partition_push_request_errors": (c_int, [c_void_p, c_char_p, c_int32, c_int16, c_size_t]),
    "rd_kafka_mock_partition_set_leader": (c_int, [c_void_p, c_char_p, c_int32, c_int32]),
    "rd_kafka_mock_partition_push_leader_response": (c_int, [c_void_p, c_char_p, c_int, c_int32, c_int32]),
    "rd_kafka_mock_partition_delete_records": (c_int, [c_void_p, c_char_p, c_int32, c_int64]),
    "rd_kafka_mock_broker_set_down": (c_int, [c_void_p, c_int32]),
    "rd_kafka_mock_broker_set_up": (c_int, [c_void_p, c_int32]),
    "rd_kafka_mock_broker_set_rtt": (c_int, [c_void_p, c_int32, c_int]),
    "rd_kafka_mock_broker_set_rack": (c_int, [c_void_p, c_int32, c_char_p]),
    "rd_kafka_mock_broker_set_host_port": (None, [c_void_p, c_int32, c_char_p, c_int]),
    "rd_kafka_mock_coordinator_set": (c_int, [c_void_p, c_char_p, c_char_p, c_int32]),
    "rd_kafka_mock_set_apiversion": (c_int, [c_void_p, c_int16, c_int16, c_int16]),
    "rd_kafka_mock_start_request_tracking": (None, [c_void_p]),
    "rd_kafka_mock_stop_request_tracking": (None, [c_void_p]),
    "rd_kafka_mock_clear_requests": (None, [c_void_p]),
    "rd_kafka_mock_get_requests": (c_void_p, [c_void_p, c_void_p]),
    "rd_kafka_mock_request_destroy": (None, [c_void_p]),
    "rd_kafka_mock_request_id": (c_int32, [c_void_p]),
    "rd_kafka_mock_request_api_key": (c_int16, [c_void_p]),
    "rd_kafka_mock_request_timestamp": (c_int64, [c_void_p]),
}


class Library:
    """The functions of one librdkafka, looked up when first used.

    The mock API is declared experimental: an older wheel may lack a function, which must not stop a broker
    that never uses it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._library = ctypes.CDLL(path)

    def __getattr__(self, name: str) -> Any:
        result, arguments = SIGNATURES[name]
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise RuntimeError(f"{self._path} has no {name}: a newer confluent-kafka is needed") from None
        function.restype = result
        function.argtypes = arguments
        setattr(self, name, function)
        return function


class MockCluster:
    """One mock cluster; each public method is a call of the control channel, with JSON values in and out."""

    def __init__(self, path: str, nodes: int) -> None:
        self._library = Library(path)
        reason = ctypes.create_string_buffer(512)
        configuration = self._library.rd_kafka_conf_new()
        self._library.rd_kafka_conf_set(configuration, b"log_level", LOG_LEVEL.encode(), reason, len(reason))
        self._client = self._library.rd_kafka_new(PRODUCER, configuration, reason, len(reason))
        if not self._client:
            raise RuntimeError(f"librdkafka did not start: {reason.value.decode()}")
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, nodes)
        if not self._cluster:
            raise RuntimeError(f"librdkafka made no mock cluster of {nodes} nodes")
        for api_key, newest in READABLE.items():
            self.set_api_versions(api_key, 0, newest)

    def _check(self, code: int, what: str) -> None:
        if code:
            raise RuntimeError(f"{what}: {self._library.rd_kafka_err2name(code).decode()} ({code})")

    def describe(self) -> dict[str, str]:
        return {
            "bootstrap": self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode(),
            "librdkafka": self._library.rd_kafka_version_str().decode(),
        }

    def create_topic(self, name: str, partitions: int, replication: int) -> None:
        code = self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, replication)
        self._check(code, f"topic {name!r} with {partitions} partitions, replication {replication}, not created")

    def delete_topic(self, name: str) -> None:
        self._check(
            self._library.rd_kafka_mock_topic_delete(self._cluster, name.encode()), f"topic {name!r} not deleted"
        )

    def set_topic_error(self, name: str, code: int) -> None:
        self._library.rd_kafka_mock_topic_set_error(self._cluster, name.encode(), code)

    def push_request_errors(self, api_key: int, codes: list[int]) -> None:
        array = (c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, api_key, len(codes), array)

    def clear_request_errors(self, api_key: int) -> None:
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, api_key)

    def push_node_errors(self, node: int, api_key: int, errors: list[tuple[int, int]]) -> None:
        pairs = [c_int(value) for pair in errors for value in pair]
        code = self._library.rd_kafka_mock_broker_push_request_error_rtts(
            self._cluster, node, api_key, len(errors), *pairs
        )
        self._check(code, f"errors for node {node} not pushed")

    def node_errors_left(self, node: int, api_key: int) -> int:
        count = c_size_t(0)
        code = self._library.rd_kafka_mock_broker_error_stack_cnt(self._cluster, node, api_key, ctypes.byref(count))
        self._check(code, f"errors of node {node} not counted")
        return count.value

    def push_partition_errors(self, topic: str, partition: int, api_key: int, codes: list[int]) -> None:
        values = [c_int(code) for code in codes]
        code = self._library.rd_kafka_mock_partition_push_request_errors(
            self._cluster, topic.encode(), partition, api_key, len(codes), *values
        )
        self._check(code, f"errors for {topic}-{partition} not pushed")

    def set_leader(self, topic: str, partition: int, node: int) -> None:
        code = self._library.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, node)
        self._check(code, f"leader of {topic}-{partition} not set to {node}")

    def push_leader_answer(self, topic: str, partition: int, node: int, epoch: int) -> None:
        code = self._library.rd_kafka_mock_partition_push_leader_response(
            self._cluster, topic.encode(), partition, node, epoch
        )
        self._check(code, f"leader answer of {topic}-{partition} not pushed")

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        code = self._library.rd_kafka_mock_partition_delete_records(
            self._cluster, topic.encode(), partition, before_offset
        )
        self._check(code, f"records of {topic}-{partition} before {before_offset} not deleted")

    def node_down(self, node: int) -> None:
        self._check(self._library.rd_kafka_mock_broker_set_down(self._cluster, node), f"node {node} not taken down")

    def node_up(self, node: int) -> None:
        self._check(self._library.rd_kafka_mock_broker_set_up(self._cluster, node), f"node {node} not brought up")

    def set_rtt(self, node: int, rtt_ms: int) -> None:
        self._check(self._library.rd_kafka_mock_broker_set_rtt(self._cluster, node, rtt_ms), f"RTT of node {node}")

    def set_rack(self, node: int, rack: str) -> None:
        code = self._library.rd_kafka_mock_broker_set_rack(self._cluster, node, rack.encode())
        self._check(code, f"rack of node {node} not set")

    def advertise(self, node: int, host: str, port: int) -> None:
        self._library.rd_kafka_mock_broker_set_host_port(self._cluster, node, host.encode(), port)

    def set_coordinator(self, kind: str, key: str, node: int) -> None:
        code = self._library.rd_kafka_mock_coordinator_set(self._cluster, kind.encode(), key.encode(), node)
        self._check(code, f"coordinator of {kind} {key!r} not set to {node}")

    def set_api_versions(self, api_key: int, lowest: int, highest: int) -> None:
        code = self._library.rd_kafka_mock_set_apiversion(self._cluster, api_key, lowest, highest)
        self._check(code, f"versions of API {api_key} not set to {lowest}..{highest}")

    def start_request_log(self) -> None:
        self._library.rd_kafka_mock_start_request_tracking(self._cluster)

    def stop_request_log(self) -> None:
        self._library.rd_kafka_mock_stop_request_tracking(self._cluster)

    def clear_request_log(self) -> None:
        self._library.rd_kafka_mock_clear_requests(self._cluster)

    def requests(self) -> list[tuple[int, int, int]]:
        count = c_size_t(0)
        array = self._library.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        found = []
        for request in ctypes.cast(array, ctypes.POINTER(c_void_p))[: count.value] if count.value else []:
            node = self._library.rd_kafka_mock_request_id(request)
            api_key = self._library.rd_kafka_mock_request_api_key(request)
            found.append((node, api_key, self._library.rd_kafka_mock_request_timestamp(request)))
            self._library.rd_kafka_mock_request_destroy(request)
        self._library.rd_kafka_mem_free(None, array)
        return found


def answer(cluster: MockCluster, line: bytes) -> dict[str, Any]:
    """The answer to one line of the control channel; what goes wrong in a call is an answer too."""
    numbered: dict[str, Any] = {}
    try:
        request = json.loads(line)
        if "number" in request:
            numbered["number"] = request["number"]
        name = request["call"]
        if name.startswith("_"):
            raise ValueError(f"{name} is not a call")
        return {"ok": getattr(cluster, name)(*request["args"]), **numbered}
    except Exception as error:  # noqa: BLE001 -- the caller raises it, in the other process
        return {"error": f"{error}" or type(error).__name__, **numbered}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def serve(cluster: MockCluster, parent: int) -> None:
    """Answers until standard input ends or the parent is another process than the one that started this one.

    The second test is for parents that forked: their children hold the pipe's other end too.
    """
    buffered = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], PARENT_CHECK_SECONDS)[0]:
            continue
        received = os.read(0, 1 << 16)
        if not received:
            return
        *lines, buffered = (buffered + received).split(b"\n")
        for line in lines:
            say(answer(cluster, line))


def listen_on_ipv6(bootstrap: str) -> list[Forwarder]:
    """Has every node answer on ::1, too, on the port that it has on 127.0.0.1.

    Left out where this machine has no IPv6, or the port is taken there: ``bootstrap_servers`` names 127.0.0.1.
    """
    spec = importlib.util.spec_from_file_location("_forward", os.path.join(os.path.dirname(__file__), "_forward.py"))
    assert spec is not None and spec.loader is not None
    forward = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(forward)
    forwarders = []
    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError):
            forwarders.append(forward.Forwarder(["::1"], int(port), (host, int(port))))
    return forwarders


def main(path: str, nodes: str, parent: str) -> None:
    # Ctrl-C reaches the whole process group: the parent decides when this process ends, by closing the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As many connections as the system allows, whatever the tests' own process may open; and librdkafka's mock ends its
    # process where it gets no descriptor.
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cluster = MockCluster(path, int(nodes))
    described = cluster.describe()
    listen_on_ipv6(described["bootstrap"])
    say({"ok": described})
    serve(cluster, int(parent))
    # Nothing to save, and an orderly destruction would wait for the mock's open connections.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
