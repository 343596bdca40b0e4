"""Compressed JSON-like values: rows per second of Arrow columns beside confluent-kafka with the same codec and level.

The values are events of about 300 B, 20,000 different ones, the same in every client.  Each client runs with its own
batch size and the other's; what went over the wire is in the table, because a large batch compresses better.
confluent-kafka gets them one by one, for it has no other way in that is faster (``python -m bench peers`` has its
``produce_batch``).  The same level has not the same number in lz4: forebay's default of 9 is the fast compressor, as
in Java, and librdkafka's is 0.  "The codec alone" is what no producer can pass: forebay's compressor on the raw
records of batches as large, one thread for each processor, with nothing to fill and nothing to send.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from bench.columns import check, hand_over
from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned
from bench.sink import AcknowledgingSink
from bench.support import cpu_seconds, run_child, work_of_child

EVENTS = 20_000


class Codec(NamedTuple):
    """A codec at a level: its number here, and librdkafka's for the same."""

    label: str
    name: str
    level: int
    librdkafka_level: int


CODECS = (Codec("lz4 fast", "lz4", 9, 0), Codec("lz4 high 4", "lz4", 4, 4), Codec("zstd 3", "zstd", 3, 3))
SIZES = (16_384, 1 << 18, 1 << 20)
ALONE = "the codec alone"
CLIENTS = ("forebay", "confluent-kafka", ALONE)
WORDS = ("login", "logout", "view", "click", "search", "purchase", "refund", "share", "upload", "error", "retry")
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64)",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5)",
    "okhttp/4.12.0",
    "python-requests/2.32",
)


def events(count: int) -> list[bytes]:
    """JSON events as a web service logs them, of about 300 B; the same ones in every run."""
    rng = random.Random(5)
    return [event(rng, number) for number in range(count)]


