"""``spark-submit --py-files``: a user's modules travel as a zip, while this package is installed where Spark runs."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest

from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import PROGRAM_S

pytestmark = pytest.mark.rest("starts a JVM of its own")

MODULE = """
def louder(text):
    return text.upper()
"""

JOB = """
import sys
from company.words import louder
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame([("a",), ("b",)], ["value"])
loud = rows.select(udf(louder, StringType())("value").alias("value"))
servers, topic = sys.argv[1:]
options = {"kafka.bootstrap.servers": servers, "topic": topic}
loud.write.format("forebay").mode("append").options(**options).save()
spark.stop()
"""


def test_a_zip_of_the_user_s_modules(
    broker: EmbeddedBroker, topic: str, read_all: ReadAll, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "company.zip", "w") as archive:
        archive.writestr("company/__init__.py", "")
        archive.writestr("company/words.py", MODULE)
    (tmp_path / "job.py").write_text(JOB)
    home = Path(pyspark.__file__).parent
    monkeypatch.setenv("SPARK_HOME", str(home))
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    command += ["--py-files", "company.zip", "job.py", broker.bootstrap_servers, topic]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert sorted(message.value() for message in read_all(topic)) == [b"A", b"B"]
