"""``_protocol.produce`` in both of its forms, in one process: as imported, and its source run as Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import forebay._protocol
from forebay._protocol import produce


def _from_source() -> ModuleType:
    path = Path(forebay._protocol.__path__[0]) / "produce.py"
    spec = importlib.util.spec_from_file_location("forebay._protocol.interpreted_produce", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


imported: ModuleType = produce
interpreted = _from_source()
FORMS = [imported, interpreted]
