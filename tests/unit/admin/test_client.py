"""Control, the public face: arguments, timeouts, closing, threads, forks and interrupts."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
from typing import Any

import pytest

import forebay
from forebay._protocol.versions import ApiKey
from forebay.control import Control
from forebay.control import client as control_module
from forebay.errors import (
    AuthenticationError,
    ConfigError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
    TransactionalIdNotFoundError,
)
from forebay.model import TransactionDescription
from tests.fakes.broker import API_VERSIONS, Received
from tests.fakes.names import FORBIDDEN_TOPICS, LONE_SURROGATES, TOO_LONG
from tests.fakes.steps import at_step, each_step, within_time
from tests.unit.control.world import ControlWorld


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("init_producer_id", ("",), "transactional_id must be a non-empty str, got ''"),
        ("init_producer_id", (None,), "transactional_id must be a non-empty str, got None"),
        ("end_transaction", ("", 1, 0, True, 2), "transactional_id must be a non-empty str, got ''"),
        ("end_transaction", ("t", -1, 0, True, 2), "producer_id must be from 0 to 9223372036854775807, got -1"),
        ("end_transaction", ("t", "1", 0, True, 2), "producer_id must be an int, got '1'"),
        ("end_transaction", ("t", True, 0, True, 2), "producer_id must be an int, got True"),
        ("end_transaction", ("t", 1, -1, True, 2), "producer_epoch must be from 0 to 32767, got -1"),
        ("end_transaction", ("t", 1, 32768, True, 2), "producer_epoch must be from 0 to 32767, got 32768"),
        ("end_transaction", ("t", 1, 0, 1, 2), "commit must be True or False, got 1"),
        ("end_transaction", ("t", 1, 0, True, 3), "version must be from 0 to 2, got 3"),
        ("end_transaction", ("t", 1, 0, True, -1), "version must be from 0 to 2, got -1"),
        ("describe_transactions", ("t",), "transactional_ids must be several, got the str 't'"),
        ("describe_transactions", (["t", ""],), "transactional_id must be a non-empty str, got ''"),
        ("topic_configs", ("t", "ab"), "keys must be several, got the str 'ab'"),
        ("topic_configs", ("t", ["a", ""]), "key must be a non-empty str, got ''"),
        ("topic_configs", ("", ["a"]), "topic must be a non-empty str, got ''"),
        ("create_topic", ("",), "topic must be a non-empty str, got ''"),
        ("create_topic", ("t", 0), "partitions must be from 1 to 2147483647, or -1 for the broker's default, got 0"),
        ("create_topic", ("t", 1, 0), "replication_factor must be from 1 to 32767, or -1 .*, got 0"),
        ("read_tail", ("",), "topic must be a non-empty str, got ''"),
        ("read_tail", ("t", -1), "partition must be from 0 to 2147483647, got -1"),
        ("read_from", ("t", 0, -1), "offset must be from 0 to 9223372036854775807, got -1"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_asked(
    method: str, arguments: tuple[Any, ...], words: str
) -> None:
    world = ControlWorld()
    with pytest.raises(IllegalArgumentError, match=words):
        getattr(world.control, method)(*arguments)
    assert not world.selector.opened


@pytest.mark.parametrize("name", [name for name in FORBIDDEN_TOPICS if name], ids=lambda name: ascii(name)[:20])
def test_names_that_no_topic_has_are_refused_before_anything_is_asked(name: str) -> None:
    world = ControlWorld()
    for method in ("create_topic", "read_tail"):
        with pytest.raises(InvalidTopicError, match="No topic can be named"):
            getattr(world.control, method)(name)
    with pytest.raises(InvalidTopicError, match="No topic can be named"):
        next(world.control.read_from(name))
    assert not world.selector.opened


@pytest.mark.parametrize("text", [*LONE_SURROGATES, *TOO_LONG], ids=lambda text: ascii(text)[:20])
def test_text_that_cannot_be_sent_is_refused_before_anything_is_asked(text: str) -> None:
    world = ControlWorld()
    control = world.control
    for call in (
        lambda: control.init_producer_id(text),
        lambda: control.end_transaction(text, 1, 0, True, 2),
        lambda: control.describe_transaction(text),
        lambda: control.describe_transactions(["t", text]),
        lambda: control.list_transactions(states=[text]),
        lambda: control.create_topic("t", configs={text: "v"}),
        lambda: control.create_topic("t", configs={"k": text}),
        lambda: control.describe_cluster(text),
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
    world = ControlWorld()
    with pytest.raises(IllegalArgumentError, match=words):
        getattr(world.control, method)(*arguments, **options)
    assert not world.selector.opened


def test_a_configuration_is_checked_like_a_producer_s() -> None:
    with pytest.raises(ConfigError, match="bootstrap"):
        Control()
    with pytest.raises(ConfigError, match="bootstrap_server"):
        Control(bootstrap_server="127.0.0.1:9092")  # type: ignore[call-arg]
    assert forebay.Control is Control


def test_without_a_timeout_max_block_ms_counts() -> None:
    world = ControlWorld(max_block_ms=700)
    world.cluster.down(1)
    begun = world.clock.now()
    with pytest.raises(KafkaTimeoutError, match=r"transaction_version was not done within 0\.7 s"):
        world.control.transaction_version()
    assert world.clock.now() - begun <= 800


def test_one_description_is_there_or_an_error() -> None:
    world = ControlWorld()
    world.described["t"] = TransactionDescription("Empty", 5, 1, 60_000, 0, (), 1)
    assert world.control.describe_transaction("t").state == "Empty"
    with pytest.raises(TransactionalIdNotFoundError, match="transactional_id=u"):
        world.control.describe_transaction("u")


def test_connections_are_kept_from_call_to_call() -> None:
    world = ControlWorld()
    for _ in range(3):
        world.control.end_transaction("t", 7, 3, True, 2)
    # The bootstrap server, and the same broker by its id.
    assert len(world.selector.opened) == 2


def test_close() -> None:
    world = ControlWorld()
    with world.control as control:
        control.transaction_version()
        assert repr(control) == "<Control of 127.0.0.1:9001>"
    assert not any(link.open for link in world.selector.links)
    control.close()
    with pytest.raises(IllegalStateError, match="transaction_version: this Control was closed"):
        control.transaction_version()
    with pytest.raises(IllegalStateError, match="closed"), control:
        pass
    assert repr(control).endswith(": closed>")


def test_one_that_is_dropped_closes_its_connections() -> None:
    world = ControlWorld()
    world.control.transaction_version()
    del world.control
    assert not any(link.open for link in world.selector.links)


def test_it_does_not_pickle() -> None:
    with pytest.raises(TypeError, match="a Control cannot be pickled"):
        pickle.dumps(ControlWorld().control)


def test_an_interrupt_leaves_a_control_that_works() -> None:
    world = ControlWorld()
    answers = world.broker().script[ApiKey.END_TXN]

    def interrupt(request: Received) -> None:
        world.broker().script[ApiKey.END_TXN] = answers
        raise KeyboardInterrupt

    world.broker().script[ApiKey.END_TXN] = interrupt
    with pytest.raises(KeyboardInterrupt):
        world.control.end_transaction("t", 7, 3, True, 2)
    assert not any(link.open for link in world.selector.links)
    world.control.end_transaction("t", 7, 3, True, 2)


def test_an_interrupt_between_two_turns_leaves_a_control_that_works() -> None:
    world = ControlWorld()

    def interrupted() -> None:
        with world.control._call("call", None) as (session, deadline):
            session.any_node(deadline)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not any(link.open for link in world.selector.links)
    assert world.control.transaction_version() == 2


def test_an_interrupt_at_any_step_leaves_it_to_other_threads() -> None:
    """Ctrl-C between the lock's taking and what follows, too: nobody would ever let it go."""

    worlds: list[ControlWorld] = []  # their finalisers are no steps

    def interrupted(number: int) -> bool:
        worlds.append(ControlWorld())
        world = worlds[-1]

        def interrupt() -> None:
            raise KeyboardInterrupt

        def call() -> None:
            with contextlib.suppress(KeyboardInterrupt):
                world.control.transaction_version()

        whole = at_step(number, call, interrupt, is_step=lambda file: file == control_module.__file__)
        assert within_time(lambda: world.control.transaction_version(timeout=5), "another thread's call") == 2
        return whole

    assert each_step(interrupted, "a call of Control") > 10


