"""Rows of a table as JSON and as Avro: rows per second of CPU time by forebay's functions, and by dicts.

Five columns: an integer, a float, a boolean, two texts.  In the second table one text in ten has a quote, and one in
fifty is null.  Nothing is sent.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from bench.part import Column, Part, Result, add_rounds, print_figures, result_of, turned

ROWS = 200_000


def table(*, plain: bool) -> Any:
    """The same rows in every run."""
    import pyarrow as pa

    names = [f"name {number % 1000}" + ('"' if not plain and number % 10 == 0 else "") for number in range(ROWS)]
    days = [None if not plain and number % 50 == 0 else f"2026-03-{number % 28 + 1:02d}" for number in range(ROWS)]
    return pa.table(
        {
            "id": list(range(ROWS)),
            "name": names,
            "price": [number * 0.37 for number in range(ROWS)],
            "paid": [number % 2 == 0 for number in range(ROWS)],
            "day": days,
        }
    )


def by_dicts(rows: Any) -> list[bytes]:
    """The road not taken."""
    return [json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() for row in rows.to_pylist()]


SCHEMA_ID = 7


def by_serializer(rows: Any) -> list[bytes | None]:
    """The same for Avro: a dict for each row, and confluent's serializer."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    kinds = {"id": "long", "name": "string", "price": "double", "paid": "boolean", "day": "string"}
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in kinds.items()]
    schema = json.dumps({"type": "record", "name": "Row", "fields": fields})
    serialize = AvroSerializer(SchemaRegistryClient.new_client({"url": "mock://bench"}), schema)
    context = SerializationContext("rows", MessageField.VALUE)
    return [serialize(row, context) for row in rows.to_pylist()]


def measure(options: argparse.Namespace) -> Result:
    from forebay import rows_as_avro, rows_as_json

    plain, other = table(plain=True), table(plain=False)
    ways: dict[str, tuple[Callable[[Any], Any], Any]] = {
        "rows_as_json": (rows_as_json, plain),
        "rows_as_json, quotes and nulls": (rows_as_json, other),
        "dicts and json": (by_dicts, plain),
        "rows_as_avro": (rows_as_avro(schema_id=SCHEMA_ID), plain),
        "dicts and confluent's AvroSerializer": (by_serializer, plain),
    }
    runs: list[dict[str, Any]] = []
    labels = list(ways)
    for number in range(options.rounds + 1):
        for label in turned(labels, number):
            make, rows = ways[label]
            begun = time.process_time()
            made = make(rows)
            seconds = time.process_time() - begun
            if len(made) != ROWS:
                raise AssertionError(f"{label} made {len(made)} of {ROWS} rows")
            if number:  # the first round warms up
                runs.append({"label": label, "rows_a_cpu_s": ROWS / seconds})
    return result_of("rows", sorted(runs, key=lambda run: labels.index(run["label"])))


def show(result: Result) -> None:
    print(f"rows of 5 columns, median (lowest-highest) of {result['settings']['rounds']}\n")
    print_figures(result, [Column("M rows per s of CPU", "rows_a_cpu_s", ".2f", 1e-6)], "way")


PART = Part("rows", __doc__, add_rounds, measure, show)
