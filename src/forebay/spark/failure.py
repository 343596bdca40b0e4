"""How an error of this package reaches the user: its own sentence, without the trace of Spark's processes.

Spark sends the text of an exception from the process in which it was raised to the JVM, and the JVM puts it into an
exception of its own.  How long the text is can be said only in the process that raises.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from forebay.errors import KafkaError

HIDE = "SPARK_HIDE_TRACEBACK"
"""Read by PySpark (``handle_worker_exception``) when it writes an exception down."""

_OURS = re.compile(r"\bforebay(?:\.\w+)+: (.+)$", re.MULTILINE)
# An error's class by its name, or by the dots of its module.
_ANY = re.compile(r"^(?:[\w.]*(?:Error|Exception)|[a-z]\w*(?:\.\w+)+): (.+)$", re.MULTILINE)


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

    Else the last line of a Python traceback, or Spark's first line without its class.
    """
    text = str(error)
    named: list[str] = _OURS.findall(text)
    if named:
        return named[-1].strip()
    ours: list[str] = _ANY.findall(text)
    if "Traceback (most recent call last)" in text and ours:
        return ours[-1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        # Py4J's own first line names a handle of its own; the Java exception follows.
        lines = [re.sub(r"^:?\s*[\w.$]*(?:Exception|Error):\s*", "", lines[1])]
    return re.sub(r"^\[[\w.]+\]\s*", "", lines[0]) if lines else type(error).__name__
