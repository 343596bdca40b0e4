"""``proxy.url`` as users write it; its password is in no message."""

from __future__ import annotations

import pickle

import pytest

from forebay.config import ProducerConfig, Secret
from forebay.config._proxy import ProxyUrl, parse_proxy
from forebay.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("socks5://p:1080", ProxyUrl("socks5", "p", 1080, None, None)),
        ("SOCKS5H://p:1080/", ProxyUrl("socks5", "p", 1080, None, None)),
        ("http://[::1]:8080", ProxyUrl("http", "::1", 8080, None, None)),
        ("http://ann:se%40cr%2Fet@p.example:80", ProxyUrl("http", "p.example", 80, "ann", Secret("se@cr/et"))),
    ],
)
def test_proxy(url: str, wanted: ProxyUrl) -> None:
    assert parse_proxy(Secret(url)) == wanted


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("p:1080", "none of socks5, socks5h, http"),
        ("https://ann:canary@p:1", "'https' is none of"),
        ("socks5://ann:canary@p", "port is missing"),
        ("socks5://ann:canary@:1080", "host is missing"),
        ("socks5://ann:canary@p:99999", "no URL"),
        ("socks5://ann:canary@[p:1", "no URL"),
        ("socks5://ann:canary@p:1/x", "after the port"),
        ("socks5://ann:can/ary@p:1", "canary?"),
        ("socks5://ann@p:1", "empty"),
        ("socks5://:canary@p:1", "empty"),
        ("socks5://ann:" + "canary" * 50 + "@p:1", "at most 255"),
        ("http://a%3An:canary@p:1", "colon"),
    ],
)
def test_a_wrong_one(url: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig(bootstrap_servers="h:1", proxy_url=url)
    text = str(caught.value)
    assert "proxy.url" in text and "canary" not in text and caught.value.__cause__ is None
    assert reason == "canary?" or reason in text


def test_it_shows_itself_nowhere() -> None:
    config = ProducerConfig({"bootstrap.servers": "h:1", "socks5_proxy": "socks5://ann:canary@p:1"})
    assert "canary" not in repr(config) + config.describe() + repr(parse_proxy(config["proxy.url"]))
    assert pickle.loads(pickle.dumps(config))["proxy.url"] == Secret("socks5://ann:canary@p:1")


def test_names_are_looked_up_there() -> None:
    with pytest.raises(ConfigError, match=r"client\.dns\.lookup"):
        ProducerConfig(
            {
                "bootstrap.servers": "h:1",
                "proxy.url": "http://p:1",
                "client.dns.lookup": "resolve_canonical_bootstrap_servers_only",
            }
        )


def test_a_password_that_is_looked_up_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOREBAY_PROXY", "socks5://ann:canary@p:1")
    config = ProducerConfig(bootstrap_servers="h:1", proxy_url="${env:FOREBAY_PROXY}", config_providers="env")
    found = parse_proxy(config["proxy.url"])
    assert found.password is not None and found.password.reveal() == "canary"
    assert "canary" not in repr(config) + repr(found)
    monkeypatch.setenv("FOREBAY_PROXY", "socks5://ann:canary-2@p:1")
    assert found.password.reveal() == "canary-2"
    for url, why in (
        ("socks5://p:1", "another user"),
        ("socks5://bob:canary@p:1", "another user"),
        ("x", "none of"),
    ):
        monkeypatch.setenv("FOREBAY_PROXY", url)
        with pytest.raises(ConfigError, match=why) as caught:
            found.password.reveal()
        assert "canary" not in str(caught.value) and caught.value.__cause__ is None
    monkeypatch.delenv("FOREBAY_PROXY")
    with pytest.raises(ConfigError, match="no such environment variable"):
        found.password.reveal()
