"""AdminClient, the public face: arguments, timeouts, closing, threads, forks and interrupts."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
from typing import Any

import pytest

import forebay
from forebay._protocol.versions import ApiKey
from forebay.admin import AdminClient
from forebay.admin import client as control_module
from forebay.errors import (
    AuthenticationError,
    ConfigError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
    TransactionalIdNotFoundError,
)
from forebay.model import TransactionDescription, TransactionIdentity
from tests.fakes.broker import API_VERSIONS, Received
from tests.fakes.names import FORBIDDEN_TOPICS, LONE_SURROGATES, TOO_LONG
from tests.fakes.steps import at_step, each_step, within_time
from tests.unit.admin.world import AdminWorld


@pytest.mark.parametrize(
    ("method", "arguments", "more", "words"),
    [
        ("init_producer_id", ("",), {}, "transactional_id must be a non-empty str, got ''"),
        ("init_producer_id", (None,), {}, "transactional_id must be a non-empty str, got None"),
        (
            "end_transaction",
            (TransactionIdentity("", 1, 0, 2),),
            {"commit": True},
            "transactional_id must be a non-empty str, got ''",
        ),
        (
            "end_transaction",
            (TransactionIdentity("t", -1, 0, 2),),
            {"commit": True},
            "producer_id must be from 0 to 9223372036854775807, got -1",
        ),
        (
            "end_transaction",
            (TransactionIdentity("t", "1", 0, 2),),  # type: ignore[arg-type]
            {"commit": True},
            "producer_id must be an int, got '1'",
        ),
        (
            "end_transaction",
            (TransactionIdentity("t", True, 0, 2),),
            {"commit": True},
            "producer_id must be an int, got True",
        ),
        (
            "end_transaction",
            (TransactionIdentity("t", 1, -1, 2),),
            {"commit": True},
            "producer_epoch must be from 0 to 32767, got -1",
        ),
        (
            "end_transaction",
            (TransactionIdentity("t", 1, 32768, 2),),
            {"commit": True},
            "producer_epoch must be from 0 to 32767, got 32768",
        ),
        ("end_transaction", (TransactionIdentity("t", 1, 0, 2),), {"commit": 1}, "commit must be True or False, got 1"),
        (
            "end_transaction",
            (TransactionIdentity("t", 1, 0, 3),),
            {"commit": True},
            "version must be from 0 to 2, got 3",
        ),
        (
            "end_transaction",
            (TransactionIdentity("t", 1, 0, -1),),
            {"commit": True},
            "version must be from 0 to 2, got -1",
        ),
        ("end_transaction", (("t", 1, 0, 2),), {"commit": True}, "identity must be a TransactionIdentity, got tuple"),
        ("describe_transactions", ("t",), {}, "transactional_ids must be several, got the str 't'"),
        ("describe_transactions", (["t", ""],), {}, "transactional_id must be a non-empty str, got ''"),
        ("topic_configs", ("t", "ab"), {}, "keys must be several, got the str 'ab'"),
        ("topic_configs", ("t", ["a", ""]), {}, "key must be a non-empty str, got ''"),
        ("topic_configs", ("", ["a"]), {}, "topic must be a non-empty str, got ''"),
        ("create_topic", ("",), {}, "topic must be a non-empty str, got ''"),
        (
            "create_topic",
            ("t",),
            {"partitions": 0},
            "partitions must be from 1 to 2147483647, or -1 for the broker's default, got 0",
        ),
        (
            "create_topic",
            ("t",),
            {"replication_factor": 0},
            "replication_factor must be from 1 to 32767, or -1 .*, got 0",
        ),
        ("read_tail", ("",), {}, "topic must be a non-empty str, got ''"),
        ("read_tail", ("t", -1), {}, "partition must be from 0 to 2147483647, got -1"),
        ("read_from", ("t", 0), {"offset": -1}, "offset must be from 0 to 9223372036854775807, got -1"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_asked(
    method: str, arguments: tuple[Any, ...], more: dict[str, Any], words: str
) -> None:
    world = AdminWorld()
    with pytest.raises(IllegalArgumentError, match=words):
        getattr(world.admin, method)(*arguments, **more)
    assert not world.selector.opened


@pytest.mark.parametrize("name", [name for name in FORBIDDEN_TOPICS if name], ids=lambda name: ascii(name)[:20])
def test_names_that_no_topic_has_are_refused_before_anything_is_asked(name: str) -> None:
    world = AdminWorld()
    for method in ("create_topic", "read_tail"):
        with pytest.raises(InvalidTopicError, match="No topic can be named"):
            getattr(world.admin, method)(name)
    with pytest.raises(InvalidTopicError, match="No topic can be named"):
        next(world.admin.read_from(name))
    assert not world.selector.opened


@pytest.mark.parametrize("text", [*LONE_SURROGATES, *TOO_LONG], ids=lambda text: ascii(text)[:20])
def test_text_that_cannot_be_sent_is_refused_before_anything_is_asked(text: str) -> None:
    world = AdminWorld()
    admin = world.admin
    for call in (
        lambda: admin.init_producer_id(text),
        lambda: admin.end_transaction(TransactionIdentity(text, 1, 0, 2), commit=True),
        lambda: admin.describe_transaction(text),
        lambda: admin.describe_transactions(["t", text]),
        lambda: admin.list_transactions(states=[text]),
        lambda: admin.create_topic("t", configs={text: "v"}),
        lambda: admin.create_topic("t", configs={"k": text}),
        lambda: admin.describe_cluster(text),
    ):
        with pytest.raises(IllegalArgumentError, match=r"cannot be sent: it "):
            call()
    assert not world.selector.opened


@pytest.mark.parametrize(
    ("method", "arguments", "options", "words"),
    [
        ("init_producer_id", ("t",), {"transaction_timeout_ms": 0}, "transaction_timeout_ms must be from 1"),
        ("read_tail", ("t",), {"max_records": 0}, "max_records must be from 1 to 2147483647, got 0"),
        ("read_tail", ("t",), {"isolation": "none"}, "one of read_committed, read_uncommitted, got 'none'"),
        ("list_transactions", (), {"states": "Ongoing"}, "states must be several, got the str 'Ongoing'"),
        ("list_transactions", (), {"producer_ids": [-1]}, "producer_id must be from 0"),
        ("transaction_version", (), {"timeout": -1}, "The timeout cannot be negative: -1"),
        ("transaction_version", (), {"timeout": float("nan")}, "The timeout must be a number of seconds: nan"),
    ],
)
def test_options_that_cannot_be(method: str, arguments: tuple[Any, ...], options: dict[str, Any], words: str) -> None:
    world = AdminWorld()
    with pytest.raises(IllegalArgumentError, match=words):
        getattr(world.admin, method)(*arguments, **options)
    assert not world.selector.opened


def test_a_configuration_is_checked_like_a_producer_s() -> None:
    with pytest.raises(ConfigError, match="bootstrap"):
        AdminClient()
    with pytest.raises(ConfigError, match="bootstrap_server"):
        AdminClient(bootstrap_server="127.0.0.1:9092")  # type: ignore[call-arg]
    assert forebay.AdminClient is AdminClient


def test_without_a_timeout_max_block_ms_counts() -> None:
    world = AdminWorld(max_block_ms=700)
    world.cluster.down(1)
    begun = world.clock.now()
    with pytest.raises(KafkaTimeoutError, match=r"transaction_version was not done within 0\.7 s"):
        world.admin.transaction_version()
    assert world.clock.now() - begun <= 800


def test_one_description_is_there_or_an_error() -> None:
    world = AdminWorld()
    world.described["t"] = TransactionDescription("Empty", 5, 1, 60_000, 0, (), 1)
    assert world.admin.describe_transaction("t").state == "Empty"
    with pytest.raises(TransactionalIdNotFoundError, match="transactional_id=u"):
        world.admin.describe_transaction("u")


def test_connections_are_kept_from_call_to_call() -> None:
    world = AdminWorld()
    for _ in range(3):
        world.admin.end_transaction(TransactionIdentity("t", 7, 3, 2), commit=True)
    # The bootstrap server, and the same broker by its id.
    assert len(world.selector.opened) == 2


def test_close() -> None:
    world = AdminWorld()
    with world.admin as admin:
        admin.transaction_version()
        assert repr(admin) == "<AdminClient of 127.0.0.1:9001>"
    assert not any(link.open for link in world.selector.links)
    admin.close()
    with pytest.raises(IllegalStateError, match="transaction_version: this AdminClient was closed"):
        admin.transaction_version()
    with pytest.raises(IllegalStateError, match="closed"), admin:
        pass
    assert repr(admin).endswith(": closed>")


def test_one_that_is_dropped_closes_its_connections() -> None:
    world = AdminWorld()
    world.admin.transaction_version()
    del world.admin
    assert not any(link.open for link in world.selector.links)


def test_it_does_not_pickle() -> None:
    with pytest.raises(TypeError, match="an AdminClient cannot be pickled"):
        pickle.dumps(AdminWorld().admin)


def test_an_interrupt_leaves_a_control_that_works() -> None:
    world = AdminWorld()
    answers = world.broker().script[ApiKey.END_TXN]

    def interrupt(request: Received) -> None:
        world.broker().script[ApiKey.END_TXN] = answers
        raise KeyboardInterrupt

    world.broker().script[ApiKey.END_TXN] = interrupt
    with pytest.raises(KeyboardInterrupt):
        world.admin.end_transaction(TransactionIdentity("t", 7, 3, 2), commit=True)
    assert not any(link.open for link in world.selector.links)
    world.admin.end_transaction(TransactionIdentity("t", 7, 3, 2), commit=True)


def test_an_interrupt_between_two_turns_leaves_a_control_that_works() -> None:
    world = AdminWorld()

    def interrupted() -> None:
        with world.admin._call("call", None) as (session, deadline):
            session.any_node(deadline)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not any(link.open for link in world.selector.links)
    assert world.admin.transaction_version() == 2


def test_an_interrupt_at_any_step_leaves_it_to_other_threads() -> None:
    """Ctrl-C between the lock's taking and what follows, too: nobody would ever let it go."""

    worlds: list[AdminWorld] = []  # their finalisers are no steps

    def interrupted(number: int) -> bool:
        worlds.append(AdminWorld())
        world = worlds[-1]

        def interrupt() -> None:
            raise KeyboardInterrupt

        def call() -> None:
            with contextlib.suppress(KeyboardInterrupt):
                world.admin.transaction_version()

        whole = at_step(number, call, interrupt, is_step=lambda file: file == control_module.__file__)
        assert within_time(lambda: world.admin.transaction_version(timeout=5), "another thread's call") == 2
        return whole

    assert each_step(interrupted, "a call of AdminClient") > 10


