"""Options for the JVMs of Spark's drivers: most of what a short session costs is the start of its JVM.

A JVM that lives for seconds needs no second compiler.  Classes come out of an archive (class data sharing), which the
tests make once in each environment: it pays from the second session on, so the demo uses it only where it is.  A JVM
that cannot use the archive, because its classpath or Java is another one, reads classes as ever.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pyspark

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
MAKING_S = 600
SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.createDataFrame([(1, "a"), (2, "b")], "number long, text string")
assert rows.groupBy("text").count().count() == 2
spark.stop()
"""

logger = logging.getLogger(__name__)


def quick_start(*, make: bool = True) -> str:
    """For ``SPARK_SUBMIT_OPTS``, which Spark's scripts give to the JVM of a driver; ``make`` the archive if need be."""
    archive = Path(sys.prefix) / f"spark-{pyspark.__version__}.jsa"
    if make and not archive.exists():
        _make(archive)
    sharing = (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if archive.exists() else ()
    return " ".join([*QUICK, *sharing])


def _make(archive: Path) -> None:
    """Has a session write down its classes; without an archive all is as before, but slower."""
    home = Path(pyspark.__file__).parent
    made = archive.with_suffix(f".{os.getpid()}")
    program = archive.with_suffix(".py")
    program.write_text(SESSION)
    options = {"SPARK_HOME": str(home), "SPARK_SUBMIT_OPTS": " ".join([*QUICK, f"-XX:ArchiveClassesAtExit={made}"])}
    try:
        # Its JVM is this process's child and has written the archive when it ends.
        subprocess.run(
            [home / "bin" / "spark-submit", program], env={**os.environ, **options}, capture_output=True, check=True,
            timeout=MAKING_S,
        )  # fmt: skip
        made.replace(archive)
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("No archive of Spark's classes: %s", error)
    finally:
        program.unlink(missing_ok=True)
        made.unlink(missing_ok=True)
