"""Which source of tokens the options name, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.config import ProducerConfig
from forebay.config._oauth import token_source
from forebay.errors import ConfigError

OAUTH = {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
URL = {"sasl.oauthbearer.token.endpoint.url": "https://login.example/token"}
CLIENT = {
    "sasl.oauthbearer.client.credentials.client.id": "id",
    "sasl.oauthbearer.client.credentials.client.secret": "canary",
}
JAVA = "org.apache.kafka.common.security.oauthbearer"
JAAS = f'{JAVA}.OAuthBearerLoginModule required clientId="id" clientSecret="canary" scope="s" extension_a="b";'
JAVA_BEARER = {"sasl.oauthbearer.jwt.retriever.class": f"{JAVA}.JwtBearerJwtRetriever"}
UNSECURED = 'x.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="me";'


def give() -> str:
    return "token"


class KafkaPythons:
    def token(self) -> str:
        return "token"

    def extensions(self) -> dict[str, str]:
        return {"a": "b"}


class Javas:
    def retrieve(self) -> str:
        return "token"


class Aiokafkas:
    async def token(self) -> str:
        return "token"


class Fails:
    def __init__(self) -> None:
        raise ValueError("no")


def config(options: dict[str, Any]) -> ProducerConfig:
    return ProducerConfig({**OAUTH, **options})


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"sasl.oauthbearer.token.provider": give}, "provider"),
        ({"sasl_oauth_token_provider": KafkaPythons()}, "provider"),
        ({"oauth_cb": lambda text: ("token", 9e9)}, "provider"),
        ({"sasl.login.callback.handler.class": KafkaPythons}, "provider"),
        ({"sasl.oauthbearer.jwt.retriever.class": f"{__name__}.Javas"}, "provider"),
        ({**URL, **CLIENT}, "secret"),
        ({**URL, "sasl.jaas.config": JAAS}, "secret"),
        ({**URL, **CLIENT, "sasl.login.callback.handler.class": f"{JAVA}.OAuthBearerLoginCallbackHandler"}, "secret"),
        ({**URL, "sasl.oauthbearer.client.id": "i", "sasl.oauthbearer.client.secret": "s"}, "secret"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///token"}, "file"),
        ({**URL, "sasl.oauthbearer.assertion.file": "/a"}, "assertion"),
        (
            {**URL, "sasl.oauthbearer.assertion.claim.iss": "i", "sasl.oauthbearer.assertion.private.key.file": "/k"},
            "assertion",
        ),
        (
            {
                **URL,
                "sasl.oauthbearer.jwt.retriever.class": f"{JAVA}.JwtBearerJwtRetriever",
                "sasl.oauthbearer.assertion.file": "/a",
            },
            "jwt-bearer",
        ),
        ({"sasl.jaas.config": UNSECURED}, "unsecured"),
        ({"sasl.mechanism": "aws_msk_iam"}, "aws"),
        ({"sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;"}, "aws"),
        ({"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"}, "aws"),
    ],
)
def test_sources(options: dict[str, Any], kind: str) -> None:
    source = token_source(config(options))
    assert source.kind == kind
    assert "canary" not in repr(source)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs tokens: set sasl.oauthbearer.token.provider"),
        ({"sasl.oauthbearer.token.provider": give, **URL}, "cannot both be given"),
        ({"sasl.jaas.config": UNSECURED, **URL}, "cannot both be given"),
        ({"sasl.mechanism": "AWS_MSK_IAM", "sasl.oauthbearer.token.provider": give}, "cannot both be given"),
        (URL, "client.id, or clientId"),
        ({**URL, "sasl.oauthbearer.client.id": "i"}, "client.secret, or clientSecret"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///t", **JAVA_BEARER}, "FileJwtRetriever"),
        ({**URL, **JAVA_BEARER}, "assertion.file, or"),
        ({"sasl.oauthbearer.token.provider": Aiokafkas()}, "coroutine function"),
        ({"sasl.oauthbearer.token.provider": Aiokafkas}, "coroutine function"),
        ({"oauth_cb": Aiokafkas().token}, "coroutine function"),
        ({"sasl.oauthbearer.token.provider": 7}, "callable or have token"),
        ({"sasl.oauthbearer.token.provider": Fails}, "ValueError: no"),
        ({"sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p";', **URL}, "OAuthBearerLogin"),
        ({"sasl.jaas.config": lambda: JAAS, **URL}, "write the placeholder into it"),
        ({"sasl.jaas.config": 'x.IAMLoginModule required awsDebugCreds="true";'}, "awsDebugCreds"),
        ({"sasl.username": "u", "sasl.password": "p", **URL, **CLIENT}, "no effect with sasl.mechanism=OAUTHBEARER"),
        ({"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.provider": give}, "method=oidc needs"),
        ({"sasl.oauthbearer.assertion.claim.exp.seconds": 86401}, "0 to 86400"),
        ({"sasl.login.class": "a.B"}, "Java virtual machine|cannot be found"),
    ],
)
def test_refusals(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        config(options)
    assert "canary" not in str(caught.value)


def test_what_a_provider_gives() -> None:
    def asked(options: dict[str, Any]) -> Any:
        provider = token_source(config(options)).provider
        assert provider is not None
        return provider()

    assert asked({"sasl.oauthbearer.token.provider": give}) == "token"
    assert asked({"sasl.oauthbearer.token.provider": KafkaPythons()}) == ("token", None, None, {"a": "b"})
    assert asked({"sasl.oauthbearer.jwt.retriever.class": Javas}) == "token"
    assert asked({"oauth_cb": lambda text: (text, 9e9), "sasl.oauthbearer.config": "abc"}) == ("abc", 9e9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.oauthbearer.token.provider": give}, "sends the token as it is"),
        ({"sasl.jaas.config": UNSECURED}, "anybody can make such a token"),
    ],
)
def test_what_is_weak_is_said(options: dict[str, Any], words: str) -> None:
    assert any(words in note.text for note in config(options).notes)
