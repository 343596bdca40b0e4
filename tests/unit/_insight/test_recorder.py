"""_insight.recorder: a trace is written beside the producer, ends by itself, and never fails a send."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest

from forebay._insight import recorder as module
from forebay._insight.recorder import Recorder, join_all, record, record_as_told
from forebay._insight.trace_file import read_blocks, read_head
from forebay.errors import IllegalArgumentError, IllegalStateError
from tests.fakes.answers import hold
from tests.fakes.world import World
from tests.support.pace import HANG_S


def recorder_of(world: World, path: Path, *, seconds: float = 60, share: float = 1.0) -> Recorder:
    made = Recorder(world.parts, str(path), seconds=seconds, share=share)
    made.begin()
    return made


def read(path: Path) -> tuple[dict[str, Any], list[Any]]:
    with path.open("rb") as file:
        head = read_head(file)
        return head, list(read_blocks(file, head["blocks"]))


def test_the_file_says_what_came_and_how_it_ended(tmp_path: Path) -> None:
    world = World(nodes=2, topics={"test": 2}, linger_ms=5, sasl_mechanism="PLAIN")
    recorder = recorder_of(world, tmp_path / "a.trace")
    for number in range(3):
        world.producer.send_nowait("test", b"v" * 10 * number, key=b"k" * number or None, partition=0)
        world.advance(1)
    world.run(20)
    recorder.look()
    world.advance(1000)
    recorder.finish()
    head, (block,) = read(tmp_path / "a.trace")
    assert head["settings"]["linger.ms"] == 5 and "sasl.mechanism" not in head["settings"]
    assert "bootstrap.servers" not in head["settings"]
    assert (head["topics"], head["leaders"], head["nodes"]) == (["test"], {"test": [0, 1]}, [0, 1])
    assert (head["records"], head["kept"], head["batches"], head["share"]) == (3, 3, 1, 1)
    assert head["left_out"] == {"batches": 0, "records": 0} and head["failure"] is None
    assert head["metrics"]["end"]["record-send-total"] - head["metrics"]["begin"]["record-send-total"] == 3
    assert head["seconds"] == pytest.approx(1.023, abs=0.02)
    assert list(block.records["value"]) == [0, 10, 20] and list(block.records["key"]) == [-1, 1, 2]
    assert list(block.records["time"]) == [0, 1000, 1000]
    assert list(block.batches["created"]) == [0] and list(block.batches["outcome"]) == [1]
    assert world.accumulator.closer.watch is None
    assert [path.name for path in tmp_path.iterdir()] == ["a.trace"]


def test_after_the_time_only_outcomes_are_waited_for(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_of(world, tmp_path / "a.trace", seconds=1)
    hold(world)
    world.send()
    world.turn()
    world.advance(1001)
    recorder.look()
    assert recorder._watch.is_over and recorder.is_open()
    world.advance(6000)
    assert not recorder.is_open()
    recorder.finish()
    head, (block,) = read(tmp_path / "a.trace")
    assert head["seconds"] == 1.0
    assert (list(block.batches["outcome"]), list(block.batches["answered"])) == ([0], [0])


def test_a_wait_for_memory_is_noted_once_it_is_over(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_of(world, tmp_path / "a.trace")
    world.advance(500)
    recorder.look()
    world.parts.metrics.buffer_wait_ns.record(200e6)
    recorder.look()
    world.advance(100)
    world.parts.metrics.buffer_wait_ns.record(900e6)  # of several threads at once
    recorder.look()
    recorder.finish()
    assert read(tmp_path / "a.trace")[0]["holds"] == [[300_000, 500_000], [500_000, 600_000]]


def test_its_own_late_wake_ups_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They tell how often, and for how long, the machine let nothing of the producer run."""
    monkeypatch.setattr(module, "MOST_STALLS", 2)
    world = World()
    recorder = recorder_of(world, tmp_path / "a.trace")
    for late in (0.0, 0.25, 7.0, -30.0, 12.0, 9.0):
        due = world.clock.now() + 50
        world.advance(50 + late)
        recorder.note_stall(due)
    recorder.finish()
    assert read(tmp_path / "a.trace")[0]["stalls"] == {"looks": 6, "long": [[150.25, 7.0], [227.25, 12.0]]}


