"""From options to a context: every way to give keys and authorities, what is refused, and files that change."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from forebay._network.tls_context import TlsContexts, TlsSettings, make_context
from forebay.config import Secret
from forebay.config._placeholders import Placeholder, Providers
from forebay.errors import ConfigError
from tests.support.nobody import as_nobody, shared_folder

NEVER = 0.0


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def wall() -> float:
    return NEVER


def subjects(context: ssl.SSLContext) -> int:
    return len(context.get_ca_certs())


def test_authorities_of_a_file_a_folder_and_a_text(ca: trustme.CA, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(ca.cert_pem.bytes())
    context, store = make_context(TlsSettings(truststore=str(path)))
    assert subjects(context) == 1 and str(path) in store
    context, store = make_context(TlsSettings(certificates=Secret(ca.cert_pem.bytes().decode())))
    assert subjects(context) == 1 and store == "ssl.truststore.certificates"
    with pytest.raises(ConfigError, match="a folder without names like"):
        make_context(TlsSettings(truststore=str(tmp_path)))
    path.rename(tmp_path / "9d66eef0.0")
    _context, store = make_context(TlsSettings(truststore=str(tmp_path)))
    assert str(tmp_path) in store
    _context, store = make_context(TlsSettings())
    assert "ssl.truststore.location" in store


@pytest.mark.parametrize("comment", ["# Főtanúsítvány\n".encode(), b"Autorit\xe9\n"])
def test_comments_of_a_bundle_may_be_in_any_encoding(ca: trustme.CA, tmp_path: Path, comment: bytes) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(comment + ca.cert_pem.bytes())
    assert subjects(make_context(TlsSettings(truststore=str(path)))[0]) == 1
    text = comment.decode("latin-1") + ca.cert_pem.bytes().decode()
    assert subjects(make_context(TlsSettings(certificates=Secret(text)))[0]) == 1
    path.write_bytes(ca.cert_pem.bytes().replace(b"M", "ü".encode(), 1))
    with pytest.raises(ConfigError, match="ssl.truststore.location="):
        make_context(TlsSettings(truststore=str(path)))


def test_what_a_context_allows() -> None:
    context, _ = make_context(TlsSettings())
    assert context.check_hostname and context.verify_mode == ssl.CERT_REQUIRED
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert not context.verify_flags & getattr(ssl, "VERIFY_X509_STRICT", 0)
    context, _ = make_context(TlsSettings(versions=("TLSv1.2",), check_name=False, verify=False))
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2 and context.verify_mode == ssl.CERT_NONE


def keyed(ca: trustme.CA) -> tuple[str, str]:
    issued = ca.issue_cert("client.example")
    return issued.private_key_pem.bytes().decode(), "".join(blob.bytes().decode() for blob in issued.cert_chain_pems)


def test_keys_in_one_file_in_two_and_as_text(ca: trustme.CA, tmp_path: Path) -> None:
    key, chain = keyed(ca)
    both, apart, key_file = tmp_path / "both.pem", tmp_path / "chain.pem", tmp_path / "key.pem"
    both.write_text(key + chain)
    apart.write_text(chain)
    key_file.write_text(key)
    make_context(TlsSettings(keystore=str(both)))
    make_context(TlsSettings(keystore=str(apart), key_file=str(key_file)))
    before = set(os.listdir(tmp_path))
    make_context(TlsSettings(key=Secret(key), chain=Secret(chain)))
    assert set(os.listdir(tmp_path)) == before


def bad_files(ca: trustme.CA, folder: Path) -> dict[str, tuple[Callable[[str], TlsSettings], str, bytes]]:
    _key, chain = keyed(ca)
    other, _ = keyed(ca)

    def trust(path: str) -> TlsSettings:
        return TlsSettings(truststore=path)

    def keys(path: str) -> TlsSettings:
        return TlsSettings(keystore=path)

    return {
        "empty": (trust, "is empty", b""),
        "no store": (trust, "neither PEM nor JKS", b"hello"),
        "no certificate in it": (
            trust,
            "certificate",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ),
        "no key": (keys, "key", chain.encode()),
        "another's key": (keys, "not the certificate's", (other + chain).encode()),
    }


@pytest.mark.parametrize("what", ["empty", "no store", "no certificate in it", "no key", "another's key"])
def test_a_file_that_cannot_be_used(ca: trustme.CA, tmp_path: Path, what: str) -> None:
    settings, words, data = bad_files(ca, tmp_path)[what]
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        make_context(settings(str(path)))
    assert str(path) in str(caught.value) and words in str(caught.value)


def unreadable(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0)


def closed_folder(path: Path) -> None:
    path.mkdir(mode=0)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "is no file"),
        (lambda path: None, "No such file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (unreadable, "Permission denied"),
        (closed_folder, "Permission denied|Is a directory"),
    ],
    ids=["fifo", "missing", "loop", "unreadable", "closed folder"],
)
@pytest.mark.parametrize("field", ["truststore", "keystore", "key_file", "crl"])
def test_what_cannot_be_read(ca: trustme.CA, make: Callable[[Any], None], why: str, field: str) -> None:
    option = {"key_file": "ssl.key.location"}.get(field, f"ssl.{field}.location")
    with shared_folder() as folder:
        path, chain = folder / "it", folder / "chain.pem"
        chain.write_text(keyed(ca)[1])
        make(path)
        given: dict[str, Any] = {field: str(path)}
        if field == "key_file":
            given["keystore"] = str(chain)
        with as_nobody(), pytest.raises(ConfigError, match=f"^{option}={path}: .*({why})"):
            make_context(TlsSettings(**given))


def test_paths_that_are_looked_up(ca: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.pem").write_bytes(ca.cert_pem.bytes())
    (tmp_path / "two.pem").write_bytes(ca.cert_pem.bytes() + trustme.CA().cert_pem.bytes())
    monkeypatch.setenv("FOREBAY_CA", str(tmp_path / "one.pem"))
    contexts = TlsContexts(TlsSettings(truststore=Placeholder("${env:FOREBAY_CA}", Providers(("env",)))), wall)
    first = contexts._context
    contexts.filter("h")
    assert contexts._context is first and str(tmp_path / "one.pem") in repr(contexts)
    monkeypatch.delenv("FOREBAY_CA")
    contexts.filter("h")
    assert contexts._context is first, "a path that is not there changes nothing"
    monkeypatch.setenv("FOREBAY_CA", str(tmp_path / "two.pem"))
    contexts.filter("h")
    assert subjects(contexts._context) == 2
    monkeypatch.delenv("FOREBAY_CA")
    with pytest.raises(ConfigError, match="FOREBAY_CA.*no such environment variable"):
        TlsContexts(TlsSettings(truststore=Placeholder("${env:FOREBAY_CA}", Providers(("env",)))), wall)


def test_an_encrypted_key_never_asks_on_the_terminal(ca: trustme.CA, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key, chain = keyed(ca)
    form = serialization.PrivateFormat.PKCS8
    how = serialization.BestAvailableEncryption(b"hush-canary")
    loaded = serialization.load_pem_private_key(key.encode(), None)
    sealed = loaded.private_bytes(serialization.Encoding.PEM, form, how).decode()
    path = tmp_path / "sealed.pem"
    path.write_text(sealed + chain)
    make_context(TlsSettings(keystore=str(path), key_password=Secret("hush-canary")))
    with pytest.raises(ConfigError, match="set ssl.key.password"):
        make_context(TlsSettings(keystore=str(path)))
    with pytest.raises(ConfigError, match="password") as caught:
        make_context(TlsSettings(keystore=str(path), key_password=Secret("wrong-canary")))
    assert "canary" not in str(caught.value)


def test_files_that_change_are_read_again(ca: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "forebay.network")
    path = tmp_path / "ca.pem"
    path.write_bytes(ca.cert_pem.bytes())
    contexts = TlsContexts(TlsSettings(truststore=str(path)), wall)
    first = contexts._context
    contexts.filter("h")
    assert contexts._context is first
    path.write_bytes(b"half")
    contexts.filter("h")
    contexts.filter("h")
    assert contexts._context is first, "a file that cannot be used changes nothing"
    assert len([record for record in caplog.records if "the old ones stay" in record.getMessage()]) == 1
    path.write_bytes(ca.cert_pem.bytes() + trustme.CA().cert_pem.bytes())
    contexts.filter("h")
    assert contexts._context is not first and subjects(contexts._context) == 2


def test_a_second_producer_reads_nothing(ca: trustme.CA, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(ca.cert_pem.bytes())
    settings = TlsSettings(truststore=str(path))
    assert TlsContexts(settings, wall)._context is TlsContexts(settings, wall)._context


def test_a_context_of_the_users_own() -> None:
    own = ssl.create_default_context()
    assert TlsContexts(TlsSettings(), wall, own)._context is own
    assert TlsContexts(TlsSettings(), wall, lambda: own)._context is own
    with pytest.raises(ConfigError, match="ssl.engine.factory.class"):
        TlsContexts(TlsSettings(), wall, lambda: 5)  # type: ignore[arg-type,return-value]


def test_a_certificate_that_ends_soon_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    contexts = TlsContexts(TlsSettings(), wall)
    for _ in range(3):
        contexts._note_expiry("soon", 86400.0)
        contexts._note_expiry("late", 86400.0 * 30)
    assert [record.getMessage() for record in caplog.records] == ["TLS: the certificate of soon expires in 1.0 days"]


def test_nothing_secret_is_shown() -> None:
    assert "canary" not in repr(TlsSettings(key_password=Secret("canary"), key=Secret("canary")))


def test_a_key_that_is_looked_up_is_used_once_it_has_changed(ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    def there(name: str) -> None:
        issued = ca.issue_cert(name)
        monkeypatch.setenv("FOREBAY_KEY", issued.private_key_pem.bytes().decode())
        monkeypatch.setenv("FOREBAY_CHAIN", issued.cert_chain_pems[0].bytes().decode())

    providers = Providers(("env",))
    key, chain = Placeholder("${env:FOREBAY_KEY}", providers), Placeholder("${env:FOREBAY_CHAIN}", providers)
    there("one.example")
    contexts = TlsContexts(TlsSettings(key=key, chain=chain), lambda: 0)
    first = contexts._context
    contexts.filter("broker")
    assert contexts._context is first
    there("two.example")
    contexts.filter("broker")
    assert contexts._context is not first


def test_a_folder_of_authorities_is_bound_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_ALLOWED_PATHS", "/nowhere")
    with pytest.raises(ConfigError, match=r"ssl.truststore.location=.*FOREBAY_ALLOWED_PATHS"):
        make_context(TlsSettings(truststore=str(tmp_path)))
