"""Stores of several keys, JKS and PKCS12: which key is meant, whose chain it has, and whom a store trusts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key
from hypothesis import given
from hypothesis import strategies as st

from forebay._network.pem import StoreError
from forebay._network.pkcs12_keys import key_names
from forebay._network.stores import Store, read_store

KEYTOOL = shutil.which("keytool")
PASSWORD = "changeit"


def keytool(*arguments: str) -> None:
    assert KEYTOOL is not None
    done = subprocess.run([KEYTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module", params=["JKS", "PKCS12"])
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A store of two keys, whose chains have an authority, and of one trusted certificate; and a store of one key."""
    if KEYTOOL is None:
        pytest.skip("no keytool (Java) on this machine")
    folder = tmp_path_factory.mktemp("stores")
    kind = ["-storetype", str(request.param), "-storepass", PASSWORD]
    pair = ["-keypass", PASSWORD, "-keyalg", "EC"]
    both, one, authority = (str(folder / name) for name in ("both", "one", "authority"))
    keytool("-genkeypair", "-keystore", authority, *kind, *pair, "-alias", "ca", "-dname", "CN=ca", "-ext", "bc:c")
    keytool("-exportcert", "-keystore", authority, *kind, "-alias", "ca", "-file", f"{authority}.crt")
    for store, alias in ((both, "first"), (both, "second"), (one, "first")):
        keytool("-genkeypair", "-keystore", store, *kind, *pair, "-alias", alias, "-dname", f"CN={alias}")
        request_file, answer = f"{store}.csr", f"{store}.crt"
        keytool("-certreq", "-keystore", store, *kind, "-alias", alias, "-file", request_file)
        keytool("-gencert", "-keystore", authority, *kind, "-alias", "ca", "-infile", request_file, "-outfile", answer)
        chain = Path(answer).read_bytes() + Path(f"{authority}.crt").read_bytes()
        Path(answer).write_bytes(chain)
        if alias == "first":
            keytool("-importcert", "-keystore", store, *kind, "-noprompt", "-alias", "tmp", "-file", f"{authority}.crt")
        keytool("-importcert", "-keystore", store, *kind, "-noprompt", "-alias", alias, "-file", answer)
        if alias == "first":
            keytool("-delete", "-keystore", store, *kind, "-alias", "tmp")
    keytool("-genkeypair", "-keystore", f"{both}.x", *kind, *pair, "-alias", "x", "-dname", "CN=trusted")
    keytool("-exportcert", "-keystore", f"{both}.x", *kind, "-alias", "x", "-file", f"{both}.x.crt")
    keytool("-importcert", "-keystore", both, *kind, "-noprompt", "-alias", "trusted", "-file", f"{both}.x.crt")
    return Path(both).read_bytes(), Path(one).read_bytes()


def names(store: Store) -> list[str]:
    ders = [*store.certificates, *(der for entry in store.keys for der in entry.chain)]
    return sorted(x509.load_der_x509_certificate(der).subject.rfc4514_string() for der in ders)


def test_two_keys_are_refused_with_their_aliases(stores: tuple[bytes, bytes]) -> None:
    with pytest.raises(StoreError, match="one private key, it has 2: 'first', 'second'; name one with ssl.keystore"):
        read_store(stores[0], PASSWORD)
    with pytest.raises(StoreError, match="no key with the alias of ssl.keystore.alias=third; it has 'first', 'second'"):
        read_store(stores[0], PASSWORD, alias="third")


@pytest.mark.parametrize("alias", ["first", "SECOND"])
def test_the_key_of_an_alias_has_its_own_chain(stores: tuple[bytes, bytes], alias: str) -> None:
    (entry,) = read_store(stores[0], PASSWORD, alias=alias).keys
    own = x509.load_der_x509_certificate(entry.chain[0])
    assert own.subject.rfc4514_string() == f"CN={alias.lower()}"
    assert own.public_key() == load_der_private_key(entry.key, None).public_key()
    assert len(entry.chain) == 2


def test_a_store_of_one_key_needs_no_alias(stores: tuple[bytes, bytes]) -> None:
    (entry,) = read_store(stores[1], PASSWORD).keys
    assert read_store(stores[1], PASSWORD, alias="first").keys == (entry,) and len(entry.chain) == 2
    with pytest.raises(StoreError, match="it has 'first'"):
        read_store(stores[1], PASSWORD, alias="other")


def test_of_a_key_its_own_certificate_is_trusted_and_not_its_authority(stores: tuple[bytes, bytes]) -> None:
    assert names(read_store(stores[0], PASSWORD, for_trust=True)) == ["CN=first", "CN=second", "CN=trusted"]
    assert names(read_store(stores[1], PASSWORD, for_trust=True)) == ["CN=first"]


@given(st.binary(max_size=200))
def test_any_bytes_have_no_keys(data: bytes) -> None:
    assert key_names(b"\x30" + data) == {} or isinstance(key_names(b"\x30" + data), dict)
