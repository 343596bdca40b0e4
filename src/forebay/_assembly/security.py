"""What a configuration says of TLS, SASL and a proxy, made into what the network needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forebay._runtime.clock import Clock
from forebay.config import ProducerConfig, checks_name, credentials, kerberos, parse_proxy, tls_versions

if TYPE_CHECKING:
    from forebay._network.credentials import Helper
    from forebay._network.proxy import Proxy
    from forebay._network.sasl.mechanism import Mechanism
    from forebay._network.transport import StreamFilter


def tls_filters(config: ProducerConfig, clock: Clock) -> Callable[[str], StreamFilter] | None:
    """Makes the filter of a connection to a host; None: ``security.protocol`` is without TLS.

    Raises:
        ConfigError: a file cannot be read, or does not hold what its option says; names option and path.
    """
    if config["security.protocol"] not in ("SSL", "SASL_SSL"):
        return None
    # Here: a producer without TLS starts without Python's ssl.
    from forebay._network.tls_context import TlsContexts, TlsSettings

    settings = TlsSettings(
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
        key=config["ssl.keystore.key"],
        chain=config["ssl.keystore.certificate.chain"],
    )
    given = config["ssl.context"] if config["ssl.context"] is not None else config["ssl.engine.factory.class"]
    return TlsContexts(settings, clock.wall, given).filter


def login_helper(config: ProducerConfig, client_id: str) -> Helper | None:
    """The thread for what may block during a login, started; None: ``security.protocol`` is without SASL, or PLAIN.

    Raises:
        RuntimeError: no thread can be started.
    """
    if config["security.protocol"] not in ("SASL_PLAINTEXT", "SASL_SSL") or config["sasl.mechanism"] == "PLAIN":
        return None
    from forebay._network.credentials import Helper

    return Helper(f"forebay-login | {client_id}")


def proxy(config: ProducerConfig) -> Proxy | None:
    """The proxy between here and the brokers; None: connections are direct."""
    if config["proxy.url"] is None:
        return None
    from forebay._network.proxy import Proxy

    return Proxy(*parse_proxy(config["proxy.url"]))


def mechanism(config: ProducerConfig) -> Mechanism | None:
    """Who authenticates the client, and how; None: ``security.protocol`` is without SASL."""
    if config["security.protocol"] not in ("SASL_PLAINTEXT", "SASL_SSL"):
        return None
    if config["sasl.mechanism"] == "GSSAPI":
        return _gssapi(config)
    found = credentials(config)
    if found is None:
        return None  # a configuration without them was refused
    if config["sasl.mechanism"] == "PLAIN":
        from forebay._network.sasl.plain import Plain

        return Plain(found.username, found.password)
    import secrets

    from forebay._network.sasl.scram import Scram

    return Scram(config["sasl.mechanism"], found.username, found.password, secrets.token_bytes, token=found.token)


def _gssapi(config: ProducerConfig) -> Mechanism:
    from forebay._network.sasl.gss_library import CredentialStore, GssLibrary
    from forebay._network.sasl.gssapi import Gssapi, check_keytab

    found = kerberos(config)
    cache = found.cache
    if found.keytab is not None:
        check_keytab(found.keytab, "sasl.jaas.config" if config["sasl.jaas.config"] else "sasl.kerberos.keytab")
        # Producers with the same keytab share their tickets, and reconnections need no KDC.
        cache = f"MEMORY:forebay-{found.keytab}-{found.principal or ''}"
    return Gssapi(GssLibrary(), found.service, CredentialStore(found.principal, found.keytab, cache))
