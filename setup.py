"""Builds the compiled modules.

Every hot module is an ordinary ``.py`` file in Cython's pure-Python mode (DESIGN.md, "One source, two
speeds").  ``FOREBAY_INTERPRETED=1`` asks for an installation without any of them; a build that was not asked
for that and cannot compile fails, with one line that says what can be done.  ``FOREBAY_BUILD_ONLY=a,b`` builds just
those modules, and ``FOREBAY_BUILD_CHECKED=1`` modules that raise where others would read through None (development).
"""

import gc
import gzip
import os
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from sysconfig import get_config_var

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

COMPILED = [
    "_runtime.clock",
    "_runtime.gil",
    "model._gate",
    "_runtime.ticket",
    "_delivery.callback_thread",
    "_delivery.sender_lock",
    "_metrics.sensor",
    "_delivery.callbacks",
    "_delivery.result",
    "_delivery.hearing",
    "_delivery.future",
    "_delivery.added",
    "model._metadata",
    "_delivery.split",
    "_runtime.piece",
    "_records.batch_v2",
    "_records.ratio",
    "_records.rows",
    "_accumulator.waiters",
    "_accumulator.pool",
    "_accumulator.partitioner",
    "_accumulator.account",
    "_accumulator.chunks",
    "_accumulator.records",
    "_accumulator.batch",
    "_accumulator.incomplete",
    "_accumulator.closing",
    "_accumulator.watching",
    "_accumulator.topic",
    "_accumulator.loads",
    "_accumulator.lingering",
    "_accumulator.schedule",
    "_accumulator.drain",
    "_accumulator.appender",
    "_accumulator.single_batch",
    "_accumulator.accumulator",
    "_accumulator.split",
    "_protocol.framing",
    "_protocol.produce",
    "_protocol.produce_response",
    "_network.channel",
    "_network.selector",
    "_network.inflight",
    "_network.connection",
    "_network.connection_states",
    "_network.client",
    "_transactions.sequences",
    "_transactions.partitions",
    "_transactions.manager",
    "_sender.produce",
    "_sender.outcomes",
    "_sender.draining",
    "_sender.sender",
    "_arrow.columns",
    "_arrow.numbers",
    "_arrow.headers",
    "_arrow.batch",
    "producer._columns.columns",
    "producer._columns.topic_table",
    "producer._columns.row_share",
    "producer._columns.batch_delivery",
    "producer._columns.row_appender",
    "producer._columns.fingerprint",
    "producer._columns.table_appender",
    "model._arguments",
    "producer._acknowledged",
    "producer._topics",
    "producer._path",
    "producer._pending",
    "compat._librdkafka_partitioner",
    "compat._librdkafka_messages",
    "compat._librdkafka_path",
    "compat.kafka._future_callbacks",
    "compat.kafka._path",
    "compat.aiokafka._send",
    "compat.aiokafka._batch",
]

NOT_FOR_EACH_RECORD = (
    "producer._columns.batch_delivery",
    "producer._columns.row_share",
    "_delivery.callback_thread",
    "_delivery.split",
    "_network.",
    "_protocol.",
    "producer._pending",
    "_sender.",
    "_transactions.",
)
"""What runs once a request, once a batch or less often: ``-O1`` costs it nothing that ``bench instructions`` counts.

The road not taken: ``-Og``, which compiles in two thirds of the time, and costs a turn of the sender a seventh.
"""
ONCE_A_BATCH = (
    "_accumulator.closing",
    "_accumulator.drain",
    "_accumulator.loads",
    "_accumulator.schedule",
    "_accumulator.split",
    "_accumulator.waiters",
)
"""The accumulator's share of that: at ``-O3`` the wheel would be too large."""
HEADERS = [f"src/forebay/_runtime/{name}.h" for name in ("crc32c", "xxhash64", "ticks", "futex", "mutex", "parking")]
FULL = 20 << 20
"""A disk with fewer bytes than this is what a failed build failed for."""
JOBS = int(os.environ.get("FOREBAY_BUILD_JOBS", os.cpu_count() or 1))
CHECKED = os.environ.get("FOREBAY_BUILD_CHECKED") == "1"
"""For tests alone: an attribute of None is an AttributeError, and not a crash or worse.

Its C files are apart, so that no other build takes them for its own.  Not optimised: it is made to be run once.
"""
ONLY_SELF = "forebay._records.rows"
"""Its sections without the GIL use no object but ``self``, and Cython has no check of that which needs no GIL."""
C_FILES = "build/checked" if CHECKED else ""
ONLY = [name for name in os.environ.get("FOREBAY_BUILD_ONLY", "").split(",") if name]
WITHOUT_COMPILER = (
    "forebay: no C can be compiled here ({reason}). Install a C compiler and the headers of Python (Debian and Ubuntu: "
    "apt-get install gcc libc6-dev python3-dev; Alpine: apk add gcc musl-dev python3-dev; macOS: xcode-select "
    "--install), or set FOREBAY_INTERPRETED=1 for the slow interpreted form, which needs the variable and Cython when "
    "it runs, too."
)


