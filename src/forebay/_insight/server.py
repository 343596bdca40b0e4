"""DescriptionServer, and ``ask``: a UNIX socket on which other processes of a user see the inside of a producer.

A connection gets one line of JSON and its end.  So no client can hold anything, and nothing runs while none asks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import tempfile
from collections.abc import Callable

from forebay._runtime.threads import original, start_thread

logger = logging.getLogger("forebay.producer")

PATIENCE_S = 2.0
"""How long a client may take to read its line."""
SUFFIX = ".sock"


class DescriptionServer:
    """Serves descriptions from ``start`` to ``close``.

    Args:
        folder: where the socket is made; it is there.
        client_id: part of the socket's name, with the process id.

    Raises:
        OSError: the socket cannot be made there: no folder, no right, or a path of more than about 100 bytes.
    """

    def __init__(self, folder: str, client_id: str) -> None:
        name = re.sub(r"[^\w.-]", "_", client_id)
        self.path = os.path.join(folder, f"forebay-{os.getpid()}-{name}{SUFFIX}")
        self._closed = False
        """Set by ``close``; read by the thread that serves."""
        self._failed = False
        self._socket = original(socket, "socket")(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind(folder)
        except BaseException:
            self._socket.close()
            raise

    def _bind(self, folder: str) -> None:
        # In a folder that nobody else may enter until the mode is set: the mask of modes is the whole process's.
        with tempfile.TemporaryDirectory(prefix=".forebay-", dir=folder) as private:
            first = os.path.join(private, "s")
            self._socket.bind(first)
            os.chmod(first, 0o600)
            self._socket.listen(8)
            if len(os.fsencode(self.path)) >= 104:
                raise OSError(f"the path {self.path} is too long for a socket")
            os.rename(first, self.path)

    def start(self, describe: Callable[[], bytes]) -> None:
        """Begins to serve what ``describe`` gives, on a thread of its own.

        Raises:
            RuntimeError: no thread can be started.
        """
        start_thread(self._serve, "forebay-describe", describe)

    def _serve(self, describe: Callable[[], bytes]) -> None:
        while not self._closed:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                if not self._closed:
                    self._answer(client, describe)

    def _answer(self, client: socket.socket, describe: Callable[[], bytes]) -> None:
        try:
            client.settimeout(PATIENCE_S)
            client.sendall(describe() + b"\n")
        except OSError:
            pass  # who asked has gone, or does not read
        except Exception:
            if not self._failed:
                self._failed = True
                logger.exception("A description for %s could not be made; further ones are not logged", self.path)

    def close(self) -> None:
        """Removes the socket, and ends the thread; idempotent."""
        if self._closed:
            return
        self._closed = True
        # A close alone does not end the accept of another thread.
        with contextlib.suppress(OSError), original(socket, "socket")(socket.AF_UNIX, socket.SOCK_STREAM) as waking:
            waking.settimeout(PATIENCE_S)
            waking.connect(self.path)
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        self._socket.close()

    def close_after_fork(self) -> None:
        """Closes the child's copy; the parent's stays."""
        self._closed = True
        self._socket.close()


def ask(path: str) -> bytes:
    """The line that the server at ``path`` gives.

    Raises:
        OSError: nobody answers there, or not in time.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(PATIENCE_S)
        client.connect(path)
        parts: list[bytes] = []
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)
