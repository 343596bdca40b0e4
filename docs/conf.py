"""Settings of the documentation site, which ``make docs`` builds with Sphinx.

Reference pages are written at the start of each build, so they cannot be older than the code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from forebay._runtime.version import VERSION  # noqa: E402
from tools.reference_pages import error_classes, write_pages  # noqa: E402

write_pages(Path(__file__).parent / "reference")

project = "forebay"
author = "the authors of forebay"
version = release = VERSION
# For those who change forebay: it leads to files, not to pages.
exclude_patterns = ["map.md"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]

# GitHub and the site find the same anchors.
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block"]

# A signature with its types, an argument a line where it is long; types of the standard library have no page here.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 88
nitpick_ignore_regex: list[tuple[str, str]] = [(r"py:.*", r".*")]
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"forebay {VERSION}"
html_static_path = ["static"]
html_css_files = ["forebay.css"]
html_js_files = ["copy.js"]
html_show_sourcelink = True
html_show_copyright = False


def _without_fields(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """A named tuple's fields say ``Alias for field number 0`` if nobody documents them."""
    if len(lines) == 1 and lines[0].startswith("Alias for field number"):
        lines.clear()


def _with_anchors(app: Any, doctree: Any) -> None:
    """An error class has an anchor of its name where its remedy stands; the list of classes leads there."""
    names = {kind.__name__ for kind in error_classes()}
    page = app.env.docname
    for row in doctree.findall(nodes.row):
        for code in (
            row[0].findall(nodes.literal)
            if page in ("what_to_do_when", "reference/errors")
            else ()
        ):
            name = code.astext()
            if name not in names:
                continue
            if page == "what_to_do_when":
                code["ids"].append(name)
            elif _has_remedy(name):
                link = nodes.reference("", "", refuri=f"../what_to_do_when.html#{name}")
                code.replace_self(link)
                link += code


def _has_remedy(name: str) -> bool:
    """Whether the first cell of a row of that page has it."""
    rows = (
        (ROOT / "docs" / "what_to_do_when.md").read_text(encoding="utf-8").splitlines()
    )
    return any(
        f"`{name}`" in row.split("|")[1] for row in rows if row.startswith("| `")
    )


def setup(app: Any) -> None:
    app.connect("doctree-read", _with_anchors)
    app.connect("autodoc-process-docstring", _without_fields)
