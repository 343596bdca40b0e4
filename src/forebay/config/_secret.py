"""Values that do not show themselves: a password as it is, a placeholder for it, or a callable that gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forebay._wire import NOT_UTF8, is_utf8
from forebay.errors import ConfigError

HIDDEN = "[hidden]"


class Secret:
    """Holds a password: printed, formatted or logged it is ``[hidden]``.

    It pickles with its value, for a worker process needs it; keep such pickles where passwords may be.
    """

    __slots__ = ("_value",)

    deferred = False
    """Whether ``reveal`` looks the value up each time, which may block."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def reveal(self) -> str:
        """The password itself; for the code that sends it, nothing else.

        Raises:
            ConfigError: it is deferred, and cannot be had.
        """
        return str(self._value)

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value == self._value

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


class Called(Secret):
    """A callable that gives the password; asked at each login, on the helper thread."""

    __slots__ = ()

    deferred = True

    def __init__(self, value: Callable[[], str]) -> None:
        import inspect  # who gives a password as it is does without

        if inspect.iscoroutinefunction(value):
            raise ConfigError(
                f"{value!r} is a coroutine function; it is called by a thread without an event loop, so it must be a "
                "function"
            )
        super().__init__(value)

    def reveal(self) -> str:
        """See ``Secret.reveal``; raises what the callable raises."""
        given = self._value()
        if isinstance(given, Secret):
            return given.reveal()
        if not isinstance(given, str):
            raise ConfigError(f"{self!r} must give a string, it gave {type(given).__name__}")
        if not is_utf8(given):
            raise ConfigError(f"{self!r}: {NOT_UTF8}")
        return given

    def __repr__(self) -> str:
        return f"<what {getattr(self._value, '__qualname__', type(self._value).__qualname__)} gives>"
