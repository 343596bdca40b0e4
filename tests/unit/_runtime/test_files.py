"""What an option names is read, or refused in one clause, and never waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from forebay._runtime.files import OTHER_MARKS, NoTextError, may_be_mark, read_small, text_of, without_mark
from tests.support.nobody import as_nobody, shared_folder


def test_a_file_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    assert read_small(str(tmp_path / "a"), 5) == read_small(str(tmp_path / "link"), 5) == b"12345"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.with_name("back"))
    path.with_name("back").symlink_to(path)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "No such file or directory"),
        (fifo, "is no file"),
        (loop, "Too many levels of symbolic links"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"123456"), "has more than 5 bytes"),
        (lambda path: path.symlink_to("/dev/zero"), "is no file"),
        (lambda path: path.symlink_to("/proc/self/mem"), "Input/output error"),
        (lambda path: (path.parent / "a").write_bytes(b"1") and path.symlink_to("a/b"), "Not a directory"),
    ],
)
def test_what_is_refused(tmp_path: Path, make: Callable[[Path], object], why: str) -> None:
    make(tmp_path / "x")
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=why) as caught:
        read_small(str(tmp_path / "x"), 5)
    assert why in str(caught.value.strerror)
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_file_that_may_not_be_read() -> None:
    with shared_folder() as folder:
        (folder / "x").write_bytes(b"1")
        (folder / "x").chmod(0)
        with as_nobody(), pytest.raises(PermissionError, match="Permission denied"):
            read_small(str(folder / "x"), 5)


def test_text_with_and_without_marks() -> None:
    assert (
        text_of(b"") == text_of(b"\xef\xbb\xbf") == ""
        and text_of(b"\xef\xbb\xbfa\xc3\xa9") == text_of(b"a\xc3\xa9") == "aé"
    )
    assert text_of(b"a\xef\xbb\xbf") == "a\ufeff", "behind the begin it is a character"
    assert without_mark(b"\xef\xbba\xff") == b"\xef\xbba\xff", "other bytes are none of its business"
    for mark, name in OTHER_MARKS.items():
        assert all(may_be_mark(mark[:size]) for size in range(len(mark)))
        with pytest.raises(NoTextError, match=f"is text in {name}, as its byte order mark says; save it as UTF-8"):
            without_mark(mark + b"a\0")
    with pytest.raises(NoTextError, match=r"is no text in UTF-8 \(byte 2\)"):
        text_of(b"a\xff")


def test_a_path_that_cannot_be() -> None:
    with pytest.raises(OSError, match="no path holds a NUL"):
        read_small("a\0b", 5)
