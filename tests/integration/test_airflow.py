"""The DAG of demo/services/airflow_orders.py, run once as ``python airflow_orders.py`` does it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.testing import EmbeddedBroker
from tests.support.own_packages import install
from tests.support.pace import PROGRAM_S
from tests.support.readme import ROOT

pytestmark = pytest.mark.rest("installs Airflow")

DAG = ROOT / "demo" / "services" / "airflow_orders.py"


def run(environment: dict[str, str], *command: str) -> str:
    """What a command printed; the test fails if it did."""
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PROGRAM_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:  # a task that fails is tried again after five minutes
        pytest.fail(f"{command}: {str(error.stdout)[-4000:]}")
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_the_dag_writes_each_order_once(embedded: EmbeddedBroker, tmp_path: Path) -> None:
    environment = install(tmp_path / "packages", "apache-airflow-core>=3.3,<4", "apache-airflow-task-sdk")
    environment |= {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "KAFKA_BOOTSTRAP_SERVERS": embedded.bootstrap_servers,
    }
    embedded.create_topic("orders", 1)
    dags = tmp_path / "airflow" / "dags"
    dags.mkdir(parents=True)
    shutil.copy(DAG, dags)
    run(environment, "-m", "airflow", "db", "migrate")
    run(environment, str(dags / DAG.name))
    written = [(record.key, json.loads(record.value or b"")) for record in embedded.records("orders")]
    assert [row["amount"] for _, row in written] == [0, 10, 20]
    assert all(key == row["order"].encode() for key, row in written)
