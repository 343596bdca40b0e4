"""Assertions that a client signs, judged by PyJWT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from forebay._network.assertions import AssertionSettings, assertion, content
from forebay.config import Secret
from forebay.errors import NetworkError, SaslAuthenticationError

NOW = 1_700_000_000_000
RSA = rsa.generate_private_key(65537, 2048)
P256 = ec.generate_private_key(ec.SECP256R1())


def pem(key: Any, passphrase: bytes | None = None) -> bytes:
    form = serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, form)  # type: ignore[no-any-return]


def made(settings: AssertionSettings) -> str:
    return assertion(settings, lambda: NOW, lambda: "unique")


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (P256, "ES256")])
@pytest.mark.parametrize("passphrase", [None, "canary"])
def test_another_library_accepts_the_signature(
    tmp_path: Path, key: Any, algorithm: str, passphrase: str | None
) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(pem(key, None if passphrase is None else passphrase.encode()))
    value = made(
        AssertionSettings(
            str(path),
            None if passphrase is None else Secret(passphrase),
            algorithm,
            {"iss": "me", "sub": "it", "aud": "them"},
            jti=True,
        )
    )
    read = jwt.decode(value, key.public_key(), [algorithm], audience="them", options={"verify_exp": False})
    assert read == {
        "iss": "me", "sub": "it", "aud": "them", "iat": NOW // 1000, "exp": NOW // 1000 + 300,
        "nbf": NOW // 1000 - 60, "jti": "unique",
    }  # fmt: skip


def test_a_template_comes_over_the_options_and_under_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "template.json"
    path.write_text(
        json.dumps({"header": {"kid": "1", "alg": "none"}, "payload": {"iss": "other", "exp": 1, "x": [1]}})
    )
    settings = AssertionSettings("", claims={"iss": "me"}, template_file=str(path), exp_seconds=5, nbf_seconds=0)
    header, claims = content(settings, 100, lambda: "")
    assert header == {"kid": "1", "alg": "RS256", "typ": "JWT"}
    assert claims == {"iss": "other", "x": [1], "iat": 100, "exp": 105, "nbf": 100}


@pytest.mark.parametrize("text", ["no json", "[]", '{"header": 7}', '{"payload": []}'])
def test_templates_that_are_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "template.json"
    path.write_text(text)
    with pytest.raises(SaslAuthenticationError, match="template.file"):
        content(AssertionSettings("", template_file=str(path)), 1, lambda: "")


def test_keys_that_cannot_sign(tmp_path: Path) -> None:
    for name, data in {
        "rsa": pem(RSA),
        "p256": pem(P256),
        "p384": pem(ec.generate_private_key(ec.SECP384R1())),
        "locked": pem(RSA, b"canary"),
        "broken": pem(RSA)[:200],
    }.items():
        (tmp_path / name).write_bytes(data)
    for name, algorithm, passphrase, why in (
        ("rsa", "ES256", None, "needs a key of the curve P-256"),
        ("p384", "ES256", None, "needs a key of the curve P-256"),
        ("p256", "RS256", None, "needs an RSA key"),
        ("locked", "RS256", None, "passphrase"),
        ("locked", "RS256", "other-canary", "passphrase"),
        ("rsa", "RS256", "other-canary", "passphrase"),
        ("broken", "RS256", None, "block 1, a PRIVATE KEY, has no"),
    ):
        secret = None if passphrase is None else Secret(passphrase)
        with pytest.raises(SaslAuthenticationError, match=why) as caught:
            made(AssertionSettings(str(tmp_path / name), secret, algorithm))
        assert "canary" not in str(caught.value) and name in str(caught.value)
    with pytest.raises(NetworkError, match="private.key.file"):
        made(AssertionSettings(str(tmp_path / "none")))
