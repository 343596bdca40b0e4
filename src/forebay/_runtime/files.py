"""A small file that an option names: read whole, and never waited for."""

from __future__ import annotations

import errno
import os
import stat


def read_small(path: str, most: int) -> bytes:
    """The bytes of a regular file.

    Args:
        most: bytes that it may have.

    Raises:
        OSError: it cannot be read, is no regular file or is larger; ``strerror`` says which, without the path.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, "no path holds a NUL character")
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
