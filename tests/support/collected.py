"""A plugin of pytest for ``--collect-only``: writes each test's marks to the file that ``FOREBAY_COLLECTED`` names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

VARIABLE = "FOREBAY_COLLECTED"


def pytest_collection_finish(session: pytest.Session) -> None:
    marks = {item.nodeid: sorted({mark.name for mark in item.iter_markers()}) for item in session.items}
    Path(os.environ[VARIABLE]).write_text(json.dumps(marks))