def event(rng: random.Random, number: int) -> bytes:
    """Names and agents that repeat, times that go on, identities that are random."""
    day, hour, minute = 1 + number % 28, number % 24, number % 60
    fields = {
        "event_id": f"{rng.getrandbits(64):016x}",
        "time": f"2026-03-{day:02d}T{hour:02d}:{minute:02d}:{rng.randrange(60):02d}.{rng.randrange(1000):03d}Z",
        "type": rng.choice(WORDS),
        "user": {"id": rng.randrange(5_000_000), "segment": rng.choice(("free", "trial", "paid"))},
        "session": f"{rng.getrandbits(48):012x}",
        "path": f"/{rng.choice(WORDS)}/{rng.randrange(10_000)}",
        "address": ".".join(str(rng.randrange(256)) for _ in range(4)),
        "country": rng.choice(("DE", "FR", "US", "IN", "BR", "JP")),
        "agent": rng.choice(AGENTS),
        "latency_ms": round(rng.expovariate(0.02), 2),
        "referrer": f"https://www.example.org/{rng.choice(WORDS)}",
        "status": rng.choice((200, 200, 200, 200, 204, 302, 404, 500)),
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def with_forebay(work: dict[str, Any], values: list[bytes]) -> tuple[float, float]:
    import pyarrow as pa

    from forebay import KafkaProducer

    batch = pa.record_batch({"value": pa.array(values, pa.binary())})
    config = {"bootstrap.servers": work["bootstrap"], "linger.ms": 5, "batch.size": work["batch_size"]}
    config |= {"compression.type": work["codec"], f"compression.{work['codec']}.level": work["level"]}
    config |= {"buffer.memory": 64 << 20, "max.request.size": 8 << 20}
    with KafkaProducer(config) as producer:
        producer.partitions_for(work["topic"])
        before, begun = cpu_seconds(), time.perf_counter()
        results = [hand_over(producer, work["topic"], batch) for _ in range(work["records"] // EVENTS)]
        producer.flush()
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    check(results, work["records"])
    return seconds, cpu


def with_confluent(work: dict[str, Any], values: list[bytes]) -> tuple[float, float]:
    from confluent_kafka import Producer

    config = {"bootstrap.servers": work["bootstrap"], "acks": "all", "enable.idempotence": True, "linger.ms": 5}
    config |= {"compression.type": work["codec"], "compression.level": work["librdkafka_level"]}
    # Its own batches are of 1 MB.
    producer = Producer({**config, "batch.size": min(work["batch_size"], 1_000_000)})
    topic, produce, poll = work["topic"], producer.produce, producer.poll
    producer.list_topics(topic, timeout=10)
    before, begun = cpu_seconds(), time.perf_counter()
    for value in itertools.islice(itertools.cycle(values), work["records"]):
        while True:
            try:
                produce(topic, value)
                break
            except BufferError:
                poll(0.005)
    producer.flush()
    return time.perf_counter() - begun, cpu_seconds() - before


class RawBatch(NamedTuple):
    """The records of one batch before compression."""

    data: bytes
    records: int


def raw_batches(values: list[bytes], records: int, batch_size: int, packer: Any) -> list[RawBatch]:
    """So many values as records, cut where what they compress to is as much as a batch of forebay holds."""
    from forebay._records.batch_v2 import append_record

    # How well whole batches compress is known from one of them.
    sample = bytearray()
    for number, value in enumerate(values):
        if len(sample) > 4 * batch_size:
            break
        append_record(sample, 0, number, None, value)
    limit = batch_size * len(sample) / len(packer.compress([sample]))
    batches, data, count = [], bytearray(), 0
    for value in itertools.islice(itertools.cycle(values), records):
        append_record(data, 0, count, None, value)
        count += 1
        if len(data) >= limit:
            batches.append(RawBatch(bytes(data), count))
            data, count = bytearray(), 0
    return batches or [RawBatch(bytes(data), count)]


def codec_alone(work: dict[str, Any], values: list[bytes]) -> dict[str, Any]:
    """A thread for each processor compresses batches of as many records as a run has, a few more to come out even."""
    from forebay._records.compression import CompressionType, compressor

    threads = os.cpu_count() or 1
    packer = compressor(CompressionType.of(work["codec"]), work["level"], threading.get_ident)
    # Several different ones, so that they come from memory like those of a producer.
    batches = raw_batches(values, 4 * len(values), work["batch_size"], packer)
    rows = sum(batch.records for batch in batches)
    rounds = -(-work["records"] // (rows * threads))

    def compress(first: int) -> int:
        written = 0
        for number in range(rounds * len(batches)):
            written += len(packer.compress([batches[(first + number) % len(batches)].data]))
        return written

    with ThreadPoolExecutor(threads) as pool:
        before, begun = cpu_seconds(), time.perf_counter()
        written = sum(pool.map(compress, [number * len(batches) // threads for number in range(threads)]))
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    return {"seconds": seconds, "cpu_s": cpu, "records": rows * rounds * threads, "bytes": written}


def run_work(work: dict[str, Any]) -> dict[str, Any]:
    """One run in this process."""
    values = events(EVENTS)
    value_bytes = sum(map(len, values)) / EVENTS
    if work["client"] == ALONE:
        return {**codec_alone(work, values), "value_bytes": value_bytes}
    seconds, cpu = (with_forebay if work["client"] == "forebay" else with_confluent)(work, values)
    return {"seconds": seconds, "cpu_s": cpu, "value_bytes": value_bytes}


def label_of(client: str, codec: Codec, size: int) -> str:
    name = f"{ALONE} on {os.cpu_count() or 1} threads" if client == ALONE else client
    return f"{name}, {codec.label}, {size >> 10} KiB"


def measure(options: argparse.Namespace) -> Result:
    every = itertools.product(CODECS, SIZES, CLIENTS)
    cases = [(codec, size, client) for codec, size, client in every if options.only in label_of(client, codec, size)]
    records = max(1, options.records // EVENTS) * EVENTS
    runs: list[dict[str, Any]] = []
    with AcknowledgingSink() as sink:
        for number in range(options.rounds):
            for codec, size, client in turned(cases, number):
                label = label_of(client, codec, size)
                topic = f"{label}, {number}".replace(", ", "-").replace(" ", "-")
                work = {
                    "bootstrap": sink.bootstrap_servers,
                    "client": client,
                    "codec": codec.name,
                    "level": codec.level,
                }
                work |= {"batch_size": size, "topic": topic, "records": records}
                work["librdkafka_level"] = codec.librdkafka_level
                runs.append({"label": label, **measure_one(work, sink)})
    order = [label_of(client, codec, size) for codec, size, client in cases]
    return result_of("codecs", sorted(runs, key=lambda run: order.index(run["label"])))


def measure_one(work: dict[str, Any], sink: AcknowledgingSink) -> dict[str, Any]:
    """One run, what arrived counted.

    Raises:
        RuntimeError: not every record arrived.
    """
    before = sink.summary()
    found = run_child("bench.codecs", work)
    after = sink.summary()
    if work["client"] == ALONE:
        return figures(found, found["records"], found["bytes"])
    arrived = after["records"].get(work["topic"], 0)
    if arrived != work["records"]:
        raise RuntimeError(f"{work['topic']}: {arrived} of {work['records']} records arrived")
    return figures(found, arrived, after["bytes"] - before["bytes"])


def figures(found: dict[str, Any], records: int, written: int) -> dict[str, Any]:
    """Of a run that took so many records and made so many bytes of them."""
    return {
        "records": records,
        "records_per_s": records / found["seconds"],
        "cpu_s_per_million": found["cpu_s"] / records * 1e6,
        "value_bytes": found["value_bytes"],
        "wire_bytes_a_record": written / records,
    }


def show(result: Result) -> None:
    settings = result["settings"]
    print(f"JSON events, median (lowest-highest) of {settings['rounds']} runs of {settings['records']:,} records\n")
    columns = (
        Column("1000 records/s", "records_per_s", ".0f", 1e-3),
        Column("CPU s/million", "cpu_s_per_million"),
        Column("B a value", "value_bytes", ".0f"),
        Column("B a record on the wire", "wire_bytes_a_record", ".0f"),
    )
    print_figures(result, columns, "client, codec and level, batch.size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=int, default=2_000_000, help="a run (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose label has this text")
    add_rounds(parser)


PART = Part("codecs", __doc__, add_arguments, measure, show, quick=("--records", "400000", "--rounds", "3"))

if __name__ == "__main__":
    given = work_of_child()
    if given is None:
        sys.exit("bench.codecs is run by `python -m bench codecs`")
    print(json.dumps(run_work(given)))
