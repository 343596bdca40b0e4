"""``sasl.jaas.config`` as Java reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config._jaas import LoginModule, parse_jaas
from forebay.errors import ConfigError


def plain(module: LoginModule) -> dict[str, str]:
    return {name: value.reveal() for name, value in module.options.items()}


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN} REQUIRED username='a' password='b;c' ;", {"username": "a", "password": "b;c"}),
        (
            f'kafkashaded.{PLAIN} optional username=a-b password="x\\"y\\\\z\\101";',
            {"username": "a-b", "password": 'x"y\\zA'},
        ),
        (
            f"// a remark\n{PLAIN} /* more */ required\n username=a\n password=$b_2;",
            {"username": "a", "password": "$b_2"},
        ),
        (f"{PLAIN} required;", {}),
    ],
)
def test_what_java_takes(text: str, options: dict[str, str]) -> None:
    found = parse_jaas(text)
    assert (found.name, plain(found)) == ("PlainLoginModule", options)
    assert "hush" not in repr(parse_jaas(f'{PLAIN} required password="hush";'))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("com.sun.security.auth.module.JndiLoginModule required;", "not known"),
        (PLAIN, "flag"),
        (f"{PLAIN} username=a;", "flag"),
        (f"{PLAIN} required username=a", "semicolon"),
        (f"{PLAIN} required username;", "no value"),
        (f"{PLAIN} required username=;", "no value"),
        (f"{PLAIN} required username=123;", "no value"),
        (f"{PLAIN} required =;", "name of an option"),
        (f"{PLAIN} required; {PLAIN} required;", "after the semicolon"),
    ],
)
def test_what_java_refuses(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"sasl.jaas.config: .*{why}"):
        parse_jaas(text)


@given(st.text(alphabet="aB.=;\"\\' /*\n\t01é", max_size=80))
def test_any_text_ends_in_an_entry_or_a_refusal(text: str) -> None:
    try:
        parse_jaas(f"{PLAIN} required {text}")
    except ConfigError:
        pass


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("PlainLoginModule required a/ b=c\n=d;", {"a": "d"}),
        ("PlainLoginModule required a/\nb\n=d;", {"a": "d"}),
        ("PlainLoginModule required // a\rb=c;", {"b": "c"}),
        ("PlainLoginModule required a-b=c-d-;", {"a-b": "c-d-"}),
        ("PlainLoginModule required -a=b;", None),
        ("PlainLoginModule required a=-b;", None),
    ],
)
def test_oddities_of_javas_tokenizer(text: str, options: dict[str, str] | None) -> None:
    """``tests/integration/test_jaas.py`` compares with Java itself; these were found there."""
    if options is None:
        with pytest.raises(ConfigError):
            parse_jaas(text)
    else:
        assert plain(parse_jaas(text)) == options
