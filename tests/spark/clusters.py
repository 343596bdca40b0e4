"""Spark's own services as processes on this host: a standalone master with workers, and a Spark Connect server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark

import forebay
from tests.support.pace import HANG_S

HOME = Path(pyspark.__file__).parent
# They run for seconds, so compiling them well would cost more than it saves.
DAEMON = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}


def wait_for_line(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """The first group of ``pattern`` in the log, as soon as it is there."""
    limit = time.monotonic() + HANG_S
    while True:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        assert process.poll() is None, f"it ended by itself: {log.read_text(errors='replace')[-2000:]}"
        assert time.monotonic() < limit, f"no {pattern!r} in {log}: {log.read_text(errors='replace')[-2000:]}"
        time.sleep(0.05)


@contextlib.contextmanager
def service(arguments: list[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's services, with its log in a file; at the end it is killed with all that it started."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            arguments,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", **environment},
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def standalone(folder: Path, workers: int, cores: int = 1) -> Iterator[str]:
    """A standalone master and its workers, each on a host of its own, which know nothing of this package; its address.

    The hosts are addresses of loopback. Spark takes them for different machines.
    """
    program = str(HOME / "bin" / "spark-class")
    bare = {**DAEMON, "PYTHONPATH": ""}
    with contextlib.ExitStack() as running:
        log = folder / "master.log"
        arguments = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = running.enter_context(service([program, *arguments], log, bare))
        address = wait_for_line(master, log, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            host = f"127.0.0.{number + 1}"
            arguments = ["--host", host, "--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
            work = folder / f"worker-{number}"
            arguments += ["--work-dir", str(work), address]
            name = "org.apache.spark.deploy.worker.Worker"
            there = bare | {"SPARK_LOCAL_IP": host}
            worker = running.enter_context(service([program, name, *arguments], folder / f"{work.name}.log", there))
            wait_for_line(worker, folder / f"{work.name}.log", r"(Successfully registered) with master")
        yield address


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server on ``local[2]``; the address for clients."""
    log = folder / "connect.log"
    arguments = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    for setting in (
        "spark.connect.grpc.binding.address=127.0.0.1",
        "spark.connect.grpc.binding.port=0",
        "spark.ui.enabled=false",
        "spark.sql.shuffle.partitions=2",
        "spark.driver.memory=768m",
    ):
        arguments += ["--conf", setting]
    program = str(HOME / "bin" / "spark-submit")
    with service([program, *arguments, "spark-internal"], log, {}) as process:
        port = wait_for_line(process, log, r"Spark Connect server started at: \S+:(\d+)")
        yield f"sc://127.0.0.1:{port}"


def unpacked_wheel(folder: Path) -> Path:
    """An archive with what a wheel of this package holds, for ``spark.archives``: modules, compiled ones too."""
    sources = Path(forebay.__file__).parents[1]
    path = folder / "forebay.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name in ("forebay", "pyspark_forebay"):
            for file in sorted((sources / name).rglob("*")):
                if file.suffix in (".py", ".so"):
                    archive.add(file, file.relative_to(sources))
    return path
