"""An archive of the classes that a broker loads (class data sharing): most of what its start costs is to read them.

Each Java makes one for each version of Kafka, beside the jars.  What is started with ``quick_start`` uses it, and so do
Kafka's tools.  A JVM that cannot use an archive reads classes as ever.
"""

from __future__ import annotations

import logging
from functools import cache

from tools.kafka.cluster import QUIET_SHARING, KafkaFailed, RealKafka
from tools.kafka.jars import KAFKA_VERSION, alone, archive_of, ensure_jars

PATIENCE = 4.0
"""Times the usual limits: an end in good order writes the archive first."""
WAIT_S = 30.0

logger = logging.getLogger(__name__)


@cache
def ensure_archive(version: str = KAFKA_VERSION) -> None:
    """Makes the archive if there is none, and tries it once; without one all is as before, but slower."""
    ensure_jars(version)
    archive = archive_of(version)
    if archive.exists():
        return
    with alone():
        if archive.exists():
            return
        made = archive.with_suffix(".making")
        options = [f"-XX:ArchiveClassesAtExit={made}", *QUIET_SHARING]
        try:
            with RealKafka(version, quick_start=True, patience=PATIENCE, jvm_options=options) as kafka:
                _use(kafka)
                # It writes the archive when it ends in good order.
                kafka.stop_node(0)
            made.replace(archive)
        except (KafkaFailed, OSError) as error:
            logger.warning("No archive of Kafka's classes: %s", error)
            made.unlink(missing_ok=True)


def _use(kafka: RealKafka) -> None:
    """What nearly every test has a broker do, so that these classes are in the archive, too."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    kafka.create_topic("archive")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "archive"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("archive", b"value", b"key")
    producer.commit_transaction(WAIT_S)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "archive"})
    try:
        consumer.assign([TopicPartition("archive", 0, 0)])
        if not consumer.consume(1, WAIT_S):
            raise KafkaFailed(f"no record of its own topic after {WAIT_S:g} s")
    finally:
        consumer.close()
