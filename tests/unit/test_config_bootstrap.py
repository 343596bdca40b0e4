"""bootstrap.servers as users write them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.config import HostPort, ProducerConfig
from forebay.config._bootstrap import parse_bootstrap
from forebay.config._secret import shown_value
from forebay.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b:2,c:3"], [("a", 1), ("b", 2), ("c", 3)]),
        (["a:1", "a:1"], [("a", 1)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[fe80::1%eth0]:9092", [("fe80::1%eth0", 9092)]),
        ("127.0.0.1:65535", [("127.0.0.1", 65535)]),
        ("PLAINTEXT://a_b.c-d:1", [("a_b.c-d", 1)]),
        ("SASL_SSL://[::1]:1", [("::1", 1)]),
    ],
)
def test_bootstrap(given: Any, wanted: list[tuple[str, int]]) -> None:
    assert list(ProducerConfig(bootstrap_servers=given).bootstrap) == wanted


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("127.0.0.1", "port is missing"),
        ("a:", "port '' is not a number"),
        ("a:70000", "'70000' is not a number from 1 to 65535"),
        ("a:0", "1 to 65535"),
        ("a:x", "'x'"),
        ("a:-1", "'-1'"),
        ("a:²", "from 1 to 65535"),
        (":9092", "host is missing"),
        ("::1:9092", "in brackets"),
        ("[::1]", "port is missing"),
        ("[a]:1", "brackets are for IPv6"),
        ("http://a:1", "http:// is not one of"),
        ("a b:1", "has spaces"),
        ("a:1/path", "'1/path'"),
    ],
)
def test_wrong_bootstrap(entry: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig(bootstrap_servers=["fine:1", entry])
    assert repr(entry) in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("values", [{}, {"bootstrap.servers": ""}, {"bootstrap.servers": []}])
def test_no_bootstrap_server(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is empty"):
        ProducerConfig(values)
    with pytest.raises(ConfigError, match="not a string"):
        parse_bootstrap([5])


@given(st.sampled_from(["a", "x.y-z", "10.0.0.1", "::1", "fe80::2%lo"]), st.integers(1, 65535))
def test_host_port_text_round_trips(host: str, port: int) -> None:
    assert parse_bootstrap([str(HostPort(host, port))]) == (HostPort(host, port),)


@given(st.text(max_size=20))
def test_any_bootstrap_text_is_parsed_or_refused_by_name(text: str) -> None:
    try:
        [found] = parse_bootstrap([text])
    except ConfigError as error:
        assert shown_value(text) in str(error)  # of several lines, which a secret may have, the length alone
    else:
        assert found.host
        assert 1 <= found.port <= 65535


def test_a_name_that_is_not_ascii_needs_no_import_later() -> None:
    """The sender's thread looks it up, and must import nothing."""
    program = (
        "import sys; from forebay.config._bootstrap import parse_bootstrap; parse_bootstrap(['b:1'])\n"
        "before = 'encodings.idna' in sys.modules; parse_bootstrap(['b\u00fccher.example:1'])\n"
        "print(before, 'encodings.idna' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False True\n"
