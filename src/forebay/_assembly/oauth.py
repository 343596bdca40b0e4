"""From the options ``sasl.oauthbearer.*`` to the mechanism OAUTHBEARER and what fetches its tokens."""

from __future__ import annotations

import base64
import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from forebay._assembly.tls import tls_settings
from forebay._network import oidc
from forebay._network.assertions import AssertionSettings, assertion, check_cryptography
from forebay._network.msk_iam import MskIam, load_signer, region_of
from forebay._network.sasl.oauthbearer import OAuthBearer
from forebay._network.tokens import Refresh, Token, Tokens, ask, checked_jwt, given_token
from forebay._runtime.clock import Clock
from forebay._runtime.ticket import Latch
from forebay.config import ProducerConfig, Secret
from forebay.config._oauth import TokenSource, jaas_secret, token_source
from forebay.errors import ConfigError
from forebay.model._wire import shown_url

logger = logging.getLogger("forebay.network")

_PREFIX = "sasl.oauthbearer"
_EXTENSION, _UNSECURED_EXTENSION = "extension_", "unsecuredLoginExtension_"
UNSECURED_LIFETIME_S = 3600.0
"""Java's default."""


def oauth_bearer(config: ProducerConfig, clock: Clock, random: Callable[[], float]) -> OAuthBearer:
    """The mechanism.

    Raises:
        ConfigError: a package is missing, or a value cannot be.
    """
    source = token_source(config)
    fetch = _FETCHES[source.kind](config, source, clock)
    refresh = Refresh(
        config["sasl.login.refresh.window.factor"],
        config["sasl.login.refresh.window.jitter"],
        config["sasl.login.refresh.min.period.seconds"],
        config["sasl.login.refresh.buffer.seconds"],
    )
    tokens = Tokens(fetch, f"the token of {source.option}", refresh, clock.wall, random)
    return OAuthBearer(tokens, source.option, extensions(config, source.jaas))


def extensions(config: ProducerConfig, jaas: Mapping[str, Secret]) -> dict[str, str]:
    """``sasl.oauthbearer.extensions``, and ``extension_...`` of the login module.

    Raises:
        ConfigError: no name=value pair.
    """
    found: dict[str, str] = {}
    for prefix in (_EXTENSION, _UNSECURED_EXTENSION):
        found.update((name[len(prefix) :], value.reveal()) for name, value in jaas.items() if name.startswith(prefix))
    for pair in config[f"{_PREFIX}.extensions"]:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ConfigError(f"{_PREFIX}.extensions: write name=value, with commas between the pairs")
        found[name.strip()] = value.strip()
    return found


Fetch = Callable[[], Token]


def _of_provider(config: ProducerConfig, source: TokenSource, clock: Clock) -> Fetch:
    provider = source.provider
    assert provider is not None
    return lambda: ask(provider, source.option, clock.wall)


def _of_file(config: ProducerConfig, source: TokenSource, clock: Clock) -> Fetch:
    url = config[f"{_PREFIX}.token.endpoint.url"]
    oidc.check_url(url)
    return lambda: _checked(config, oidc.read_token_file(url), clock)


def _of_secret(config: ProducerConfig, source: TokenSource, clock: Clock) -> Fetch:
    client, secret = (_given(config, source, name) for name in ("id", "secret"))
    scope, encode = _scope(config, source), config[f"{_PREFIX}.header.urlencode"]

    def request() -> oidc.TokenRequest:
        made = oidc.with_secret(_revealed(client) or "", _revealed(secret) or "", scope, encode)
        return made._replace(given_by=given_by)

    of_jaas = config[f"{_PREFIX}.client.credentials.client.secret"] is None
    given_by = f"{_PREFIX}.client.credentials.client.id and .secret"
    given_by = "clientId and clientSecret in sasl.jaas.config" if of_jaas else given_by

    return _of_endpoint(config, source, clock, request)


