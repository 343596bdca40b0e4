"""Which limits in seconds a test may have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_waits import LENGTHS, check, complaints


@pytest.mark.parametrize(
    "line",
    [
        "future.result(20)",
        "thread.join(30.5)",
        "ticket.wait(60_000)",
        "found = consumer.list_topics(timeout=10)",
        "run(command, timeout=60)",
        "@pytest.mark.timeout(900)\ndef test(): ...",
        "socket.create_connection(address, 10)",
        "end = time.monotonic() + 30",
        "assert time.monotonic() - begun < 2",
        "LIMIT_S = 60",
    ],
)
def test_a_limit_in_seconds_is_found(line: str) -> None:
    (complaint,) = complaints(f"\n{line}\n", "tests/x.py")
    assert complaint.startswith("tests/x.py:2: ") and "tests/support/pace.py" in complaint


@pytest.mark.parametrize(
    "line",
    [
        "future.result(HANG_S)",
        "future.result(0)",
        "producer.close(0.3)",
        "assert not thread.join(0.05)",
        "assert time.monotonic() - begun < within(2)",
        "assert time.monotonic() - begun > 1.5",
        "scene.wait(50)",
        "world.control.transaction_version(timeout=5)",
        "reader.wait_for(200)",
        '", ".join(["a", "b"])',
        "POLL_S = 0.1",
        "LIMIT_S = within(60)",
    ],
)
def test_what_is_no_bet_on_the_machine_is_not(line: str) -> None:
    assert list(complaints(line, "tests/x.py")) == []


def test_files_whose_seconds_are_no_limits_are_left_out(tmp_path: Path) -> None:
    file = next(iter(LENGTHS))
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text("LONG_S = 60\n")
    assert check(tmp_path) == []
    (tmp_path / "tests" / "another.py").write_text("LONG_S = 60\n")
    assert len(check(tmp_path)) == 1
