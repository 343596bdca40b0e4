"""forebay beside its peers: the same work against the same broker in one run, each client in its own process.

Runs alternate (every client once a round, begun at another one each round), so that what else the machine does hits
all of them.  Compare CPU seconds per million records with the real broker, and records/s with ``--sink``: on a
shared machine a real broker takes more CPU than a good client.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bench.part import Column, Part, Result, add_rounds, add_sink, figures_of, print_figures, result_of, turned
from bench.support import ChildFailed, run_child, say
from bench.target import Target, target
from tools.kafka import JarsUnavailable, KafkaFailed, producer_performance

REFERENCE = "confluent-kafka"
WARM_UP: tuple[dict[str, int], ...] = ({}, {"batch.size": 16_384})
"""Warm-up of the broker: its compiler must see large and small batches before its cost counts."""
WARM_UP_RECORDS = 500_000


class Variant(NamedTuple):
    """A client in one way of use; ``share`` of the records is what it gets to send, the slow ones less."""

    label: str
    client: str
    callback: bool = False
    config: dict[str, Any] = {}  # noqa: RUF012 - never changed
    share: float = 1.0
    keyed: bool = False
    """With a key of 12 B and two headers."""


OURS, LARGE = {"batch.size": 16_384}, {"batch.size": 131_072}
VARIANTS = (
    Variant("forebay", "forebay"),
    Variant("forebay, callback", "forebay", True),
    Variant("forebay, key and 2 headers", "forebay", keyed=True),
    Variant("forebay, 128 KiB batches", "forebay", False, LARGE),
    Variant("forebay, asyncio", "forebay aio"),
    Variant("forebay, asyncio, callback", "forebay aio", True),
    Variant("forebay as confluent-kafka", "forebay as confluent-kafka"),
    Variant("forebay as confluent-kafka, callback", "forebay as confluent-kafka", True),
    Variant("forebay as confluent-kafka, key and 2 headers", "forebay as confluent-kafka", keyed=True),
    Variant("forebay as kafka-python", "forebay as kafka-python"),
    Variant("forebay as kafka-python, callback", "forebay as kafka-python", True),
    Variant("forebay as kafka-python, key and 2 headers", "forebay as kafka-python", keyed=True),
    Variant("forebay as aiokafka", "forebay as aiokafka"),
    Variant("forebay as aiokafka, callback", "forebay as aiokafka", True),
    # Its own batches are of 1 MB; all others' are ours.
    Variant("confluent-kafka", "confluent-kafka"),
    Variant("confluent-kafka, callback", "confluent-kafka", True),
    Variant("confluent-kafka, 16 KiB batches", "confluent-kafka", False, OURS),
    Variant("confluent-kafka, callback, 16 KiB batches", "confluent-kafka", True, OURS),
    Variant("confluent-kafka, key and 2 headers", "confluent-kafka", keyed=True),
    Variant("confluent-kafka, produce_batch", "confluent-kafka batches"),
    Variant("confluent-kafka, asyncio", "confluent-kafka aio", share=0.02),
    Variant("Java, callback", "java", True),
    Variant("Java, callback, 128 KiB batches", "java", True, LARGE),
    Variant("aiokafka", "aiokafka", share=0.05),
    Variant("aiokafka, callback", "aiokafka", True, share=0.05),
    Variant("kafka-python", "kafka-python", share=0.02),
    Variant("kafka-python, callback", "kafka-python", True, share=0.02),
)
COLUMNS = (
    Column("1000 records/s", "records_per_s", ".0f", 1e-3),
    Column("CPU s/million", "cpu_s_per_million"),
    Column("peak MiB", "peak_mib", ".0f"),
    Column("broker CPU s/million", "broker_cpu_s_per_million"),
    Column("records/s x", "records_per_s_over_reference"),
    Column("CPU x", "cpu_over_reference"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=5_000_000, help="of a fast client (default: %(default)s)")
    parser.add_argument("--slow", type=float, default=1.0, help="factor on the records of the slow clients")
    add_rounds(parser)
    parser.add_argument("--size", type=int, default=100, help="bytes a value (default: %(default)s)")
    parser.add_argument("--linger-ms", type=int, default=5, help="linger.ms (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT,...", help="variants whose label has one of these texts")
    add_sink(parser)


def chosen(only: str) -> list[Variant]:
    """The variants whose label has one of the texts; all of them for none."""
    texts = [text.strip().lower() for text in only.split(",") if text.strip()]
    return [variant for variant in VARIANTS if not texts or any(text in variant.label.lower() for text in texts)]


def measure_one(variant: Variant, options: argparse.Namespace, to: Target, jars: Any) -> dict[str, Any]:
    """One run; figures per million records, what arrived checked.

    Raises:
        ChildFailed: the client failed, or not every record arrived.
    """
    slow = variant.share < 1
    records = max(1000, int(options.records * variant.share * (options.slow if slow else 1)))
    topic = to.fresh_topic()
    broker_before = to.cpu_seconds()
    if variant.client == "java":
        found = run_java(variant, options, to, topic, records, jars)
    else:
        work = {"client": variant.client, "topic": topic, "bootstrap": to.bootstrap_servers, "records": records}
        work |= {"callback": variant.callback, "config": variant.config, "size": options.size, "keyed": variant.keyed}
        found = run_child("bench.clients", {**work, "linger_ms": options.linger_ms})
    broker = to.cpu_seconds() - broker_before
    arrived = to.take(topic)
    if arrived != records:
        raise ChildFailed(f"{variant.label}: sent {records} records, {arrived} arrived")
    millions = records / 1e6
    return {
        "label": variant.label,
        "records": records,
        "records_per_s": records / found["seconds"],
        "cpu_s_per_million": found["cpu_s"] / millions,
        "broker_cpu_s_per_million": broker / millions,
        "broker_busy_percent": 100 * broker / found["seconds"],
        "peak_mib": found["peak_kib"] / 1024,
        "memory": found.get("memory", []),
    }


def run_java(
    variant: Variant, options: argparse.Namespace, to: Target, topic: str, records: int, jars: Any
) -> dict[str, Any]:
    properties = {"acks": "all", "linger.ms": str(options.linger_ms)}
    found = producer_performance(
        jars,
        topic,
        records=records,
        record_size=options.size,
        properties={**properties, **{name: str(value) for name, value in variant.config.items()}},
        bootstrap_servers=to.bootstrap_servers,
    )
    # The whole process, JVM start included: nothing else can be measured from outside.
    return {"seconds": records / found.records_per_s, "cpu_s": found.cpu_s, "peak_kib": found.peak_kib}


def measure(options: argparse.Namespace) -> Result:
    """All rounds; what failed is in the result, and the others go on."""
    variants, failed = chosen(options.only), []
    runs: list[dict[str, Any]] = []
    with target(options.sink) as to:
        jars = to.kafka or jars_alone(any(variant.client == "java" for variant in variants))
        variants = [variant for variant in variants if variant.client != "java" or jars is not None]
        warm_up(to, options.size)
        for number in range(options.rounds):
            for variant in turned(variants, number):
                try:
                    found = measure_one(variant, options, to, jars)
                except (ChildFailed, KafkaFailed) as error:
                    failed.append(f"{variant.label}: {error}")
                    say(f"bench: {failed[-1]}")
                    continue
                runs.append(found)
                rate, cpu = found["records_per_s"] / 1000, found["cpu_s_per_million"]
                say(f"round {number + 1}  {variant.label:42} {rate:8.0f} k records/s  {cpu:6.2f} CPU s per million")
        name = "peers-sink" if options.sink else "peers"
        order = {variant.label: number for number, variant in enumerate(VARIANTS)}
        runs.sort(key=lambda run: order[run["label"]])
        return result_of(name, list(with_ratios(runs)), to=to.name, failed=failed)


def warm_up(to: Target, size: int) -> None:
    for config in WARM_UP:
        work: dict[str, Any] = {"client": REFERENCE, "callback": False, "config": config, "linger_ms": 5}
        work |= {"topic": to.fresh_topic(), "bootstrap": to.bootstrap_servers}
        run_child("bench.clients", {**work, "records": WARM_UP_RECORDS, "size": size})
        to.take(work["topic"])


def with_ratios(runs: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each run beside the median of the reference's."""
    reference: Mapping[str, Any] = figures_of(runs).get(REFERENCE, {})
    for run in runs:
        if reference:
            run["records_per_s_over_reference"] = run["records_per_s"] / reference["records_per_s"].median
            run["cpu_over_reference"] = run["cpu_s_per_million"] / reference["cpu_s_per_million"].median
        yield run


def jars_alone(wanted: bool) -> Any:
    """Against the sink no broker runs, but the Java client's jars come with one's."""
    from tools.kafka import RealKafka

    if not wanted:
        return None
    try:
        return RealKafka()
    except JarsUnavailable as error:
        say(f"bench: without the Java client: {error}")
        return None


def show(result: Result) -> None:
    settings = result["settings"]
    print(
        f"\n{settings['size']} B values, acks=all, idempotent, linger {settings['linger_ms']} ms, {result['to']}, ",
        end="",
    )
    print(f"median (lowest-highest) of {settings['rounds']}; x: ratio to {REFERENCE}\n")
    print_figures(result, COLUMNS)


PART = Part("peers", __doc__, add_arguments, measure, show, quick=("--records", "1000000", "--rounds", "3"))
