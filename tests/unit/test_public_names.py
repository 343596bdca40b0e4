"""What ``dir()`` shows of public objects, in both forms: the names that users may use, and no others.

Names that begin with an underscore do not count: users know that they are inner.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import forebay
from forebay import (
    AdminClient,
    BatchDelivery,
    ConsumerGroupMetadata,
    KafkaError,
    KafkaProducer,
    OffsetAndMetadata,
    ProducerRecord,
    RecordFuture,
    RecordMetadata,
    TopicPartition,
    TransactionIdentity,
    model,
)
from forebay._runtime.hints import Hint
from forebay.errors import BufferExhaustedError, KafkaTimeoutError
from tests.fakes.world import World
from tests.unit.admin.world import AdminWorld

PRODUCER = {
    "abort_transaction",
    "advise",
    "begin_transaction",
    "client_id",
    "client_instance_id",
    "close",
    "commit_transaction",
    "config",
    "describe",
    "detach_transaction",
    "flush",
    "from_env",
    "from_properties",
    "init_transactions",
    "metrics",
    "partitions_for",
    "producer_epoch",
    "producer_id",
    "purge",
    "record_trace",
    "send",
    "send_batch",
    "send_nowait",
    "send_offsets_to_transaction",
    "set_sasl_credentials",
    "set_transactional_id",
    "transaction",
    "transaction_version",
    "transactional_id",
    "warm_up",
}
FUTURE = {
    "add_done_callback",
    "as_concurrent",
    "cancel",
    "cancelled",
    "done",
    "exception",
    "get",
    "metadata",
    "result",
    "running",
}
METADATA = {
    "as_tuple",
    "has_offset",
    "has_timestamp",
    "offset",
    "partition",
    "serialized_key_size",
    "serialized_value_size",
    "timestamp",
    "topic",
}
DELIVERY = {
    "acknowledged",
    "add_done_callback",
    "as_concurrent",
    "batches",
    "cancel",
    "cancelled",
    "done",
    "exception",
    "failed",
    "failures",
    "first_error",
    "first_failed_row",
    "partitions",
    "raw_bytes",
    "result",
    "rows",
    "running",
    "taken",
}
CONTROL = {
    "close",
    "create_topic",
    "delete_topic",
    "describe_cluster",
    "describe_transaction",
    "describe_transactions",
    "end_transaction",
    "init_producer_id",
    "list_transactions",
    "read_from",
    "read_tail",
    "topic_configs",
    "transaction_version",
}
ERROR = {
    "code",
    "context",
    "default_message",
    "delivery",
    "fatal",
    "invalid_metadata",
    "message",
    "name",
    "retriable",
    "txn_requires_abort",
    "with_context",
}
MODULES = (
    "config",
    "admin",
    "errors",
    "interceptors",
    "model",
    "pipeline",
    "producer",
    "serializers",
    "spark",
    "testing",
)


def shown(value: object) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


@pytest.fixture
def world() -> World:
    return World()


def test_a_producer(world: World) -> None:
    world.send(b"value", on_delivery=print)
    assert shown(world.producer) == PRODUCER


def test_what_a_user_s_own_producer_adds_is_shown_too(world: World) -> None:
    class Own(type(world.producer)):  # type: ignore[misc]
        def send_order(self) -> None:
            """Of the user."""

    world.producer.__class__ = Own
    world.producer.orders = 3  # type: ignore[attr-defined]
    assert shown(world.producer) == {*PRODUCER, "send_order", "orders"}


def test_a_future_and_its_metadata(world: World) -> None:
    future = world.send(b"value")
    assert shown(future) == FUTURE
    world.settle()
    assert shown(future.result(0)) == METADATA


def test_a_delivery_of_rows(world: World) -> None:
    delivery = world.producer.send_batch("test", [b"one", b"two"])
    assert shown(delivery) == DELIVERY
    world.settle()
    assert delivery.done() and shown(delivery) == DELIVERY


def test_a_control() -> None:
    assert shown(AdminWorld().admin) == CONTROL


@pytest.mark.parametrize("kind", [KafkaError, KafkaTimeoutError, BufferExhaustedError])
def test_an_error(kind: type[KafkaError]) -> None:
    """Beside the names of Python's own errors that it is one of."""
    python = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    assert shown(kind("words", node=1)) - shown(python()) == ERROR


@pytest.mark.parametrize(
    "value",
    [
        ConsumerGroupMetadata("group"),
        OffsetAndMetadata(1),
        ProducerRecord("topic"),
        TopicPartition("topic", 0),
        TransactionIdentity("id", 1, 0, 2),
        model.Node(1, "host", 9092),
        model.PartitionInfo("topic", 0, None),
        model.TailRecord(0, 0, None, None),
        model.TransactionDescription("Empty", 1, 0, 1, -1, (), 0),
        model.TransactionListing("id", 1, "Empty"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_model_show_their_fields(value: Any) -> None:
    of_tuples = {"count", "index"} if isinstance(value, tuple) else set()
    assert shown(value) == {*value.__match_args__, *of_tuples}


@pytest.mark.skipif(forebay.implementation == "interpreted", reason="as Python, a class shows all that its code is")
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (KafkaProducer, PRODUCER),
        (RecordFuture, FUTURE),
        (RecordMetadata, METADATA),
        (BatchDelivery, DELIVERY),
        (AdminClient, CONTROL),
    ],
)
def test_the_classes_themselves(kind: type, names: set[str]) -> None:
    """``help()`` shows these, and hints for names of other clients."""
    hints = {name for name, value in vars(kind).items() if isinstance(value, Hint)}
    assert shown(kind) == {*names, *hints} and not names & hints


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_what_it_lists(name: str) -> None:
    module = importlib.import_module(f"forebay.{name}")
    assert shown(module) == set(module.__all__)


def test_the_package() -> None:
    listed = {name for name in forebay.__all__ if not name.startswith("_")}
    assert shown(forebay) == {*listed, "aio", "config", "errors", "interceptors", "metrics", "model", "serializers"}
    assert all(getattr(forebay, name) is not None for name in dir(forebay))
