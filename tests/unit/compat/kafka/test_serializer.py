"""kafka-python's serializers beside the original's own."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import serializer as theirs

from forebay.compat.kafka.serializer import DefaultSerializer, JsonSerializer


@pytest.mark.parametrize("data", [None, b"raw", "text", {"a": [1, "é"]}, [1], 5])
def test_json_is_the_originals(data: Any) -> None:
    if not isinstance(data, bytes):
        assert JsonSerializer().serialize("t", [], data) == theirs.JsonSerializer().serialize("t", [], data)


@pytest.mark.parametrize("data", [None, b"raw", bytearray(b"raw"), "é"])
def test_text_is_the_originals(data: Any) -> None:
    assert DefaultSerializer("latin-1").serialize("t", [], data) == theirs.DefaultSerializer("latin-1").serialize(
        "t", [], data
    )
