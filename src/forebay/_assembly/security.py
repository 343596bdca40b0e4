"""What a configuration says of TLS, SASL and a proxy, made into what the network needs."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from forebay._runtime.clock import Clock
from forebay.config import (
    SASL_PROTOCOLS,
    TOKEN_MECHANISMS,
    LoginSource,
    Placeholder,
    ProducerConfig,
    checks_name,
    credentials,
    kerberos,
    parse_proxy,
    tls_versions,
)
from forebay.errors import ConfigError

if TYPE_CHECKING:
    from forebay._network.credentials import Helper
    from forebay._network.proxy import Proxy
    from forebay._network.sasl.mechanism import Mechanism
    from forebay._network.tls_context import TlsSettings
    from forebay._network.transport import StreamFilter


logger = logging.getLogger("forebay.network")


def tls_filters(config: ProducerConfig, clock: Clock) -> Callable[[str], StreamFilter] | None:
    """Makes the filter of a connection to a host; None: ``security.protocol`` is without TLS.

    Raises:
        ConfigError: a file cannot be read, or does not hold what its option says; names option and path.
    """
    if config["security.protocol"] not in ("SSL", "SASL_SSL"):
        return None
    # Imported here, so that a producer without TLS starts without Python's ssl.
    from forebay._network.tls_context import TlsContexts

    given = config["ssl.context"] if config["ssl.context"] is not None else config["ssl.engine.factory.class"]
    return TlsContexts(tls_settings(config), clock.wall, given).filter


def tls_settings(config: ProducerConfig) -> TlsSettings:
    """The options ``ssl.*`` that make a context."""
    from forebay._network.tls_context import TlsSettings

    return TlsSettings(
        versions=tls_versions(config),
        ciphers=tuple(config["ssl.cipher.suites"] or ()),
        check_name=checks_name(config),
        verify=config["enable.ssl.certificate.verification"],
        truststore=config["ssl.truststore.location"],
        truststore_password=config["ssl.truststore.password"],
        certificates=config["ssl.truststore.certificates"],
        crl=config["ssl.crl.location"],
        keystore=config["ssl.keystore.location"],
        keystore_password=config["ssl.keystore.password"],
        key_password=config["ssl.key.password"],
        key_file=config["ssl.key.location"],
        alias=config["ssl.keystore.alias"],
        key=config["ssl.keystore.key"],
        chain=config["ssl.keystore.certificate.chain"],
    )


def credential_files(config: ProducerConfig) -> Callable[[], object] | None:
    """A function whose value changes when a file of keys or passwords does; None: there are no such files."""
    if config["security.protocol"] == "PLAINTEXT":
        return None
    names = ("ssl.truststore.location", "ssl.keystore.location", "ssl.key.location", "ssl.crl.location")
    paths = [config[name] for name in names if config[name]]
    for value in config.values():
        paths.extend(value.files() if isinstance(value, Placeholder) else ())
    if not paths:
        return None
    return lambda: [_file_now(path) for path in paths]


def _file_now(path: str | Placeholder) -> object:
    try:
        found = path.reveal() if isinstance(path, Placeholder) else path
        stat = os.stat(found)
    except (OSError, ConfigError):
        return None
    return found, stat.st_mtime_ns, stat.st_size, stat.st_ino


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
