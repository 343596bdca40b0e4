"""Each failure of TLS in words: whose certificate, by which store, which option."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from forebay._network.tls_words import bad_name, lost, refusal
from forebay.errors import DisconnectError, NetworkError, SslAuthenticationError


def failed(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] text")
    error.reason = reason
    return error


def unverified(code: int, message: str) -> ssl.SSLError:
    error: Any = ssl.SSLCertVerificationError(1, "text")
    error.verify_code, error.verify_message = code, message
    return error  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (unverified(10, "certificate has expired"), "has expired"),
        (unverified(20, "unable to get local issuer certificate"), "authority is not in that store"),
        (unverified(62, "Hostname mismatch"), "ssl.endpoint.identification.algorithm"),
        (unverified(99, "something new"), "something new"),
        (failed("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "set ssl.keystore.location"),
        (failed("SSLV3_ALERT_BAD_CERTIFICATE"), "client certificate"),
        (failed("TLSV1_ALERT_PROTOCOL_VERSION"), "ssl.enabled.protocols"),
        (failed("SSLV3_ALERT_NEW_ONE"), "does not say why"),
        (failed("WRONG_VERSION_NUMBER"), "security.protocol"),
        (failed("NEVER_SEEN"), "NEVER_SEEN"),
    ],
)
def test_refusals(error: ssl.SSLError, words: str) -> None:
    found = refusal(error, "broker.example", "the-store")
    assert isinstance(found, SslAuthenticationError)
    assert words in str(found) and "broker.example" in str(found)


def test_what_is_tried_again() -> None:
    assert isinstance(refusal(ssl.SSLEOFError(8, "EOF"), "h", "s"), NetworkError)
    assert isinstance(refusal(failed("TLSV1_ALERT_INTERNAL_ERROR"), "h", "s"), DisconnectError)


def test_what_ends_a_session() -> None:
    handshake, damaged = failed("SSLV3_ALERT_HANDSHAKE_FAILURE"), failed("DECRYPTION_FAILED_OR_BAD_RECORD_MAC")
    found = lost(handshake, "h", "s", "TLSv1.2")
    assert isinstance(found, DisconnectError) and "renegotiation, which is refused" in str(found)
    assert isinstance(lost(handshake, "h", "s", "TLSv1.3"), SslAuthenticationError)
    for version in ("TLSv1.2", "TLSv1.3"):
        found = lost(damaged, "h", "s", version)
        assert isinstance(found, DisconnectError) and "BAD_RECORD_MAC" in str(found) and "h" in str(found)


def test_a_name_that_no_certificate_has() -> None:
    assert "'..x'" in str(bad_name("..x", ValueError("label too long")))
