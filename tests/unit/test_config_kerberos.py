"""What GSSAPI is configured by, in Java's spelling and in librdkafka's."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.config._kerberos import Kerberos, kerberos
from forebay.errors import ConfigError

BASE = {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL"}
SERVICE = {"sasl.kerberos.service.name": "kafka"}
MODULE = "com.sun.security.auth.module.Krb5LoginModule required "


def jaas(text: str) -> dict[str, str]:
    return {"sasl.jaas.config": MODULE + text + ";"}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (SERVICE, Kerberos("kafka", None, None, None)),
        (
            {**SERVICE, "sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "me"},
            Kerberos("kafka", "me", "/k", None),
        ),
        (
            jaas("useKeyTab=true keyTab='file:/k' principal='me@R' serviceName=brokers ticketCache='/c'"),
            Kerberos("brokers", "me@R", "/k", None),
        ),
        ({**SERVICE, **jaas("useTicketCache=TRUE ticketCache='/c'")}, Kerberos("kafka", None, None, "/c")),
        ({**SERVICE, **jaas("useTicketCache=true serviceName=kafka")}, Kerberos("kafka", None, None, None)),
    ],
)
def test_where_tickets_come_from(options: dict[str, Any], wanted: Kerberos) -> None:
    assert kerberos(ProducerConfig({**BASE, **options})) == wanted


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "GSSAPI by default, as in Java, which needs sasl.kerberos.service.name; or set one of PLAIN"),
        ({"sasl.mechanism": "GSSAPI"}, "needs sasl.kerberos.service.name, which mostly is kafka"),
        (jaas("useTicketCache=true"), "needs sasl.kerberos.service.name"),
        ({**SERVICE, **jaas("useTicketCache=true serviceName=other")}, "give one"),
        ({**SERVICE, **jaas("useTicketCache=true"), "sasl.kerberos.keytab": "/k"}, "cannot both be given"),
        ({**SERVICE, **jaas("useKeyTab=true")}, "needs keyTab"),
        ({**SERVICE, **jaas("")}, "useKeyTab=true or useTicketCache=true"),
        ({**SERVICE, "sasl.jaas.config": 'PlainLoginModule required username="u" password="p";'}, "Krb5LoginModule"),
        ({"sasl.username": "u", "sasl.password": "p"}, "set sasl.mechanism to one of PLAIN"),
    ],
)
def test_what_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ProducerConfig({**BASE, **options})


def test_what_has_no_effect_is_said() -> None:
    config = ProducerConfig(
        {**BASE, **SERVICE, "sasl.kerberos.kinit.cmd": "/x", "sasl.kerberos.ticket.renew.jitter": 0}
    )
    (note,) = config.notes
    assert "sasl.kerberos.kinit.cmd, sasl.kerberos.ticket.renew.jitter: no effect" in note.text
