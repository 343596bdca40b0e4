"""The child of ``bench/earlier.py``: paced sends by whatever forebay is installed beside the interpreter that runs it.

It is run as a file by an earlier checkout's interpreter, so it imports nothing of this repository but forebay, and it
takes a delivery callback of either form: with the metadata and the error, or with one report that has both.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any


def run(work: dict[str, Any]) -> dict[str, float]:
    """Percentiles in ms from ``send`` to its callback, and the rate that was reached."""
    from forebay import KafkaProducer

    taken: list[int] = []
    failed: list[BaseException] = []

    def callback() -> Any:
        begun = time.perf_counter_ns()

        def delivered(*outcome: Any) -> None:
            taken.append(time.perf_counter_ns() - begun)
            error = getattr(outcome[-1], "error", outcome[-1])
            if error is not None:
                failed.append(error)

        return delivered

    records = work["warm_up"] + work["records"]
    rng = random.Random(1)
    partitions = [None if work["keyless"] else rng.randrange(work["partitions"]) for _ in range(records)]
    value, topic = bytes(100), work["topic"]
    with KafkaProducer({"bootstrap.servers": work["bootstrap"]}) as producer:
        producer.partitions_for(topic)
        begun = time.perf_counter()
        for number, partition in enumerate(partitions):
            due = begun + number / work["rate"]
            while (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            producer.send(topic, value, partition=partition, on_delivery=callback())
        producer.flush()
        seconds = time.perf_counter() - begun
    if failed or len(taken) != records:
        raise RuntimeError(f"{len(failed)} of {records} failed, {len(taken)} callbacks came: {failed[:1]}")
    ordered = sorted(taken[work["warm_up"] :])
    p50, p99 = (ordered[int(len(ordered) * share)] / 1e6 for share in (0.5, 0.99))
    return {"p50": p50, "p99": p99, "achieved_per_s": records / seconds}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
