"""Secrets of a sink in a real Spark: what its plan and event log show, and files that an executor finds or lacks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from forebay.testing import EmbeddedBroker
from tests.spark.conftest import ReadAll
from tests.support.pace import PROGRAM_S

DRIVER = textwrap.dedent(
    """
    import sys
    from pyspark.sql import SparkSession
    folder, servers, topic = sys.argv[1:]
    spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
             .config("spark.driver.memory", "768m").config("spark.eventLog.enabled", "true")
             .config("spark.eventLog.compress", "false").config("spark.eventLog.dir", f"file://{folder}/events")
             .getOrCreate())
    options = {
        "kafka.bootstrap.servers": servers, "topic": topic, "kafka.config.providers": "env",
        "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "alice", "kafka.sasl.password": "${env:FOREBAY_CANARY}",
        "kafka.ssl.key.password": "inline-canary",
        "kafka.ssl.keystore.certificate.chain": "CERTIFICATE", "kafka.ssl.keystore.key": "${env:FOREBAY_CANARY}",
    }
    rows = spark.readStream.schema("value STRING").text(f"{folder}/in")
    stream = (rows.writeStream.format("forebay").options(**options).option("checkpointLocation", f"{folder}/state")
              .trigger(availableNow=True).start())
    stream.awaitTermination(120)
    stream.explain(True)
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("forebay").mode("append").options(**options).save()
    frame.explain(True)
    spark.stop()
    """
)


@pytest.mark.rest("starts a JVM of its own")
def test_the_plan_and_the_event_log_hold_no_secret(
    broker: EmbeddedBroker, topic: str, read_all: ReadAll, tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.txt").write_text("a\nb\n")
    program = tmp_path / "driver.py"
    program.write_text(DRIVER)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), broker.bootstrap_servers, topic],
        env={**os.environ, "FOREBAY_CANARY": "looked-up-canary"},
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(read_all(topic)) == 12
    logs = [path.read_text(errors="replace") for path in (tmp_path / "events").rglob("*") if path.is_file()]
    assert any("forebay" in log for log in logs), "the event log tells of the sink"
    assert "Physical Plan" in done.stdout
    for text in (done.stdout, done.stderr, *logs):
        assert "canary" not in text.replace("FOREBAY_CANARY", "")


def write(spark: Any, options: dict[str, str]) -> None:
    frame = spark.range(10, numPartitions=1).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("forebay").mode("append").options(**options).save()


def test_a_private_key_in_the_options_is_refused_by_the_driver(spark: Any, sink: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"kafka\.ssl\.keystore\.key.*private key") as caught:
        write(spark, {**sink, "kafka.ssl.keystore.key": "canary", "kafka.ssl.keystore.certificate.chain": "x"})
    assert "canary" not in str(caught.value)


def test_files_by_sparkfiles_and_files_that_are_not_there(
    spark: Any, sink: dict[str, str], topic: str, read_all: ReadAll, tmp_path: Path
) -> None:
    shipped = tmp_path / "shipped-ca.pem"
    shipped.write_text("x")
    spark.sparkContext.addFile(str(shipped))
    write(spark, {**sink, "kafka.ssl.truststore.location": "sparkfiles:shipped-ca.pem"})
    assert len(read_all(topic)) == 10
    with pytest.raises(Exception, match=r"kafka\.ssl\.truststore\.location.*none\.pem on ") as caught:
        write(spark, {**sink, "kafka.ssl.truststore.location": "sparkfiles:none.pem"})
    assert "--files" in str(caught.value)
    assert len(read_all(topic)) == 10, "nothing was written before the file was looked for"
