"""PEM as people have it: each shape is read as the plain one, at each place; what is none is named."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.pem import CERTIFICATES, KEYS, DamagedError, StoreError, blocks, chosen, end_of, values, what_is
from forebay._network.tls_context import TlsSettings, make_context
from forebay.config import Secret
from forebay.errors import ConfigError

CA = trustme.CA()
OTHER = trustme.CA()
ISSUED = CA.issue_cert("client")
KEY = load_pem_private_key(ISSUED.private_key_pem.bytes(), None)
PLAIN = serialization.NoEncryption()
PKCS8, OLD = serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL
LOCKED = serialization.BestAvailableEncryption(b"pw")


def key_text(form: Any = PKCS8, lock: Any = PLAIN) -> bytes:
    return KEY.private_bytes(serialization.Encoding.PEM, form, lock)


CHAIN = ISSUED.cert_chain_pems[0].bytes()
CERTIFICATE = x509.load_pem_x509_certificate(CHAIN)
AUTHORITIES = CA.cert_pem.bytes() + OTHER.cert_pem.bytes()
SHAPES: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda text: text,
    "blanks for line ends": lambda text: text.replace(b"\n", b" "),
    "nothing for line ends": lambda text: text.replace(b"\n", b""),
    "CR alone": lambda text: text.replace(b"\n", b"\r"),
    "CR LF": lambda text: text.replace(b"\n", b"\r\n"),
    "continuations": lambda text: text.replace(b"\n", b" \\\n"),
    "continuations on one line": lambda text: text.replace(b"\n", b" \\ "),
    "the two signs of a line end": lambda text: text.replace(b"\n", b"\\n"),
    "indented": lambda text: b"".join(b"    " + line + b"\n" for line in text.splitlines()),
    "tabs": lambda text: text.replace(b"\n", b"\t\n\t"),
    "blank lines": lambda text: text.replace(b"\n", b"\n\n"),
    "short lines": lambda text: b"".join(
        line + b"\n" if line[:1] == b"-" else line[:10] + b"\n" + line[10:] + b"\n" for line in text.splitlines()
    ),
    "comments": lambda text: b"# Autorit\xe9 \xff\nBag Attributes\n" + text + b"\n# end \xc3\xa9\n",
    "a mark": lambda text: b"\xef\xbb\xbf" + text,
}
PLACES: dict[str, Callable[[Path, Callable[[bytes], bytes]], TlsSettings]] = {
    "truststore.location": lambda folder, shape: TlsSettings(truststore=written(folder, "ca", shape(AUTHORITIES))),
    "truststore.certificates": lambda folder, shape: TlsSettings(certificates=text_of(shape(AUTHORITIES))),
    "keystore.location": lambda folder, shape: TlsSettings(keystore=written(folder, "k", shape(key_text() + CHAIN))),
    "certificate first": lambda folder, shape: TlsSettings(keystore=written(folder, "k", shape(CHAIN + key_text()))),
    "two files": lambda folder, shape: TlsSettings(
        keystore=written(folder, "c", shape(CHAIN)), key_file=written(folder, "k", shape(key_text()))
    ),
    "two texts": lambda folder, shape: TlsSettings(key=text_of(shape(key_text())), chain=text_of(shape(CHAIN))),
    "an old key": lambda folder, shape: TlsSettings(keystore=written(folder, "k", shape(key_text(OLD) + CHAIN))),
    "a locked key": lambda folder, shape: TlsSettings(
        keystore=written(folder, "k", shape(key_text(PKCS8, LOCKED) + CHAIN)), key_password=Secret("pw")
    ),
    "an old locked key": lambda folder, shape: TlsSettings(
        keystore=written(folder, "k", shape(key_text(OLD, LOCKED) + CHAIN)), key_password=Secret("pw")
    ),
}


def written(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def text_of(data: bytes) -> Secret:
    return Secret(data.decode("latin-1"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", PLACES)
def test_each_shape_is_read_at_each_place(place: str, shape: str, tmp_path: Path) -> None:
    context, _store = make_context(PLACES[place](tmp_path, SHAPES[shape]))
    if place.startswith("truststore"):
        assert len(context.get_ca_certs()) == 2
    else:
        assert getattr(context, "own").ends_s == CERTIFICATE.not_valid_after_utc.timestamp()  # noqa: B009


WRONG = {
    "a certificate in DER": CERTIFICATE.public_bytes(serialization.Encoding.DER),
    "a private key in DER": KEY.private_bytes(serialization.Encoding.DER, PKCS8, PLAIN),
    "an encrypted private key in DER": KEY.private_bytes(serialization.Encoding.DER, PKCS8, LOCKED),
    "a JCEKS store": b"\xce\xce\xce\xce" + b"\0" * 40,
    "a Kerberos keytab": b"\5\2" + b"\0" * 40,
    "base64 without the lines": CHAIN.split(b"-----")[2],
    "XML or HTML": b"<html>no</html>",
    "JSON": b'{"ca": 1}',
    "other text": b"hello, this is a file",
    "a key of OpenSSH": b"openssh-key-v1\0x",
    "its first bytes are": b"\x00\x01\x02\x03" * 4,
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_something_else_is_named(what: str, tmp_path: Path) -> None:
    path = written(tmp_path, "store.p12", WRONG[what])
    for settings in (TlsSettings(truststore=path, truststore_password=Secret("x")), TlsSettings(keystore=path)):
        with pytest.raises(ConfigError, match=what) as caught:
            make_context(settings)
        assert "store.location=" in str(caught.value) and path in str(caught.value)


def test_a_pkcs12_store_as_text_is_named() -> None:
    data = pkcs12.serialize_key_and_certificates(b"me", None, CERTIFICATE, None, LOCKED)
    assert what_is(data) == "it is a PKCS12 store"
    with pytest.raises(ConfigError, match="ssl.crl.location=.*a PKCS12 store"):
        make_context(TlsSettings(crl=_temp(data)))


def _temp(data: bytes) -> str:
    import tempfile

    with tempfile.NamedTemporaryFile(delete=False) as file:
        file.write(data)
    return file.name


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (CHAIN[:-30], "block 1, a CERTIFICATE, has no -----END CERTIFICATE-----"),
        (AUTHORITIES.replace(b"-----END CERTIFICATE-----", b"", 1), "block 1, a CERTIFICATE, has no"),
        (CHAIN.replace(b"M", b"!", 1), "no base64"),
        (b"-----BEGIN CERTIFICATE----------END CERTIFICATE-----", "is empty"),
        (key_text(), "no certificate in it, only 1 PRIVATE KEY"),
    ],
)
def test_what_is_damaged_says_where(data: bytes, why: str) -> None:
    with pytest.raises(StoreError, match=why):
        chosen(data, CERTIFICATES, "certificate")
    with pytest.raises(StoreError, match="no private key in it, only 1 CERTIFICATE"):
        chosen(CHAIN, KEYS, "private key")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for text in (data, b"-----BEGIN CERTIFICATE-----" + data, b"-----BEGIN X-----" + data + b"-----END X-----"):
        try:
            assert blocks(text)
        except StoreError as error:
            assert str(error).isprintable()
    assert what_is(data)
    assert end_of(data) is None or isinstance(end_of(data), float)
    try:
        values(data)
    except (DamagedError, IndexError):
        pass


def test_the_end_of_a_certificate() -> None:
    assert (
        end_of(CERTIFICATE.public_bytes(serialization.Encoding.DER))
        == datetime(*CERTIFICATE.not_valid_after_utc.timetuple()[:6], tzinfo=UTC).timestamp()
    )
