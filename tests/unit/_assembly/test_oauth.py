"""From options to tokens: what each source fetches, without a network."""

from __future__ import annotations

import base64
import builtins
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forebay._assembly.oauth import extensions, oauth_bearer, unsecured_claims
from forebay._network import oidc
from forebay._network.oidc import Endpoint, TokenRequest
from forebay._network.sasl.mechanism import Blocking
from forebay.config import ProducerConfig, Secret
from forebay.errors import ConfigError, NetworkError, SaslAuthenticationError
from forebay.testing import ManualClock

OAUTH = {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
URL = "sasl.oauthbearer.token.endpoint.url"
OIDC = {
    **OAUTH,
    URL: "https://login.example/token",
    "sasl.oauthbearer.client.credentials.client.id": "id",
    "sasl.oauthbearer.client.credentials.client.secret": "${env:FOREBAY_SECRET}",
    "config.providers": "env",
}


def jwt(**claims: Any) -> str:
    parts = ({"alg": "none"}, {"sub": "me", "exp": 1_700_000_600, **claims})
    return ".".join(
        (*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), "x")
    )


class Posted:
    """In the place of the endpoint: keeps requests, gives a token."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[TokenRequest] = []
        self.endpoints: list[Endpoint] = []
        self.status, self.answer = 200, json.dumps({"access_token": jwt()}).encode()
        monkeypatch.setattr(oidc, "post_form", self.post)

    def post(self, endpoint: Endpoint, request: TokenRequest, now: Callable[[], float]) -> tuple[int, bytes]:
        self.requests.append(request)
        self.endpoints.append(endpoint)
        return self.status, self.answer


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> Posted:
    return Posted(monkeypatch)


def first_message(options: dict[str, Any]) -> bytes:
    """What the first login says to a broker."""
    exchange = oauth_bearer(ProducerConfig(options), ManualClock(), lambda: 0.5).exchange("broker")
    work = next(exchange)
    assert isinstance(work, Blocking)
    work.run()
    if work.error is not None:
        raise work.error
    found = exchange.send(work.result)
    assert isinstance(found, bytes)
    return found


def test_a_secret_is_read_when_the_token_is_fetched(posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="FOREBAY_SECRET"):
        first_message(OIDC)
    monkeypatch.setenv("FOREBAY_SECRET", "canary")
    assert jwt().encode() in first_message(OIDC)
    pair = base64.b64decode(posted.requests[0].headers["Authorization"].removeprefix("Basic "))
    assert pair == b"id:canary"
    assert posted.endpoints[0][2:6] == (10_000, 10_000, 100, 10_000)


def test_javas_login_module(posted: Posted) -> None:
    jaas = 'x.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="a" extension_logicalCluster="lkc";'
    said = first_message({**OAUTH, URL: "https://login.example/token", "sasl.jaas.config": jaas})
    assert said.endswith(b"\x01logicalCluster=lkc\x01\x01")
    assert posted.requests[0].body == b"grant_type=client_credentials&scope=a"


def test_assertions(posted: Posted, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text("a.b.c")
    options = {**OAUTH, URL: "https://login.example/token", "sasl.oauthbearer.assertion.file": str(tmp_path / "jwt")}
    first_message(options)
    assert b"client_assertion=a.b.c" in posted.requests[0].body
    bearer = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
    first_message({**options, "sasl.oauthbearer.jwt.retriever.class": bearer})
    assert b"jwt-bearer&assertion=a.b.c" in posted.requests[1].body


IN_OPTIONS = {**OIDC, "sasl.oauthbearer.client.credentials.client.secret": "canary"}
IN_JAAS = {
    **OAUTH,
    URL: "https://login.example/token",
    "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="i" clientSecret="canary";',
}
ASSERTED = {**OAUTH, URL: "https://login.example/token", "sasl.oauthbearer.assertion.file": "jwt"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (IN_OPTIONS, "sasl.oauthbearer.client.credentials.client.id and .secret"),
        (IN_JAAS, "clientId and clientSecret in sasl.jaas.config"),
        (ASSERTED, "sasl.oauthbearer.assertion.file"),
    ],
    ids=["options", "JAAS", "assertion"],
)
@pytest.mark.parametrize("status", [400, 401, 403])
def test_credentials_that_are_refused_are_named_by_their_option(
    posted: Posted, tmp_path: Path, options: dict[str, Any], words: str, status: int
) -> None:
    (tmp_path / "jwt").write_text("canary")
    given = {key: str(tmp_path / "jwt") if value == "jwt" else value for key, value in options.items()}
    posted.status, posted.answer = status, b'{"error": "invalid_client", "error_description": "no \x1b[31m canary"}'
    with pytest.raises((SaslAuthenticationError, NetworkError)) as caught:
        first_message(given)
    text = str(caught.value)
    assert f"HTTP {status}" in text and text.endswith(f"the credentials are those of {words}")
    assert "canary" not in text and text.isprintable()


def test_a_token_that_the_client_refuses(posted: Posted) -> None:
    posted.answer = b'{"access_token": "opaque"}'
    with pytest.raises(SaslAuthenticationError, match="1 part"):
        first_message({**OIDC, "sasl.oauthbearer.client.credentials.client.secret": "s"})

    def validator(token: str) -> None:
        raise SaslAuthenticationError("not mine")

    posted.answer = json.dumps({"access_token": jwt()}).encode()
    options = {**OIDC, "sasl.oauthbearer.client.credentials.client.secret": "s"}
    with pytest.raises(SaslAuthenticationError, match="not mine"):
        first_message({**options, "sasl.oauthbearer.jwt.validator.class": validator})


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text(jwt())
    assert jwt().encode() in first_message({**OAUTH, URL: f"file://{tmp_path}/jwt"})


def test_a_provider_and_extensions() -> None:
    said = first_message(
        {**OAUTH, "sasl.oauthbearer.token.provider": lambda: "abc", "sasl.oauthbearer.extensions": "a=1,b=2"}
    )
    assert said == b"n,,\x01auth=Bearer abc\x01a=1\x01b=2\x01\x01"
    with pytest.raises(ConfigError, match="name=value"):
        extensions(ProducerConfig({**OAUTH, "sasl.oauthbearer.extensions": "a", **_PROVIDER}), {})


_PROVIDER = {"sasl.oauthbearer.token.provider": lambda: "abc"}


def test_unsecured_tokens_only_if_jaas_says_so() -> None:
    jaas = (
        'x.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="me" unsecuredLoginNumberClaim_n="1.5" '
        'unsecuredLoginListClaim_l="|a|b" unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_x="y";'
    )
    said = first_message({**OAUTH, "sasl.jaas.config": jaas}).decode()
    token = said.split("Bearer ")[1].split("\x01")[0]
    header, claims, signature = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"} and signature == ""
    read = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert read == {"sub": "me", "n": 1.5, "l": ["a", "b"], "iat": 1_700_000_000.0, "exp": 1_700_000_060.0}
    assert "\x01x=y\x01" in said
    for name, value in (("unsecuredLoginNumberClaim_n", "x"), ("unsecuredLoginWhat", "x")):
        with pytest.raises(ConfigError, match=name):
            unsecured_claims({name: Secret(value)})


def test_http_elsewhere_is_said(posted: Posted, caplog: pytest.LogCaptureFixture) -> None:
    options = {**OIDC, "sasl.oauthbearer.client.credentials.client.secret": "s"}
    oauth_bearer(ProducerConfig({**options, URL: "http://127.0.0.1/t"}), ManualClock(), lambda: 0.5)
    assert not caplog.records
    oauth_bearer(ProducerConfig({**options, URL: "http://login.example/t"}), ManualClock(), lambda: 0.5)
    assert "everybody on the way" in caplog.text and caplog.records[0].levelno == logging.WARNING


def test_the_region_of_msk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    aws = {**OAUTH, "sasl.mechanism": "AWS_MSK_IAM"}

    def made(options: dict[str, str]) -> Any:
        return oauth_bearer(ProducerConfig(options), ManualClock(), lambda: 0.5)

    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.aws\.region"):
        made(aws)
    made({**aws, "bootstrap.servers": "b-1.n.a.c2.kafka.us-east-1.amazonaws.com:9098"})
    made({**aws, "sasl.oauthbearer.aws.region": "eu-west-1"})
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert made(aws).name == "OAUTHBEARER"


@pytest.mark.parametrize(
    ("package", "options", "extra"),
    [
        ("aws_msk_iam_sasl_signer", {"sasl.mechanism": "AWS_MSK_IAM"}, "forebay[aws]"),
        (
            "cryptography",
            {
                URL: "https://h/t",
                "sasl.oauthbearer.assertion.claim.iss": "i",
                "sasl.oauthbearer.assertion.private.key.file": "/k",
            },
            "forebay[oidc]",
        ),
    ],
)
def test_a_package_that_is_missing_is_named(
    package: str, options: dict[str, str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError) as caught:
        oauth_bearer(ProducerConfig({**OAUTH, **options}), ManualClock(), lambda: 0.5)
    assert extra in str(caught.value)
