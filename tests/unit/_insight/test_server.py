"""_insight.server: one line for each connection, for this user alone."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forebay._insight.server import DescriptionServer, ask


@contextmanager
def serving(folder: Path, describe: object = lambda: b"seen", client_id: str = "me") -> Iterator[DescriptionServer]:
    server = DescriptionServer(str(folder), client_id)
    server.start(describe)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.close()


def test_each_connection_gets_one_line(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert Path(server.path) == tmp_path / f"forebay-{os.getpid()}-me.sock"
        assert [ask(server.path) for _ in range(3)] == [b"seen\n"] * 3
        server.close()
        server.close()
    assert list(tmp_path.iterdir()) == []


def test_nobody_else_may_ask_whatever_the_mask_says(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with serving(tmp_path) as server:
            assert stat.S_IMODE(os.stat(server.path).st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_client_s_id_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    with serving(tmp_path, client_id="../a b/ü") as server:
        assert Path(server.path).parent == tmp_path
        assert ask(server.path) == b"seen\n"


def test_a_client_that_goes_does_no_harm(tmp_path: Path) -> None:
    with serving(tmp_path, lambda: b"x" * 10_000_000) as server:
        for _ in range(3):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.connect(server.path)
        assert len(ask(server.path)) == 10_000_001


def test_what_fails_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def describe() -> bytes:
        raise RuntimeError("of describe")

    with serving(tmp_path, describe) as server:
        assert [ask(server.path) for _ in range(3)] == [b""] * 3
    assert len(caplog.records) == 1 and "further ones are not logged" in caplog.text


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        DescriptionServer(str(tmp_path / "missing"), "me")
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with pytest.raises(OSError, match="too long"):
        DescriptionServer(str(deep), "me")
    assert list(deep.iterdir()) == []


def test_a_socket_that_was_left_is_replaced(tmp_path: Path) -> None:
    first = DescriptionServer(str(tmp_path), "me")
    first.close_after_fork()
    assert Path(first.path).exists()
    with serving(tmp_path) as server:
        assert ask(server.path) == b"seen\n"


def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ask(str(tmp_path / "none.sock"))
    server = DescriptionServer(str(tmp_path), "me")
    server.close_after_fork()
    with pytest.raises(ConnectionRefusedError):
        ask(server.path)
