"""What serializers are told."""

from __future__ import annotations

from confluent_kafka import serialization as original

from forebay.compat.confluent_kafka.serialization import MessageField, SerializationContext


def test_a_context_serves_the_originals_serializers() -> None:
    context = SerializationContext("t", MessageField.KEY, [("a", b"b")])
    assert (context.topic, context.field, context.headers) == ("t", original.MessageField.KEY, [("a", b"b")])
    assert original.StringSerializer()("ä", context) == "ä".encode()  # type: ignore[arg-type]
    assert context == SerializationContext("t", "key", [("a", b"b")]) != SerializationContext("t", "value")
    assert repr(context) == "SerializationContext('t', 'key', [('a', b'b')])" and context != 1
    assert {each.value for each in MessageField} == {each.value for each in original.MessageField}