def test_a_signal_handler_that_closes_it_in_the_middle_of_a_call() -> None:
    """It would wait for ever for the call that it interrupted; the call is finished, and is the last."""
    world = ControlWorld()
    answers = world.broker().script[ApiKey.END_TXN]

    def close(request: Received) -> None:
        world.broker().script[ApiKey.END_TXN] = answers
        world.control.close()
        answers(request)

    world.broker().script[ApiKey.END_TXN] = close
    world.control.end_transaction("t", 7, 3, True, 2)
    assert len(world.asked(ApiKey.END_TXN)) == 1
    assert not any(link.open for link in world.selector.links)
    with pytest.raises(IllegalStateError, match="closed"):
        world.control.transaction_version()


def test_a_call_within_a_call_is_refused_and_does_no_harm() -> None:
    world = ControlWorld()
    answers = world.broker().script[ApiKey.END_TXN]
    told: list[str] = []

    def call(request: Received) -> None:
        try:
            world.control.transaction_version()
        except IllegalStateError as error:
            told.append(str(error))
        answers(request)

    world.broker().script[ApiKey.END_TXN] = call
    world.control.end_transaction("t", 7, 3, True, 2)
    assert told == ["transaction_version: this thread is in the middle of another call of this Control"]
    assert world.control.transaction_version() == 2


