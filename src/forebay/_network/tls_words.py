"""The messages of TLS failures: which side refused, for which reason, and which option to look at."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

from forebay._protocol.framing import stranger
from forebay.errors import DisconnectError, KafkaError, NetworkError, SslAuthenticationError
from forebay.errors._base import printable

UNKNOWN: Any = object()
"""For a client certificate of which nothing is known: it is in a context of the user's."""
CUT_OFF = (
    "the broker closed the connection amid the TLS handshake; a listener without TLS does so (security.protocol), and "
    "one that takes no TLS version or cipher of ours"
)

_VERIFY = {
    10: "it has expired (or the clock of this machine is wrong)",
    9: "it is not valid yet (or the clock of this machine is wrong)",
    18: "it is self-signed, and not in that store: add it there",
    19: "the certificate authority at the end of its chain is not in that store: add it there",
    20: "its certificate authority is not in that store: add it there",
    21: "its certificate authority is not in that store, or the broker does not send the whole chain",
    23: "it was revoked",
    3: "there is no revocation list of its certificate authority in ssl.crl.location",
    12: "the revocation list in ssl.crl.location has expired",
}
"""What OpenSSL's codes of a failed verification mean here."""
_NAME_CODES = (62, 64)

_ALERTS = {
    "CERTIFICATE_REQUIRED": "it asks for a client certificate: set ssl.keystore.location",
    "BAD_CERTIFICATE": "it refused the client certificate, or got none: look at ssl.keystore.location",
    "CERTIFICATE_UNKNOWN": "it does not trust the client certificate of ssl.keystore.location",
    "UNKNOWN_CA": "it does not trust the certificate authority of the client certificate (ssl.keystore.location)",
    "CERTIFICATE_EXPIRED": "the client certificate of ssl.keystore.location has expired",
    "CERTIFICATE_REVOKED": "the client certificate of ssl.keystore.location was revoked",
    "UNSUPPORTED_CERTIFICATE": "the kind of the client certificate (ssl.keystore.location) is not supported there",
    "ACCESS_DENIED": "it allows no access with this client certificate",
    "PROTOCOL_VERSION": "it takes no TLS version of ssl.enabled.protocols",
    "HANDSHAKE_FAILURE": "it takes no cipher of ours (ssl.cipher.suites), or asks for a client certificate",
    "INSUFFICIENT_SECURITY": "it asks for stronger ciphers than ssl.cipher.suites has",
    "DECRYPT_ERROR": "it could not verify our side of the handshake: key and certificate may not belong together",
    "UNRECOGNIZED_NAME": "it does not know the host name",
}
"""By the end of the name of an alert that the broker sent."""

_OURS = {
    "WRONG_VERSION_NUMBER": "what came is no TLS: the listener may be without TLS (security.protocol), or not Kafka's",
    "UNSUPPORTED_PROTOCOL": "the broker offers no TLS version of ssl.enabled.protocols",
    "NO_PROTOCOLS_AVAILABLE": "ssl.enabled.protocols leaves no version that this OpenSSL has",
    "DH_KEY_TOO_SMALL": "the broker's key exchange is too weak for this OpenSSL",
    "EE_KEY_TOO_SMALL": "a certificate's key is too short for this OpenSSL",
    "CA_MD_TOO_WEAK": "a certificate's signature (SHA-1 or MD5) is too weak for this OpenSSL",
}
"""By OpenSSL's reason for a refusal of its own."""


def no_tls(first: bytes, name: str) -> KafkaError | None:
    """The error for a port whose server does not speak TLS; None: what came may be TLS.

    Args:
        first: the first bytes that came.
        name: the host.
    """
    what = None if first[:1] in (b"\x15", b"\x16") else stranger(first)
    if what is None:
        return None
    return SslAuthenticationError(
        f"TLS with {name} failed: {what} answers there (its first bytes are {first!r}); bootstrap.servers, or what the "
        "brokers advertise, names a port that is not Kafka's"
    )


class Own(NamedTuple):
    """What is known of the client's own certificate."""

    where: str
    """The option, and the path if it has one."""
    ends_s: float | None = None
    """Unix seconds."""


