"""Which thread owns a part that belongs to one thread: a check that only the interpreted form makes.

Callers write ``if not cython.compiled: check_owner(self)``, which the compiler leaves out.
"""

from __future__ import annotations

from forebay._runtime.threads import get_ident


def check_owner(part: object) -> None:
    """Checks that the calling thread is the first one that used ``part``.

    Raises:
        AssertionError: another thread uses it.
    """
    caller = get_ident()
    owner = vars(part).setdefault("_owner", caller)
    if owner != caller:
        raise AssertionError(f"{type(part).__name__} belongs to thread {owner} and was used by thread {caller}")


def change_owner(part: object) -> None:
    """The next thread that uses ``part`` owns it.  For parts that threads use in turn, under a lock."""
    getattr(part, "__dict__", {}).pop("_owner", None)
