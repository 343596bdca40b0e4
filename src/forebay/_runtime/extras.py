"""Modules that need a package of an extra say which extra it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def of_extra(module: str, extra: str) -> Iterator[None]:
    """Around imports of ``module``: a package that is missing is one of ``extra``.

    Raises:
        ModuleNotFoundError: as Python does, and says what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "forebay":
            raise
        text = f"{module} needs the package {error.name}, which is not installed: pip install 'forebay[{extra}]'"
        raise ModuleNotFoundError(text, name=error.name) from None
