"""Secrets: hidden, pickled with their value, or a callable that gives them."""

from __future__ import annotations

import pickle

import pytest

from forebay.config import ProducerConfig, Secret
from forebay.config._secret import Called
from forebay.errors import ConfigError


def give() -> str:
    return "canary"


def test_nothing_of_it_is_shown() -> None:
    for secret in (Secret("canary"), Called(give)):
        assert "canary" not in f"{secret!r} {secret}" and secret.reveal() == "canary"
        assert pickle.loads(pickle.dumps(secret)) == secret and hash(secret) == hash(pickle.loads(pickle.dumps(secret)))
    assert Secret("a") != Secret("b") and Called(give) != Secret("canary")


def test_a_callable_in_the_place_of_a_password() -> None:
    config = ProducerConfig(
        bootstrap_servers="h:1", security_protocol="SASL_SSL", sasl_mechanism="PLAIN",
        sasl_username="u", sasl_password=give,
    )  # fmt: skip
    assert config["sasl.password"].deferred and config["sasl.password"].reveal() == "canary"
    assert Called(lambda: Secret("x")).reveal() == "x"  # type: ignore[arg-type, return-value]


def test_what_it_must_not_be() -> None:
    async def wrong() -> str:
        return "canary"

    with pytest.raises(ConfigError, match="coroutine function"):
        ProducerConfig(bootstrap_servers="h:1", sasl_password=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must give a string, it gave int"):
        Called(lambda: 7).reveal()  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", ["sasl.username", "sasl.password", "sasl.jaas.config", "proxy.url"])
def test_what_is_no_text_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Option {name}: it is no text in UTF-8") as caught:
        ProducerConfig({"bootstrap.servers": "h:1", name: "canary\udcff"})
    assert "canary" not in repr(caught.value) and caught.value.__context__ is None
    with pytest.raises(ConfigError, match="it is no text in UTF-8") as caught:
        Called(lambda: "canary\udcff").reveal()
    assert "canary" not in repr(caught.value) and caught.value.__context__ is None
