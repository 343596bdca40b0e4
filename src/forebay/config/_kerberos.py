"""What GSSAPI needs: the brokers' service name, and where the client's tickets come from."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from forebay._runtime.allowed import path_refusal
from forebay.config._jaas import LoginModule, parse_jaas
from forebay.config._secret import path_fault, shown_value
from forebay.errors import ConfigError

WITHOUT_EFFECT = (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
)
MODULE = "Krb5LoginModule"


class Kerberos(NamedTuple):
    """``keytab`` and ``cache`` are None for the ticket cache that the system names (``KRB5CCNAME``)."""

    service: str
    principal: str | None
    keytab: str | None
    cache: str | None


def kerberos(values: Mapping[str, Any]) -> Kerberos:
    """Of ``sasl.jaas.config``, else of ``sasl.kerberos.principal`` and ``.keytab``.

    Raises:
        ConfigError: no service name, or two; both ways at once; or a login module that asks on a terminal.
    """
    own = {name: values[f"sasl.kerberos.{name}"] for name in ("principal", "keytab")}
    service = values["sasl.kerberos.service.name"]
    jaas = values["sasl.jaas.config"]
    cache = None
    if jaas is not None:
        given = [f"sasl.kerberos.{name}" for name, value in own.items() if value is not None]
        if given:
            raise ConfigError(f"sasl.jaas.config and {', '.join(given)} cannot both be given")
        module = _module(jaas.reveal())
        own = {"principal": module.text("principal"), "keytab": _keytab(module)}
        cache = _cache(module) if own["keytab"] is None else None
        named = module.text("serviceName")
        if None not in (service, named) and named != service:
            raise ConfigError(
                f"sasl.kerberos.service.name is {service!r}, and serviceName in sasl.jaas.config is another one: "
                "give one"
            )
        service = service or named
    if not service:
        raise ConfigError("sasl.mechanism=GSSAPI needs sasl.kerberos.service.name, which mostly is kafka")
    return Kerberos(service, own["principal"], own["keytab"], cache)


def kerberos_rule(values: Mapping[str, Any], explicit: Collection[str]) -> Iterator[tuple[int, str]]:
    """Checks all of it; says which options do nothing here."""
    kerberos(values)
    given = [name for name in WITHOUT_EFFECT if name in explicit]
    if given:
        text = f"{', '.join(given)}: no effect, since tickets come from a keytab or a ticket cache, not from kinit"
        yield logging.WARNING, text


def _module(text: str) -> LoginModule:
    module = parse_jaas(text)
    if module.name != MODULE:
        raise ConfigError(f"sasl.jaas.config has {module.name}, but sasl.mechanism=GSSAPI needs {MODULE}")
    return module


def _keytab(module: LoginModule) -> str | None:
    """The keytab, as MIT Kerberos names files; None for the ticket cache."""
    if _true(module, "useKeyTab"):
        path = module.text("keyTab")
        if not path:
            raise ConfigError(f"sasl.jaas.config: {MODULE} with useKeyTab=true needs keyTab")
        fault = path_fault(path)
        if fault is not None:
            raise ConfigError(f"sasl.jaas.config: keyTab of {MODULE}: {fault}")
        _check_place(path.removeprefix("file:"), "keyTab")
        return path.removeprefix("file:")
    if not _true(module, "useTicketCache"):
        raise ConfigError(
            f"sasl.jaas.config: {MODULE} needs useKeyTab=true or useTicketCache=true; nobody is asked for a password"
        )
    return None


def _cache(module: LoginModule) -> str | None:
    name = module.text("ticketCache")
    if name is not None:
        # A cache of another kind (KEYRING:, KCM:) has no path.  Where paths are limited it is refused.
        _check_place(re.sub("^(file|dir)::?", "", name, flags=re.IGNORECASE), "ticketCache")
    return name


def _check_place(path: str, option: str) -> None:
    refusal = path_refusal(path)
    if refusal is not None:
        raise ConfigError(f"sasl.jaas.config: {option} of {MODULE} may not be {shown_value(path)}: {refusal}")


def _true(module: LoginModule, name: str) -> bool:
    return (module.text(name) or "false").lower() == "true"
