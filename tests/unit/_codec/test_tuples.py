"""Named tuples made without their constructor are like any other."""

from __future__ import annotations

import copy
import pickle

from forebay._codec import _tuples
from forebay.model import RecordMetadata
from tests.unit._accumulator.shelf import Shelf


def test_the_interpreted_twin() -> None:
    begun = _tuples.begin_tuple(RecordMetadata, 6)
    for at, item in enumerate(("t", 1, 2, 3, 4, 5)):
        _tuples.put_item(begun, at, item)
    assert _tuples.finished_tuple(RecordMetadata, begun) == RecordMetadata("t", 1, 2, 3, 4, 5)


def test_a_delivery_s_metadata_is_like_any_other() -> None:
    shelf = Shelf()
    future = shelf.append(0, timestamp=77)
    shelf.finish(shelf.drain(0)[0], offset=40)
    metadata = future.metadata()
    assert type(metadata) is RecordMetadata and metadata == RecordMetadata("test", 0, 40, 77, 3, 5)
    assert metadata._replace(offset=41).offset == 41 and str(metadata) == "test-0@40"
    assert pickle.loads(pickle.dumps(metadata)) == copy.copy(metadata) == metadata
    assert hash(metadata) == hash(tuple(metadata))
