"""The command ``forebay`` as a process, against brokers, with confluent-kafka as the reader."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay import KafkaProducer
from forebay.errors import KafkaError
from forebay.testing import EmbeddedBroker
from tests.support.fixtures import Broker, ReadBackFactory, TopicFactory
from tests.support.pace import HANG_S, within, within_ms
from tests.support.readback import read_all
from tools.kafka import RealKafka

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "forebay.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
PRODUCE, UNKNOWN_TOPIC = 0, 3
SUMMARY = re.compile(r"forebay: (\d+) records acknowledged, (\d+) failed, (\d+) bytes, [\d.]+ s(, [\d,]+ records/s)?")


def forebay(*arguments: str, text: str | bytes = b"", timeout_s: float = HANG_S) -> tuple[int, str, list[str]]:
    """Exit code, stdout and the lines of stderr."""
    data = text.encode() if isinstance(text, str) else text
    done = subprocess.run(
        [*COMMAND, *arguments], input=data, capture_output=True, env=ENVIRONMENT, timeout=timeout_s, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode().splitlines()


def counts(line: str) -> tuple[int, int, int]:
    """Acknowledged, failed, bytes of the summary."""
    match = SUMMARY.fullmatch(line)
    assert match is not None, line
    return int(match[1]), int(match[2]), int(match[3])


@contextlib.contextmanager
def running(*arguments: str, **pipes: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A command that the test talks to; ended with the test."""
    process = subprocess.Popen([*COMMAND, *arguments], env=ENVIRONMENT, stdin=subprocess.PIPE, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_lines_from_standard_input(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker)
    options = ["-b", any_broker.bootstrap_servers, "-t", name, "-K:", "-H", "h=1", "-H", "n", "-z", "lz4", "-Z"]
    code, out, err = forebay("produce", *options, text="a:1\nb:\nno key\n:x")
    assert (code, out, counts(err[0])) == (0, "", (4, 0, 10))
    headers = (("h", b"1"), ("n", None))
    assert [(each.key, each.value, each.headers) for each in read_all(any_broker.bootstrap_servers, name)] == [
        (b"a", b"1", headers),
        (b"b", None, headers),
        (None, b"no key", headers),
        (None, b"x", headers),
    ]


def test_files_of_every_format(embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path) -> None:
    name = topic(embedded)
    (tmp_path / "a.txt").write_bytes(b"text \xff\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1}\n\n{"id": "two"}\n')
    (tmp_path / "c.csv").write_text('id,name\n3,"c, d"\n')
    table: Any = pa.table({"id": ["four"], "n": [4.5]})
    pq.write_table(table, tmp_path / "d.parquet")
    files = [str(tmp_path / file) for file in ("a.txt", "b.jsonl", "c.csv", "d.parquet")]
    options = ["-b", embedded.bootstrap_servers, "-t", name, "--key-field", "id", "--key-column", "id", "-k", "fixed"]
    code, _, err = forebay("produce", *options, *files)
    assert (code, counts(err[0])[:2]) == (0, (5, 0))
    assert [(each.key, each.value) for each in read_all(embedded.bootstrap_servers, name)] == [
        (b"fixed", b"text \xff"),
        (b"1", b'{"id": 1}'),
        (b"two", b'{"id": "two"}'),
        (b"3", b'{"id":"3","name":"c, d"}'),
        (b"four", b'{"id":"four","n":4.5}'),
    ]


def test_envelopes_say_partition_headers_and_time(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded, 3)
    line = {"key": "k", "value": {"a": 1}, "headers": {"h": "x"}, "partition": 2, "timestamp": 1_600_000_000_000}
    options = ["-b", embedded.bootstrap_servers, "-t", name, "--format", "json", "--envelope"]
    code, _, err = forebay("produce", *options, text=json.dumps(line) + '\n{"value":null,"partition":1}')
    assert (code, counts(err[0])[:2]) == (0, (2, 0))
    null, full = read_all(embedded.bootstrap_servers, name)
    assert (null.partition, null.key, null.value) == (1, None, None)
    assert (full.partition, full.key, full.value) == (2, b"k", b'{"a":1}')
    assert (full.headers, full.timestamp) == ((("h", b"x"),), 1_600_000_000_000)


def test_the_flags_of_kafka_console_producer(embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path) -> None:
    name = topic(embedded)
    (tmp_path / "p").write_text(
        "linger.ms=1\nvalue.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
    )
    options = [
        "--bootstrap-server",
        embedded.bootstrap_servers,
        "--topic",
        name,
        "--command-config",
        str(tmp_path / "p"),
    ]
    reader = ["--property", "parse.key=true", "--property", "parse.headers=true", "--reader-property", "null.marker=-"]
    code, _, err = forebay("produce", *options, *reader, "--compression-codec", "zstd", text="h:1\tk\tv\n-\tk\t-\n")
    assert (code, counts(err[0])[:2]) == (0, (2, 0))
    assert [each[2:5] for each in read_all(embedded.bootstrap_servers, name)] == [
        (b"k", b"v", (("h", b"1"),)),
        (b"k", None, ()),
    ]


def test_many_records_arrive_once_and_in_order(
    any_broker: Broker, topic: TopicFactory, read_back: ReadBackFactory, tmp_path: Path
) -> None:
    name = topic(any_broker, 2)
    path = tmp_path / "many.txt"
    path.write_text("".join(f"{number % 7}:{number}\n" for number in range(200_000)))
    reader = read_back(any_broker, name)
    code, _, err = forebay("produce", "-b", any_broker.bootstrap_servers, "-t", name, "-K:", str(path))
    assert (code, counts(err[0])[:2]) == (0, (200_000, 0))
    found = reader.wait_for(200_000)
    by_key: dict[bytes | None, list[int]] = {}
    for each in found:
        by_key.setdefault(each.key, []).append(int(each.value or b""))
    assert by_key == {b"%d" % key: list(range(key, 200_000, 7)) for key in range(7)}


# -- bad input ------------------------------------------------------------------------------------------------


def test_a_bad_line_is_told_and_what_came_before_it_is_delivered(
    embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path
) -> None:
    name = topic(embedded)
    path = tmp_path / "x.json"
    path.write_text('1\n{"a":\n3\n')
    code, _, err = forebay("produce", "-b", embedded.bootstrap_servers, "-t", name, str(path))
    assert code == 1
    assert err[0].startswith(f"forebay: error: {path}:2: not JSON: ")
    assert counts(err[1])[:2] == (1, 1)
    assert [each.value for each in read_all(embedded.bootstrap_servers, name)] == [b"1"]


def test_a_record_over_the_limit_fails_and_the_others_go_on(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    options = ["-b", embedded.bootstrap_servers, "-t", name, "-X", "max.request.size=2000", "--skip-bad"]
    code, _, err = forebay("produce", *options, text=f"ok\n{'x' * 1990}\n{'y' * 3000}\nok\n")
    assert code == 1
    failures = sorted(err[:2])
    assert "stdin:2: The message is 2072 bytes when serialized which is larger than 2000" in failures[0]
    assert failures[1] == "forebay: error: stdin:3: the line is longer than max.request.size (2000 bytes)"
    assert counts(err[2]) == (2, 2, 4)


def test_what_the_broker_refuses_is_told_for_each_record(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    name = topic(embedded)
    embedded.push_partition_errors(name, 0, PRODUCE, 87)
    code, _, err = forebay("produce", "-b", embedded.bootstrap_servers, "-t", name, text="a\nb\n")
    assert code == 1
    assert [line.split(": ")[2] for line in err[:2]] == ["stdin:1", "stdin:2"]
    assert counts(err[2]) == (0, 2, 0)


def test_a_broker_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    block_ms = within_ms(700)
    limit = f"max.block.ms={block_ms}"
    code, out, err = forebay("produce", "-b", f"127.0.0.1:{port}", "-t", "t", "-X", limit, text="x\n")
    assert (code, out) == (1, "")
    assert err[-1].startswith(
        f"forebay: error: topic 't' on 127.0.0.1:{port}: Topic t not present in metadata after {block_ms} ms"
    )
    assert "Connection refused" in err[-1]
    code, out, err = forebay("topics", "-b", f"127.0.0.1:{port}", "-X", limit)
    assert (code, out) == (1, "") and "Connection refused" in err[-1]


def answer_http(server: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed at the end of the test
        while True:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("command", ["produce", "perf"])
def test_something_on_the_port_that_is_not_kafka(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_http, args=(server,), daemon=True).start()
        options = ["-b", f"127.0.0.1:{server.getsockname()[1]}", "-t", "t", "-X", f"max.block.ms={within_ms(700)}"]
        more = ["--num-records", "1", "--record-size", "1"] if command == "perf" else []
        code, out, err = forebay(command, *options, *more, text="x\n")
        assert (code, out) == (1, "")
        assert "does not speak the Kafka protocol" in err[-1] and "HTTP" in err[-1]


def test_something_on_the_port_that_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = ["-b", f"127.0.0.1:{server.getsockname()[1]}", "-t", "t", "-X", f"max.block.ms={within_ms(500)}"]
        code, _, err = forebay("produce", *options, text="x\n", timeout_s=within(15))
        assert code == 1
        assert err[-1].endswith("nothing that answers as Kafka does was reached")


def test_a_topic_that_is_not_there(embedded: EmbeddedBroker) -> None:
    embedded.set_topic_error("gone", UNKNOWN_TOPIC)
    options = ["-b", embedded.bootstrap_servers, "-t", "gone", "-X", f"max.block.ms={within_ms(700)}"]
    code, _, err = forebay("produce", *options, text="x\n")
    assert code == 1
    assert "topic 'gone' on" in err[-1] and "does not have this topic or partition" in err[-1]


def test_a_topic_that_a_real_kafka_would_not_make(strict_kafka: RealKafka) -> None:
    options = ["-b", strict_kafka.bootstrap_servers, "-t", "gone", "-X", f"max.block.ms={within_ms(2000)}"]
    code, _, err = forebay("produce", *options, text="x\n")
    assert code == 1
    assert "does not have this topic or partition" in err[-1]


def test_a_broker_that_goes_away_ends_it_with_every_record_accounted_for(
    embedded: EmbeddedBroker, topic: TopicFactory
) -> None:
    name = topic(embedded)
    limits = {"max.block.ms": 800, "delivery.timeout.ms": 1500, "request.timeout.ms": 500}
    options = [part for name, ms in limits.items() for part in ("-X", f"{name}={within_ms(ms)}")]
    options += ["-X", "buffer.memory=200000"]
    command = ["produce", "-b", embedded.bootstrap_servers, "-t", name, "-z", "none", *options]
    with running(*command, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        wait_for_records(embedded, name, 1)
        embedded.node_down()
        with contextlib.suppress(BrokenPipeError):  # it stops reading, as it should
            process.stdin.write(b"x" * 999 + b"\n" + (b"x" * 999 + b"\n") * 2000)
            process.stdin.flush()
        err = process.stderr.read().decode().splitlines()
        assert process.wait(HANG_S) == 1
    acknowledged, failed, _ = counts(err[-1])
    (stopped,) = [line for line in err if "stopped at" in line]
    match = re.search(r"stopped at stdin:(\d+): what follows was not sent", stopped)
    assert match is not None
    assert acknowledged == 1
    assert acknowledged + failed == int(match[1])


def wait_for_records(broker: EmbeddedBroker, name: str, count: int) -> None:
    for _ in range(100):
        if len(read_all(broker.bootstrap_servers, name)) >= count:
            return
    raise AssertionError(f"{name}: {count} records never came")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_delivers_what_was_accepted(
    embedded: EmbeddedBroker, topic: TopicFactory, number: signal.Signals, code: int
) -> None:
    name = topic(embedded)
    with running("produce", "-b", embedded.bootstrap_servers, "-t", name, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"one\ntwo\nhalf a li")
        process.stdin.flush()
        wait_for_records(embedded, name, 2)
        process.send_signal(number)
        assert process.wait(HANG_S) == code
        err = process.stderr.read().decode().splitlines()
    told = "all records before stdin:3 are acknowledged, and those from stdin:3 on were not sent"
    assert err[0] == f"forebay: error: interrupted: {told}"
    assert counts(err[1]) == (2, 0, 6)
    assert [each.value for each in read_all(embedded.bootstrap_servers, name)] == [b"one", b"two"]


# -- perf -----------------------------------------------------------------------------------------------------


def shape(line: str) -> str:
    """A line with its numbers taken out, the digits after the point kept."""
    return re.sub(r"\d+(\.\d+)?", lambda match: "N" if match[1] is None else "N." + "d" * (len(match[1]) - 1), line)


def test_perf_writes_the_lines_of_the_java_tool(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 2)
    arguments = ["--topic", name, "--num-records", "3000", "--record-size", "100", "--throughput", "2000"]
    options = ["--producer-props", f"bootstrap.servers={any_broker.bootstrap_servers}", "linger.ms=2"]
    code, out, err = forebay("perf", *arguments, *options, "--reporting-interval", "500", "--print-metrics")
    assert (code, err) == (0, [])
    before, _, metrics = out.partition("\n\n")
    *windows, last = before.splitlines()
    assert len(windows) >= 1
    assert {shape(line) for line in windows} == {
        "N records sent, N.d records/sec (N.dd MB/sec), N.d ms avg latency, N.d ms max latency."
    }
    assert shape(last) == (
        "N records sent, N.dddddd records/sec (N.dd MB/sec), N.dd ms avg latency, N.dd ms max latency, "
        "N ms Nth, N ms Nth, N ms Nth, N ms N.dth."
    )
    assert last.startswith("3000 records sent, ") and last.endswith(" ms 99.9th.")
    rate = float(last.split(", ")[1].split()[0])
    assert rate < 2100
    assert re.search(
        r"^producer-metrics:record-send-total:\{client-id=perf-producer-client\} +: 3000\.000$", metrics, re.M
    )
    found = read_all(any_broker.bootstrap_servers, name)
    assert len(found) == 3000 and {len(each.value or b"") for each in found} == {100}


def test_the_java_tool_s_own_last_line_has_the_same_shape(kafka: Any, topic: TopicFactory) -> None:
    arguments = ["--topic", topic(kafka), "--num-records", "500", "--record-size", "100", "--throughput", "-1"]
    java = kafka.run_tool(
        "org.apache.kafka.tools.ProducerPerformance", *arguments, "--bootstrap-server", kafka.bootstrap_servers
    )
    code, out, _ = forebay("perf", *arguments, "--bootstrap-server", kafka.bootstrap_servers)
    assert code == 0
    assert shape(out.splitlines()[-1]) == shape(java.strip().splitlines()[-1])


def test_perf_from_a_file_with_warm_up(embedded: EmbeddedBroker, topic: TopicFactory, tmp_path: Path) -> None:
    name = topic(embedded)
    (tmp_path / "values").write_text("a;b;c")
    arguments = ["--topic", name, "--num-records", "50", "--payload-file", str(tmp_path / "values")]
    more = ["--payload-delimiter", ";", "--warmup-records", "20", "--bootstrap-server", embedded.bootstrap_servers]
    code, out, _ = forebay("perf", *arguments, *more)
    assert code == 0
    lines = out.splitlines()
    assert lines[:2] == [f"Reading payloads from: {tmp_path / 'values'}", "Number of records read: 3"]
    assert lines[2].startswith("Warmup first 20 records.")
    assert lines[3].startswith("50 records sent, ") and lines[4].startswith("30 steady state records sent, ")
    assert {each.value for each in read_all(embedded.bootstrap_servers, name)} == {b"a", b"b", b"c"}


def test_perf_counts_what_failed(embedded: EmbeddedBroker, topic: TopicFactory) -> None:
    arguments = ["--topic", topic(embedded), "--num-records", "2", "--record-size", "2000000"]
    code, out, err = forebay("perf", *arguments, "--bootstrap-server", embedded.bootstrap_servers)
    assert code == 1
    assert out.startswith("0 records sent, ")
    assert [line.split(": ")[2] for line in err] == ["record:1", "record:2"]


# -- the rest -------------------------------------------------------------------------------------------------


def test_broker_serves_what_produce_sends() -> None:
    with running("broker", "--topics", "a:2,b", "--partitions", "3", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        for name, partition in (("a", "1"), ("b", "2")):
            code, _, err = forebay("produce", "-b", address, "-t", name, "-p", partition, text="x\n")
            assert (code, counts(err[0])) == (0, (1, 0, 1))
        code, _, err = forebay("produce", "-b", address, "-t", "a", "-p", "2", text="x\n")
        assert (code, err) == (2, ["forebay: error: partition 2 of topic 'a': it has 2 partition(s), 0 to 1"])
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 0


def test_a_reader_that_leaves_is_no_traceback() -> None:
    with running("config", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(HANG_S) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("name", ["click", "rich"])
def test_without_the_extra_it_says_what_to_install(name: str) -> None:
    code = (
        f"import sys; sys.modules[{name!r}] = None; from forebay.cli.__main__ import main; sys.exit(main(['config']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 2
    assert done.stderr == f"forebay: error: the command line needs {name}: pip install 'forebay[cli]'\n"


def test_debug_shows_the_traceback() -> None:
    done = subprocess.run(
        [*COMMAND, "produce", "-t", "t"],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "FOREBAY_DEBUG": "1"},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback") and done.stderr.splitlines()[-1].startswith("forebay: error: no broker")


# -- looking --------------------------------------------------------------------------------------------------


def test_topics_and_the_newest_records(any_broker: Broker, topic: TopicFactory) -> None:
    name = topic(any_broker, 2)
    brokers = ["-b", any_broker.bootstrap_servers]
    line = {"key": "k", "value": "v", "headers": {"h": "1"}, "partition": 1, "timestamp": 1_700_000_000_000}
    later = {"value": None, "partition": 0, "timestamp": 1_700_000_000_500}
    text = "".join(f"{json.dumps(each)}\n" for each in (later, line))
    assert forebay("produce", *brokers, "-t", name, "--format", "json", "--envelope", text=text)[0] == 0
    code, out, err = forebay("topics", *brokers)
    assert (code, err) == (0, [])
    assert re.search(rf"^{name} +2 +\d+ +0 +0$", out, re.M)
    code, out, _ = forebay("topics", *brokers, "--json", name)
    assert [each["partition"] for each in json.loads(out)[0]["partitions"]] == [0, 1]
    code, out, err = forebay("tail", *brokers, name)
    assert (code, err) == (0, [])
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["2023-11-14T22:13:20.000Z", "1", "0", "k", "v"],
        ["2023-11-14T22:13:20.500Z", "0", "0", "null", "null"],
    ]
    code, out, _ = forebay("tail", *brokers, "-n", "1", "-p", "1", "--json", name)
    (found,) = map(json.loads, out.splitlines())
    assert (found["key"], found["headers"]) == ("k", [{"name": "h", "value": "1"}])
    for command in ("topics", "tail"):
        code, out, err = forebay(command, *brokers, f"{name}-gone")
        assert (code, out, len(err)) == (1, "", 1) and f"topic '{name}-gone'" in err[0]


def test_transactions_are_listed_described_and_aborted(kafka: Any, topic: TopicFactory) -> None:
    name = topic(kafka)
    brokers = ["-b", kafka.bootstrap_servers]
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"left open").result(HANG_S)
        code, out, err = forebay("transactions", "list", *brokers, "--prefix", name, "--state", "Ongoing")
        assert (code, err) == (0, [])
        assert out.splitlines()[1].split()[::2] == [name, "Ongoing"]
        code, out, _ = forebay("transactions", "describe", *brokers, "--json", name)
        assert (code, json.loads(out)[0]["partitions"]) == (0, [f"{name}-0"])
        code, out, err = forebay("transactions", "abort", *brokers, name, text="n\n")
        assert (code, out) == (1, "") and "nothing was aborted" in err[-1]
        code, out, err = forebay("transactions", "abort", *brokers, "-y", name)
        assert (code, out, err) == (0, f"aborted the transaction of '{name}'\n", [])
        code, _, err = forebay("transactions", "abort", *brokers, "-y", name)
        assert code == 1 and "has no open transaction: its state is " in err[0]
        with pytest.raises(KafkaError):
            producer.commit_transaction(HANG_S)
    code, _, err = forebay("transactions", "describe", *brokers, f"{name}-gone")
    assert (code, len(err)) == (1, 1) and "no coordinator knows the transactional id" in err[0]


# -- transactions ---------------------------------------------------------------------------------------------


def test_perf_in_transactions(kafka: Any, topic: TopicFactory) -> None:
    # Of one partition: the sticky choice may give one of two all of so few records.
    name = topic(kafka, 1)
    arguments = ["--topic", name, "--num-records", "600", "--record-size", "100", "--throughput", "400"]
    options = ["--transaction-duration-ms", "100", "--bootstrap-server", kafka.bootstrap_servers]
    code, out, err = forebay("perf", *arguments, *options, "--print-metrics")
    assert (code, err) == (0, [])
    assert re.search(r"^600 records sent, ", out, re.M)
    begun = re.search(r"^producer-metrics:txn-begin-time-ns-total:\S+ +: ([\d.]+)$", out, re.M)
    assert begun is not None and float(begun[1]) > 0
    found = read_all(kafka.bootstrap_servers, name)
    assert len(found) == 600
    # Each commit leaves a marker, which takes an offset: of about fifteen, all but the last are before a record.
    markers = max(each.offset for each in found) + 1 - 600
    assert markers >= 3


def test_produce_in_a_transaction_is_all_or_nothing(kafka: Any, topic: TopicFactory, tmp_path: Path) -> None:
    name = topic(kafka)
    options = ["-b", kafka.bootstrap_servers, "-t", name, "-X", f"transactional.id={name}", "-X", "linger.ms=0"]
    (tmp_path / "good.json").write_text("1\n2\n")
    (tmp_path / "bad.json").write_text('3\n{"a":\n')
    code, _, err = forebay("produce", *options, str(tmp_path / "good.json"))
    assert (code, counts(err[-1])[:2]) == (0, (2, 0))
    code, _, err = forebay("produce", *options, str(tmp_path / "bad.json"))
    assert code == 1
    assert any("the transaction was not committed" in line for line in err)
    assert [each.value for each in read_all(kafka.bootstrap_servers, name)] == [b"1", b"2"]