def _of_assertion(config: ProducerConfig, source: TokenSource, clock: Clock) -> Fetch:
    make, scope = _assertion(config, clock), _scope(config, source)
    given_by = f"{_PREFIX}.assertion.file"
    given_by = f"{_PREFIX}.assertion.private.key.file" if config[given_by] is None else given_by
    if source.kind == "jwt-bearer":
        return _of_endpoint(config, source, clock, lambda: oidc.jwt_bearer(make(), scope)._replace(given_by=given_by))
    client = _given(config, source, "id")

    def request() -> oidc.TokenRequest:
        return oidc.with_assertion(make(), _revealed(client), scope)._replace(given_by=given_by)

    return _of_endpoint(config, source, clock, request)


def _of_unsecured(config: ProducerConfig, source: TokenSource, clock: Clock) -> Fetch:
    claims = unsecured_claims(source.jaas)

    def fetch() -> Token:
        now = clock.wall() / 1000
        lifetime = claims["lifetime"]
        parts: tuple[dict[str, Any], ...] = ({"alg": "none"}, {**claims["claims"], "iat": now, "exp": now + lifetime})
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return given_token((f"{'.'.join(encoded)}.", now + lifetime), source.option, clock.wall())

    return fetch


def _of_aws(config: ProducerConfig, source: TokenSource, clock: Clock) -> Fetch:
    load_signer()
    region = (
        config[f"{_PREFIX}.aws.region"]
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
        or region_of(host for host, _ in config.bootstrap)
    )
    if not region:
        raise ConfigError(f"sasl.mechanism=AWS_MSK_IAM: set {_PREFIX}.aws.region, such as eu-west-1")
    signer = MskIam(region, *(source.text(f"aws{name}") for name in ("ProfileName", "RoleArn", "RoleSessionName")))
    return lambda: signer.fetch(clock.wall)


_FETCHES: dict[str, Callable[[ProducerConfig, TokenSource, Clock], Fetch]] = {
    "provider": _of_provider,
    "file": _of_file,
    "secret": _of_secret,
    "assertion": _of_assertion,
    "jwt-bearer": _of_assertion,
    "unsecured": _of_unsecured,
    "aws": _of_aws,
}


def _of_endpoint(
    config: ProducerConfig, source: TokenSource, clock: Clock, request: Callable[[], oidc.TokenRequest]
) -> Fetch:
    # Imported now: the login's thread must not wait for the lock of imports (``check_cryptography`` has the reason).
    import encodings.idna  # noqa: F401  # what the endpoint's host name goes through
    import http.client  # noqa: F401

    url = config[f"{_PREFIX}.token.endpoint.url"]
    if oidc.check_url(url) == "http" and not oidc.is_loopback(url):
        where = shown_url(url)
        logger.warning("%s.token.endpoint.url=%s: without TLS everybody on the way can read the secret", _PREFIX, where)
    endpoint = oidc.Endpoint(
        url,
        _endpoint_tls(config, source),
        config["sasl.login.connect.timeout.ms"] or 10_000,
        config["sasl.login.read.timeout.ms"] or 10_000,
        config["sasl.login.retry.backoff.ms"],
        config["sasl.login.retry.backoff.max.ms"],
    )
    pause = Latch()  # never set: only waited for
    return lambda: _checked(config, oidc.fetch(endpoint, request(), clock.now, pause.wait), clock)


def _checked(config: ProducerConfig, value: str, clock: Clock) -> Token:
    token = checked_jwt(value, config[f"{_PREFIX}.sub.claim.name"], clock.wall())
    validator = config[f"{_PREFIX}.jwt.validator.class"]
    if callable(validator):
        validator(value)
    return token


def _endpoint_tls(config: ProducerConfig, source: TokenSource) -> Callable[[], tuple[Any, str]]:
    """TLS to the identity provider: ``ssl.*`` of the login module, as in Java.

    Without them the system's authorities are trusted.  Those of the brokers (``ssl.truststore.*``) are not: who signs
    brokers' certificates could else pose as the identity provider, and get the client's secret.
    """
    from forebay._network.tls_context import TlsSettings, make_context

    own = endpoint_config(config, source.jaas)
    settings = TlsSettings() if own is None else tls_settings(own)
    if own is not None:
        make_context(settings)  # what cannot be is told when the producer is made

    return lambda: make_context(settings)


