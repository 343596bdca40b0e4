"""Runs the producer tests of another client against the class here that takes its place, on a real Kafka.

``python -m tools.peer_tests CLIENT CHECKOUT [PYTEST ARGUMENT ...]``.  ``CLIENT`` is confluent, kafka or aiokafka, and
``CHECKOUT`` a folder with that client's sources, as its repository has them for the version that is installed here, or
for the nearest one.  Nothing of it is kept: its tests are copied to a folder that goes away.  ``not_applicable`` lists
the tests that are left out, each with its reason.
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

from tools.certificates import identity
from tools.kafka import Listener, RealKafka


class Peer(NamedTuple):
    """A client: its files that are run, what is put in place of what, and what cannot apply."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    """Copied, because the files import them."""
    plugin: str
    not_applicable: dict[str, str]
    topics: tuple[str, ...]
    """Made before."""
    imports: tuple[tuple[str, str], ...] = ()
    """Imports of the files that are changed, and into what."""
    properties: tuple[tuple[str, str], ...] = ()
    """Of the broker."""
    least: float = 1.0
    """The share of the applicable tests that must pass; what the others ask is in the pages of the drop-in classes."""


CONFLUENT_PLUGIN = """
import os
import sys
import types
import uuid
import pytest
import confluent_kafka
import confluent_kafka.deserializing_consumer  # with the classes of the original, before ours take their place
import confluent_kafka.error
import confluent_kafka.serializing_producer
from confluent_kafka.admin import AdminClient, NewTopic
from forebay.compat import confluent_kafka as ours
from forebay.compat.confluent_kafka import error, serializing_producer

class Place:
    # The tests name the broker's usual address, or none at all: then there is none to be reached.
    def __init__(self, *args, **options):
        if (args and isinstance(args[0], dict)) or (options and not args):
            given = {**(args[0] if args else {}), **options}
            options = {}
            server = given.get("bootstrap.servers", "127.0.0.1:1")
            given["bootstrap.servers"] = os.environ["PEER_BROKER"] if server == "localhost:9092" else server
            args = (given, *args[1:])
        super().__init__(*args, **options)

class Producer(Place, ours.Producer):
    pass

class SerializingProducer(Place, serializing_producer.SerializingProducer):
    pass

Consumer, TheirDeserializing = confluent_kafka.Consumer, confluent_kafka.DeserializingConsumer
for module, mine in ((confluent_kafka, ours), (confluent_kafka.error, error)):
    for name in mine.__all__:
        setattr(module, name, getattr(mine, name))
confluent_kafka.Producer = Producer
confluent_kafka.SerializingProducer = confluent_kafka.serializing_producer.SerializingProducer = SerializingProducer

class Cluster:
    # What the fixture of the integration tests gives, without starting brokers in containers.
    def client_conf(self, more=None):
        return {"bootstrap.servers": os.environ["PEER_BROKER"], **(more or {})}

    def cimpl_producer(self, conf=None):
        return Producer(self.client_conf(conf))

    def producer(self, conf=None, key_serializer=None, value_serializer=None):
        given = {"key.serializer": key_serializer, "value.serializer": value_serializer}
        return SerializingProducer(self.client_conf(conf) | {k: v for k, v in given.items() if v is not None})

    def consumer(self, conf=None, key_deserializer=None, value_deserializer=None):
        given = {"key.deserializer": key_deserializer, "value.deserializer": value_deserializer}
        given = {"group.id": str(uuid.uuid1()), "auto.offset.reset": "earliest"} | given | (conf or {})
        return TheirDeserializing(self.client_conf({k: v for k, v in given.items() if v is not None}))

    def cimpl_consumer(self, conf=None):
        given = {"group.id": str(uuid.uuid1()), "auto.offset.reset": "earliest"} | (conf or {})
        return Consumer(self.client_conf(given))

    def create_topic_and_wait_propogation(self, prefix, conf=None, **options):
        name = f"{prefix}-{uuid.uuid1()}"
        made = NewTopic(name, **({"num_partitions": 1, "replication_factor": 1} | (conf or {})))
        admin = AdminClient(self.client_conf())  # it is asked as long as somebody has it
        admin.create_topics([made])[name].result()
        return name

    create_topic = create_topic_and_wait_propogation

    def delete_topic(self, topic):
        pass

    def seed_topic(self, topic, value_source=None, key_source=None, header_source=None):
        producer = self.cimpl_producer()
        for value in value_source or [f"test-data{number}" for number in range(100)]:
            producer.produce(topic, value)
        producer.flush()

