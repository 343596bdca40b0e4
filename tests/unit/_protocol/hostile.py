"""What a broken or hostile peer may send: checks that every response parser has to pass."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from forebay.errors import ProtocolError

Parse = Callable[[bytes], Any]


def refuses_every_cut(parse: Parse, whole: bytes) -> None:
    """Each proper prefix is an error, never a value that was made up."""
    parse(whole)
    for size in range(len(whole)):
        with pytest.raises(ProtocolError):
            parse(whole[:size])


def parses_or_refuses(parse: Parse, payload: bytes) -> None:
    """Any bytes: a value or ProtocolError, nothing else, and memory in proportion."""
    tracemalloc.start()
    try:
        parse(payload)
    except ProtocolError as error:
        # The traceback's frames are ours, not the parser's memory.
        assert str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 64 * 1024 + 100 * len(payload)


def survives_single_bytes(parse: Parse, whole: bytes) -> None:
    """Every byte of ``whole`` set to the values that lengths and counts are sensitive to."""
    for at in range(len(whole)):
        for value in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            parses_or_refuses(parse, whole[:at] + bytes([value]) + whole[at + 1 :])
