"""Installs wheels of ``dist`` where there is no compiler, and runs the unit tests out of them, not out of ``src``.

``python -m tools.wheels.room [--room FOLDER] PYTHON ...`` (``make wheel-test``).  With ``--room`` the place is a chroot
in that folder, made by debootstrap without a compiler if the folder is empty; that needs root.  Each Python is mounted
there read-only.  Without, it is an environment whose PATH has all commands but compilers, and whose CC fails.
``LEFT_OUT`` lists the tests that are not of the wheel.  A Python that the machine does not have is told and left out.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 15
COMPILERS = re.compile(r"(.*-)?(cc|gcc|g\+\+|c\+\+|cpp|tcc|clang|clang\+\+|c89|c99)(-[\d.]+)?")
PROJECT = (
    "tests",
    "bench",
    "demo",
    "tools",
    "docs",
    "typings",
    "pyproject.toml",
    "setup.py",
    "Makefile",
    "MANIFEST.in",
)
"""What the tests read; no sources of the package."""
LEFT_OUT = {
    "tests/unit/test_tree.py": "holds the sources to their rules",
    "tests/unit/test_what_to_do_when.py": "reads the sources and the repository",
    "tests/unit/tools": "reads the sources and the repository",
    "tests/unit/_runtime/test_primitives.py": "compiles a probe",
}
PACKAGES = (
    "ca-certificates,libbz2-1.0,libcrypt1,libexpat1,libffi8,libgssapi-krb5-2,liblzma5,libncursesw6,libnsl2,libreadline8,"
    "libsqlite3-0,libssl3,libtirpc3,libuuid1,zlib1g"
)
"""Debian's, which a Python that was compiled on Debian needs.  None of them brings a compiler."""
PROOF = """
import forebay, sys
forebay.KafkaProducer
print(f"forebay {forebay.__version__} out of {forebay.__file__}, {forebay.implementation}", flush=True)
sys.exit(forebay.implementation != "compiled" or not forebay.__file__.startswith(sys.prefix))
"""


class Place:
    """Where commands find no compiler; ``path`` is a folder there, as its own commands name it."""

    def __init__(self, root: Path | None, path: Path, commands: str) -> None:
        self.root = root
        self.path = path
        self._commands = commands

    def outside(self, path: Path) -> Path:
        """The same folder as this program sees it."""
        return path if self.root is None else self.root / path.relative_to("/")

    def run(self, command: Sequence[str | Path], check: bool = True) -> int:
        """Runs it in ``path`` with an environment that names no compiler and no sources; its status."""
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        environment = {**kept, "PATH": self._commands, "HOME": str(self.path), "LANG": "C.UTF-8", "CC": "false"}
        settings = [f"{name}={value}" for name, value in environment.items()]
        inside = ["env", "-i", f"--chdir={self.path}", *settings, *map(str, command)]
        whole = inside if self.root is None else ["chroot", str(self.root), *inside]
        return subprocess.run(whole, check=check).returncode


def without_compilers(folder: Path) -> str:
    """``folder``, filled with links to all commands of PATH but compilers."""
    for each in os.environ["PATH"].split(os.pathsep):
        for command in Path(each).iterdir() if Path(each).is_dir() else ():
            link = folder / command.name
            if not COMPILERS.fullmatch(command.name) and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


@contextmanager
def mounted(source: Path, at: Path, *options: str) -> Iterator[None]:
    at.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *options, str(source), str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--recursive", str(at)], check=True)