@pytest.fixture
def kafka_cluster():
    return Cluster()
"""

KAFKA_PLUGIN = """
import os
os.environ["KAFKA_URI"] = "kafka://" + os.environ["PEER_BROKER"]
os.environ["KAFKA_VERSION"] = "4.0.0"
os.makedirs("servers/4.0.0/kafka-bin", exist_ok=True)  # asked for, though nothing is started
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
for name in ("DefaultSerializer", "JsonSerializer"):
    setattr(kafka.serializer, name, getattr(ours, name))
"""

# The fixtures of aiokafka's own conftest.py start brokers in containers.
AIOKAFKA_PLUGIN = """
import asyncio
import gc
import os
import pathlib
from types import SimpleNamespace
import pytest
from forebay.compat.aiokafka.producer import AIOKafkaProducer

# What the tests read of the original's inner parts: a helper waits for a topic by the client.
AIOKafkaProducer.client = property(lambda self: self)
AIOKafkaProducer._sender = property(
    lambda self: SimpleNamespace(_sender_task=self._aio, _acks=self._options.native["acks"])
)
AIOKafkaProducer._txn_manager = property(
    lambda self: SimpleNamespace(producer_id=self.native.producer_id if self._aio else -1)
    if self._options.native["enable.idempotence"] else None
)

async def wait_topic(self, client, topic):
    await client.partitions_for(topic)

@pytest.fixture(scope="class")
def setup_test_class(request):
    from tests import _testutil
    _testutil.KafkaIntegrationTestCase.wait_topic = wait_topic
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    host, port = os.environ["PEER_BROKER"].split(":")
    request.cls.loop, request.cls.hosts = loop, [f"{host}:{port}"]
    request.cls.kafka_host, request.cls.kafka_port = host, int(port)
    request.cls.kafka_ssl_port = int(os.environ["PEER_TLS"].split(":")[1])
    request.cls.ssl_folder = pathlib.Path(os.environ["PEER_CERTIFICATES"])
    request.cls.kafka_version = "4.0.0"
    yield
    loop.close()
    asyncio.set_event_loop(None)

@pytest.fixture(autouse=True)
def collect_garbage():
    yield
    gc.collect()

def pytest_configure(config):
    config.addinivalue_line("markers", "ssl: needs a listener with TLS")
