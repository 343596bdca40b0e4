"""A value that does not show itself."""

from __future__ import annotations

HIDDEN = "[hidden]"


class Secret:
    """Holds a password: printed, formatted or logged it is ``[hidden]``.

    It pickles with its value, for a worker process needs it; keep such pickles where passwords may be.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The password itself; for the code that sends it, nothing else."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, (self._value,)
