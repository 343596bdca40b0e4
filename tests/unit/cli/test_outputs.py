"""cli.outputs: what may be written, and what is another's."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from forebay.cli.failure import CommandError
from forebay.cli.outputs import check_output, check_place

OWN = re.compile(rb"# Mine")


def check(path: Path) -> None:
    check_output(path, OWN, "file of mine")


def test_a_file_that_is_not_there_and_one_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a"
    check(path)
    assert not path.exists()
    for text in (b"", b"# Mine\nnumber = 1\n", b"# Mine"):
        path.write_bytes(text)
        check(path)
        assert path.read_bytes() == text


@pytest.mark.parametrize("text", [b"[load]\n", b"\n# Mine\n", b"\xff\x00"])
def test_a_file_of_another_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a").write_bytes(text)
    with pytest.raises(CommandError, match="a is there already, and is no file of mine; name another file"):
        check(tmp_path / "a")


def test_what_is_no_file_has_nothing_to_lose() -> None:
    check(Path(os.devnull))


def test_places_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    for place, said in {"none/a": "there is no such folder", "file/a": "no such folder", ".": "Is a directory"}.items():
        with pytest.raises(CommandError, match=f"cannot be written: .*{said}"):
            check_place(tmp_path / place)
    with pytest.raises(CommandError, match="cannot be written: File name too long"):
        check_place(tmp_path / ("a" * 1000))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for name in ("file", "new"):
        with pytest.raises(CommandError, match=f"{name} cannot be written: Permission denied"):
            check_place(tmp_path / name)


def test_a_name_in_the_folder_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_place("a.toml")
