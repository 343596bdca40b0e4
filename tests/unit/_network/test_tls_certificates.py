"""Certificates that no broker should have: each is refused, and the words say why."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from forebay._network.tls import TlsFilter
from forebay.errors import KafkaError, SslAuthenticationError

from .test_tls import exchange

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


class Issued:
    """A certificate and its key; issued by itself if nobody else does."""

    def __init__(self, name: str, issuer: Issued | None = None, **more: Any) -> None:
        self.key = more.get("key") or ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
        if issuer is None or more.get("authority") is not None:
            self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{name} authority")])
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(self.name if issuer is None else issuer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(more.get("begin", NOW - DAY))
            .not_valid_after(more.get("end", NOW + DAY))
        )
        ca = more.get("authority", issuer is None)
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if not ca:
            names = [x509.DNSName(found) for found in more.get("names", [name])]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        for filler in range(more.get("fillers", 0)):
            oid = x509.ObjectIdentifier(f"1.3.6.1.4.1.99999.{filler + 1}")
            builder = builder.add_extension(x509.UnrecognizedExtension(oid, bytes(10_000)), critical=False)
        signer = self.key if issuer is None else issuer.key
        self.certificate = builder.sign(signer, hashes.SHA256())

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


ROOT = Issued("root")
LEAF_AS_ISSUER = Issued("broker.example", ROOT, authority=False)


class Server:
    """The other side, with this certificate; OpenSSL's own level is lowered there, so that it sends weak ones."""

    def __init__(self, issued: Issued, chain: list[Issued], folder: Path) -> None:
        path = folder / "server.pem"
        path.write_bytes(issued.key_pem() + issued.pem() + b"".join(one.pem() for one in chain))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.load_cert_chain(path)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def shake_hands(self) -> None:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass


def client(name: str) -> TlsFilter:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ROOT.pem().decode())
    return TlsFilter(context, name, "the tests' store")


@pytest.mark.parametrize(
    ("issued", "chain", "words"),
    [
        (Issued("broker.example", ROOT, end=NOW - timedelta(hours=1)), [], "has expired"),
        (Issued("broker.example", ROOT, begin=NOW + timedelta(hours=1), end=NOW + DAY), [], "not valid yet"),
        (Issued("broker.example", LEAF_AS_ISSUER), [LEAF_AS_ISSUER], "broker.example was not accepted"),
        (Issued("broker.example", ROOT, key=rsa.generate_private_key(65537, 1024)), [], "too (short|weak|small)"),
        (Issued("broker.example", ROOT, names=["*.broker.example"]), [], "for another host"),
        (Issued("broker.example", ROOT, names=["*"]), [], "for another host"),
        (Issued("broker.example", ROOT, names=["broker.example\0.evil.example"]), [], "for another host"),
        (Issued("broker.example", ROOT, names=["other.example"]), [], "for another host"),
        (Issued("broker.example"), [], "broker.example was not accepted"),
    ],
    ids=["expired", "early", "no CA", "1024 bit", "too wide", "star", "NUL", "other", "self-signed"],
)
def test_a_bad_certificate(issued: Issued, chain: list[Issued], words: str, tmp_path: Path) -> None:
    ours = client("broker.example")
    ours.start()
    with pytest.raises(SslAuthenticationError, match=words) as caught:
        exchange(ours, Server(issued, chain, tmp_path))  # type: ignore[arg-type]
    assert "broker.example" in str(caught.value) and len(str(caught.value)) < 600


def test_a_signature_by_sha_1(tmp_path: Path) -> None:
    """By the program, since the package signs none any more."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on this machine, which alone signs by SHA-1")
    issued = Issued("broker.example", ROOT)
    files = {name: tmp_path / name for name in ("key", "request", "ca", "ca.key", "names", "certificate")}
    files["key"].write_bytes(issued.key_pem())
    files["ca"].write_bytes(ROOT.pem())
    files["ca.key"].write_bytes(ROOT.key_pem())
    files["names"].write_text("subjectAltName=DNS:broker.example")
    request = ["req", "-new", "-key", files["key"], "-subj", "/CN=x", "-out", files["request"]]
    sign = ["x509", "-req", "-sha1", "-in", files["request"], "-CA", files["ca"], "-CAkey", files["ca.key"]]
    sign += ["-set_serial", "7", "-extfile", files["names"], "-out", files["certificate"]]
    for command in (request, sign):
        subprocess.run([openssl, *map(str, command)], check=True, capture_output=True)
    issued.certificate = x509.load_pem_x509_certificate(files["certificate"].read_bytes())
    ours = client("broker.example")
    ours.start()
    with pytest.raises(SslAuthenticationError, match="too weak"):
        exchange(ours, Server(issued, [], tmp_path))  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [["a.broker.example"], ["*.broker.example"], ["other", "A.BROKER.example"]])
def test_a_good_one(names: list[str], tmp_path: Path) -> None:
    ours = client("a.broker.example")
    ours.start()
    assert exchange(ours, Server(Issued("", ROOT, names=names), [], tmp_path))  # type: ignore[arg-type]


def test_a_chain_of_more_than_100_kb(tmp_path: Path) -> None:
    """OpenSSL's limit for a message of certificates holds: it ends without the memory for it."""
    ours = client("broker.example")
    ours.start()
    big = Issued("broker.example", ROOT, fillers=12)
    with pytest.raises(KafkaError):
        exchange(ours, Server(big, [], tmp_path))  # type: ignore[arg-type]
