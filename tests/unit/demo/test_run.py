"""The demo's table: what of a job's time is Spark's own."""

from __future__ import annotations

from typing import Any

import pytest

from demo.check import Verdict
from demo.run import Outcome, table_of

COUNTERS = {
    "rows": 3000, "acknowledged": 3000, "bytes_sent": 10, "bytes_raw": 20, "compression_ratio": 0.5, "batches": 2,
    "average_fill": 1.22, "started_ms": 12_000, "finished_ms": 15_000,
}  # fmt: skip


def shown(alone_s: float, **changed: Any) -> dict[str, str]:
    table = table_of(Outcome({**COUNTERS, **changed}, [3000], Verdict(), 10_000.0, alone_s))
    names, values = (list(column.cells) for column in table.columns)
    return {str(name).strip(): str(value) for name, value in zip(names, values, strict=True)}


@pytest.mark.parametrize(("alone_s", "rest"), [(2.25, "0.75"), (3.5, "0.00")])
def test_spark_s_own_work_is_not_taken_for_the_sink_s(alone_s: float, rest: str) -> None:
    found = shown(alone_s)
    assert found["seconds until the first row (Spark)"] == "2.00"
    assert found["seconds, first row to last ack"] == "3.00"
    assert found["Spark alone, the rows dropped"] == f"{alone_s:.2f}"
    assert found["workers, sink, broker, reader"] == rest
    assert found["rows/s, all of these"] == "1,000"


def test_a_run_without_rows_has_no_times() -> None:
    assert shown(1.0, rows=0, started_ms=None, finished_ms=None)["rows/s, all of these"] == "-"
