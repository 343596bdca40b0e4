"""Signed assertions of a client (RFC 7523): a JWT made of options, signed with its private key.

Claims come from options, then from ``sasl.oauthbearer.assertion.template.file``, then from the clock, as in Java; the
later ones win.  Signing needs the package cryptography (``pip install 'forebay[oidc]'``).  A helper thread runs this.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from forebay._network import pem
from forebay._network.oidc import read_text
from forebay.errors import ConfigError, SaslAuthenticationError

_PREFIX = "sasl.oauthbearer.assertion"
ALGORITHMS = ("RS256", "ES256")


class AssertionSettings(NamedTuple):
    """``sasl.oauthbearer.assertion.*``; the passphrase is a ``Secret``."""

    key_file: str
    passphrase: Any = None
    algorithm: str = "RS256"
    claims: Mapping[str, str] = {}
    """iss, sub and aud, as far as they are given."""
    template_file: str | None = None
    exp_seconds: int = 300
    nbf_seconds: int = 60
    jti: bool = False


def assertion(settings: AssertionSettings, wall: Callable[[], float], unique: Callable[[], str]) -> str:
    """A new assertion.

    Args:
        wall: Unix ms.
        unique: a random name, for the claim jti.

    Raises:
        NetworkError: a file cannot be read now.
        SaslAuthenticationError: a file does not hold what its option says.
    """
    header, claims = content(settings, int(wall() // 1000), unique)
    parts = [_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims)]
    signed = ".".join(parts)
    return f"{signed}.{_encoded(_sign(settings, signed.encode()))}"


def content(
    settings: AssertionSettings, now_s: int, unique: Callable[[], str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims of an assertion."""
    template = _template(settings.template_file)
    header = {**template["header"], "alg": settings.algorithm, "typ": "JWT"}
    claims: dict[str, Any] = {**settings.claims, **template["payload"]}
    claims.update(iat=now_s, exp=now_s + settings.exp_seconds, nbf=now_s - settings.nbf_seconds)
    if settings.jti:
        claims["jti"] = unique()
    return header, claims


def check_cryptography() -> None:
    """Raises ConfigError unless assertions can be signed here; imports all that is needed for it.

    The login's thread imports nothing: the main thread may hold the lock of imports while a signal handler waits for
    records, and so for the login.
    """
    try:
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: F401
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils  # noqa: F401
    except ImportError as error:
        text = f"{_PREFIX}.private.key.file needs the package cryptography: pip install 'forebay[oidc]'"
        raise ConfigError(text) from error


def _template(path: str | None) -> dict[str, dict[str, Any]]:
    if path is None:
        return {"header": {}, "payload": {}}
    option = f"{_PREFIX}.template.file"
    try:
        found = json.loads(read_text(path, option))
    except (ValueError, RecursionError):
        raise SaslAuthenticationError(f"{option}={path}: is no JSON") from None
    parts: dict[str, Any] = {
        name: found.get(name, {}) if isinstance(found, dict) else None for name in ("header", "payload")
    }
    if not all(isinstance(part, dict) for part in parts.values()):
        raise SaslAuthenticationError(f'{option}={path}: must be {{"header": {{...}}, "payload": {{...}}}}')
    return parts


def _sign(settings: AssertionSettings, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    key = _key(settings)
    if settings.algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if settings.algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1":
        # JWS wants both numbers in 32 bytes each (RFC 7518, 3.4), not their ASN.1.
        r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    wanted = "an RSA key" if settings.algorithm == "RS256" else "a key of the curve P-256"
    where = f"{_PREFIX}.private.key.file={settings.key_file}"
    raise SaslAuthenticationError(f"{where}: {_PREFIX}.algorithm={settings.algorithm} needs {wanted}")


def _key(settings: AssertionSettings) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    where = f"{_PREFIX}.private.key.file={settings.key_file}"
    data = read_text(settings.key_file, f"{_PREFIX}.private.key.file").encode()
    try:
        data = pem.chosen(data, pem.KEYS, "private key")
    except pem.StoreError as error:
        words = error.message
        raise SaslAuthenticationError(f"{where}: {words}") from None
    passphrase = None if settings.passphrase is None else settings.passphrase.reveal().encode()
    try:
        return load_pem_private_key(data, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        words = f"the private key cannot be read ({type(error).__name__}); see {_PREFIX}.private.key.passphrase"
    finally:
        del passphrase, data  # an error's traceback keeps the names of this frame
    raise SaslAuthenticationError(f"{where}: {words}")


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
