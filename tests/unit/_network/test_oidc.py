"""Requests to an identity provider, what its answers mean, and how often it is asked; without I/O."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._network import oidc
from forebay._network.oidc import Endpoint, TokenRequest, check_url, fetch, read_answer, read_text, read_token_file
from forebay.errors import ConfigError, NetworkError, SaslAuthenticationError
from forebay.testing import ManualClock

URL = "https://login.example/token"
REQUEST = oidc.with_secret("id", "canary", "a b", False)


def fields(request: TokenRequest) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.body.decode(), strict_parsing=True).items()}


def basic(request: TokenRequest) -> str:
    return base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()


def test_a_clients_secret_goes_into_the_header() -> None:
    assert basic(REQUEST) == "id:canary"
    assert fields(REQUEST) == {"grant_type": "client_credentials", "scope": "a b"}
    assert "canary" not in repr(REQUEST) and b"canary" not in REQUEST.body
    encoded = oidc.with_secret("i d", "c&ä", None, True)
    assert basic(encoded) == "i+d:c%26%C3%A4" and fields(encoded) == {"grant_type": "client_credentials"}


def test_assertions_go_into_the_body() -> None:
    assert fields(oidc.with_assertion("a.b.c", "id", " s ")) == {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": "a.b.c",
        "grant_type": "client_credentials",
        "client_id": "id",
        "scope": "s",
    }
    assert "client_id" not in fields(oidc.with_assertion("a.b.c", None, None))
    assert fields(oidc.jwt_bearer("a.b.c", "s")) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "a.b.c",
        "scope": "s",
    }


@pytest.mark.parametrize(
    ("body", "token"),
    [
        ({"access_token": " t "}, "t"),
        ({"id_token": "i"}, "i"),
        ({"access_token": "", "id_token": "i"}, "i"),
        ({"access_token": 7, "id_token": "i", "expires_in": -5}, "i"),
        ({"access_token": "t", "expires_in": "soon"}, "t"),
    ],
)
def test_tokens_in_answers(body: dict[str, Any], token: str) -> None:
    assert read_answer(200, json.dumps(body).encode(), REQUEST, URL) == token


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b"null", b"{}", b'{"access_token": null}', b"\xff", b"[" * 100_000, b" " * 1048577],
    ids=lambda body: repr(body[:12]),
)
def test_answers_without_a_token_are_final(body: bytes) -> None:
    with pytest.raises(SaslAuthenticationError, match="no token from https://login.example/token"):
        read_answer(200, body, REQUEST, URL)


def test_codes_that_are_final_are_javas() -> None:
    java = {400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505}
    for status in range(400, 600):
        kind = SaslAuthenticationError if status in java else NetworkError
        with pytest.raises((SaslAuthenticationError, NetworkError)) as caught:
            read_answer(status, b"", REQUEST, URL)
        assert type(caught.value) is kind, status


def test_a_redirect_is_not_followed() -> None:
    with pytest.raises(SaslAuthenticationError, match="HTTP 302 leads elsewhere, which is not followed"):
        read_answer(302, b"", REQUEST, URL)


def test_an_errors_body_is_cut_and_holds_no_secret() -> None:
    coded = REQUEST.headers["Authorization"].removeprefix("Basic ")
    body = f'{{"error": "no",\n "said": "canary {coded}"\x1b}}' + "x" * 10_000
    with pytest.raises(SaslAuthenticationError) as caught:
        read_answer(401, body.encode(), REQUEST, URL)
    text = str(caught.value)
    assert "canary" not in text and coded not in text and "[hidden]" in text and len(text) < 300 and "\x1b" not in text


def test_a_secret_far_behind_in_an_answer_is_hidden_whole() -> None:
    request = oidc.with_secret("id", "canary" * 20, None, False)
    with pytest.raises(SaslAuthenticationError) as caught:
        read_answer(401, b" " * 1550 + b"canary" * 20, request, URL)
    assert "canary" not in str(caught.value) and "[hidden]" in str(caught.value)


@given(st.integers(100, 599), st.binary(max_size=300))
def test_any_answer_is_a_token_or_an_error(status: int, body: bytes) -> None:
    try:
        assert read_answer(status, body, REQUEST, URL)
    except (SaslAuthenticationError, NetworkError):
        pass


# -- asking again


class Asked:
    """An endpoint of answers, one after the other; a clock that pauses and tries move."""

    def __init__(self, answers: list[Any], takes_ms: float = 0) -> None:
        self.clock = ManualClock()
        self.answers = answers
        self.takes_ms = takes_ms
        self.pauses: list[float] = []

    def post(self, endpoint: Endpoint, request: TokenRequest, now: Callable[[], float]) -> tuple[int, bytes]:
        self.clock.advance(self.takes_ms)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def fetch(self) -> str:
        def pause(ms: float) -> None:
            self.pauses.append(ms)
            self.clock.advance(ms)

        return fetch(Endpoint(URL), REQUEST, self.clock.now, pause, self.post)


def test_it_is_asked_again_after_doubling_pauses() -> None:
    asked = Asked([NetworkError("reset"), (503, b""), (500, b""), (200, b'{"access_token": "t"}')])
    assert asked.fetch() == "t" and asked.pauses == [100, 200, 400]


def test_it_is_not_asked_again_after_a_refusal() -> None:
    asked = Asked([(401, b"")])
    with pytest.raises(SaslAuthenticationError):
        asked.fetch()
    assert asked.pauses == []


@pytest.mark.parametrize("takes_ms", [0.0, 4000.0, 60_000.0])
def test_all_tries_together_have_a_limit(takes_ms: float) -> None:
    asked = Asked([(503, b"busy")], takes_ms)
    begun = asked.clock.now()
    with pytest.raises(NetworkError, match="HTTP 503 busy"):
        asked.fetch()
    assert asked.clock.now() - begun <= 10_000 + takes_ms
    assert sum(asked.pauses) <= 10_000


# -- URLs and files


@pytest.mark.parametrize(
    ("url", "scheme"),
    [(URL, "https"), ("http://[::1]:8080/t", "http"), ("file:///run/token", "file"), ("file:/run/token", "file")],
)
def test_urls(url: str, scheme: str) -> None:
    assert check_url(url) == scheme


@pytest.mark.parametrize(
    "url",
    [
        "login.example/token",
        "ftp://x/y",
        "https:///t",
        "https://h:0/",
        "https://h:99999/",
        "https://u:p@h/",
        "file://h/x",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="token.endpoint.url"):
        check_url(url)


def test_which_hosts_are_this_machine() -> None:
    assert oidc.is_loopback("http://127.0.0.1:1/") and oidc.is_loopback("http://[::1]/")
    assert not oidc.is_loopback("http://login.example/")


def test_a_token_in_a_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    path.write_text("one\n")
    url = f"file://{str(path).replace(' ', '%20')}"
    assert read_token_file(url) == "one"
    path.write_text("two")
    assert read_token_file(url) == "two"


def test_files_that_hold_no_token(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "large").write_bytes(b"x" * 1048577)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, why in (
        ("none", "No such file"),
        ("", "Is a directory"),
        ("fifo", "is no file"),
        ("empty", "is empty"),
        ("binary", "is no text"),
        ("large", "more than"),
        ("loop", "symbolic links"),
    ):
        with pytest.raises(NetworkError, match=why) as caught:
            read_text(str(tmp_path / name), "the.option")
        assert "the.option" in str(caught.value)
