"""Which text the wire carries, and which names a topic can have."""

from __future__ import annotations

import string

import pytest

from forebay._protocol.primitives import Writer
from forebay.errors import IllegalArgumentError, InvalidTopicError
from forebay.model._wire import (
    MAX_TEXT,
    MAX_TOPIC,
    check_text,
    check_topic,
    is_utf8,
    shown,
    text_fault,
    topic_fault,
)
from tests.fakes.names import ALLOWED_TOPICS, FORBIDDEN_TOPICS, LONE_SURROGATES, LONGEST, TOO_LONG


@pytest.mark.parametrize("text", ["", "süß 🙂", "\0", *LONGEST])
def test_text_that_can_be_sent(text: str) -> None:
    assert text_fault(text) is None and is_utf8(text)
    check_text("name", text)
    for flexible in (False, True):
        Writer(flexible=flexible).string(text)  # the encoder agrees


@pytest.mark.parametrize("text", [*LONE_SURROGATES, *TOO_LONG], ids=ascii)
def test_text_that_cannot_be_sent(text: str) -> None:
    with pytest.raises(IllegalArgumentError, match=r"^group\.id '.*' cannot be sent: it ") as caught:
        check_text("group.id", text)
    assert len(str(caught.value).encode()) < 400, "it can be printed, and is not as long as the text"
    for flexible in (False, True):
        with pytest.raises(IllegalArgumentError):
            Writer(flexible=flexible).string(text)


def test_longer_text_has_its_own_limit() -> None:
    assert text_fault(TOO_LONG[0], None) is None
    assert text_fault("abc", 2) == "it has 3 bytes in UTF-8, at most 2 are allowed"
    assert "lone surrogate" in str(text_fault("\ud800", None))
    assert not is_utf8("\ud800") and is_utf8(TOO_LONG[0])
    assert MAX_TEXT == 2**15 - 1


@pytest.mark.parametrize("name", ALLOWED_TOPICS)
def test_names_of_topics(name: str) -> None:
    assert topic_fault(name) is None
    check_topic(name)


@pytest.mark.parametrize("name", FORBIDDEN_TOPICS, ids=lambda name: ascii(name)[:20])
def test_names_that_no_topic_has(name: str) -> None:
    with pytest.raises(InvalidTopicError, match="^No topic can be named '.*': it ") as caught:
        check_topic(name)
    assert len(str(caught.value).encode()) < 400
    assert f"'{shown(name)}'" in str(caught.value)


def test_each_character_is_judged() -> None:
    allowed = {sign for sign in map(chr, range(0x3000)) if topic_fault(f"a{sign}") is None}
    assert allowed == set(string.ascii_letters + string.digits + "._-")
    assert topic_fault("a" * MAX_TOPIC) is None and topic_fault("a" * (MAX_TOPIC + 1)) is not None
    assert topic_fault("a b") == "it has ' ' in it, allowed are ASCII letters, digits, '.', '_' and '-'"
