"""Cipher suites by both names."""

from __future__ import annotations

import ssl
import subprocess

import pytest

from forebay._network.tls_ciphers import IANA, apply
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


def test_tls_1_3_alone_cannot_be_chosen_everywhere() -> None:
    made = context()
    if hasattr(made, "set_ciphersuites"):
        apply(made, ["TLS_AES_128_GCM_SHA256"])
        assert made.minimum_version == ssl.TLSVersion.TLSv1_3
    else:
        with pytest.raises(ConfigError, match="this Python cannot choose"):
            apply(made, ["TLS_AES_128_GCM_SHA256"])
