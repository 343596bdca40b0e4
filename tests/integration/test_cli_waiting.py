"""Commands that wait for a broker: the terminal is told why, and they end."""

from __future__ import annotations

import socket

import pytest

from forebay.cli.commands import cli
from tests.integration.test_cli import forebay

BEYOND_NOTICE_S = 1.4
TALKING = {
    "produce -t t": "--timeout",
    "kcat -P -t t": "-m",
    "kcat -L": "-m",
    "console-producer --topic t": "--max-block-ms",
    "perf --topic t --num-records 1 --record-size 1": "--timeout",
    "topics": "--timeout",
    "topics t": "--timeout",
    "tail t": "--timeout",
    "transactions list": "--timeout",
    "transactions describe x": "--timeout",
    "transactions abort x": "--timeout",
}
"""Every command that talks to a broker, and what limits its wait for one."""


def test_every_command_is_among_those_that_wait_or_needs_no_broker() -> None:
    assert set(cli.commands) - {line.split()[0] for line in TALKING} == {
        "broker",
        "config",
        "doctor",
        "pipeline",
        "top",
        "tune",
    }


@pytest.mark.parametrize("line", TALKING)
def test_who_waits_for_a_broker_that_is_not_there_is_told_and_then_it_ends(line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    limit = TALKING[line]
    seconds = f"{BEYOND_NOTICE_S * 1000:.0f}" if limit.endswith("ms") else str(BEYOND_NOTICE_S)
    broker = "--bootstrap-server" if line.startswith("console") else "-b"
    code, out, err = forebay(*line.split(), broker, address, limit, seconds, text="x\n")
    assert (code, out, len(err)) == (1, "", 2)
    told, error = err
    assert told.startswith("forebay: waiting for ") and address in told and "Connection refused" in told
    assert error.startswith("forebay: error: ") and address in error and "Connection refused" in error
