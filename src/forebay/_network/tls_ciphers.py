"""Cipher suites by Java's (IANA's) names and by OpenSSL's, for ``ssl.cipher.suites``."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Sequence
from functools import cache

from forebay.errors import ConfigError

log = logging.getLogger("forebay.network")

_KEY_EXCHANGES = ("ECDHE_ECDSA", "ECDHE_RSA", "DHE_RSA", "RSA")
_BULK = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}


def _openssl_name(exchange: str, bulk: str) -> str:
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return prefix + bulk


IANA: dict[str, str] = {
    f"TLS_{exchange}_WITH_{iana}": _openssl_name(exchange, openssl)
    for exchange in _KEY_EXCHANGES
    for iana, openssl in _BULK.items()
}
"""OpenSSL's name of each suite of TLS 1.2 that Java has by default."""
TLS_1_3 = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)


@cache  # once for each value: a context is made for each login at an identity provider
def _tell(suites: str) -> None:
    log.warning(
        "ssl.cipher.suites=%s: this Python cannot choose among the suites of TLS 1.3; all of OpenSSL's are allowed",
        suites,
    )


def apply(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Allows ``suites`` alone.

    Raises:
        ConfigError: OpenSSL has none of that name, or those of TLS 1.3 alone are named and that version is not enabled.
    """
    newest = [suite for suite in suites if suite in TLS_1_3]
    older = [IANA.get(suite, suite) for suite in suites if suite not in TLS_1_3]
    has_newest = context.maximum_version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.MAXIMUM_SUPPORTED)
    if newest and has_newest:
        choose = getattr(context, "set_ciphersuites", None)
        if choose is not None:
            choose(":".join(newest))
        else:
            _tell(", ".join(newest))
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError as error:
            raise ConfigError(f"ssl.cipher.suites: OpenSSL has none of {', '.join(older)}") from error
    elif newest and not has_newest:
        raise ConfigError(
            f"ssl.cipher.suites={', '.join(newest)}: these are of TLS 1.3, which ssl.enabled.protocols or "
            "ssl.protocol does not allow"
        )
    elif newest:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
