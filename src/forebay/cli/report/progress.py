"""What a command shows while it works: lines on stderr, and on a terminal a progress bar or one line below them."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from forebay.cli.failure import PREFIX
from forebay.errors._base import printable

if TYPE_CHECKING:
    from rich.progress import Progress

LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
WAIT_S = 10.0
"""How long a command waits for a cluster that does not answer."""
NOTICE_S = 1.0
"""After which a command that waits says what for."""
SILENT = "no answer yet"
REST_MS = 100.0
"""At least between two writings of a line."""
CLEAR = "\r\x1b[2K"
"""To the begin of the line, and all of it away."""
_OF_CLIENT = re.compile(r"^\[[^\]]*\] ")
"""How lines of the log begin, where they name the client."""


class Notice(Protocol):
    """Something that is done later, unless it is cancelled."""

    def start(self) -> None:
        """Begins to count."""
        ...

    def cancel(self) -> None:
        """It is not done any more."""
        ...


After = Callable[[float, Callable[[], object]], Notice]


class Display(AbstractContextManager["Display"]):
    """Lines on a stream that is no terminal."""

    def __init__(self, stream: Any = None) -> None:
        self._stream = stream if stream is not None else sys.stderr

    def line(self, text: str) -> None:
        """Writes a line; any thread.  Where nobody reads any more, the command goes on, and its exit code tells."""
        with contextlib.suppress(OSError):
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def error(self, text: str) -> None:
        """Writes a line that says what failed."""
        self.line(f"{PREFIX}{text}")

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Sets the current work and its progress; ``total`` is None if it is not known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes the bar away."""


class Bar(Display):
    """A terminal's progress bar; ``live`` gives the text behind it, asked several times a second on rich's thread."""

    def __init__(self, live: Callable[[], str], stream: Any = None) -> None:
        super().__init__(stream)
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
        from rich.table import Column
        from rich.text import Text

        class Live(ProgressColumn):
            def render(self, task: Task) -> Text:
                return Text(live())

        self._progress: Progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[share]}", markup=False),
            Live(table_column=Column(no_wrap=True)),
            console=Console(file=self._stream, stderr=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=None, share="")

    def line(self, text: str) -> None:
        """Writes a line above the bar."""
        # soft_wrap: a terminal's width must not break lines that people copy.
        self._progress.console.print(text, markup=False, emoji=False, highlight=False, soft_wrap=True)

    def show(self, text: str, done: int = 0, total: int | None = None) -> None:
        """Moves the bar."""
        share = f"{min(done / total, 1):4.0%}" if total else ""
        self._progress.update(self._task, description=text, completed=done, total=total or None, share=share)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


def display(live: Callable[[], str], *, wanted: bool = True, stream: Any = None) -> Display:
    """A bar where ``stream`` (stderr) is a terminal and it is wanted, else lines alone."""
    target = stream if stream is not None else sys.stderr
    return Bar(live, target) if wanted and target.isatty() else Display(target)


class Line:
    """One line on a terminal that is written anew in its place; nothing where the stream is no terminal.

    Args:
        now: ms; two writings are at least ``REST_MS`` apart.
        stream: None: stderr.
    """

    def __init__(self, now: Callable[[], float], stream: Any = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._now = now
        self._written = -math.inf

    def show(self, text: str) -> None:
        """Shows a text, as far as the line goes, unless the one before was shown just now."""
        now = self._now()
        if now - self._written < REST_MS or not self._stream.isatty():
            return
        self._written = now
        self._write(text[: shutil.get_terminal_size().columns - 1])

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._stream.write(f"{CLEAR}{text}")
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes the line away, where there is one."""
        if self._written > -math.inf:
            self._write("")


class LogLines(logging.Handler):
    """Puts what the package logs among the command's own lines; for the time of a ``with``.

    Warnings are for ``-v``: what the producer gets over by itself is no matter of a command's user, unless it keeps
    the command waiting (``waiting_for``).
    """

    def __init__(self, shown: Display, verbosity: int = 0) -> None:
        self._shows = LEVELS[min(verbosity, len(LEVELS) - 1)]
        super().__init__(min(self._shows, logging.WARNING))
        self._shown = shown
        self._logger = logging.getLogger("forebay")
        self._before = (self._logger.level, self._logger.propagate)
        self._newest = ""

    @contextlib.contextmanager
    def waiting_for(self, what: str, after: After = threading.Timer) -> Iterator[None]:
        """Says once that the command still waits for ``what``, with the newest warning, if the block takes a second.

        Args:
            after: gives what calls a function after so many seconds, unless it is cancelled.
        """
        notice = after(NOTICE_S, lambda: self._shown.line(f"forebay: waiting for {what}: {self._newest or SILENT}"))
        notice.start()
        try:
            yield
        finally:
            notice.cancel()
            self._newest = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Without ``-v`` only unexpected errors pass, because the command reports each failed record itself."""
        if record.levelno >= logging.WARNING:
            self._newest = _OF_CLIENT.sub("", printable(record.getMessage(), None))
        wanted = record.levelno >= self._shows and (self._shows < logging.ERROR or record.exc_info is not None)
        return wanted and bool(super().filter(record))

    def emit(self, record: logging.LogRecord) -> None:
        """One line, and a traceback only where one is asked for with ``-vvv``."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
        text = printable(text, None)
        if record.exc_info and self._shows <= logging.DEBUG:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        self._shown.line(f"forebay: {record.levelname.lower()}: {text}")

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        self._logger.setLevel(self.level)
        self._logger.propagate = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._logger.removeHandler(self)
        level, propagate = self._before
        self._logger.setLevel(level)
        self._logger.propagate = propagate
