"""Errors of serializers: their classes, what they hold, and that they pickle."""

from __future__ import annotations

import pickle

import confluent_kafka.error
import pytest

from forebay.compat.confluent_kafka import error


@pytest.mark.parametrize("name", ["KeySerializationError", "ValueSerializationError"])
def test_errors_of_serializers_are_as_the_originals(name: str) -> None:
    cause = ValueError("mine")
    ours, theirs = getattr(error, name)(cause), getattr(confluent_kafka.error, name)(cause)
    for each in (ours, theirs):
        assert (each.exception, each.kafka_message, str(each.args[0].str())) == (cause, None, "mine")
    assert (ours.code, ours.name) == (theirs.code, theirs.name)
    assert [kind.__name__ for kind in type(ours).__mro__ if kind.__name__ in error.__all__] == [
        name, "ProduceError", "SerializationError", "KafkaException",
    ]  # fmt: skip
    again = pickle.loads(pickle.dumps(ours))
    assert type(again) is type(ours) and repr(again.exception) == repr(cause) and again.args[0] == ours.args[0]