"""

INNER_CLIENT = "puts a mock into the original's inner client"
INNER_METADATA = "changes the original's inner metadata"
INNER_SENDER = "mocks the original's inner sender"
INNER_MANAGER = "follows or changes the states of the original's inner transaction manager"
MOCK_BROKER = "puts the original's own broker in place of the network"
INSIDE = "about private methods or parts of the original"
CONSUMER = "about a consumer or an admin client of the original"
ASYNC = "about the original's asyncio classes"
WORDS = "asks for words of librdkafka's own log"
CONFLUENT_FILES = (
    *("Producer", "error", "kafka_error", "log", "message", "misc", "oauth_cb", "partitioners", "serializer_error"),
    "topic_partition",
)
PEERS = {
    "confluent": Peer(
        (
            *(f"tests/test_{name}.py" for name in CONFLUENT_FILES),
            "tests/integration/producer/test_producer_wakeable_poll_flush.py",
            "tests/integration/producer/test_transactions.py",
            "tests/integration/serialization/test_serializers.py",
        ),
        ("tests/common",),
        CONFLUENT_PLUGIN,
        {
            "test_logging_consumer": CONSUMER,
            "test_logging_avro_consumer": CONSUMER,
            "test_consumer_logger": CONSUMER,
            "test_admin_logger": CONSUMER,
            "test_new_consume_error": CONSUMER,
            "test_oauth_cb": f"{CONSUMER}: each of these tests makes one",
            "test_aio_oauth_cb": ASYNC,
            "test_producer_logger_logging_in_given_format": WORDS,
        },
        ("test-topic", "mytopic"),
        least=0.96,
    ),
    "kafka": Peer(
        (
            "test/producer/test_kip679_config.py",
            "test/producer/test_partitioner.py",
            "test/producer/test_producer.py",
            "test/test_serializer.py",
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
            "TestStickyPartitioner": "about the object that chooses there; here the accumulator does",
        },
        ("transactional_test_topic",),
    ),
    "aiokafka": Peer(
        ("tests/test_producer.py", "tests/test_transactional_producer.py", "tests/_testutil.py"),
        (),
        AIOKAFKA_PLUGIN,
        {
            "test_producer_notopic": INNER_CLIENT,
            "test_producer_send_leader_notfound": INNER_METADATA,
            "test_producer_send_timeout": INNER_CLIENT,
            "test_producer_send_error": INNER_CLIENT,
            "test_producer_correct_time_returned": INNER_CLIENT,
            "test_producer_send_empty_batch": INNER_SENDER,
            "test_producer_send_reenque_resets_waiters": INNER_CLIENT,
            "test_producer_indempotence_no_duplicates": INNER_CLIENT,
            "test_producer_invalid_leader_retry_metadata": INNER_METADATA,
            "test_producer_leader_change_preserves_order": INNER_METADATA,
            "test_producer_sender_errors_propagate_to_producer": INNER_SENDER,
            "test_producer_transactional_raise_out_of_sequence": INNER_MANAGER,
            "test_producer_transactional_aborting_previous_failure": INNER_MANAGER,
            "test_producer_transactional_cancel_txn_methods": INNER_MANAGER,
        },
        (),
        (
            ("from aiokafka.producer import", "from forebay.compat.aiokafka.producer import"),
            ("from aiokafka.errors import", "from forebay.compat.aiokafka.errors import"),
        ),
        (("num.partitions", "2"),),
    ),
}


def copy(peer: Peer, checkout: Path, folder: Path) -> None:
    """The tests, and the packages that they import."""
    for name in peer.folders:
        shutil.copytree(checkout / name, folder / name)
    for name in peer.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (checkout / name).read_text(encoding="utf-8")
        for before, after in peer.imports:
            text = text.replace(before, after)
        target.write_text(text, encoding="utf-8")
        (target.parent / "__init__.py").touch()
    (folder / "peer_plugin.py").write_text(peer.plugin)


def with_tls(folder: Path, properties: dict[str, str]) -> RealKafka:
    """A Kafka that also listens with TLS; ``ca.crt``, and a client's certificate and key, are in ``folder``."""
    import trustme

    authority = trustme.CA()
    (folder / "ca.crt").write_bytes(authority.cert_pem.bytes())
    identity(folder, "client", authority.issue_cert("client.example"))
    server = identity(folder, "server", authority.issue_cert("localhost", "127.0.0.1"))
    tls = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(server.both)}
    return RealKafka(quick_start=True, properties=properties, listeners=[Listener("SSL", "SSL", tls)])


def run(client: str, checkout: Path, arguments: list[str]) -> int:
    """Prints what passed; 0 if enough did."""
    peer = PEERS[client]
    with tempfile.TemporaryDirectory() as made, with_tls(Path(made), dict(peer.properties)) as kafka:
        folder = Path(made)
        for topic in peer.topics:
            kafka.create_topic(topic, 4)
        copy(peer, checkout, folder)
        left_out = " or ".join(peer.not_applicable)
        command = [sys.executable, "-m", "pytest", "-p", "peer_plugin", "-p", "no:cacheprovider", "-q", "-rA"]
        command += ["--timeout=120", *(["-k", f"not ({left_out})"] if left_out else []), *arguments, *peer.files]
        paths = os.pathsep.join([str(folder), str(Path("src").resolve())])
        environment = {**os.environ, "PYTHONPATH": paths, "PEER_BROKER": kafka.bootstrap_servers}
        environment |= {"PEER_TLS": kafka.address_of("SSL"), "PEER_CERTIFICATES": made}
        # Without its standard input, which the guard of the broker uses.
        done = subprocess.run(
            command, cwd=folder, env=environment, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    print(done.stdout[-20_000:], done.stderr[-2_000:], sep="\n")
    passed = len(re.findall(r"^PASSED \S+::", done.stdout, re.MULTILINE))
    # A line of a log begins with ERROR, too.
    failed = len(re.findall(r"^(?:FAILED|ERROR) \S+::", done.stdout, re.MULTILINE))
    for name, reason in peer.not_applicable.items():
        print(f"not applicable: {name}: {reason}")
    print(f"{client}: {passed} of {passed + failed} applicable tests pass; {len(peer.not_applicable)} do not apply")
    return 0 if passed and passed >= peer.least * (passed + failed) else 1


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in PEERS:
        sys.exit(f"usage: python -m tools.peer_tests {'|'.join(PEERS)} CHECKOUT [PYTEST ARGUMENT ...]")
    sys.exit(run(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
