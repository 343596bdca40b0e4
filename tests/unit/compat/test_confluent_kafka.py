"""What the module of confluent-kafka's classes has, and what it says of the rest."""

from __future__ import annotations

import pytest

from forebay.compat import confluent_kafka as module


def test_names_that_are_elsewhere_say_where() -> None:
    with pytest.raises(
        ImportError, match=r"Consumer stays confluent-kafka's own.*from confluent_kafka import Consumer"
    ):
        exec("from forebay.compat.confluent_kafka import Consumer, Producer", {})
    with pytest.raises(ImportError, match=r"AIOProducer is not here: use forebay.AsyncKafkaProducer"):
        exec("from forebay.compat.confluent_kafka import AIOProducer", {})
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from forebay.compat.confluent_kafka import nonsense", {})
    assert not hasattr(module, "nonsense")
