"""Classes of the clients that the drop-in classes stand for, where such a client is installed.

A consumer of such a client asks for its very class.  The clients take longer to import than all of this package, so
they are imported for a program that asks for such a class, and not for one that only sends.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def original(module: str, name: str, own: Any) -> Any:
    """The class ``name`` of the client's ``module``, or ``own`` where the client is not installed or has none."""
    try:
        return getattr(import_module(module), name, own)
    except ImportError:
        return own
