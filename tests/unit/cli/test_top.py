"""cli.top: what it shows of producers, at 80 columns and at 200, and where there is none."""

from __future__ import annotations

import io
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from forebay._insight.server import DescriptionServer
from forebay._insight.values import ProducerDescription, TopicDescription
from forebay.cli import top
from forebay.cli.commands import cli
from forebay.cli.failure import CommandError, Terminated
from tests.unit._insight.test_text import PARTITION, SEEN

WARM = replace(
    SEEN,
    topics=(TopicDescription("orders", 1_234_567, 3, 40, 5 << 20, 8.0, 131_072.0),),
    metrics={"record-send-total": 5000.0, "record-error-total": 3.0, "outgoing-byte-total": 3 << 20},
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(producers: list[top.Producer], width: int, height: int = 40) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), record=True, color_system=None)
    console.print(top.view(producers, console))
    return console.export_text().splitlines()


def of(seen: ProducerDescription, before: ProducerDescription | None = None) -> list[top.Producer]:
    return [top.Producer(Path("p.sock"), seen, before)]


@pytest.mark.parametrize("width", [80, 200])
def test_everything_is_there_and_nothing_is_wider_than_the_terminal(width: int) -> None:
    lines = shown(of(WARM), width)
    assert max(len(line.rstrip()) for line in lines) <= width
    text = "\n".join(lines)
    assert lines[0].startswith("me  process 7  open  90 s  producer id 12, epoch 3, IN_TRANSACTION")
    for words in ("2 thread(s) wait in send for 500 B", "held: node 1 900 B", "1,234,567", "≤ 131072", "CONNECTING",
                  "orders-3", "61,000", "6 idle", "TimeoutError: late", "110 unfinished", "3 failed"):  # fmt: skip
        assert words in text, words
    assert "DisconnectError: gone" in text and "NetworkError: lost" in text
    assert ("throttled" in text) == ("25 %" in text) == (width >= top.WIDE)


def test_a_low_terminal_leaves_partitions_out_and_says_so() -> None:
    seen = replace(WARM, partitions=tuple(replace(PARTITION, partition=number) for number in range(50)))
    lines = shown(of(seen), 200, height=30)
    assert len(lines) <= 30
    listed = sum("orders-" in line for line in lines)
    assert 3 <= listed < 50
    assert f"6 idle, {50 - listed} more with records" in "\n".join(lines)


def test_rates_are_of_the_time_between_two_looks() -> None:
    later = replace(WARM, uptime_ms=92_000.0, metrics={**WARM.metrics, "record-send-total": 7000.0})
    assert "1,000 records/s  0 B/s" in "\n".join(shown(of(later, WARM), 80))
    assert "56 records/s  34.1 KiB/s" in "\n".join(shown(of(WARM), 80))  # since its start
    other = replace(WARM, process=8)  # it was started anew
    assert "56 records/s" in "\n".join(shown(of(other, later), 80))


def test_several_producers_are_a_line_each() -> None:
    other = replace(WARM, client_id="you", process=9)
    lines = shown([*of(WARM), *of(other), top.Producer(Path("gone.sock"), None)], 80)
    text = "\n".join(lines)
    assert "gone.sock: nobody answers" in text
    assert [line.split()[:3] for line in lines if line.lstrip().startswith(("me", "you"))] == [
        ["me", "7", "open"],
        ["you", "9", "open"],
    ]
    assert "forebay top SOCKET shows one of them" in text


def test_where_producers_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(top.VARIABLE, raising=False)
    with pytest.raises(CommandError, match=top.VARIABLE):
        top.sockets(None)
    with pytest.raises(CommandError, match=f"no producer shows itself there; .*describe.socket={tmp_path}"):
        top.sockets(str(tmp_path))
    (tmp_path / "forebay-1-no.sock").write_text("a file")
    server = DescriptionServer(str(tmp_path), "me")
    try:
        assert top.sockets(str(tmp_path)) == top.sockets(server.path) == [Path(server.path)]
        monkeypatch.setenv(top.VARIABLE, str(tmp_path))
        assert top.sockets(None) == [Path(server.path)]
    finally:
        server.close()


def test_text_where_there_is_no_terminal(tmp_path: Path) -> None:
    server = DescriptionServer(str(tmp_path), "me")
    server.start(WARM.as_json)
    try:
        done = CliRunner().invoke(cli, ["top", str(tmp_path)])
        assert done.exit_code == 0
        assert done.output.startswith("Producer me (process 7), open, 90 s old: 110 record(s)")
    finally:
        server.close()
    left = DescriptionServer(str(tmp_path), "me")
    left.close_after_fork()
    done = CliRunner().invoke(cli, ["top", str(tmp_path)], standalone_mode=False)
    assert done.return_value == 1
    assert done.output == f"{left.path}: nobody answers\n"


def test_the_view_goes_on_when_a_producer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    server = DescriptionServer(str(tmp_path), "me")
    server.start(WARM.as_json)
    looks: list[float] = []

    def wait(ms: float) -> None:
        looks.append(ms)
        server.close()
        if len(looks) == 3:
            raise KeyboardInterrupt

    assert top.run(str(tmp_path), 500, once=False, write=print, wait=wait) == 0
    assert looks == [500, 500, 500]
    text = screen.getvalue()
    assert "orders-3" in text
    assert text.rindex("nobody answers") > text.rindex("orders-3")


def test_brackets_are_text_and_sigterm_gives_the_terminal_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    nodes = (replace(WARM.nodes[0], address="[fe80::1]:9092"),)
    seen = [replace(WARM, client_id="[/me] :x:", nodes=nodes), replace(WARM, client_id="you")]
    servers = [DescriptionServer(str(tmp_path), each.client_id.strip("[/]: ")) for each in seen]
    for server, each in zip(servers, seen, strict=True):
        server.start(each.as_json)

    def wait(ms: float) -> None:
        if len(servers) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        servers.pop().close()

    with pytest.raises(Terminated):
        top.run(str(tmp_path), 500, once=False, write=print, wait=wait)
    text = screen.getvalue()
    assert "[/me] :x:" in text and "[fe80::1]:9092" in text
    assert text.rindex("\x1b[?1049l") > text.rindex("[fe80::1]")  # the alternate screen is left


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (5 << 40, "5120.0 GiB")],
)
def test_sizes(number: int, expected: str) -> None:
    assert top.size(number) == expected
