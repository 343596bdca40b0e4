"""Cipher suites by both names."""

from __future__ import annotations

import ssl
import subprocess

import pytest

from forebay._network.tls_ciphers import IANA, _tell, apply
from forebay.errors import ConfigError


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def names(made: ssl.SSLContext) -> set[str]:
    return {entry["name"] for entry in made.get_ciphers() if entry["protocol"] != "TLSv1.3"}


@pytest.mark.parametrize("name", ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"])
def test_javas_name_and_openssls_are_the_same(name: str) -> None:
    made = context()
    apply(made, [name])
    assert names(made) == {"ECDHE-RSA-AES256-GCM-SHA384"}


def test_the_table_is_openssls_own() -> None:
    done = subprocess.run(["openssl", "ciphers", "-stdname", "ALL"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pairs = dict(line.split(" - ")[0:2] for line in done.stdout.splitlines() if " - " in line)
    known = {iana.strip(): rest.split()[0] for iana, rest in pairs.items()}
    wrong = {iana: ours for iana, ours in IANA.items() if iana in known and known[iana] != ours}
    assert wrong == {} and len(set(IANA) & set(known)) >= 15


def test_what_openssl_has_not() -> None:
    with pytest.raises(ConfigError, match="ssl.cipher.suites: .*TLS_FAST"):
        apply(context(), ["TLS_FAST"])


def test_tls_1_3_alone_cannot_be_chosen_everywhere(caplog: pytest.LogCaptureFixture) -> None:
    """Java logs in with them; here that version is chosen, and what cannot be is said, once."""
    _tell.cache_clear()
    for _ in range(2):
        made = context()
        apply(made, ["TLS_AES_128_GCM_SHA256"])
        assert made.minimum_version == ssl.TLSVersion.TLSv1_3
    said = [record.message for record in caplog.records]
    can_choose = hasattr(made, "set_ciphersuites")
    assert len(said) == (0 if can_choose else 1) and all("this Python cannot choose" in text for text in said)


def test_tls_1_3_alone_where_that_version_is_not_enabled() -> None:
    made = context()
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ConfigError, match=r"of TLS 1.3, which ssl.enabled.protocols"):
        apply(made, ["TLS_AES_128_GCM_SHA256"])
    apply(made, ["TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES256-GCM-SHA384"])
    assert names(made) == {"ECDHE-RSA-AES256-GCM-SHA384"}
