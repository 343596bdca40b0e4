"""The names of each client are those that it has itself."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import kafka.errors
import pytest
from aiokafka import errors as aiokafka_errors

from forebay import errors
from forebay.compat._error_names import NAMES, Names
from forebay.compat.aiokafka import errors as of_aiokafka
from forebay.compat.confluent_kafka import KafkaError
from forebay.compat.kafka import errors as of_kafka


@pytest.mark.parametrize("code", NAMES)
def test_a_row_has_the_names_of_the_originals(code: int) -> None:
    names = NAMES[code]
    assert names != Names()
    if names.aiokafka:
        theirs: Any = getattr(aiokafka_errors, names.aiokafka)
        assert theirs.errno == code
        assert getattr(of_aiokafka, names.aiokafka).errno == code
    if names.kafka_python:
        assert getattr(kafka.errors, names.kafka_python).errno == code
        assert getattr(of_kafka, names.kafka_python).errno == code
    if names.librdkafka:
        assert confluent_kafka.KafkaError(code).name() == names.librdkafka == KafkaError(code).name()


@pytest.mark.parametrize("code", NAMES)
def test_no_row_says_what_is_so_anyway(code: int) -> None:
    kind = errors.for_code(code)
    assert kind is not None
    assert NAMES[code].kafka_python != kind.__name__
    assert NAMES[code].librdkafka != kind.name
