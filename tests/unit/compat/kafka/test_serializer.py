"""kafka-python's serializers beside the original's own."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import serializer as theirs

from forebay.compat.kafka.serializer import DefaultSerializer, Deserializer, JsonSerializer


@pytest.mark.parametrize("data", [None, b"raw", "text", {"a": [1, "é"]}, [1], 5])
def test_json_is_the_originals(data: Any) -> None:
    if not isinstance(data, bytes):
        written = JsonSerializer().serialize("t", [], data)
        assert written == theirs.JsonSerializer().serialize("t", [], data)
        assert JsonSerializer().deserialize("t", [], written) == data


@pytest.mark.parametrize("data", [None, b"raw", bytearray(b"raw"), "é"])
def test_text_is_the_originals(data: Any) -> None:
    if not isinstance(data, bytearray):
        read = DefaultSerializer("latin-1").deserialize("t", [], data if data is None else b"raw\xe9")
        assert read == (None if data is None else "rawé")
    assert DefaultSerializer("latin-1").serialize("t", [], data) == theirs.DefaultSerializer("latin-1").serialize(
        "t", [], data
    )


class Upper(Deserializer):
    """One of a program's own."""

    def deserialize(self, topic: str, headers: list[tuple[str, bytes]], data: bytes | None) -> Any:
        return None if data is None else data.upper()


@pytest.mark.parametrize("made", [DefaultSerializer, JsonSerializer, Upper])
def test_a_consumer_takes_them_without_a_warning(made: Any) -> None:
    """It warns of what is no Deserializer of its own module."""
    assert isinstance(made(), theirs.Deserializer)
    with pytest.raises(TypeError):
        Deserializer()  # type: ignore[abstract]
