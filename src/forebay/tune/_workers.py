"""Workers: processes beside this one that run simulations for it.

Each is a module of this package that is started as a program.  ``multiprocessing`` would run the user's main module in
each of them again, and notebooks and scripts from standard input have none that can be run again.  What a worker cannot
do, is done in this process, so what comes out never depends on them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Self

MOST_BY_DEFAULT = 4
"""Workers that are started for a user who did not say how many."""
LOST = (EOFError, OSError, pickle.PickleError)
"""What ends a conversation with a worker."""


def processors() -> int:
    """On which this process may run."""
    own: Any = getattr(os, "sched_getaffinity", None)
    return len(own(0)) if own is not None else os.cpu_count() or 1


def environment() -> dict[str, str]:
    """Of a process that is to import what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class Workers:
    """A context with ``map``.  At its end, also by Ctrl-C, the processes are killed.

    Args:
        run: what is called, here or in a worker; it is pickled, as its arguments and results are.
        count: of processes; with 1 there are none, and everything runs here.
    """

    def __init__(self, run: Callable[..., Any], count: int) -> None:
        self._run = run
        self._count = count
        self._processes: dict[Connection, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        if self._count > 1 and sys.executable and not getattr(sys, "frozen", False):
            try:
                for _ in range(self._count):
                    self._start()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        for connection in list(self._processes):
            self._end(connection)

    def _start(self) -> None:
        ours, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            silent: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(number)], pass_fds=(number,), env=environment(), **silent
                )
            except OSError:  # no further process can be started
                ours.close()
                return
        self._processes[ours] = process
        try:
            ours.send(self._run)
        except LOST:
            self._end(ours)

    def _end(self, connection: Connection) -> None:
        process = self._processes.pop(connection)
        process.kill()
        process.wait()
        connection.close()

    def __len__(self) -> int:
        return len(self._processes)

    def map(self, tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What ``run`` gives for the arguments in each task, in their order.

        Raises:
            Exception: from ``run``; of several the first task's.
        """
        found: dict[int, Any] = {}
        todo, idle = deque(range(len(tasks))), deque(self._processes)
        busy: dict[Connection, int] = {}
        while busy or (todo and idle):
            while todo and idle:
                self._give(idle.popleft(), todo.popleft(), tasks, busy)
            ready = wait([*busy]) if busy else []  # all that were given a task may be gone; waiting for none never ends
            for connection in [each for each in ready if isinstance(each, Connection)]:
                at = busy.pop(connection)
                try:
                    done, value = connection.recv()
                except LOST:
                    self._end(connection)
                    continue
                idle.append(connection)
                if done:
                    found[at] = value
        return [found[at] if at in found else self._run(*task) for at, task in enumerate(tasks)]

    def _give(
        self, connection: Connection, at: int, tasks: Sequence[tuple[Any, ...]], busy: dict[Connection, int]
    ) -> None:
        try:
            connection.send(tasks[at])
        except LOST:
            self._end(connection)
        else:
            busy[connection] = at


def serve(connection: Connection) -> None:
    """What a worker does: until the other end is closed, or its process is gone."""
    try:
        run = connection.recv()
        while True:
            task = connection.recv()
            try:
                answer = True, run(*task)
            except Exception:  # noqa: BLE001 -- the same call in the other process raises it again, to its caller
                answer = False, None
            connection.send(answer)
    except LOST:
        return


if __name__ == "__main__":
    # Ctrl-C reaches every process of a terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])))
