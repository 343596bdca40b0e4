"""Writes the map of files, docs/map.md, from the first sentence of each module: ``python -m tools.file_map [--check]``.

A map that is kept by hand is wrong within a week; the modules say themselves what they are.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

BEGIN, END = "<!-- file map: begin (make generated) -->", "<!-- file map: end -->"
ROOTS = ("src/forebay", "src/pyspark_forebay", "demo", "bench", "tools")


def first_sentence(source: str) -> str:
    """The first sentence of a module's docstring on one line; empty if it has none."""
    paragraph = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph)[0].replace("``", "`").replace("|", "\\|")


def rows(root: Path) -> Iterator[str]:
    """The map's lines, folder by folder."""
    for top in ROOTS:
        folders = sorted({path.parent for path in (root / top).rglob("*.py")})
        for folder in folders:
            described = [
                (path.name, first_sentence(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.py"))
            ]
            # A package without code of its own says nothing worth a line.
            described = [(name, text) for name, text in described if text and not text.startswith("See DESIGN")]
            if described:
                yield f"\n**{folder.relative_to(root)}/**\n\n| | |\n|---|---|"
                yield from (f"| `{name}` | {text} |" for name, text in described)


def with_map(text: str, root: Path) -> str:
    """The page's text with a fresh map between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, *rows(root), "", END + after])


def main() -> int:
    root = Path(__file__).parents[1]
    page = root / "docs" / "map.md"
    text = page.read_text(encoding="utf-8")
    fresh = with_map(text, root)
    if sys.argv[1:] != ["--check"]:
        page.write_text(fresh, encoding="utf-8")
        return 0
    if fresh != text:
        print("docs/map.md: the map of files is not what the modules say; run `make generated`", file=sys.stderr)
    return int(fresh != text)


if __name__ == "__main__":
    sys.exit(main())
