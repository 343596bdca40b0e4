"""What a configuration says of SASL and a proxy, made into what the network needs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from forebay._runtime.clock import Clock
from forebay.config import ProducerConfig
from forebay.config._kerberos import kerberos
from forebay.config._oauth import TOKEN_MECHANISMS
from forebay.config._proxy import parse_proxy
from forebay.config._security_rules import SASL_PROTOCOLS, LoginSource, credentials

if TYPE_CHECKING:
    from forebay._network.credentials import Helper
    from forebay._network.proxy import Proxy
    from forebay._network.sasl.mechanism import Mechanism


logger = logging.getLogger("forebay.network")


def login_helper(config: ProducerConfig, client_id: str) -> Helper | None:
    """The thread for what may block during a login, started; None: nothing may.

    Raises:
        RuntimeError: no thread can be started.
    """
    if config["security.protocol"] not in SASL_PROTOCOLS:
        return None
    if config["sasl.mechanism"] == "PLAIN" and not _login(config).deferred:
        return None
    from forebay._network.credentials import Helper

    return Helper(f"forebay-login | {client_id}")


def proxy(config: ProducerConfig) -> Proxy | None:
    """The proxy between here and the brokers; None: connections are direct."""
    if config["proxy.url"] is None:
        return None
    from forebay._network.proxy import Proxy

    return Proxy(*parse_proxy(config["proxy.url"]))


def mechanism(config: ProducerConfig, clock: Clock, random: Callable[[], float]) -> Mechanism | None:
    """Who authenticates the client, and how; None: ``security.protocol`` is without SASL.

    Args:
        random: in [0, 1).

    Raises:
        ConfigError: a package is missing, or a value cannot be.
    """
    if config["security.protocol"] not in SASL_PROTOCOLS:
        return None
    name = config["sasl.mechanism"]
    if name == "GSSAPI":
        return _gssapi(config)
    if name in TOKEN_MECHANISMS:
        from forebay._assembly.oauth import oauth_bearer

        return oauth_bearer(config, clock, random)
    from forebay._network.sasl.login import Login

    login = Login(*_login(config))
    if name == "PLAIN":
        from forebay._network.sasl.plain import Plain

        return Plain(login)
    import secrets

    from forebay._network.sasl.scram import Scram

    return Scram(name, login, secrets.token_bytes)


def _gssapi(config: ProducerConfig) -> Mechanism:
    from forebay._network.resolver import name_of_address
    from forebay._network.sasl.gss_library import CredentialStore, GssLibrary
    from forebay._network.sasl.gssapi import Gssapi, check_keytab
    from forebay._runtime.files import open_to_others

    found = kerberos(config)
    cache = found.cache
    if found.keytab is not None:
        option = "sasl.jaas.config" if config["sasl.jaas.config"] else "sasl.kerberos.keytab"
        check_keytab(found.keytab, option)
        if open_to_others(found.keytab):
            logger.warning("%s: %s can be read by every user of this machine: chmod o-r", option, found.keytab)
        # Producers with the same keytab share their tickets, and reconnections need no KDC.
        cache = f"MEMORY:forebay-{found.keytab}-{found.principal or ''}"
    return Gssapi(GssLibrary(), found.service, CredentialStore(found.principal, found.keytab, cache), name_of_address)


def _login(config: ProducerConfig) -> LoginSource:
    found = credentials(config)
    assert found is not None, "a configuration without credentials is refused"
    return found