def dependencies(free_threaded: bool) -> list[str]:
    """The packages of the codecs: those that there are wheels of for each platform that forebay has wheels for.

    lz4 has none for musl, so it is an extra, and cramjam does its work (``_records/codec_packages.py``).  The road not
    taken: to require it in all wheels but musl's.  Tools that lock versions read one wheel and believe it of all.
    From 3.14 on Python has zstd itself, which saves half of an installation's bytes and is as fast (bench/codecs.py).
    No marker of a requirement tells a Python without the GIL from another.  It gets those that there are builds for,
    which do what the others do, snappy in 3.13 apart.
    """
    if not free_threaded:
        return ["zstandard>=0.23; python_version < '3.14'", "cramjam>=2.9"]
    return [
        "lz4>=4.4.4; python_version < '3.14'",
        "backports.zstd>=1; python_version < '3.14'",
        "cramjam>=2.11; python_version >= '3.14'",
    ]


def extensions() -> list[Extension]:
    """The modules as they are written; ``BuildModules`` translates them."""
    return [
        Extension(
            f"forebay.{name}",
            [f"src/forebay/{name.replace('.', '/')}.py"],
            # No debug lines, which Python's own flags ask for: a sixth of the compiler's time, and symbols stay.
            # No tables of jumps for what is bound at the start anyway, and none to unwind the C stack by, which nothing
            # throws through: they are a twentieth of the wheel.  GCC takes Cython's own checks of None for an
            # access beyond it.
            extra_compile_args=[
                optimisation(name),
                "-g0",
                "-fno-plt",
                "-fno-asynchronous-unwind-tables",
                "-fno-unwind-tables",
                "-Wno-array-bounds",
            ],
            include_dirs=["src/forebay/_runtime"],
            depends=[*HEADERS, "setup.py"],  # whose options above may have changed
        )
        for name in COMPILED
        if not ONLY or name in ONLY
    ]


def optimisation(name: str) -> str:
    """The compiler's flag for a module."""
    if CHECKED:
        return "-O0"
    return "-O1" if name.startswith(NOT_FOR_EACH_RECORD) else "-O2" if name in ONCE_A_BATCH else "-O3"


