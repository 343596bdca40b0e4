"""forebay beside its peers: the same work against the same broker in one run, each client in its own process.

Runs alternate (every client once a round, the order turned each round), so that what else the machine does hits
all of them.  Compare CPU seconds per million records with the real broker, and records/s with ``--sink``: on a
shared machine a real broker takes more CPU than a good client.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

from bench import page
from bench.support import ChildFailed, Spread, machine, print_table, run_child, save, say
from bench.target import Target, target
from tools.kafka import JarsUnavailable, KafkaFailed, producer_performance

REFERENCE = "confluent-kafka"
WARM_UP: tuple[dict[str, int], ...] = ({}, {"batch.size": 16_384})
"""Of the broker, whose compiler has to see large batches and small ones before its cost is of interest."""
WARM_UP_RECORDS = 500_000
NO_FIGURES = ("label", "records", "memory")
"""Of a run, what has no median."""


class Variant(NamedTuple):
    """A client in one way of use; ``share`` of the records is what it gets to send, the slow ones less."""

    label: str
    client: str
    callback: bool = False
    config: dict[str, Any] = {}  # noqa: RUF012 - never changed
    share: float = 1.0


LARGE = {"batch.size": 131_072}
VARIANTS = (
    Variant("forebay", "forebay"),
    Variant("forebay, callback", "forebay", True),
    Variant("forebay, 128 KiB batches", "forebay", False, LARGE),
    Variant("confluent-kafka", "confluent-kafka"),
    Variant("confluent-kafka, callback", "confluent-kafka", True),
    Variant("confluent-kafka, produce_batch", "confluent-kafka batches"),
    Variant("Java, callback", "java", True),
    Variant("Java, callback, 128 KiB batches", "java", True, LARGE),
    Variant("aiokafka", "aiokafka", share=0.05),
    Variant("aiokafka, callback", "aiokafka", True, share=0.05),
    Variant("kafka-python", "kafka-python", share=0.02),
    Variant("kafka-python, callback", "kafka-python", True, share=0.02),
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench peers", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="of a fast client (default: %(default)s)")
    parser.add_argument("--slow", type=float, default=1.0, help="factor on the records of the slow clients")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each client (default: %(default)s)")
    parser.add_argument("--size", type=int, default=100, help="bytes a value (default: %(default)s)")
    parser.add_argument("--linger-ms", type=int, default=5, help="linger.ms (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT,...", help="variants whose label has one of these texts")
    parser.add_argument("--sink", action="store_true", help="against a sink that only acknowledges, for records/s")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[Variant]:
    texts = [text.strip().lower() for text in options.only.split(",") if text.strip()]
    return [variant for variant in VARIANTS if not texts or any(text in variant.label.lower() for text in texts)]


def measure(variant: Variant, options: argparse.Namespace, to: Target, jars: Any) -> dict[str, Any]:
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
        work: dict[str, Any] = {
            "client": variant.client,
            "topic": topic,
            "bootstrap": to.bootstrap_servers,
            "records": records,
        }
        work |= {"callback": variant.callback, "config": variant.config, "size": options.size}
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
    # The whole process, JVM start included: nothing else can be told from outside.
    return {"seconds": records / found.records_per_s, "cpu_s": found.cpu_s, "peak_kib": found.peak_kib}


def report(runs: list[dict[str, Any]], variants: list[Variant]) -> list[dict[str, Any]]:
    """Prints the table; its rows as values."""
    medians: dict[str, dict[str, float]] = {}
    rows, values = [], []
    for variant in variants:
        mine = [run for run in runs if run["label"] == variant.label]
        if not mine:
            continue
        spread = {name: Spread.of(run[name] for run in mine) for name in mine[0] if name not in NO_FIGURES}
        medians[variant.label] = {name: found.median for name, found in spread.items()}
        values.append(
            {"label": variant.label, "runs": len(mine), "records": mine[0]["records"], **medians[variant.label]}
        )
        rows.append((variant.label, spread))
    reference = medians.get(REFERENCE)
    heads = ("client", "1000 records/s", "CPU s/million", "peak MiB", "broker CPU s/million", "records/s x", "CPU x")
    cells = []
    for label, spread in rows:
        ratios = ["", ""]
        if reference is not None:
            mine_now = medians[label]
            ratios = [f"{mine_now[n] / reference[n]:.2f}" for n in ("records_per_s", "cpu_s_per_million")]
        rate = Spread(*(value / 1000 for value in spread["records_per_s"]))
        cells.append(
            (
                label,
                rate.text(".0f"),
                spread["cpu_s_per_million"].text(".2f"),
                f"{spread['peak_mib'].median:.0f}",
                f"{spread['broker_cpu_s_per_million'].median:.2f}",
                *ratios,
            )
        )
    print_table(heads, cells)
    return values


def run(options: argparse.Namespace) -> int:
    """All rounds; 1 if a client failed."""
    variants, runs, failed = chosen(options), [], []
    about = machine()
    with target(options.sink) as to:
        jars = to.kafka or _jars_alone(variants)
        variants = [variant for variant in variants if variant.client != "java" or jars is not None]
        for config in WARM_UP:
            work: dict[str, Any] = {"client": REFERENCE, "callback": False, "config": config, "linger_ms": 5}
            work |= {"topic": to.fresh_topic(), "bootstrap": to.bootstrap_servers}
            run_child("bench.clients", {**work, "records": WARM_UP_RECORDS, "size": options.size})
            to.take(work["topic"])
        for number in range(options.rounds):
            order = variants[number % len(variants) :] + variants[: number % len(variants)]
            for variant in order:
                try:
                    found = measure(variant, options, to, jars)
                except (ChildFailed, KafkaFailed) as error:
                    failed.append(f"{variant.label}: {error}")
                    say(f"bench: {failed[-1]}")
                    continue
                runs.append(found)
                rate, cpu = found["records_per_s"] / 1000, found["cpu_s_per_million"]
                say(f"round {number + 1}  {variant.label:32} {rate:8.0f} k records/s  {cpu:6.2f} CPU s per million")
        print(f"\n{options.size} B values, acks=all, linger {options.linger_ms} ms, {to.name}, ", end="")
        print(f"median (lowest-highest) of {options.rounds}; x: ratio to {REFERENCE}\n")
        values = report(runs, variants)
        settings = {"size": options.size, "linger_ms": options.linger_ms, "rounds": options.rounds, "to": to.name}
    kept = save(
        "peers-sink" if options.sink else "peers", {"machine": about, **settings, "medians": values, "runs": runs}
    )
    print(f"\nwritten to {kept}, drawn in {page.write()}")
    return 1 if failed else 0


def _jars_alone(variants: list[Variant]) -> Any:
    # Against the sink no broker runs, but the Java client's jars come with one's.
    from tools.kafka import RealKafka

    if not any(variant.client == "java" for variant in variants):
        return None
    try:
        return RealKafka()
    except JarsUnavailable as error:
        say(f"bench: without the Java client: {error}")
        return None


def main(arguments: list[str]) -> int:
    try:
        return run(parse(arguments))
    except (JarsUnavailable, KafkaFailed, ChildFailed) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
