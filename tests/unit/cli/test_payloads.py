"""cli.payloads: values that are the same in every run."""

from __future__ import annotations

import zlib
from itertools import islice
from pathlib import Path

import pytest

from forebay.cli.failure import CommandError
from forebay.cli.payloads import BLOCK, from_file, monotonic, random_letters


@pytest.mark.parametrize("size", [1, 100, 4097])
def test_random_letters_have_the_size_and_repeat_in_the_next_run_only(size: int) -> None:
    first = list(islice(random_letters(size), 50))
    assert first == list(islice(random_letters(size), 50))
    assert all(len(value) == size and value.isalpha() and value.isupper() for value in first)
    whole = b"".join(first)
    assert size < 100 or len(zlib.compress(whole)) > len(whole) * 0.55


def test_a_record_larger_than_the_block_is_one_piece() -> None:
    values = random_letters(BLOCK + 1)
    assert len(next(values)) == len(next(values)) == BLOCK + 1


def test_numbers_count_up() -> None:
    assert list(islice(monotonic(), 11))[9:] == [b"9", b"10"]


def test_values_are_drawn_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "values"
    path.write_bytes(b"a;b;;c;")
    lines: list[str] = []
    drawn = list(islice(from_file(str(path), b";", lines.append), 200))
    assert set(drawn) == {b"a", b"b", b"", b"c"}
    assert lines == [f"Reading payloads from: {path}", "Number of records read: 4"]
    assert drawn == list(islice(from_file(str(path), b";", lines.append), 200))


def test_a_file_that_is_missing_or_empty(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(CommandError, match="payload file .* is empty"):
        from_file(str(tmp_path / "empty"), b"\n", lambda line: None)
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        from_file(str(tmp_path / "none"), b"\n", lambda line: None)
