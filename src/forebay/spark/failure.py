"""How an error of this package reaches the user: its own sentence, without the trace of Spark's processes.

Spark sends the text of an exception from the process in which it was raised to the JVM, and the JVM puts it into an
exception of its own.  How long the text is can be said only in the process that raises.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import forebay
from forebay.errors import KafkaError

HIDE = "SPARK_HIDE_TRACEBACK"
"""Read by PySpark (``handle_worker_exception``) when it writes an exception down."""

_OURS = re.compile(r"\bforebay(?:\.\w+)+: (.+)$", re.MULTILINE)
# The frames of one traceback, and the line of its error; Spark writes its own words before the header.
_TRACE = re.compile(r"Traceback \(most recent call last\):?\n((?:[ \t].*\n)*)(\S.*)$", re.MULTILINE)
_FRAME = re.compile(r'^ +File "(.+)", line (\d+)', re.MULTILINE)
# Spark's own classes say nothing that their message does not say.
_OF_SPARK = re.compile(r"^pyspark\.[\w.]+: ")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_JAVA_CLASS = re.compile(r"^:?\s*[\w.$]*(?:Exception|Error):\s*")
_CONDITION = re.compile(r"^\[[\w.]+\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+$")

_PACKAGE = os.path.dirname(os.path.abspath(forebay.__file__)) + os.sep
_MACHINERY = re.compile(
    r"^<frozen |[/\\](?:pyspark|pyspark\.zip|py4j[^/\\]*)[/\\]|[/\\]lib[/\\]python3[^/\\]*[/\\](?!site-|dist-)"
)
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


@contextmanager
def shown_alone() -> Iterator[None]:
    """Errors of this package leave a Spark process without their traceback.

    Those say what to do; of anything else the trace is needed.  The variable is left as it is: a process that raised
    is not used again.
    """
    try:
        yield
    except (KafkaError, ImportError):
        os.environ[HIDE] = "1"
        raise


def reason(error: BaseException) -> str:
    """What matters of an error that Spark raised, as one line: this sink's own words if they are in it.

    Else the error of Python code that ran in a task, with the line of the user's file; else what Spark says first,
    and then what it says of each cause.
    """
    text = "\nCaused by: ".join(_texts(error))
    named: list[str] = _OURS.findall(text)
    if named:
        return named[-1].strip()
    if traces := _TRACE.findall(text):
        frames, said = traces[-1]
        return _OF_SPARK.sub("", said.strip()) + _place((file, int(line)) for file, line in _FRAME.findall(frames))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        # Py4J's own first line names a handle of its own; the Java exception follows.
        lines = [_JAVA_CLASS.sub("", lines[1]), *lines[2:]]
    return _with_causes(_CONDITION.sub("", lines[0]), _CAUSE.findall(text))


def raised(error: BaseException) -> str:
    """An error of a function of the user's that this process called: class, message, and the line of their file."""
    said = reason(error) if type(error).__module__.startswith(("pyspark.", "py4j.")) else str(error)
    place = _place((frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__))
    # A mistake of syntax says its place by itself.
    place = "" if isinstance(error, SyntaxError) else place
    return f"{type(error).__name__}: {said}{place}" if said else f"{type(error).__name__}{place}"


def _texts(error: BaseException | None) -> Iterator[str]:
    """Of the error, and of the causes that PySpark keeps beside its text."""
    while error is not None:
        yield str(error)
        error = getattr(error, "_cause", None)


def _with_causes(first: str, causes: Iterable[str]) -> str:
    """Spark's first sentence names a file or a stage, its causes the record and the value."""
    told = first
    for cause in causes:
        said = _STATE.sub("", _CONDITION.sub("", _JAVA_CLASS.sub("", cause.strip()))).strip()
        if said.rstrip(".") not in told:
            told = f"{_STATE.sub('', told).rstrip('.')}: {said}"
    return told


def _place(frames: Iterable[tuple[str, int]]) -> str:
    """The innermost line of the user's own files; of packages that are installed, the outermost."""
    users = [each for each in frames if not _MACHINERY.search(each[0]) and not each[0].startswith(_PACKAGE)]
    own = [each for each in users if not _INSTALLED.search(each[0])]
    for file, line in [*own[-1:], *users[:1]]:
        return f" ({os.path.basename(file)}, line {line})"
    return ""
