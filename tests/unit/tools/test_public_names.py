"""The list of public names: what it holds, what it leaves out, and that a change is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import forebay
from tools import public_names

LISTED = public_names.text()


def test_each_exported_name_has_a_line_and_nothing_else_of_the_package_has() -> None:
    block = LISTED.partition("# forebay\n")[2].partition("\n\n")[0]
    heads = [line for line in block.splitlines() if not line.startswith(" ")]
    names = [line.removeprefix("class ").removeprefix("forebay.").partition("(")[0] for line in heads]
    assert names == sorted(forebay.__all__)


def test_signatures_are_those_of_users() -> None:
    producer = LISTED.partition("class forebay.KafkaProducer(")[2]
    send = next(line for line in producer.splitlines() if line.startswith("    send("))
    assert "value: Any=None, key: Any=None, *, " in send
    assert "timestamp_ms" not in LISTED and "*old" not in LISTED
    assert "    send_batch(self, topic: str | None" in LISTED, "methods of inner bases are the class's own"
    assert "    transactional_id: str | None" in LISTED, "a property is an attribute"


def test_a_name_that_is_in_two_modules_is_written_out_once() -> None:
    assert "\nforebay.model.ProducerRecord: forebay.ProducerRecord\n" in LISTED
    assert LISTED.count("class forebay.ProducerRecord(") == 1


def test_a_change_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert public_names.main(["--check"]) == 0
    target = tmp_path / "public_names.txt"
    monkeypatch.setattr(public_names, "TARGET", target)
    target.write_text(LISTED.replace("    async flush(self, timeout", "    async flush(self, wait"))
    assert public_names.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "-    async flush(self, wait" in told and "+    async flush(self, timeout" in told
    assert "make generated" in told
    assert public_names.main([]) == 0
    assert public_names.main(["--check"]) == 0
