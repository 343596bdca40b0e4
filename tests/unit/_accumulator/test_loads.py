"""_accumulator.loads: how often the loads of many partitions are looked at; what they do is in test_schedule."""

from __future__ import annotations

from tests.unit._accumulator.shelf import Shelf


def weighed(shelf: Shelf) -> bool:
    """Grows a queue, looks, and tells whether the loads were taken."""
    shelf.append(0, 20)
    shelf.ready()
    return not shelf.topic.loaded


def test_few_partitions_are_weighed_at_every_look() -> None:
    shelf = Shelf(batch_size=100, adaptive=True, leaders=(0,) * 60)
    assert weighed(shelf) and weighed(shelf)
    assert shelf.topic.weighted


def test_many_are_weighed_in_proportion_to_their_number() -> None:
    shelf = Shelf(batch_size=100, adaptive=True, leaders=(0,) * 400)
    assert weighed(shelf)
    assert not weighed(shelf)
    shelf.clock.advance(1.9)
    assert not weighed(shelf)
    shelf.clock.advance(0.1)
    assert weighed(shelf)
    assert not weighed(shelf)
