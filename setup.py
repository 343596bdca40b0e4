"""Builds the compiled modules.

Every hot module is an ordinary ``.py`` file in Cython's pure-Python mode (DESIGN.md, "One source, two
speeds").  ``FOREBAY_INTERPRETED=1`` asks for an installation without any of them; a build that was not asked
for that and cannot compile fails.  ``FOREBAY_BUILD_ONLY=a,b`` builds just those modules (development).
"""

import os
import sys

from setuptools import Extension, setup

COMPILED = [
    "_clock",
    "_gil",
    "_gate",
    "_ticket",
    "_callback_thread",
    "_sender_lock",
    "_metrics.sensor",
    "_metrics.shared",
    "_delivery_callbacks",
    "_outcome",
    "_future",
    "_record_metadata",
    "_future_failed",
    "_future_split",
    "_codec.piece",
    "_records.batch_v2",
    "_records.ratio",
    "_records.rows",
    "_accumulator.shares",
    "_accumulator.pool",
    "_accumulator.partitioner",
    "_accumulator.account",
    "_accumulator.chunks",
    "_accumulator.batch",
    "_accumulator.incomplete",
    "_accumulator.closing",
    "_accumulator.topic",
    "_accumulator.loads",
    "_accumulator.parking",
    "_accumulator.returning",
    "_accumulator.ready_nodes",
    "_accumulator.schedule",
    "_accumulator.mending",
    "_accumulator.accumulator",
    "_accumulator.bulk",
    "_accumulator.split",
    "_protocol.framing",
    "_protocol.produce",
    "_protocol.produce_response",
    "_network.channel",
    "_network.selector",
    "_network.serving",
    "_network.inflight",
    "_network.connection",
    "_network.connection_states",
    "_network.exchange",
    "_network.picture",
    "_network.client",
    "_network.lending",
    "_transactions.sequences",
    "_transactions.partitions",
    "_transactions.manager",
    "_sender.produce",
    "_sender.outcomes",
    "_sender.sensors",
    "_sender.draining",
    "_sender.sender",
    "_sender.lending",
    "_arrow.columns",
    "_arrow.numbers",
    "_arrow.headers",
    "_arrow.batch",
    "_columnar.columns",
    "_columnar.topics",
    "_columnar.shares",
    "_columnar.deliveries",
    "_columnar.row",
    "_columnar.append",
    "_arguments",
    "_send",
]

HEADERS = [f"src/forebay/{name}.h" for name in ("_codec/crc32c", "_codec/ticks", "futex", "mutex", "parking")]
JOBS = int(os.environ.get("FOREBAY_BUILD_JOBS", os.cpu_count() or 1))


def extensions() -> list[Extension]:
    from Cython.Build import cythonize

    only = [name for name in os.environ.get("FOREBAY_BUILD_ONLY", "").split(",") if name]
    names = [name for name in COMPILED if not only or name in only]
    modules = [
        Extension(
            f"forebay.{name}",
            [f"src/forebay/{name.replace('.', '/')}.py"],
            # No debug lines, which Python's own flags ask for: a sixth of the compiler's time, and symbols stay.
            # GCC takes Cython's own checks of None for an access beyond it.
            extra_compile_args=["-O3", "-g0", "-Wno-array-bounds"],
            include_dirs=["src/forebay", "src/forebay/_codec"],
            depends=HEADERS,
        )
        for name in names
    ]
    return cythonize(
        modules,
        include_path=["src"],
        language_level=3,
        nthreads=JOBS if not only else 0,
        compiler_directives={
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "annotation_typing": True,
            "auto_pickle": False,
            "embedsignature": True,
        },
    )


if __name__ == "__main__":
    interpreted = os.environ.get("FOREBAY_INTERPRETED") == "1"
    if interpreted:
        print("forebay: FOREBAY_INTERPRETED=1, building without compiled modules", file=sys.stderr)
    setup(ext_modules=[] if interpreted else extensions(), options={"build_ext": {"parallel": JOBS}})
