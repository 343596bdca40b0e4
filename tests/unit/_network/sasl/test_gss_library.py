"""The system's library without a KDC: what it says of wrong input; skipped, with the reason, where it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forebay._network.sasl import gss_library
from forebay._network.sasl.gss_library import CredentialStore, GssError, GssLibrary
from forebay.errors import ConfigError


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GssLibrary:
    (tmp_path / "krb5.conf").write_text("[libdefaults]\ndefault_realm = R\ndns_lookup_kdc = false\n")
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    try:
        return GssLibrary()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "store",
    [
        CredentialStore(None, None, "FILE:/nowhere/cache"),
        CredentialStore("me@R", "/nowhere/keytab", "MEMORY:forebay-test"),
        CredentialStore("\x00@@@@/", None, None),
        CredentialStore("me@R", "/nowhere/\udcff", "FILE:/nowhere/\udcff"),
    ],
)
def test_no_credentials(library: GssLibrary, store: CredentialStore) -> None:
    with pytest.raises(GssError) as caught:
        library.context("kafka@broker.example", store)
    assert caught.value.major >> 16 and len(str(caught.value)) > 5
    assert "\n" not in str(caught.value)


def test_a_machine_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gss_library, "NAMES", ("libnowhere.so.2",))
    with pytest.raises(ConfigError, match="libgssapi-krb5-2"):
        GssLibrary()


def test_many_contexts_keep_nothing(library: GssLibrary) -> None:
    """Names and contexts that failed are released."""
    program = """
import resource
from forebay._network.sasl.gss_library import CredentialStore, GssError, GssLibrary
library, store = GssLibrary(), CredentialStore(None, None, "FILE:/nowhere/cache")
def tries(count):
    for _ in range(count):
        try:
            library.context("kafka@broker.example", store)
        except GssError:
            pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = tries(2000)
print(tries(6000) - before)
"""
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2000, "KiB"
