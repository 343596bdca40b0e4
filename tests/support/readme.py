"""Code blocks of README and of other pages, and how one is run: as it stands, but for the broker's address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import forebay

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
ADDRESS = "localhost:9092"
# A directive has an argument behind its name; passed over, its end would be taken for the begin of another block.
FENCE = re.compile(r"^```([^\s`]*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    """A fenced block: its language, its text, and the line of the page where it begins."""

    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.language}-{self.line}"

    def needs_spark(self) -> bool:
        return "pyspark" in self.text or "forebay pipeline" in self.text


def snippets(page: Path = README) -> list[Snippet]:
    text = page.read_text(encoding="utf-8")
    return [Snippet(found[1], found[2], text[: found.start()].count("\n") + 1) for found in FENCE.finditer(text)]


def run(snippet: Snippet, folder: Path, bootstrap_servers: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Runs a block in a process of its own, in ``folder``, with this Python and this package first on the path."""
    path = folder / f"snippet.{'py' if snippet.language == 'python' else 'sh'}"
    path.write_text(snippet.text.replace(ADDRESS, bootstrap_servers), encoding="utf-8")
    command = sys.executable if snippet.language == "python" else "sh"
    # The folder of this Python has the command `forebay`, as in an environment that was activated.
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return subprocess.run(
        [command, str(path)],
        cwd=folder,
        env={**os.environ, "PATH": search, "PYTHONPATH": str(Path(forebay.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
