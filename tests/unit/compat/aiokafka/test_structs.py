"""Values with aiokafka's fields in its order, and of its consumers' classes where it is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from aiokafka import structs as original

from forebay.compat import aiokafka as ours
from forebay.compat.aiokafka import _own_structs, structs
from forebay.model import TopicPartition


def test_the_fields_are_those_of_the_original() -> None:
    for name in structs.__all__:
        assert getattr(structs, name)._fields == getattr(original, name)._fields
    for name in _own_structs.__all__:
        assert getattr(_own_structs, name)._fields == getattr(original, name)._fields


def test_partitions_are_keys_for_both() -> None:
    mine = {_own_structs.TopicPartition("t", 1): "found"}
    assert mine[original.TopicPartition("t", 1)] == "found"
    assert mine[TopicPartition("t", 1)] == "found"  # type: ignore[index]


def test_a_consumer_takes_them() -> None:
    """It asks whether they are of the very classes."""
    for name in _own_structs.__all__:
        assert getattr(structs, name) is getattr(ours, name) is getattr(original, name)
    assert not hasattr(structs, "nonsense") and not hasattr(ours, "nonsense")


def test_without_aiokafka_they_are_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _own_structs.__all__:
        monkeypatch.setitem(sys.modules, "aiokafka.structs", None)
        assert _own_structs.shared(name) is getattr(_own_structs, name)


def test_to_send_imports_no_aiokafka() -> None:
    code = "import sys, forebay.compat.aiokafka as k; k.AIOKafkaProducer; assert 'aiokafka' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", ["AIOKafkaConsumer", "ConsumerRecord"])
def test_what_stays_aiokafkas_is_named_where_it_is(name: str) -> None:
    with pytest.raises(ImportError, match=f"write `from aiokafka import {name}`"):
        getattr(ours, name)
