"""What the module of confluent-kafka's classes has, and what it says of the rest."""

from __future__ import annotations

import confluent_kafka
import pytest

from forebay.compat import confluent_kafka as module

STAYS = sorted(set(confluent_kafka.__all__) - set(module.__all__) - {"aio", "kafkatest", "libversion", "version"})


@pytest.mark.parametrize("name", STAYS)
def test_names_that_stay_the_originals_say_so(name: str) -> None:
    assert not hasattr(module, name)
    with pytest.raises(AttributeError, match=f"{name} stays confluent-kafka's own.*from confluent_kafka import {name}"):
        getattr(module, name)
    with pytest.raises(ImportError, match=f"{name} stays confluent-kafka's own.*from confluent_kafka import {name}"):
        exec(f"from forebay.compat.confluent_kafka import Producer, {name}", {})


def test_names_that_are_not_here() -> None:
    for name in ("AIOProducer", "libversion", "version", "ThrottleEvent"):
        with pytest.raises(ImportError, match=f"{name} is not here"):
            exec(f"from forebay.compat.confluent_kafka import {name}", {})
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec("from forebay.compat.confluent_kafka import nonsense", {})
    assert not hasattr(module, "nonsense")


def test_constants_are_the_originals() -> None:
    for name in module.__all__:
        if isinstance(getattr(module, name), int):
            assert getattr(module, name) == getattr(confluent_kafka, name)