def endpoint_config(config: ProducerConfig, jaas: Mapping[str, Secret]) -> ProducerConfig | None:
    """The options ``ssl.*`` of the login module as a configuration; None: it has none.

    Raises:
        ConfigError: one of them is unknown, or cannot be.
    """
    own = {name: value.reveal() for name, value in jaas.items() if name.startswith("ssl.")}
    if not own:
        return None
    kept = ("bootstrap.servers", "config.providers")
    more = {name: value for name, value in config.originals().items() if name.startswith(kept)}
    try:
        return ProducerConfig({**more, "security.protocol": "SSL", **own})
    except ConfigError as error:
        raise ConfigError(f"sasl.jaas.config: {error.message}") from None


def _given(config: ProducerConfig, source: TokenSource, name: str) -> Any:
    """Client id or secret: of its option, else of the login module (which Java calls deprecated)."""
    value = config[f"{_PREFIX}.client.credentials.client.{name}"]
    if value is not None:
        return value
    given = source.jaas.get({"id": "clientId", "secret": "clientSecret"}[name])
    return None if given is None else jaas_secret(config, given)


def _revealed(value: Any) -> str | None:
    return value.reveal() if isinstance(value, Secret) else value


def _scope(config: ProducerConfig, source: TokenSource) -> str | None:
    found: str | None = config[f"{_PREFIX}.scope"] or source.text("scope")
    return found


def _assertion(config: ProducerConfig, clock: Clock) -> Callable[[], str]:
    from forebay._network.tls_context import warn_of_open_files

    prefix = f"{_PREFIX}.assertion"
    file = config[f"{prefix}.file"]
    if file is not None:
        return lambda: oidc.read_text(file, f"{prefix}.file")
    check_cryptography()
    warn_of_open_files({f"{prefix}.private.key.file": config[f"{prefix}.private.key.file"]})
    claims = {name: config[f"{prefix}.claim.{name}"] for name in ("iss", "sub", "aud")}
    settings = AssertionSettings(
        key_file=config[f"{prefix}.private.key.file"],
        passphrase=config[f"{prefix}.private.key.passphrase"],
        algorithm=config[f"{prefix}.algorithm"],
        claims={name: value for name, value in claims.items() if value is not None},
        template_file=config[f"{prefix}.template.file"],
        exp_seconds=config[f"{prefix}.claim.exp.seconds"],
        nbf_seconds=config[f"{prefix}.claim.nbf.seconds"],
        jti=config[f"{prefix}.claim.jti.include"],
    )
    return lambda: assertion(settings, clock.wall, lambda: str(uuid.uuid4()))


def unsecured_claims(jaas: Mapping[str, Secret]) -> dict[str, Any]:
    """Claims and lifetime (s) of ``unsecuredLogin...``, as Java's OAuthBearerUnsecuredLoginCallbackHandler reads them.

    Raises:
        ConfigError: an option that is not known, or no number.
    """
    claims: dict[str, Any] = {}
    prefix, lifetime = "unsecuredLogin", UNSECURED_LIFETIME_S
    for name, given in jaas.items():
        value = given.reveal()
        kind, _, claim = name.removeprefix(prefix).partition("_")
        try:
            if not name.startswith(prefix) or kind == "Extension":
                continue
            if kind == "StringClaim" and claim:
                claims[claim] = value
            elif kind == "NumberClaim" and claim:
                claims[claim] = float(value)
            elif kind == "ListClaim" and len(value) > 1:
                claims[claim] = value[1:].split(value[0])
            elif kind == "LifetimeSeconds":
                lifetime = float(value)
            elif kind not in ("PrincipalClaimName", "ScopeClaimName"):
                raise ConfigError(f"sasl.jaas.config: {name} is not known")
        except ValueError:
            raise ConfigError(f"sasl.jaas.config: {name} must be a number") from None
    return {"claims": claims, "lifetime": lifetime}
