"""An Airflow DAG that writes a day's orders to Kafka, all or none: ``python airflow_orders.py`` runs it once.

The file stands in Airflow's folder of DAGs, as any.
A task that is tried again must not write twice, and one that fails must not leave half.  So the task makes a producer
of its own, writes in a transaction, and fails if the transaction did.  The transactional id names the day: a second try
of that day fences the first, if that is still at work.  A worker that dies after the commit, and before Airflow heard
of it, is tried again and writes the day a second time; keys let readers see that.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

from airflow.sdk import dag, task

import forebay


@dag(schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False)
def orders_to_kafka() -> None:
    @task
    def orders(ds: str | None = None) -> list[dict[str, object]]:
        return [{"order": f"{ds}-{number}", "amount": 10 * number} for number in range(3)]

    @task(retries=2)
    def write(rows: list[dict[str, object]], ds: str | None = None) -> int:
        options = {
            "bootstrap.servers": os.environ.get("KAFKA_BOOTSTRAP_SERVERS", "localhost:9092"),
            "transactional.id": f"orders-to-kafka-{ds}",
            "delivery.timeout.ms": 60_000,
        }
        with forebay.KafkaProducer(options) as producer:
            producer.init_transactions()
            with producer.transaction():
                for row in rows:
                    producer.send("orders", json.dumps(row).encode(), key=str(row["order"]).encode())
        return len(rows)

    write(orders())


workflow = orders_to_kafka()

if __name__ == "__main__":
    workflow.test()
