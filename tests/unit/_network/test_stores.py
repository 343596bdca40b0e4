"""Key and trust stores as Java's and OpenSSL's tools write them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.pem import StoreError, is_pem, wrapped
from forebay._network.stores import JKS_MAGIC, read_store

PASSWORD = "changeit-é"
KEYTOOL = shutil.which("keytool")


@pytest.fixture(scope="module", params=["JKS", "PKCS12"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """One key and one trusted certificate, in a file whose name says nothing."""
    if KEYTOOL is None:
        pytest.skip("no keytool (Java) on this machine")
    path = tmp_path_factory.mktemp("stores") / "store.jks"
    other = tmp_path_factory.mktemp("stores") / "other.crt"
    kind = str(request.param)
    password = PASSWORD if kind == "JKS" else "changeit"
    common = ["-keystore", str(path), "-storetype", kind, "-storepass", password]
    keytool("-genkeypair", *common, "-keypass", password, "-alias", "mine", "-keyalg", "RSA", "-dname", "CN=me")
    keytool("-exportcert", *common, "-alias", "mine", "-file", str(other))
    keytool("-importcert", *common, "-noprompt", "-alias", "theirs", "-file", str(other))
    return path.read_bytes()


def keytool(*arguments: str) -> None:
    assert KEYTOOL is not None
    environment = {"JAVA_TOOL_OPTIONS": "-Dsun.jnu.encoding=UTF-8 -Dfile.encoding=UTF-8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([KEYTOOL, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def password_of(data: bytes) -> str:
    return PASSWORD if data.startswith(JKS_MAGIC) else "changeit"


def test_a_store_of_javas(store: bytes) -> None:
    found = read_store(store, password_of(store))
    (entry,) = found.keys
    assert entry.alias == "mine" and len(entry.chain) >= 1 and entry.key[:1] == b"\x30"
    assert "PRIVATE" not in repr(found) + repr(entry)
    assert entry.chain[0] in found.certificates + entry.chain
    assert wrapped(entry.key, "PRIVATE KEY").startswith("-----BEGIN PRIVATE KEY-----\n")


def test_another_password(store: bytes) -> None:
    with pytest.raises(StoreError, match="password"):
        read_store(store, "another")


@pytest.mark.parametrize("size", [4, 20, 200, -21])
def test_a_store_that_is_cut_off(store: bytes, size: int) -> None:
    with pytest.raises(StoreError):
        read_store(store[:size], password_of(store))


def test_what_is_no_store() -> None:
    with pytest.raises(StoreError, match="neither PEM nor JKS nor PKCS12"):
        read_store(b"hello", None)
    assert is_pem(b"some words\n-----BEGIN CERTIFICATE-----") and not is_pem(JKS_MAGIC)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    for start in (JKS_MAGIC, b"\x30"):
        with pytest.raises(StoreError):
            read_store(start + data, "x")


def test_an_empty_store_of_a_certificate_alone(tmp_path: Path) -> None:
    """As openssl makes trust stores: certificates without keys."""
    names: Sequence[str] = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca")
    made = subprocess.run(
        [*names, "-keyout", str(tmp_path / "k"), "-out", str(tmp_path / "c")], capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr
    export = ["openssl", "pkcs12", "-export", "-nokeys", "-in", str(tmp_path / "c"), "-out", str(tmp_path / "p")]
    assert subprocess.run([*export, "-passout", "pass:x"], capture_output=True, check=False).returncode == 0
    found = read_store((tmp_path / "p").read_bytes(), "x")
    assert found.keys == () and len(found.certificates) == 1