def refusal(
    error: ssl.SSLError, name: str, store: str, peer: Mapping[str, Any] | None = None, own: Own | None = UNKNOWN
) -> KafkaError:
    """The error for a failure of the handshake.

    Args:
        name: the broker's host.
        store: what certificates are judged by, in words.
        peer: the broker's certificate as ``getpeercert`` gives it, if it came.
        own: the client's certificate; None if it has none.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return SslAuthenticationError(f"TLS: {_unverified(error, name, store, peer)}")
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)):
        return NetworkError(f"TLS with {name}: {CUT_OFF}")
    reason = getattr(error, "reason", None) or ""
    if "_ALERT_" in reason:
        alert = reason.partition("_ALERT_")[2]
        if alert in ("CLOSE_NOTIFY", "INTERNAL_ERROR", "USER_CANCELLED"):
            return DisconnectError(f"TLS with {name}: the broker ended it ({reason})")
        words = f"{_ALERTS.get(alert, 'it does not say why')}{_of_own(alert, own)}"
        return SslAuthenticationError(f"TLS: {name} refused the connection: {words} (OpenSSL: {reason})")
    words = _OURS.get(reason, "its messages are not as TLS has them")
    return SslAuthenticationError(f"TLS with {name} failed: {words} (OpenSSL: {reason or printable(str(error), 200)})")


def _of_own(alert: str, own: Own | None) -> str:
    """What we know of the cause ourselves: brokers say one thing for many causes."""
    if alert not in _OF_CLIENT or own is UNKNOWN:
        return ""
    if own is None:
        return "; no client certificate is set here, so that is the cause if it asks for one (ssl.keystore.location)"
    text = f"; it was sent {own.where}"
    return text if own.ends_s is None else f"{text}, which expires on {_day(own.ends_s)} (or did)"


_OF_CLIENT = (
    *("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "CERTIFICATE_UNKNOWN", "UNKNOWN_CA", "CERTIFICATE_EXPIRED"),
    *("CERTIFICATE_REVOKED", "UNSUPPORTED_CERTIFICATE", "ACCESS_DENIED", "HANDSHAKE_FAILURE", "DECRYPT_ERROR"),
)


def certificate_words(peer: Mapping[str, Any]) -> str:
    """A certificate for a message: its subject, its issuer, its names and its end; all of it is the peer's text."""
    names = [value for kind, value in peer.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    shown = ", ".join(printable(str(name), 80) for name in names[:MOST_NAMES]) or "none"
    parts = (
        f"subject {_name(peer.get('subject', ()))}",
        f"issuer {_name(peer.get('issuer', ()))}",
        f"names {shown}{more}",
        f"expires {printable(str(peer.get('notAfter', 'never')), 40)}",
    )
    return "its " + ", ".join(parts)


MOST_NAMES = 10


def _name(parts: Any) -> str:
    pairs = [f"{_SHORT.get(key, key)}={value}" for part in parts for key, value in part]
    return printable(", ".join(pairs), 200) or "none"


_SHORT = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C"}


def of_ssl(error: Exception, name: str, store: str) -> KafkaError | None:
    """As ``refusal``, for a server that is no broker; None: it is no error of TLS."""
    return refusal(error, name, store) if isinstance(error, ssl.SSLError) else None


def lost(error: ssl.SSLError, name: str, store: str, version: str | None, own: Own | None = UNKNOWN) -> KafkaError:
    """The error for a failure after the handshake; arguments as those of ``refusal``, and the TLS version.

    Only TLS 1.3 judges certificates then.  All else is a lost connection.
    """
    reason = getattr(error, "reason", None) or ""
    if version == "TLSv1.3" and "_ALERT_" in reason:
        return refusal(error, name, store, None, own)
    if reason.endswith(("ALERT_HANDSHAKE_FAILURE", "NO_RENEGOTIATION")):
        words = "the broker ended the session; it had asked for a renegotiation, which is refused here"
    else:
        words = "the session ended"
    return DisconnectError(f"TLS with {name}: {words} (OpenSSL: {reason or printable(str(error), 200)})")


def _unverified(error: ssl.SSLCertVerificationError, name: str, store: str, peer: Mapping[str, Any] | None) -> str:
    code: Any = getattr(error, "verify_code", None)
    message = printable(str(getattr(error, "verify_message", error)), 200)
    certificate = "" if peer is None else f"; {certificate_words(peer)}"
    if code in _NAME_CODES:
        return (
            f"the certificate of {name} is for another host ({message}{certificate}); connect by a name that it has, "
            "or set ssl.endpoint.identification.algorithm to '' if any name may do"
        )
    why = _VERIFY.get(code, "it is not as it should be")
    return f"the certificate of {name} was not accepted: {why}; judged by {store}{certificate} (OpenSSL: {message})"


def _day(seconds: float) -> str:
    days, months = divmod(int(seconds), 86_400)[0] + 719_468, 0
    era, of_era = divmod(days, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    months = (5 * of_year + 2) // 153
    day = of_year - (153 * months + 2) // 5 + 1
    month = months + 3 if months < 10 else months - 9
    return f"{year_of_era + era * 400 + (month <= 2)}-{month:02}-{day:02}"


def bad_name(name: str, error: ValueError) -> KafkaError:
    """The error for a host name that no certificate can be compared with."""
    return SslAuthenticationError(f"TLS: {name!r} is no host name that a certificate can have ({error})")
