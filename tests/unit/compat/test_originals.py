"""Classes of other clients where they are installed."""

from __future__ import annotations

import collections
import sys

import pytest

from forebay.compat._originals import original


def test_the_class_of_a_module_that_is_there() -> None:
    assert original("collections", "OrderedDict", dict) is collections.OrderedDict


def test_our_own_where_the_module_or_the_name_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "absent_client", None)
    assert original("absent_client", "TopicPartition", dict) is dict
    assert original("collections", "TopicPartition", dict) is dict