@contextmanager
def chroot(root: Path, suite: str, prefixes: set[Path]) -> Iterator[Place]:
    """A system in ``root`` that has no compiler, with the Pythons of ``prefixes``."""
    root.mkdir(parents=True, exist_ok=True)
    if not any(root.iterdir()):
        subprocess.run(["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root)], check=True)
    for name in ("resolv.conf", "hosts", "ssl/certs/ca-certificates.crt"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    with ExitStack() as mounts:
        for name in ("proc", "dev"):
            mounts.enter_context(mounted(Path("/", name), root / name, "--rbind", "--make-rslave"))
        for prefix in prefixes:
            mounts.enter_context(mounted(prefix, root / prefix.relative_to("/"), "--bind", "-o", "ro"))
        with tempfile.TemporaryDirectory(dir=root / "tmp") as folder:
            yield Place(root, Path("/tmp") / Path(folder).name, "/usr/sbin:/usr/bin:/sbin:/bin")


@contextmanager
def environment() -> Iterator[Place]:
    """This system, less its compilers."""
    with tempfile.TemporaryDirectory() as folder:
        commands = Path(folder, "commands")
        commands.mkdir()
        yield Place(None, Path(folder), without_compilers(commands))


class Python:
    """A Python of this machine: its command, its version as wheels name it, and the folder that holds it."""

    def __init__(self, command: str) -> None:
        asked = "import sys; print('cp%d%d' % sys.version_info[:2], sys.base_prefix)"
        told = subprocess.run([command, "-c", asked], check=True, capture_output=True, text=True).stdout
        self.tag, self.prefix = told.split(maxsplit=1)
        self.prefix = self.prefix.strip()
        self.command = command

    def lent(self) -> Path:
        """Its executable, where its folder is mounted at the same place."""
        return Path(self.prefix, "bin", f"python3.{self.tag.removeprefix('cp3')}")


def wheel_for(tag: str, folder: Path) -> Path | None:
    """The newest wheel in ``folder`` for such a Python."""
    found = sorted(folder.glob(f"forebay-*-{tag}-{tag}-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    return found[-1] if found else None


def try_wheel(place: Place, python: Path, wheel: Path, tests: Sequence[str]) -> bool:
    """Installs the wheel as a user does, measures that, and runs the tests out of it."""
    compiler = "for c in $CC cc gcc clang c99 tcc; do $c --version >/dev/null 2>&1 && exit 1; done; exit 0"
    if place.run(["sh", "-c", compiler], check=False):
        sys.exit("there is a compiler in this place, so it proves nothing")
    home = place.path / wheel.name.split("-")[2]
    place.run([python, "-m", "venv", home])
    shutil.copy(wheel, place.outside(place.path))
    pip: list[str | Path] = [home / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    begun = time.monotonic()
    place.run([*pip, "--no-cache-dir", place.path / wheel.name])
    took = time.monotonic() - begun
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, installed in {took:.1f} s", flush=True)
    place.run([home / "bin/python", "-c", PROOF])
    place.run([*pip, f"{place.path / wheel.name}[test]"])
    project = place.outside(place.path) / "project"
    for name in PROJECT if not project.exists() else ():
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        project.mkdir(exist_ok=True)
        copy(ROOT / name, project / name)
    for left, reason in LEFT_OUT.items():
        print(f"left out: {left}, which {reason}", flush=True)
    options = ["-q", "-p", "no:cacheprovider", "-o", "pythonpath=.", *(f"--ignore={left}" for left in LEFT_OUT)]
    inside = f"cd project && exec {home}/bin/python -m pytest {' '.join(options)} {' '.join(tests)}"
    passed = place.run(["sh", "-c", inside], check=False) == 0
    return passed and took < INSTALL_SECONDS


def pythons_here(commands: Sequence[str]) -> list[Python]:
    """Those of ``commands`` that this machine has; the others are told."""
    for command in commands:
        if shutil.which(command) is None:
            print(f"{command}: not on this machine, so its wheel is not tried", flush=True)
    return [Python(command) for command in commands if shutil.which(command)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+")
    parser.add_argument("--room", type=Path, help="folder of the chroot")
    parser.add_argument("--suite", default="bookworm", help="Debian's, of a new chroot: no newer than this system")
    parser.add_argument("--wheels", type=Path, default=ROOT / "dist")
    parser.add_argument("--tests", nargs="+", default=["tests/unit"])
    arguments = parser.parse_args()
    pythons = pythons_here(arguments.pythons)
    failed = [] if pythons else ["no Python to try"]
    lent = {Path(python.prefix) for python in pythons}
    if arguments.room and Path("/usr") in lent:
        sys.exit("the system's own Python cannot be lent to a chroot: name others, or leave out --room")
    with chroot(arguments.room.resolve(), arguments.suite, lent) if arguments.room else environment() as place:
        for python in pythons:
            wheel = wheel_for(python.tag, arguments.wheels)
            if wheel is None:
                failed.append(f"{python.command}: no wheel for {python.tag} in {arguments.wheels} (make wheel)")
            elif not try_wheel(place, python.lent(), wheel, arguments.tests):
                failed.append(f"{python.command}: {wheel.name}")
    if failed:
        sys.exit("failed: " + "; ".join(failed))


if __name__ == "__main__":
    main()