def test_a_fork_in_the_middle_of_a_call() -> None:
    """A handler of a signal that forks: the call goes on in the parent, and the child has a Control that works."""
    world = ControlWorld()
    with world.control._call("call", None) as (session, deadline):
        session.any_node(deadline)
        child = os.fork()
        if child == 0:
            ended = 1
            try:
                ended = 0 if world.control.transaction_version() == 2 else 2
            finally:
                os._exit(ended)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        session.any_node(deadline)
    assert world.control.transaction_version() == 2


def test_a_refusal_that_is_over_is_not_repeated() -> None:
    """A producer keeps what keeps its metadata away until an update comes; here nobody would wait for one."""
    world = ControlWorld()
    broker = world.broker()
    broker.script[API_VERSIONS] = lambda request: broker.answer_versions(request, error=58)
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            world.control.transaction_version()
    del broker.script[API_VERSIONS]
    assert world.control.transaction_version() == 2


def test_what_is_wrong_with_a_broker_s_connection_is_said() -> None:
    world = ControlWorld(2)
    world.control.list_transactions()
    world.cluster.down(2)
    with pytest.raises(KafkaTimeoutError, match=r"No connection to 127\.0\.0\.1:9002 \(id 2\): .*refused"):
        world.control.list_transactions(timeout=1)


def test_a_reader_that_is_interrupted_between_two_steps_goes_on() -> None:
    world = ControlWorld()
    world.piece = 100
    for number in range(5):
        world.log.write(b"%d" % number)
    records = world.control.read_from("t")
    assert next(records).offset == 0
    world.control.transaction_version()
    assert [record.offset for record in records] == [1, 2, 3, 4]


def test_threads_take_turns() -> None:
    world = ControlWorld()
    errors: list[Exception] = []

    def call() -> None:
        try:
            world.control.transaction_version(timeout=0.05)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            errors.append(error)

    with world.control._call("other", None):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert "Another thread's call is under way" in str(errors[0])
    assert isinstance(errors[0], KafkaTimeoutError)
    assert world.control.transaction_version() == 2


def test_a_forked_child_has_connections_of_its_own() -> None:
    world = ControlWorld()
    world.control.transaction_version()
    before = len(world.selector.opened)
    child = os.fork()
    if child == 0:
        ended = 1
        try:
            fresh = world.control._session is None
            ended = 0 if fresh and world.control.transaction_version() == 2 else 2
        finally:
            os._exit(ended)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert world.control.transaction_version() == 2
    assert len(world.selector.opened) == before