class BuildModules(build_ext):
    """Looks whether C can be compiled, then translates the modules to C and compiles them.

    Translation takes half a minute: it is for a build alone, not for each question about the package's metadata.
    """

    def build_extensions(self) -> None:
        reason = self.why_nothing_compiles()
        if reason:
            raise SystemExit(WITHOUT_COMPILER.format(reason=reason))
        for left_over in Path(self.build_temp).glob("*.unfinished"):
            # Whatever a build that was interrupted in the middle of a module had written of it.
            for file in left_over.read_text().splitlines():
                Path(file).unlink(missing_ok=True)
            left_over.unlink()
        begun, before = time.time(), {module.name: self.compiled_at(module) for module in self.extensions}
        # The largest come first, so that the last ones end together.
        modules = sorted(self.extensions, key=lambda module: -os.path.getsize(module.sources[0]))
        for count, module in enumerate(side_by_side(modules, self.build_module), 1):
            if self.compiled_at(module) != before[module.name]:
                print(
                    f"compile: {count} of {len(modules)} after {time.time() - begun:.0f} s, {module.name}", flush=True
                )

    def compiled_at(self, module: Extension) -> int:
        """When the compiled module was written, in ns; 0 if it was not."""
        found = Path(self.get_ext_fullpath(module.name))
        return found.stat().st_mtime_ns if found.exists() else 0

    def build_module(self, module: Extension) -> None:
        """Translates and compiles one module.  Raises SystemExit with one sentence if that fails."""
        in_c = os.path.join(C_FILES, f"{os.path.splitext(module.sources[0])[0]}.c")
        made = [in_c, self.get_ext_fullpath(module.name)]
        begun, unfinished = time.time_ns(), Path(self.build_temp, f"{module.name}.unfinished")
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text("\n".join(made))
        try:
            found = translated(module)
            module.sources, module.depends = found.sources, found.depends
            self.build_extension(module)
        except Exception as error:  # noqa: BLE001 - Cython's, the system's and distutils' have no common class
            if shutil.disk_usage(unfinished.parent).free < FULL:
                raise SystemExit(f"forebay: the disk of {unfinished.parent.absolute()} is full") from None
            raise SystemExit(f"forebay: {module.name} could not be compiled: {error}") from None
        date_back(made, begun)
        unfinished.unlink()

    def why_nothing_compiles(self) -> str:
        """What the build would fail for, found out with three lines of C; empty if they compile."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text("#include <Python.h>\n#include <poll.h>\nint probe(void) { return POLLIN; }\n")
            try:
                self.compiler.compile([str(source)], output_dir=folder)
            except Exception as error:  # noqa: BLE001 - the system's, subprocess's and distutils' have no common class
                return " ".join(str(error).split())[:200]
        return ""


class SourceArchive(sdist):
    """A source distribution; with ``SOURCE_DATE_EPOCH`` (s) set, the same bytes each time.

    setuptools keeps the times, owners and modes of files, and those that it writes itself are as old as the build.
    """

    def make_archive(self, base_name: str, format: str, root_dir=None, base_dir=None, owner=None, group=None) -> str:  # type: ignore[no-untyped-def]
        if format != "gztar" or not os.environ.get("SOURCE_DATE_EPOCH"):
            return str(super().make_archive(base_name, format, root_dir, base_dir, owner, group))
        archive = f"{base_name}.tar.gz"
        write_archive(Path(archive), Path(base_dir), int(os.environ["SOURCE_DATE_EPOCH"]))
        return archive


def write_archive(archive: Path, folder: Path, seconds: int) -> None:
    """Packs ``folder`` in the order of its names, with one time (s) and no owners."""

    def bare(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = seconds, 0, 0, "", ""
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    with (
        open(archive, "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=seconds) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        tar.add(folder, filter=bare)  # which sorts the names of each folder


def date_back(files: list[str], begun: int) -> None:
    """Gives what a build has written the time (ns) at which it began.

    Else a source that is edited meanwhile is older than what was made of it, and not compiled the next time.
    """
    for file in files:
        if os.path.exists(file) and os.stat(file).st_mtime_ns > begun:
            os.utime(file, ns=(begun, begun))


def side_by_side(modules: list[Extension], build: Callable[[Extension], None]) -> Iterator[Extension]:
    """Has each module built by a process of its own, ``JOBS`` at a time; gives each one when it is done.

    A translation makes so many objects that looking for garbage among them takes a third of its time.  A process that
    ends with its module leaves none.  Cython's tables are made before the first fork.

    Raises:
        SystemExit: a module could not be built; its process has said why.
    """
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first.py")
        first.touch()
        translated(Extension("first", [str(first)]))
    running: dict[int, Extension] = {}
    waiting = list(modules)
    try:
        while waiting or running:
            while waiting and len(running) < JOBS:
                module = waiting.pop(0)
                running[forked(build, module)] = module
            process, status = os.wait()
            module = running.pop(process)
            if status:
                raise SystemExit(1)
            yield module
    except KeyboardInterrupt:
        raise SystemExit("forebay: interrupted; the next build goes on from here") from None
    finally:
        for process in running:
            os.waitpid(process, 0)


def forked(build: Callable[[Extension], None], module: Extension) -> int:
    """The number of a process that builds the module, and says in a line why it could not."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            gc.disable()
            build(module)
            status = 0
        except KeyboardInterrupt:
            pass  # its parent says so
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's stack may run here
            print(error, file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return process


def translated(module: Extension) -> Extension:
    """The same module with C for its source, which is made anew if anything of it is newer."""
    from Cython.Build import cythonize

    (found,) = cythonize(
        [module],
        include_path=["src"],
        build_dir=C_FILES or None,
        language_level=3,
        quiet=True,
        compiler_directives={
            "boundscheck": False,
            "nonecheck": CHECKED and module.name != ONLY_SELF,
            "wraparound": False,
            "cdivision": True,
            "annotation_typing": True,
            "auto_pickle": False,
            "embedsignature": True,
            # Methods of C's kind: functions that know their annotations cost the wheel a seventh.  A module whose
            # classes are public asks for those in its first line.
            "embedsignature.format": "clinic",
            "binding": False,
        },
    )
    return found


if __name__ == "__main__":
    interpreted = os.environ.get("FOREBAY_INTERPRETED") == "1"
    if interpreted:
        print("forebay: FOREBAY_INTERPRETED=1, building without compiled modules", file=sys.stderr)
    setup(
        install_requires=dependencies(bool(get_config_var("Py_GIL_DISABLED"))),
        ext_modules=[] if interpreted else extensions(),
        cmdclass={"build_ext": BuildModules, "sdist": SourceArchive},
    )
