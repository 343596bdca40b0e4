"""The notebook of demo/notebooks, executed from its first cell to its last."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.testing import EmbeddedBroker
from tests.support.own_packages import install
from tests.support.pace import PROGRAM_S
from tests.support.readme import ROOT

pytestmark = pytest.mark.rest("installs a kernel for notebooks")

NOTEBOOK = ROOT / "demo" / "notebooks" / "dataframe_to_topic.ipynb"
EXECUTE = """
import sys
import nbclient, nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


def test_the_notebook_runs_and_says_what_is_in_the_topic(embedded: EmbeddedBroker, tmp_path: Path) -> None:
    environment = install(tmp_path / "packages", "pandas", "nbclient", "nbformat", "ipykernel")
    environment |= {
        "KAFKA_BOOTSTRAP_SERVERS": embedded.bootstrap_servers,
        "JUPYTER_PATH": str(tmp_path / "packages" / "share" / "jupyter"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
    }
    executed = tmp_path / "executed.ipynb"
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(NOTEBOOK), str(executed)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    printed = "".join(text for text in cells[-1]["outputs"][0]["text"])
    assert 'b\'a\' b\'{"driver":"a","km":8}\'' in printed
    assert len(printed.splitlines()) == 3


def test_it_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [cell["outputs"] for cell in cells if cell["cell_type"] == "code"] == [[]] * 3
