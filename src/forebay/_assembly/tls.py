"""What a configuration says of TLS, made into what the network needs; and which files its secrets come from."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from forebay._runtime.clock import Clock
from forebay.config import ProducerConfig
from forebay.config._placeholders import Placeholder
from forebay.config._security_rules import checks_name, tls_versions
from forebay.errors import ConfigError

if TYPE_CHECKING:
    from forebay._network.tls_context import TlsSettings
    from forebay._network.transport import StreamFilter


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
