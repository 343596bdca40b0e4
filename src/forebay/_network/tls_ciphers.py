"""Cipher suites by Java's (IANA's) names and by OpenSSL's, for ``ssl.cipher.suites``."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from forebay.errors import ConfigError

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


def apply(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Allows ``suites`` alone.

    Raises:
        ConfigError: OpenSSL has none of that name, or this Python cannot choose among those of TLS 1.3.
    """
    newest = [suite for suite in suites if suite in TLS_1_3]
    older = [IANA.get(suite, suite) for suite in suites if suite not in TLS_1_3]
    if newest:
        choose = getattr(context, "set_ciphersuites", None)
        if choose is not None:
            choose(":".join(newest))
        elif not older:
            raise ConfigError(
                f"ssl.cipher.suites={', '.join(newest)}: this Python cannot choose among the suites of TLS 1.3; leave "
                "them out (all of them are allowed), or give a context of your own (ssl.context)"
            )
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError as error:
            raise ConfigError(f"ssl.cipher.suites: OpenSSL has none of {', '.join(older)}") from error
    elif newest:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
