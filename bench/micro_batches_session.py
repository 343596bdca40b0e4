"""Streams of small micro-batches in one Spark session: the child of ``bench.micro_batches``.

It runs in an environment that has the PySpark to be measured.
"""

from __future__ import annotations

import json
import sys
from typing import Any

ROWS = 1_000
WARM_UP = 10
"""Micro-batches that do not count."""
NOOP, BARE, SPARKS, OURS, EXACTLY_ONCE = "noop", "bare", "Spark's own", "forebay", "forebay, exactly once"
FORMATS = {NOOP: "noop", BARE: "bare", SPARKS: "kafka", OURS: "forebay", EXACTLY_ONCE: "forebay"}


def options_of(work: dict[str, Any], sink: str, number: int) -> dict[str, str]:
    options = {"checkpointLocation": f"{work['folder']}/{number}"}
    if sink not in (NOOP, BARE):
        options |= {"kafka.bootstrap.servers": work["bootstrap"], "topic": "micro"}
    if sink == EXACTLY_ONCE:
        options |= {"deliveryGuarantee": "exactly-once", "transactionalIdPrefix": "micro"}
    return options


def run_stream(session: Any, work: dict[str, Any], sink: str, number: int) -> list[float]:
    """``addBatch`` in ms of each micro-batch that counts."""
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    values = rows.selectExpr("CAST(value AS STRING) AS key", "repeat('x', 100) AS value")
    stream = values.coalesce(work["tasks"]).writeStream.format(FORMATS[sink]).options(**options_of(work, sink, number))
    query = stream.trigger(processingTime="0 seconds").start()
    wanted = WARM_UP + work["batches"]
    while progress(query) < wanted:
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        query.awaitTermination(0.2)
    query.stop()
    taken = [one["durationMs"]["addBatch"] for one in query.recentProgress if "addBatch" in one["durationMs"]]
    return [float(ms) for ms in taken[-work["batches"] :]]


def progress(query: Any) -> int:
    """How many micro-batches have ended."""
    last = query.lastProgress
    return 0 if last is None else int(last["batchId"]) + 1


def main(work: dict[str, Any]) -> None:
    """Each stream in turn; a line of JSON for each."""
    from bench.spark_session import open_session

    session = open_session(work)
    for number, sink in enumerate(work["runs"]):
        print(json.dumps(run_stream(session, work, sink, number)), flush=True)
    session.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
