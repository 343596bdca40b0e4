"""What commands share: consent, and how a cluster is reached."""

from __future__ import annotations

import io

import pytest

from forebay.cli.failure import CommandError
from forebay.cli.shared import cluster_config, confirmed


def test_a_question_without_an_answer_is_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert confirmed("sure?")
    with pytest.raises(CommandError, match="nothing was aborted: there was no answer") as caught:
        confirmed("sure?")
    assert caught.value.exit_code == 1
    with pytest.raises(CommandError, match="nothing was measured: there was no answer"):
        confirmed("sure?", "nothing was measured")


@pytest.mark.parametrize(
    ("options", "wait_s", "found"),
    [((), None, 10_000), ((), 3.0, 3000), (("max.block.ms=700",), None, 700), (("max.block.ms=700",), 2.0, 2000)],
)
def test_the_time_of_an_answer(options: tuple[str, ...], wait_s: float | None, found: int) -> None:
    config = cluster_config({"bootstrap": "host:9092", "options": options, "files": (), "wait_s": wait_s})
    assert config["max.block.ms"] == found
