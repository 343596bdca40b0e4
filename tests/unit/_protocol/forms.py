"""``_protocol.produce`` and ``produce_response`` in both forms, in one process: as imported, and run as Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import forebay._protocol
from forebay._protocol import produce, produce_response


def _from_source(name: str) -> ModuleType:
    path = Path(forebay._protocol.__path__[0]) / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"forebay._protocol.interpreted_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


REQUEST_FORMS: list[ModuleType] = [produce, _from_source("produce")]
RESPONSE_FORMS: list[ModuleType] = [produce_response, _from_source("produce_response")]
