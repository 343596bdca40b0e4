"""The driver program: files into a topic, some files a micro-batch, until all are written.

Each file is a task of the sink's stage; with a shuffle that stage reads what another one has written.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from tests.kill.points import DRIVER, FOLDER, LOCAL_DIR, Plan
from tests.support import pace


def main(work: dict[str, Any]) -> None:
    plan = Plan.of_environment()
    builder = SparkSession.builder.master(work["master"]).config("spark.ui.enabled", "false")
    for key, value in {
        "spark.driver.memory": "768m",
        "spark.executor.memory": "512m",
        # Each file is a task, also the smallest.
        "spark.sql.files.openCostInBytes": "128m",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.sql.streaming.minBatchesToRetain": "1000",
        "spark.local.dir": str(plan.folder / LOCAL_DIR),
        # A copy of a task starts as soon as half of the others are done.
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "100ms",
        **{f"spark.executorEnv.{name}": os.environ[name] for name in ("PYTHONPATH", FOLDER, DRIVER, pace.VARIABLE)},
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    from tests.kill.source import KillingDataSource

    session.dataSource.register(KillingDataSource)
    rows = session.readStream.schema("key STRING, value STRING").option("maxFilesPerTrigger", work["tasks"])
    files = rows.csv(work["folder"])
    query = (
        (files.repartition(work["shuffle"], "key") if work["shuffle"] else files)
        .writeStream.format("forebay_kill")
        .options(**work["options"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    # A process group of its own, and of its JVM: what kills the driver kills both.
    assert os.getpgid(0) == os.getpid()
    os.environ[DRIVER] = str(os.getpid())
    main(json.loads(sys.argv[1]))
