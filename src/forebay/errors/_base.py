"""The root of the errors and the branches that decide how the producer reacts to one."""

from __future__ import annotations

import copy
import sys
from types import TracebackType
from typing import Any, Self, TypeVar

PUBLIC_MODULE = "forebay.errors"
AnyError = TypeVar("AnyError", bound="KafkaError")
Raised = TypeVar("Raised", bound=BaseException)


LONGEST_SAID = 500
"""Characters of a peer's text that a message shows."""


def printable(text: str, most: int | None = LONGEST_SAID) -> str:
    """A text for a message, a log or a terminal: in one line, with escapes for what a terminal obeys, and not too long.

    Every text of a peer goes through it: of a broker, a proxy, an identity provider, a registry or a stranger; before
    the login anybody may be one.

    Args:
        most: characters that are shown; None for text that is bounded elsewhere.
    """
    cut = text if most is None else text[:most]
    if not cut.isprintable():
        cut = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cut)
    return cut if most is None or len(text) <= most else f"{cut}..."


class KafkaError(Exception):
    """Root of every error this package raises on purpose.

    Args:
        message: what went wrong; the meaning of the broker's code if left out.
        context: facts about where and when (``node``, ``attempts``, ``age_ms``, ``phase`` ...), shown after the
            message and kept in ``context``; they survive pickling, as does a cause that is a KafkaError.
    """

    __module__ = PUBLIC_MODULE

    code: int | None = None
    """The broker's error code, None where the client itself found the error."""
    name: str = "KafkaError"
    """Kafka's constant for the code (``NOT_LEADER_OR_FOLLOWER``), else the name of the class."""
    # What the class mostly means; an error of a transaction has what it meant there instead, on the instance.
    retriable: bool = False
    """The same request may succeed later."""
    fatal: bool = False
    """This producer cannot go on; make a new one."""
    txn_requires_abort: bool = False
    """The open transaction can only be aborted; the producer may go on after that."""
    invalid_metadata: bool = False
    """What the client knows of the cluster is out of date."""

    def __init_subclass__(cls, *, code: int | None = None, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A subclass never takes over its parent's code: BufferExhaustedError is no REQUEST_TIMED_OUT.
        cls.code = code
        cls.name = name or cls.__name__
        if cls.__module__.startswith(PUBLIC_MODULE + "."):
            cls.__module__ = PUBLIC_MODULE  # what tracebacks, docs and pickles show

    delivery: Any = None
    """Of an error that ``send_batch`` raised: the BatchDelivery of the rows taken before; not pickled."""

    def __init__(self, message: str = "", /, **context: object) -> None:
        text = message or self.default_message()
        # Much of it may be a peer's text, which must not reach a log or a terminal as it is.  A user's code may give
        # anything.
        super().__init__(printable(text, None) if isinstance(text, str) else text)
        self.context: dict[str, object] = context

    @classmethod
    def default_message(cls) -> str:
        """The meaning of the code in words; the name where there is none."""
        if cls.code is None or not cls.__doc__:
            return cls.name
        return cls.__doc__.partition("\n")[0].strip()

    @property
    def message(self) -> str:
        """The text without the context."""
        return str(self.args[0]) if self.args else ""

    def with_context(self, **context: object) -> Self:
        """Adds facts to this error (in place) and returns it; facts given before stay."""
        self.context = {**context, **self.context}
        return self

    def __str__(self) -> str:
        if not self.context:
            return self.message
        facts = ", ".join(f"{key}={value}" for key, value in self.context.items())
        return f"{self.message} ({printable(facts, None)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Not through the constructor: subclasses may have another signature, and OSError has its own idea.
        state = {name: value for name, value in self.__dict__.items() if name != "delivery"}
        if isinstance(self.__cause__, KafkaError):
            state["__cause__"] = self.__cause__
        return _rebuild, (type(self), self.args), state


def own_copy(error: Raised) -> Raised:
    """A copy to be raised: each raise lengthens a traceback, and that pins frames, which may hold the future."""
    own = copy.copy(error)
    own.__cause__ = error.__cause__
    return own.with_traceback(None)


def bare(error: Raised) -> Raised:
    """``error`` itself, without the frames that may have held a secret, and so what is behind it.

    Programs that report errors show the locals of each frame.  What reads a password has it in a local, also in the
    standard library.  So the frames of both go, and those of the user's code stay.  What ``from None`` hides goes as
    a whole: its text may be the secret.  The road not taken: to delete each such local, which the next one forgets.
    """
    left: list[BaseException] = [error]
    seen: set[int] = set()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.__suppress_context__:
            one.__context__ = one.__cause__
        one.__traceback__ = _of_users(one.__traceback__)
        left.extend(each for each in (one.__cause__, one.__context__) if each is not None)
    return error


def _of_users(trace: TracebackType | None) -> TracebackType | None:
    kept = []
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != "forebay" and package not in sys.stdlib_module_names:
            kept.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for one in reversed(kept):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def reworded(error: AnyError, message: str) -> AnyError:
    """An error of the same class and context with other words, and ``error`` as its cause."""
    own = own_copy(error)
    own.args = (message,)
    own.__cause__ = error
    return own


def caused(error: AnyError, cause: KafkaError | None) -> AnyError:
    """``error`` itself, with what was behind it, if that is known: as its cause, and in its words."""
    if cause is not None:
        error.with_context(last_error=f"{type(cause).__name__}: {cause.message}")
        error.__cause__ = cause
    return error


def judged(error: AnyError, *, fatal: bool = False, requires_abort: bool = False) -> AnyError:
    """``error`` with what it means here in place of what its class mostly means.

    A copy, unless the flags are right already: one lost connection is the error of many batches.  Never retriable: what
    may be tried again by itself was tried.
    """
    if (error.fatal, error.txn_requires_abort, error.retriable) == (fatal, requires_abort, False):
        return error
    own = own_copy(error)
    own.fatal, own.txn_requires_abort, own.retriable = fatal, requires_abort, False
    return own


def _rebuild(cls: type[KafkaError], args: tuple[Any, ...]) -> KafkaError:
    error = cls.__new__(cls)
    error.args = args
    return error


class ApiError(KafkaError):
    """An error that belongs to a record or request: it arrives in the future and the callback, not from send()."""


class RetriableError(ApiError):
    """A passing condition: the same request may succeed later."""

    retriable = True


class RefreshRetriableError(RetriableError):
    """Passing, and only after what was looked up before (leader, coordinator) is looked up again."""


class InvalidMetadataError(RefreshRetriableError):
    """The client's picture of the cluster is out of date."""

    invalid_metadata = True


class AuthenticationError(ApiError):
    """The broker did not accept who we are; never retried by itself."""


class AuthorizationError(ApiError):
    """The broker knows who we are and does not allow this."""
