"""After a lack of memory in the middle of a turn everything without an outcome is looked at again."""

from __future__ import annotations

from tests.unit._accumulator.shelf import Shelf


def rebuilt(shelf: Shelf) -> None:
    shelf.accumulator.rebuild(shelf.now, None)


def test_what_was_drained_and_not_sent_waits_again_in_its_order() -> None:
    shelf = Shelf(batch_size=61 + 3 * 15)
    for _ in range(7):
        shelf.append(0)
    first, second = shelf.drain(0)[0], shelf.drain(0)[0]
    rebuilt(shelf)
    assert shelf.batches(0)[:2] == [first, second] and len(shelf.batches(0)) == 3
    shelf.clock.advance(10_000)
    assert shelf.ready().nodes == [0]
    assert shelf.drain(0) == [first]


def test_a_queue_that_no_list_knows_of_is_sent() -> None:
    shelf = Shelf()
    shelf.append(0)
    shelf.append(2)
    shelf.ready()
    shelf.schedule.nodes.clear()
    shelf.schedule.watched.clear()
    assert shelf.ready().nodes == []
    rebuilt(shelf)
    assert sorted(shelf.ready().nodes) == [0, 1]
    assert len(shelf.drain(0)) == 1 and len(shelf.drain(1)) == 1
    assert shelf.drain(0) == []


def test_what_lingers_goes_on_to_linger_and_stands_in_its_line_once() -> None:
    shelf = Shelf(linger=10)
    shelf.append(0)
    shelf.ready()
    rebuilt(shelf)
    rebuilt(shelf)
    found = shelf.ready()
    assert (found.nodes, found.next_check, shelf.schedule.watched) == ([], 10, [])
    assert [list(line).count(shelf.queue(0)) for line in shelf.schedule.nodes.values()] == [1, 0]
    shelf.clock.advance(10)
    assert shelf.ready().nodes == [0]
    assert len(shelf.drain(0)) == 1


def test_what_is_torn_is_rebuilt_once() -> None:
    shelf = Shelf()
    shelf.schedule.torn = True
    rebuilt(shelf)
    assert not shelf.schedule.torn and shelf.ready().nodes == []


def test_a_queue_whose_batches_are_all_in_flight_is_looked_at_for_its_next_one() -> None:
    shelf = Shelf()
    shelf.append(0)
    shelf.ready()
    (batch,) = shelf.drain(0)
    batch.in_flight = True
    rebuilt(shelf)
    shelf.append(0)
    assert shelf.ready().nodes == [0]
