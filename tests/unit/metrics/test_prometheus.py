"""metrics.prometheus: what prometheus_client's own parser reads of a producer."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from forebay.metrics.prometheus import FAMILIES, SPARK_COUNTERS, ProducerCollector, SparkCollector, serve
from forebay.spark.commit import SUMS, TaskReport, save
from tests.support.pace import HANG_S
from tests.unit.metrics.test_exported import Known

ABBREVIATED = {"s", "ms", "us", "ns", "sec", "m", "min", "h", "d", "b", "kb", "mb", "gb", "tb", "pb"}
NO_BASE_UNITS = ABBREVIATED | {
    *("milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "weeks"),
    *("kilobytes", "megabytes", "gigabytes", "terabytes", "kibibytes", "mebibytes", "bits", "percent", "kelvins"),
}
"""Of promtool: units that are no base units, and abbreviations of units."""


def scraped(*collectors: Collector) -> dict[str, Any]:
    """The families as OpenMetrics' parser, which is strict, reads them."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    text = generate_latest(registry).decode()  # type: ignore[no-untyped-call]
    return {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]


def values(family: Any, suffix: str = "") -> dict[tuple[str, ...], float]:
    """The samples of a family by their labels' values."""
    name = family.name + suffix
    return {tuple(sample.labels.values()): sample.value for sample in family.samples if sample.name == name}


def test_what_prometheus_reads() -> None:
    world = Known(client_id="me", topics={"test": 1, "other": 1}, linger_ms=30, compression_type="none")
    for _ in range(3):
        world.send(bytes(100))
    world.send(b"v", topic="other")
    world.let_pass(40)
    world.settle()
    found = scraped(ProducerCollector([world.producer]))
    assert values(found["forebay_record_send"], "_total") == {("me",): 4.0}
    assert values(found["forebay_topic_record_send"], "_total") == {("me", "test"): 3.0, ("me", "other"): 1.0}
    assert ("me", "0") in values(found["forebay_node_request"], "_total")
    snapshot = world.producer.metrics()
    latency = found["forebay_request_latency_seconds"]
    count, total = (values(latency, suffix)["me",] for suffix in ("_count", "_sum"))
    assert total / count == pytest.approx(float(snapshot.value("request-latency-avg")) / 1000)
    assert values(found["forebay_buffer_total_bytes"]) == {("me",): snapshot.value("buffer-total-bytes")}
    assert values(found["forebay_metadata_age_seconds"]) == {("me",): snapshot.value("metadata-age")}
    assert values(found["forebay_start_time_seconds"])["me",] == pytest.approx(world.clock.wall() / 1000, abs=60)
    (info,) = found["forebay_producer"].samples
    assert info.labels == {"client_id": "me", "version": snapshot.value("version", "app-info")}


def test_the_histogram_is_in_seconds_and_adds_up() -> None:
    world = Known(client_id="me", linger_ms=30)
    for _ in range(5):
        world.send(b"v")
    world.let_pass(40)
    world.settle()
    found = scraped(ProducerCollector([world.producer]))["forebay_topic_record_ack_time_seconds"]
    buckets = {sample.labels["le"]: sample.value for sample in found.samples if sample.name.endswith("_bucket")}
    assert list(buckets)[:2] == ["0.0005", "0.001"] and list(buckets)[-2:] == ["131.072", "+Inf"]
    assert (buckets["0.016"], buckets["0.032"], buckets["+Inf"]) == (0, 5, 5)
    assert values(found, "_count") == {("me", "test"): 5.0}
    assert values(found, "_sum") == {("me", "test"): pytest.approx(0.15)}


def test_several_producers_and_one_that_ends() -> None:
    one, two = Known(client_id="same"), Known(client_id="same")
    collector = ProducerCollector([one.producer, two.producer])
    assert set(values(scraped(collector)["forebay_connections"])) == {("same",), ("same#2",)}
    one.end()
    assert set(values(scraped(collector)["forebay_connections"])) == {("same#2",)}
    two.end()
    assert scraped(collector) == {}


def test_a_maximum_of_nothing_is_left_out() -> None:
    world = Known()
    found = scraped(ProducerCollector([world.producer]))
    assert "forebay_batch_size_max_bytes" not in found
    assert values(found["forebay_batch_size_bytes"], "_count") == {(world.producer.client_id,): 0.0}


def test_names_that_clash_are_refused_at_registration() -> None:
    registry = CollectorRegistry()
    Counter("forebay_record_send", "Somebody else's.", registry=registry)
    with pytest.raises(ValueError, match="forebay_record_send"):
        registry.register(ProducerCollector([]))
    CollectorRegistry().register(ProducerCollector())