def test_a_signal_handler_that_closes_it_in_the_middle_of_a_call() -> None:
    """It would wait for ever for the call that it interrupted; the call is finished, and is the last."""
    world = AdminWorld()
    answers = world.broker().script[ApiKey.END_TXN]

    def close(request: Received) -> None:
        world.broker().script[ApiKey.END_TXN] = answers
        world.admin.close()
        answers(request)

    world.broker().script[ApiKey.END_TXN] = close
    world.admin.end_transaction(TransactionIdentity("t", 7, 3, 2), commit=True)
    assert len(world.asked(ApiKey.END_TXN)) == 1
    assert not any(link.open for link in world.selector.links)
    with pytest.raises(IllegalStateError, match="closed"):
        world.admin.transaction_version()


def test_a_call_within_a_call_is_refused_and_does_no_harm() -> None:
    world = AdminWorld()
    answers = world.broker().script[ApiKey.END_TXN]
    told: list[str] = []

    def call(request: Received) -> None:
        try:
            world.admin.transaction_version()
        except IllegalStateError as error:
            told.append(str(error))
        answers(request)

    world.broker().script[ApiKey.END_TXN] = call
    world.admin.end_transaction(TransactionIdentity("t", 7, 3, 2), commit=True)
    assert told == ["transaction_version: this thread is in the middle of another call of this AdminClient"]
    assert world.admin.transaction_version() == 2


