"""What a message is made of, and where it goes."""

from __future__ import annotations

import pytest

from forebay.compat._librdkafka_path import Message


def test_a_message_is_made_by_produce_alone() -> None:
    with pytest.raises(TypeError, match=r"Producer.produce\(\) alone"):
        Message()
