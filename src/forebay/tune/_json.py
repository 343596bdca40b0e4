"""The JSON of results: what is endless, such as the latency of a load that is not served, is null in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def json_of(found: Any, *, indent: int | None = 2) -> str:
    """The text with the end of its line; what JSON does not know is written as ``str`` says it."""
    return json.dumps(finite(found), indent=indent, ensure_ascii=False, default=str, allow_nan=False) + "\n"


def finite(found: Any) -> Any:
    """The same with None in place of each number that is infinite or none."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Mapping):
        return {name: finite(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [finite(each) for each in found]
    return found
