"""``python -m bench.spark_memory``: resident memory of one Spark worker that writes, beside one that only reads.

It does in one process what a worker does in a task, without Spark's JVM: imports what a worker imports, then writes
Arrow batches to a sink that only acknowledges.  An executor has as many workers as it runs tasks at a time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from bench.sink import AcknowledgingSink
from bench.support import child_environment

BATCH_ROWS = 10_000


def resident_mib(field: str = "VmRSS") -> float:
    """Of this process; ``VmHWM`` is the most it ever was."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(field)


def work(servers: str, rows: int, size: int, buffer: int) -> None:
    """In the child: prints what a worker has before it writes, at the most, and afterwards."""
    import pyarrow as pa
    import pyspark.worker  # noqa: F401

    from forebay.spark.options import parse
    from forebay.spark.writer import TaskId, write

    values = pa.array([b"x" * size] * BATCH_ROWS, pa.binary())
    batch = pa.RecordBatch.from_arrays([values], ["value"])
    options = parse({"kafka.bootstrap.servers": servers, "topic": "memory", "kafka.buffer.memory": str(buffer)})
    before = resident_mib()
    report = write((batch for _ in range(rows // BATCH_ROWS)), options, task=TaskId(0, 0))
    assert report.acknowledged == rows // BATCH_ROWS * BATCH_ROWS
    print(
        f"{report.acknowledged:,} rows of {size} B, buffer.memory {buffer >> 20} MiB: {before:.0f} MiB before, "
        f"{resident_mib('VmHWM') - before:.0f} MiB more at the most, {resident_mib() - before:.0f} MiB more afterwards"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_memory", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="(default: %(default)s)")
    parser.add_argument("--size", type=int, default=1000, help="bytes of a value (default: %(default)s)")
    parser.add_argument("--buffer", type=int, default=32 << 20, help="kafka.buffer.memory (default: %(default)s)")
    options = parser.parse_args()
    arguments = (options.rows, options.size, options.buffer)
    with AcknowledgingSink(6) as sink:
        program = f"from bench.spark_memory import work; work({sink.bootstrap_servers!r}, *{arguments!r})"
        return subprocess.run([sys.executable, "-c", program], env=child_environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
