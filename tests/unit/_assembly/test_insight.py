"""_assembly.insight: snapshots in the log when records expire, and the socket."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from forebay._assembly.insight import DESCRIBE_VARIABLE
from forebay._insight.server import ask
from forebay._insight.values import ProducerDescription
from forebay._runtime import threads
from tests.fakes.broker import PRODUCE
from tests.fakes.world import World


def snapshots(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "forebay.describe"]


def test_a_snapshot_when_records_expire_and_one_a_minute_at_most(caplog: pytest.LogCaptureFixture) -> None:
    world = World(client_id="me")
    world.cluster.brokers[0].held.add(PRODUCE)
    for _ in range(12):
        world.send(b"v")
        world.send(b"v", partition=1)
        world.run(11_000, step=500)
    told = snapshots(caplog)
    assert 2 <= len(told) <= 3
    lines = told[0].splitlines()
    assert lines[0].startswith("[Producer clientId=me] Records have expired. Producer me (process ")
    assert any(line.startswith("  memory: ") for line in lines)
    assert any(line.startswith("  node 0 at 127.0.0.1:") for line in lines)
    assert "more like this" not in told[0]
    assert told[1].endswith(" more like this)")


def test_another_thread_imports_what_describes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for all records that expire meanwhile."""
    started: list[Any] = []
    monkeypatch.setattr(threads, "_start_new_thread", lambda call, arguments: started.append((call, arguments)))
    world = World()
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "forebay._insight.text")
        for _ in range(3):
            world.parts.sender.outcomes.on_expiry(world.now)
    assert snapshots(caplog) == []
    ((call, arguments),) = started
    call(*arguments)
    (line,) = snapshots(caplog)
    assert "Records have expired. Producer" in line


def test_nothing_is_described_for_a_line_that_nobody_sees(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay._insight.reading.describe", None)  # a call would raise
    world = World()
    with caplog.at_level(logging.ERROR, "forebay.describe"):
        world.parts.sender.outcomes.on_expiry(world.now)
    assert snapshots(caplog) == []


def test_a_socket_only_where_one_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert World().parts.shown is None
    by_option, by_variable = tmp_path / "option", tmp_path / "variable"
    for folder in (by_option, by_variable):
        folder.mkdir()
    monkeypatch.setenv(DESCRIBE_VARIABLE, str(by_variable))
    worlds = (World(client_id="a", describe_socket=str(by_option)), World(client_id="b"))
    for world, folder in zip(worlds, (by_option, by_variable), strict=True):
        server = world.parts.shown
        assert server is not None
        try:
            (path,) = folder.iterdir()
            assert path.name == f"forebay-{os.getpid()}-{world.producer.client_id}.sock"
            world.send(b"v")
            assert ProducerDescription.from_json(ask(str(path))).unfinished == 1
        finally:
            server.close()
        assert list(folder.iterdir()) == []


def test_a_socket_that_cannot_be_had_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    missing = str(tmp_path / "missing")
    world = World(client_id="me", describe_socket=missing)
    assert world.parts.shown is None
    (line,) = caplog.messages
    assert line.startswith(f"[Producer clientId=me] describe.socket: no socket can be made in '{missing}': ")
    world.send(b"v")
    world.settle()
    assert world.values() == [b"v"]


def test_a_socket_without_a_thread_is_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(*arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("forebay._insight.server.start_thread", no_thread)
    world = World(describe_socket=str(tmp_path))
    assert "no thread can be started for it: can't start new thread" in caplog.text
    assert world.parts.shown is not None
    world.parts.shown.close()
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_leaves_the_socket_to_its_parent(tmp_path: Path) -> None:
    world = World(describe_socket=str(tmp_path))
    server = world.parts.shown
    assert server is not None
    (path,) = tmp_path.iterdir()
    world.producer._after_fork_in_child()
    server.close()
    assert path.exists()
