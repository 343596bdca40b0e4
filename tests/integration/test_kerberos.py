"""SASL GSSAPI with a real MIT KDC and a real Kafka: keytab, ticket cache, JAAS, a KDC that is away, what is refused."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from forebay import KafkaProducer
from forebay._network.sasl.gss_library import CredentialStore, GssError, GssLibrary
from forebay.cli.properties import load_properties
from forebay.errors import ConfigError, SaslAuthenticationError
from tests.integration.programs import run_under_locks
from tests.integration.test_same_files import written
from tests.integration.test_security import RECORDS, refused, send_all, send_while_sessions_end
from tests.property.frames import damaged, printed_seed
from tests.support.fixtures import ReadBackFactory, TopicFactory
from tests.support.kerberos import CLIENT, Kerberized, kerberized
from tests.support.pace import HANG_S, CpuTime, within, within_ms

pytestmark = pytest.mark.rest("a KDC, and a broker that takes its tickets")

__all__ = ["kerberized"]

JAAS = "com.sun.security.auth.module.Krb5LoginModule required "


@pytest.mark.parametrize("listener", ["GSSP", "GSSS"])
def test_a_keytab(kerberized: Kerberized, topic: TopicFactory, read_back: ReadBackFactory, listener: str) -> None:
    name = topic(kerberized.kafka, 3)
    values = send_all(kerberized.options(listener), name)
    found = read_back(kerberized.kafka, name).wait_for(RECORDS)
    assert sorted(record.value or b"" for record in found) == sorted(values)


def test_an_address_has_its_name_looked_up(
    kerberized: Kerberized, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    """The broker's principal has the name, and bootstrap.servers the address, as in Java."""
    name = topic(kerberized.kafka, 1)
    options = kerberized.options("GSSP")
    address = options["bootstrap.servers"].replace("localhost", "127.0.0.1")
    assert address != options["bootstrap.servers"]
    values = send_all({**options, "bootstrap.servers": address}, name)
    assert len(read_back(kerberized.kafka, name).wait_for(RECORDS)) == len(values)


def test_no_thread_waits_for_a_lock_that_a_handler_may_have_interrupted(
    kerberized: Kerberized, topic: TopicFactory
) -> None:
    """As in test_signals.py; the login's thread is one of them."""
    config = kerberized.options("GSSS")
    assert run_under_locks(config["bootstrap.servers"], topic(kerberized.kafka, 3), config) == "done\n"