@pytest.mark.parametrize("kind", sorted(set(FAMILIES.values()), key=str), ids=lambda kind: kind.__name__)
def test_promtool_has_nothing_to_say(kind: Any) -> None:
    """The rules of ``promtool check metrics`` for names, ends, units, types and help."""
    families = [family for family in ProducerCollector([]).describe() if isinstance(family, kind)]
    assert families
    for family in families:
        words = family.name.split("_")
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name) and family.documentation
        assert not {"total", "sum", "count", "bucket", "info", "created"} & {words[-1]}, family.name
        assert not set(words) & NO_BASE_UNITS, family.name
        assert not {"counter", "gauge", "summary", "untyped", "histogram"} & set(words[1:]), family.name
        assert all(unit not in words or words[-1] == unit for unit in ("seconds", "bytes")), family.name
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in family._labelnames)
        assert not {"le", "quantile"} & set(family._labelnames)


def test_serve_again_has_the_same_collector(caplog: pytest.LogCaptureFixture) -> None:
    world = Known(client_id="served")
    registry = CollectorRegistry()
    servers = [serve(0, "127.0.0.1", registry) for _ in range(2)]
    try:
        for server in servers:
            assert server is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=HANG_S) as answer:
                assert answer.read().decode().count('forebay_connections{client_id="served"}') == 1
        assert servers[0] is not None and serve(servers[0].server_port, "127.0.0.1", registry) is None
    finally:
        for server in servers:
            assert server is not None
            server.shutdown()
            server.server_close()
    assert len(caplog.messages) == 1 and world.producer.metrics()


def test_serve_beside_a_collector_of_one_s_own_is_one_sentence() -> None:
    registry = CollectorRegistry()
    registry.register(ProducerCollector())
    with pytest.raises(ValueError, match="^serve: the registry has metrics named forebay_... already") as refused:
        serve(0, "127.0.0.1", registry)
    assert len(str(refused.value)) < 250


def test_a_port_that_is_taken_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    world = Known(client_id="served")
    server = serve(0, "127.0.0.1", CollectorRegistry())
    assert server is not None
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=HANG_S) as answer:
            assert 'forebay_connections{client_id="served"}' in answer.read().decode()
        assert serve(server.server_port, "127.0.0.1", CollectorRegistry()) is None
    finally:
        server.shutdown()
        server.server_close()
    (line,) = caplog.messages
    assert line.startswith(f"Metrics are not served: port {server.server_port} of 127.0.0.1 cannot be had: ")
    assert world.producer.metrics()


# -- Spark ----------------------------------------------------------------------------------------------------


def spark_report(rows: int) -> TaskReport:
    return TaskReport(0, 0, rows, rows, 2, 100, 400, 0.5, 1000, 2500, {"topic-of-mine-3": rows})


def test_what_a_spark_job_has_counted_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    save(str(path), [spark_report(3), spark_report(4)], add=True, batch_id=0)
    save(str(path), [spark_report(5)], add=True, batch_id=1)
    found = scraped(SparkCollector({"orders": path}))
    saved = json.loads(path.read_text())
    for key in SPARK_COUNTERS:
        assert values(found[f"forebay_spark_{key}"], "_total") == {("orders",): saved[key]}, key
    assert values(found["forebay_spark_partition_records"], "_total") == {("orders", "3", "topic-of-mine"): 12}
    assert values(found["forebay_spark_finished_time_seconds"]) == {("orders",): 2.5}


def test_every_sum_of_the_file_is_a_counter() -> None:
    assert set(SPARK_COUNTERS) == set(SUMS)


def test_before_the_first_commit_a_spark_job_has_no_values(tmp_path: Path) -> None:
    assert scraped(SparkCollector({"orders": tmp_path / "counters.json"})) == {}
    save(str(tmp_path / "counters.json"), [spark_report(0)], add=False)
    found = scraped(SparkCollector({"orders": tmp_path / "counters.json"}))
    assert "forebay_spark_finished_time_seconds" not in found
    assert values(found["forebay_spark_rows"], "_total") == {("orders",): 0}


@pytest.mark.parametrize("text", ["[]", '{"format": 2}', "not JSON"])
def test_another_file_is_no_file_of_counters(tmp_path: Path, text: str) -> None:
    (tmp_path / "counters.json").write_text(text)
    with pytest.raises(ValueError, match=r"counters|Expecting"):
        scraped(SparkCollector({"orders": tmp_path / "counters.json"}))


def test_each_job_has_a_file(tmp_path: Path) -> None:
    paths = {job: tmp_path / f"{job}.json" for job in ("a", "b")}
    for number, path in enumerate(paths.values()):
        save(str(path), [spark_report(number)], add=False)
    assert values(scraped(SparkCollector(paths))["forebay_spark_rows"], "_total") == {("a",): 0, ("b",): 1}
