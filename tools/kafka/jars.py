"""Kafka's jars by Maven coordinates, copied once into ``.cache/kafka/<version>`` of this repository.

:func:`ensure_jars` is quick when they are there.  What keeps them from being had (no Java, no Maven, a version
that does not resolve) is one :class:`JarsUnavailable` that says which.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The broker that the integration tests, the demo's checks and the benches run against.
KAFKA_VERSION = "4.3.0"
#: The last line that still takes Produce v0 to v2 and so judges the legacy record formats.
LEGACY_KAFKA_VERSION = "3.9.1"
#: The first line whose KRaft gives producer ids; before it brokers need a ZooKeeper beside them.
OLDEST_KAFKA_VERSION = "3.0.2"

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(__file__).parents[2] / ".cache" / "kafka"
FETCH_TIMEOUT_S = 600.0
MAVEN_REASON = re.compile(r"\[(?:ERROR|FATAL)\]\s*(.+)")


class JarsUnavailable(RuntimeError):
    """Why no Kafka broker can be started on this machine."""


def java() -> str:
    """The Java launcher: of ``JAVA_HOME`` if set, else on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME={home}" if home else "the path"
        raise JarsUnavailable(f"no Java for Kafka: there is no java in {where} (Java 17 or later is needed)")
    return found


def ensure_jars(version: str = KAFKA_VERSION) -> Path:
    """The folder with the jars of this Kafka version, fetched if need be."""
    folder = CACHE / version
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable(f"no jars of Kafka {version} in {CACHE}, and no Maven (mvn) on the path to fetch them")
    with alone(), tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{version}-") as temporary:
        if folder.is_dir():
            return folder
        fresh = Path(temporary) / "jars"
        # A machine that has them in its local repository is not asked to reach a remote one.
        reason = _copy(maven, version, fresh, "--offline") and _copy(maven, version, fresh)
        if reason is not None:
            raise JarsUnavailable(f"Maven could not fetch the jars of Kafka {version}: {reason}")
        fresh.rename(folder)
    return folder


def archive_of(version: str) -> Path:
    """Where the classes of this version are for this Java, if ``tools.kafka.archive`` has put them there."""
    launcher = Path(java()).resolve()
    release = launcher.parents[1] / "release"
    said = release.read_bytes() if release.exists() else b""
    # A JVM takes no archive of another one: this only keeps several Javas from making each other's anew.
    return CACHE / f"{version}-{hashlib.sha256(bytes(launcher) + said).hexdigest()[:12]}.jsa"


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One process at a time puts something into the cache; the others wait, and then find it there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = os.open(CACHE, os.O_RDONLY)
    try:
        # It ends with the process, however that ends.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _copy(maven: str, version: str, folder: Path, *options: str) -> str | None:
    """None when Maven put the jars into ``folder``, else its reason."""
    command = [maven, "--batch-mode", "--quiet", *options, "--file", str(POM), f"-Dkafka.version={version}"]
    command += [f"-DoutputDirectory={folder}", "dependency:copy-dependencies"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {FETCH_TIMEOUT_S:g} s"
    if done.returncode == 0 and any(folder.glob("kafka-clients-*.jar")):
        return None
    reasons = MAVEN_REASON.findall(done.stdout + done.stderr)
    return reasons[0] if reasons else f"mvn ended with status {done.returncode}"
