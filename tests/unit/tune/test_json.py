"""The JSON of results has no number that other readers of JSON refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from forebay import tune
from forebay.tune._json import json_of


def test_what_is_endless_is_null() -> None:
    given = {"a": math.inf, "b": (1.5, -math.inf, [math.nan, {"c": 2}]), "d": "inf", "e": Path("x")}
    text = json_of(given)
    assert text.endswith("}\n")
    assert json.loads(text) == {"a": None, "b": [1.5, None, [None, {"c": 2}]], "d": "inf", "e": "x"}
    assert json_of({"a": 1}, indent=None) == '{"a": 1}\n'


@pytest.mark.parametrize("path", sorted(Path(tune.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_results_are_written_in_one_way(path: Path) -> None:
    assert path.name == "_json.py" or "json.dumps(" not in path.read_text(encoding="utf-8")
