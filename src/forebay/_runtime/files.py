"""What users hand over as files: small ones that an option names are never waited for, and text may begin with a mark.

Some editors begin a text with a byte order mark.  That of UTF-8 says nothing and is passed over, in each file of text.
Those of UTF-16 and UTF-32 say that it is no UTF-8, so the text is refused with a reason.
"""

from __future__ import annotations

import errno
import os
import stat
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE

from forebay._runtime.allowed import path_refusal

MARK = "\ufeff"
"""The mark in text that is decoded already."""
OTHER_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}
"""The longer ones first: that of UTF-32 may begin with that of UTF-16."""


class NoTextError(ValueError):
    """Bytes that are no text in UTF-8; the message is a clause that lacks only the file's name."""


def may_be_mark(data: bytes) -> bool:
    """Whether this may be the begin of a mark whose rest is still to come."""
    return any(mark.startswith(data) and mark != data for mark in (BOM_UTF8, *OTHER_MARKS))


def without_mark(data: bytes) -> bytes:
    """The bytes of a text without the mark of UTF-8, if it has one.

    Raises:
        NoTextError: it has the mark of another encoding.
    """
    for mark, encoding in OTHER_MARKS.items():
        if data.startswith(mark):
            raise NoTextError(f"is text in {encoding}, as its byte order mark says; save it as UTF-8")
    return data.removeprefix(BOM_UTF8)


def text_of(data: bytes) -> str:
    """The text of bytes in UTF-8, without a mark.

    Raises:
        NoTextError: they are no UTF-8, or have the mark of another encoding.
    """
    try:
        return without_mark(data).decode()
    except UnicodeDecodeError as error:
        raise NoTextError(f"is no text in UTF-8 (byte {error.start + 1})") from None


def open_to_others(path: str) -> bool:
    """Whether every user of this machine can read a file.

    Not so in a folder that they cannot enter.  Kubernetes' volumes do not count: they are a container's own, and their
    files can be read by all as a rule.
    """
    try:
        real = os.path.realpath(path)
        if real.startswith("/proc/") or os.path.lexists(os.path.join(os.path.dirname(os.path.abspath(path)), "..data")):
            return False
        mode = os.stat(real).st_mode
        folders = [os.path.dirname(real)]
        while folders[-1] != os.path.dirname(folders[-1]):
            folders.append(os.path.dirname(folders[-1]))
        return bool(mode & stat.S_IROTH) and all(os.stat(folder).st_mode & stat.S_IXOTH for folder in folders)
    except OSError:
        return False


def read_small(path: str, most: int) -> bytes:
    """The bytes of a regular file that an option names.

    Args:
        most: bytes that it may have.

    Raises:
        OSError: it is beyond the limits of ``allowed``, cannot be read, is no regular file or is larger; ``strerror``
            says which, without the path.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "no path holds a NUL character")
    refusal = path_refusal(path)
    if refusal is not None:
        raise PermissionError(errno.EACCES, refusal)
    # Opened without a wait: the writer of a FIFO may never come.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is no file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"has more than {most} bytes")
    return data
