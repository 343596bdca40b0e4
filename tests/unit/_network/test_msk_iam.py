"""Tokens for Amazon MSK, by Amazon's signer with keys that are given: nothing is asked on a network."""

from __future__ import annotations

import base64
from urllib.parse import parse_qs, urlsplit

import pytest

from forebay._network.msk_iam import MskIam, region_of
from forebay._network.tokens import Token
from forebay.errors import NetworkError

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_EC2_METADATA_DISABLED": "true"}
WALL_2020 = 1_577_836_800_000


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("keys")
def test_the_token_is_a_signed_url_of_the_region() -> None:
    token = MskIam("eu-west-1").fetch(lambda: WALL_2020)
    assert isinstance(token, Token) and token.expires_ms is not None
    url = urlsplit(base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode())
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert url.netloc == "kafka.eu-west-1.amazonaws.com"
    assert asked["Action"] == "kafka-cluster:Connect" and asked["X-Amz-Expires"] == "900"
    assert (
        asked["X-Amz-Credential"].startswith("AKIDEXAMPLE/")
        and "/eu-west-1/kafka-cluster/" in asked["X-Amz-Credential"]
    )
    assert "canary" not in url.query


def test_no_credentials_may_be_there_later(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{tmp_path}/none")
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/none")
    with pytest.raises(NetworkError, match="the AWS signer"):
        MskIam("eu-west-1").fetch(lambda: WALL_2020)
    with pytest.raises(NetworkError, match="the AWS signer"):
        MskIam("eu-west-1", profile="nobody").fetch(lambda: WALL_2020)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("b-1.name.abc.c2.kafka.us-east-1.amazonaws.com", "us-east-1"),
        ("boot-x.c1.kafka-serverless.ap-southeast-2.amazonaws.com.", "ap-southeast-2"),
        ("b-1.n.a.c3.kafka.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("b-1.n.a.c3.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.example", None),
        ("kafka.us-east-1.amazonaws.com.example", None),
    ],
)
def test_the_region_in_a_brokers_name(host: str, region: str | None) -> None:
    assert region_of(["localhost", host]) == region
