"""Names that other Python clients have for an option of TLS, SASL or networks; they are taken as that option.

librdkafka's names are dotted, kafka-python's and aiokafka's have underscores; both are looked up with dots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Alias(NamedTuple):
    """The option that is meant, and how its value is written there."""

    name: str
    convert: Callable[[Any], Any] | None = None


def _check_name(value: Any) -> str:
    text = str(value).strip().lower()
    return "https" if text in ("true", "1", "https") else ""


class OauthCb:
    """confluent-kafka's ``oauth_cb``, which is called with ``sasl.oauthbearer.config``."""

    def __init__(self, callback: Any) -> None:
        self.callback = callback

    def __repr__(self) -> str:
        return f"oauth_cb={self.callback!r}"


ALIASES: Mapping[str, Alias] = {
    "ssl.ca.location": Alias("ssl.truststore.location"),
    "ssl.cafile": Alias("ssl.truststore.location"),
    "ssl.ca.pem": Alias("ssl.truststore.certificates"),
    "ssl.cadata": Alias("ssl.truststore.certificates"),
    "ssl.certificate.location": Alias("ssl.keystore.location"),
    "ssl.certfile": Alias("ssl.keystore.location"),
    "ssl.certificate.pem": Alias("ssl.keystore.certificate.chain"),
    "ssl.key.pem": Alias("ssl.keystore.key"),
    "ssl.keyfile": Alias("ssl.key.location"),
    "ssl.password": Alias("ssl.key.password"),
    "ssl.check.hostname": Alias("ssl.endpoint.identification.algorithm", _check_name),
    "ssl.crlfile": Alias("ssl.crl.location"),
    "ssl.ciphers": Alias("ssl.cipher.suites"),
    "sasl.mechanisms": Alias("sasl.mechanism"),
    "sasl.plain.username": Alias("sasl.username"),
    "sasl.plain.password": Alias("sasl.password"),
    "socks5.proxy": Alias("proxy.url"),
    "sasl.oauthbearer.client.id": Alias("sasl.oauthbearer.client.credentials.client.id"),
    "sasl.oauthbearer.client.secret": Alias("sasl.oauthbearer.client.credentials.client.secret"),
    "sasl.oauth.token.provider": Alias("sasl.oauthbearer.token.provider"),
    "oauth.cb": Alias("sasl.oauthbearer.token.provider", OauthCb),
}