def test_many_records_make_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_SIZE", 1)
    world = World()
    recorder = recorder_of(world, tmp_path / "a.trace")
    room = recorder._watch.room
    for _ in range(5):
        world.send(partition=0)
        world.send(partition=1)
        world.settle()
        recorder.look()
    assert recorder._counts["blocks"] == 5
    recorder.finish()
    head, blocks = read(tmp_path / "a.trace")
    assert sum(len(block.records["time"]) for block in blocks) == head["records"] == 10
    assert recorder._watch.room == room


def test_one_at_a_time(tmp_path: Path) -> None:
    world = World()
    recorder = recorder_of(world, tmp_path / "a.trace")
    with pytest.raises(IllegalStateError, match="being recorded already"):
        recorder_of(world, tmp_path / "b.trace")
    recorder.finish()
    recorder_of(world, tmp_path / "b.trace").finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.trace", "b.trace"]


@pytest.mark.parametrize(
    ("seconds", "share", "said"),
    [
        (0, 1.0, "seconds is 0"),
        (8 * 86_400, 1.0, "at most a week"),
        (1, 0.0, "share is 0.0"),
        (1, 1.1, "share is 1.1"),
        (1, "0.5", "share is '0.5'"),
        (1, True, "share is True"),
        (1, float("nan"), "share is nan"),
    ],
)
def test_values_that_cannot_be_are_refused(tmp_path: Path, seconds: float, share: Any, said: str) -> None:
    with pytest.raises(IllegalArgumentError, match=said):
        record(World().parts, tmp_path / "a.trace", seconds=seconds, share=share)


def test_a_place_without_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        record(World().parts, tmp_path / "none" / "a.trace", seconds=1)


def test_the_thread_writes_the_file_when_the_producer_has_ended(tmp_path: Path) -> None:
    world = World()
    recorder = record(world.parts, tmp_path / "a.trace", seconds=3600)
    world.send()
    world.settle()
    world.parts.thread.finished = True
    assert recorder.ended.wait(1000 * HANG_S)
    assert read(tmp_path / "a.trace")[0]["records"] == 1


def test_what_cannot_be_written_is_logged_and_the_producer_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    recorder = recorder_of(world, tmp_path / "a.trace", share=0.5)
    (tmp_path / "a.trace").mkdir()
    recorder.stop()
    with caplog.at_level(logging.WARNING, "forebay.producer"):
        recorder.run()
    assert "could not be written" in caplog.text and recorder.ended.is_set()
    assert world.accumulator.closer.watch is None
    assert [path.name for path in tmp_path.iterdir()] == ["a.trace"]
    world.send()
    world.settle()
    assert world.values() == [b"v"]


def test_the_environment_names_a_file_and_a_time(tmp_path: Path) -> None:
    world = World()
    recorder = record_as_told(world.parts, f"{tmp_path / 'a.trace'}:30", "")
    assert recorder is not None and recorder.path == str(tmp_path / "a.trace")
    assert recorder._end - recorder._begun == 30_000
    assert join_all(1000 * HANG_S)
    assert read(tmp_path / "a.trace")[0]["records"] == 0


def test_in_a_folder_each_producer_has_its_own_file(tmp_path: Path) -> None:
    made = [record_as_told(World(client_id="a/b").parts, str(tmp_path), "") for _ in range(2)]
    assert join_all(1000 * HANG_S)
    assert all(each is not None and each._end - each._begun == 600_000 for each in made)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2
    assert all(name.startswith(f"forebay-{os.getpid()}-") and name.endswith("-a_b.trace") for name in names)


@pytest.mark.parametrize("told", ["{}/none/a.trace:3", "{}/a.trace:0", "{}/a.trace:nan"])
def test_what_the_environment_asks_in_vain_is_logged(
    tmp_path: Path, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "forebay.producer"):
        assert record_as_told(World().parts, told.format(tmp_path), "[a] ") is None
    assert "[a] no trace is recorded in" in caplog.text
