"""How a dry run shows bytes; ``tests/spark/test_formats.py`` has whole ones."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.spark.jobs.preview import MOST_SHOWN, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("ä", "ä"),
        (b'{"a": 1}', '{"a": 1}'),
        (b"", ""),
        (b"\0\0\1", "00 00 01 (3 bytes)"),
        (b"\xff", "ff (1 bytes)"),
        (5, "5"),
    ],
)
def test_text_is_text_and_other_bytes_are_hexadecimal(value: Any, text: str) -> None:
    assert shown(value) == text


def test_long_values_are_cut() -> None:
    assert shown("a" * 2000) == "a" * MOST_SHOWN + "... (2000 characters)"
    assert shown(b"\0" * 2000) == " ".join(["00"] * 64) + " ... (2000 bytes)"