def test_a_fork_in_the_middle_of_a_call() -> None:
    """A handler of a signal that forks: the call goes on in the parent, and the child has an AdminClient that works."""
    world = AdminWorld()
    with world.admin._call("call", None) as (session, deadline):
        session.any_node(deadline)
        child = os.fork()
        if child == 0:
            ended = 1
            try:
                ended = 0 if world.admin.transaction_version() == 2 else 2
            finally:
                os._exit(ended)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        session.any_node(deadline)
    assert world.admin.transaction_version() == 2


def test_a_refusal_that_is_over_is_not_repeated() -> None:
    """A producer keeps what keeps its metadata away until an update comes; here nobody would wait for one."""
    world = AdminWorld()
    broker = world.broker()
    broker.script[API_VERSIONS] = lambda request: broker.answer_versions(request, error=58)
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            world.admin.transaction_version()
    del broker.script[API_VERSIONS]
    assert world.admin.transaction_version() == 2


def test_what_is_wrong_with_a_broker_s_connection_is_said() -> None:
    world = AdminWorld(2)
    world.admin.list_transactions()
    world.cluster.down(2)
    with pytest.raises(KafkaTimeoutError, match=r"No connection to 127\.0\.0\.1:9002 \(id 2\): .*refused"):
        world.admin.list_transactions(timeout=1)


def test_a_reader_that_is_interrupted_between_two_steps_goes_on() -> None:
    world = AdminWorld()
    world.piece = 100
    for number in range(5):
        world.log.write(b"%d" % number)
    records = world.admin.read_from("t")
    assert next(records).offset == 0
    world.admin.transaction_version()
    assert [record.offset for record in records] == [1, 2, 3, 4]


def test_threads_take_turns() -> None:
    world = AdminWorld()
    errors: list[Exception] = []

    def call() -> None:
        try:
            world.admin.transaction_version(timeout=0.05)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)

    with world.admin._call("other", None):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert "Another thread's call is under way" in str(errors[0])
    assert isinstance(errors[0], KafkaTimeoutError)
    assert world.admin.transaction_version() == 2


def test_a_forked_child_has_connections_of_its_own() -> None:
    world = AdminWorld()
    world.admin.transaction_version()
    before = len(world.selector.opened)
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            fresh = world.admin._session is None
            ended = 0 if fresh and world.admin.transaction_version() == 2 else 2
        finally:
            os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert world.admin.transaction_version() == 2
    assert len(world.selector.opened) == before
