"""Runs the producer tests of another client against the class here that takes its place, on a real Kafka.

``python -m tools.peer_tests CLIENT CHECKOUT [PYTEST ARGUMENT ...]``.  ``CLIENT`` is confluent, kafka or aiokafka, and
``CHECKOUT`` a folder with that client's sources, as its repository has them.  Nothing of it is kept: its tests are
copied to a folder that goes away.  ``NOT_APPLICABLE`` lists the tests that are left out, each with its reason.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tools.kafka import RealKafka

LEAST = 0.8
"""The share of the applicable tests that must pass."""


class Peer(NamedTuple):
    """A client: its files that are run, what is put in the place of what, and what cannot apply."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    """Copied, because the files import them."""
    plugin: str
    not_applicable: dict[str, str]
    topics: tuple[str, ...]
    """Made before."""


CONFLUENT_PLUGIN = """
import os
import confluent_kafka
from forebay.compat import confluent_kafka as ours

class Producer(ours.Producer):
    # The tests name the broker's usual address, or none at all: then there is none to be reached.
    def __init__(self, *args, **options):
        if args and isinstance(args[0], dict):
            given = dict(args[0])
            server = given.get("bootstrap.servers", "127.0.0.1:1")
            given["bootstrap.servers"] = os.environ["PEER_BROKER"] if server == "localhost:9092" else server
            args = (given, *args[1:])
        super().__init__(*args, **options)

confluent_kafka.Producer = Producer
for name in ("KafkaError", "KafkaException", "consistent", "murmur2", "fnv1a"):
    setattr(confluent_kafka, name, getattr(ours, name))
"""

KAFKA_PLUGIN = """
import os
os.environ["KAFKA_URI"] = "kafka://" + os.environ["PEER_BROKER"]
os.environ["KAFKA_VERSION"] = "4.0.0"
import kafka.errors, kafka.partitioner, kafka.serializer
from forebay.compat import kafka as ours
from forebay.compat.kafka import partitioner

class Identity:
    def __init__(self, transactional):
        self.is_transactional = lambda: transactional

class KafkaProducer(ours.KafkaProducer):
    # What some tests look at to see whether a producer is idempotent.
    @property
    def _transaction_manager(self):
        parts = self.native._parts
        return Identity(parts.session is not None) if parts.config["enable.idempotence"] else None

kafka.KafkaProducer = KafkaProducer
kafka.errors.KafkaConfigurationError = ours.errors.KafkaConfigurationError
kafka.partitioner.DefaultPartitioner = partitioner.DefaultPartitioner
kafka.partitioner.murmur2 = partitioner.murmur2
"""

ONE_CLIENT = "about the original's own consumer, whose class is not replaced"
MOCK_BROKER = "puts the original's own broker in the place of the network"
INSIDE = "about private methods or parts of the original"
VERSION = "asks that api_version names an old broker; here the broker is asked"
PEERS = {
    "confluent": Peer(
        ("tests/test_Producer.py", "tests/test_partitioners.py"),
        ("tests/common",),
        CONFLUENT_PLUGIN,
        {
            "test_transaction_api": "asks what a call after a failed init_transactions says, in librdkafka's own words",
            "test_core_callbacks_exception_different_types": ONE_CLIENT,
            "test_multiple_callbacks_exception_no_system_error": ONE_CLIENT,
            "test_produce_batch_scalability_and_limits": "asks that timestamps are refused; here they are sent",
        },
        ("test-topic", "mytopic"),
    ),
    "kafka": Peer(
        (
            "test/producer/test_kip679_config.py",
            "test/producer/test_partitioner.py",
            "test/producer/test_producer.py",
            "test/integration/test_producer_integration.py",
        ),
        ("test",),
        KAFKA_PLUGIN,
        {
            "test_kafka_producer_thread_close": MOCK_BROKER,
            "test_kafka_producer_context_manager_closes_on_exit": MOCK_BROKER,
            "test_partition_calls_partitioner_partition_with_cluster": INSIDE,
            "test_partition_explicit_partition_skips_partitioner": INSIDE,
            "test_partition_explicit_partition_rejects_unknown_partition": INSIDE,
            "test_send_null_key_triggers_on_new_batch_via_abort_retry": INSIDE,
            "test_send_keyed_skips_on_new_batch": INSIDE,
            "test_send_with_explicit_partition_skips_on_new_batch": INSIDE,
            "test_idempotent_producer_reset_producer_id": INSIDE,
            "test_old_broker_silently_disables": VERSION,
            "test_old_broker_with_explicit_idempotence_raises": VERSION,
            "test_transactional_id_on_old_broker_raises": VERSION,
            "TestStickyPartitioner": "about the object that chooses there; here the accumulator does",
        },
        ("transactional_test_topic",),
    ),
}


def copy(peer: Peer, checkout: Path, folder: Path) -> None:
    """The tests, and the packages that they import."""
    for name in peer.folders:
        shutil.copytree(checkout / name, folder / name)
    for name in peer.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(checkout / name, target)
        (target.parent / "__init__.py").touch()
    (folder / "peer_plugin.py").write_text(peer.plugin)


def run(client: str, checkout: Path, arguments: list[str]) -> int:
    """Prints what passed; 0 if enough did."""
    peer = PEERS[client]
    with tempfile.TemporaryDirectory() as made, RealKafka(quick_start=True) as kafka:
        folder = Path(made)
        for topic in peer.topics:
            kafka.create_topic(topic, 4)
        copy(peer, checkout, folder)
        left_out = " or ".join(peer.not_applicable)
        command = [sys.executable, "-m", "pytest", "-p", "peer_plugin", "-p", "no:cacheprovider", "-q", "-rA"]
        command += ["--timeout=120", "-k", f"not ({left_out})", *arguments, *peer.files]
        paths = os.pathsep.join([str(folder), str(Path("src").resolve())])
        environment = {**os.environ, "PYTHONPATH": paths, "PEER_BROKER": kafka.bootstrap_servers}
        # Without its standard input, which the guard of the broker uses.
        done = subprocess.run(
            command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    print(done.stdout[-20_000:], done.stderr[-2_000:], sep="\n")
    passed = len(re.findall(r"^PASSED ", done.stdout, re.MULTILINE))
    failed = len(re.findall(r"^(?:FAILED|ERROR) ", done.stdout, re.MULTILINE))
    for name, reason in peer.not_applicable.items():
        print(f"not applicable: {name}: {reason}")
    print(f"{client}: {passed} of {passed + failed} applicable tests pass; {len(peer.not_applicable)} do not apply")
    return 0 if passed and passed >= LEAST * (passed + failed) else 1


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in PEERS:
        sys.exit(f"usage: python -m tools.peer_tests {'|'.join(PEERS)} CHECKOUT [PYTEST ARGUMENT ...]")
    sys.exit(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