def test_a_ticket_cache(
    kerberized: Kerberized, topic: TopicFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kerberized.kdc.ticket(CLIENT, kerberized.keytab, tmp_path / "cache")
    options = kerberized.options("GSSP")
    del options["sasl.kerberos.keytab"], options["sasl.kerberos.principal"]
    name = topic(kerberized.kafka, 1)
    jaas = f'{JAAS} useTicketCache=true ticketCache="{tmp_path}/cache" serviceName="kafka";'
    send_all({**options, "sasl.jaas.config": jaas}, name)
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/cache")
    send_all(options, name)


def test_the_same_file_for_java(
    kerberized: Kerberized, topic: TopicFactory, read_back: ReadBackFactory, tmp_path: Path
) -> None:
    name = topic(kerberized.kafka, 1)
    options = kerberized.options("GSSP", **{"sasl.mechanism": "GSSAPI"})
    del options["sasl.kerberos.keytab"], options["sasl.kerberos.principal"]
    jaas = f'{JAAS} useKeyTab=true storeKey=true keyTab="{kerberized.keytab}" principal="{CLIENT}";'
    path = written({**options, "sasl.jaas.config": jaas}, tmp_path)
    with KafkaProducer({key: value for _, key, value in load_properties(str(path))}) as producer:
        producer.send(name, b"forebay").result(HANG_S)
    command = kerberized.kafka.tool_command(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", options["bootstrap.servers"], "--topic", name, "--command-config", str(path)),
    )
    java = {**os.environ, "JDK_JAVA_OPTIONS": f"-Djava.security.krb5.conf={kerberized.kdc.config}"}
    done = subprocess.run(
        command, input="java\n", env=java, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = read_back(kerberized.kafka, name).wait_for(2)
    assert [record.value for record in found] == [b"forebay", b"java"], done.stderr[-2000:]


def test_javas_spelling(kerberized: Kerberized, topic: TopicFactory, caplog: pytest.LogCaptureFixture) -> None:
    options = kerberized.options("GSSP", **{"sasl.mechanism": "GSSAPI", "sasl.kerberos.kinit.cmd": "/bin/false"})
    del options["sasl.kerberos.keytab"], options["sasl.kerberos.principal"], options["sasl.kerberos.service.name"]
    jaas = f'{JAAS} useKeyTab=true storeKey=true keyTab="{kerberized.keytab}" principal="{CLIENT}" serviceName=kafka;'
    send_all({**options, "sasl.jaas.config": jaas}, topic(kerberized.kafka, 1))
    assert "sasl.kerberos.kinit.cmd: no effect" in caplog.text


def test_authentication_again_while_records_flow(
    kerberized: Kerberized, topic: TopicFactory, read_back: ReadBackFactory, caplog: pytest.LogCaptureFixture
) -> None:
    name = topic(kerberized.kafka, 1)
    sent = send_while_sessions_end(kerberized.options("GSSP"), name, caplog)
    found = read_back(kerberized.kafka, name).wait_for(len(sent))
    assert [record.value for record in found] == sent


PROGRAM = """
import json, sys
from forebay import KafkaProducer
producer = KafkaProducer(json.loads(sys.argv[1]))
producer.send(sys.argv[2], b"last words").result(30)
"""


def test_a_process_that_just_ends_says_nothing(
    kerberized: Kerberized, topic: TopicFactory, read_back: ReadBackFactory
) -> None:
    """Contexts, names and credentials of the library are let go, whatever is left of the interpreter."""
    name = topic(kerberized.kafka, 1)
    command = [sys.executable, "-c", PROGRAM, json.dumps(kerberized.options("GSSP")), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [record.value for record in read_back(kerberized.kafka, name).wait_for(1)] == [b"last words"]


def test_a_kdc_that_is_away_and_comes_back(kerberized: Kerberized, topic: TopicFactory) -> None:
    """With a key that nobody has a ticket for yet."""
    keytab = kerberized.kdc.keytab("late")
    name = topic(kerberized.kafka, 1)
    options = kerberized.options("GSSP", **{"sasl.kerberos.keytab": str(keytab), "sasl.kerberos.principal": "late"})
    kerberized.kdc.stop()
    try:
        with KafkaProducer({**options, "max.block.ms": str(within_ms(6000))}) as producer:
            with pytest.raises(Exception) as caught:
                producer.partitions_for(name)
            assert "no KDC answers" in str(caught.value), caught.value
            kerberized.kdc.start()
            assert producer.send(name, b"y").result(HANG_S).offset == 0
    finally:
        kerberized.kdc.stop()
        kerberized.kdc.start()


def test_records_flow_on_without_the_kdc(kerberized: Kerberized, topic: TopicFactory) -> None:
    """The ticket for the service is there: a reconnection needs no KDC."""
    name = topic(kerberized.kafka, 1)
    send_all(kerberized.options("GSSP"), name)
    kerberized.kdc.stop()
    try:
        send_all(kerberized.options("GSSP"), name)
    finally:
        kerberized.kdc.start()


def test_what_is_refused(kerberized: Kerberized, tmp_path: Path) -> None:
    error = refused(kerberized.options("GSSP", **{"sasl.kerberos.service.name": "nobody"}))
    assert isinstance(error, SaslAuthenticationError), error
    assert "does not know the service" in str(error) and "nobody" in str(error), error
    error = refused(kerberized.options("GSSP", **{"sasl.kerberos.principal": "bob"}))
    assert isinstance(error, SaslAuthenticationError), error
    assert "has no key of bob" in str(error) and str(kerberized.keytab) in str(error), error
    options = kerberized.options("GSSP")
    del options["sasl.kerberos.keytab"], options["sasl.kerberos.principal"]
    error = refused(options)
    assert isinstance(error, SaslAuthenticationError) and "kinit" in str(error), error
    old = tmp_path / "old.keytab"
    kerberized.kdc.keytab("changing").rename(old)
    kerberized.kdc.keytab("changing")  # another key
    error = refused(
        kerberized.options("GSSP", **{"sasl.kerberos.keytab": str(old), "sasl.kerberos.principal": "changing"})
    )
    assert isinstance(error, SaslAuthenticationError) and "keytab does not fit" in str(error), error


def test_keytabs_that_cannot_be_used(kerberized: Kerberized, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no keytab")
    for path, words in (
        (tmp_path / "nowhere", "No such file"),
        (tmp_path, "Is a directory"),
        (tmp_path / "empty", "is no keytab"),
        (tmp_path / "text", "is no keytab"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            KafkaProducer(kerberized.options("GSSP", **{"sasl.kerberos.keytab": str(path)}))
        assert str(path) in str(caught.value) and "sasl.kerberos.keytab" in str(caught.value)


def test_damaged_answers_of_a_broker(kerberized: Kerberized) -> None:
    """The library's own parser: each damaged token is an error, or asks for more; and never a login."""
    dice = random.Random(printed_seed())
    library, store = GssLibrary(), CredentialStore(CLIENT, str(kerberized.keytab), "MEMORY:damaged")
    answers = [
        b"\x60\x81\x99\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x02\x00" + dice.randbytes(140),
        b"\x60\x00",
        b"",
    ]
    refused = 0
    for _ in range(1000):
        context = library.context("kafka@localhost", store)
        context.step(b"")
        with CpuTime() as took:
            try:
                context.step(damaged(dice.choice(answers), dice))
                assert not context.complete
            except GssError as error:
                assert len(str(error)) > 5
                refused += 1
        assert took.seconds < within(1)
    assert refused > 900
