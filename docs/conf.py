"""Settings of the documentation site, which ``make docs`` builds with Sphinx.

Reference pages are written at the start of each build, so they cannot be older than the code.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from forebay._version import VERSION  # noqa: E402
from tools.reference_pages import write_pages  # noqa: E402

write_pages(Path(__file__).parent / "reference")

project = "forebay"
author = "the authors of forebay"
version = release = VERSION
# For those who change forebay: it leads to files, not to pages.
exclude_patterns = ["map.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# GitHub and the site find the same anchors.
myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block"]

# A signature as it is written; types of the standard library and of other packages have no page here.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
nitpick_ignore_regex: list[tuple[str, str]] = [(r"py:.*", r".*")]
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"forebay {VERSION}"
html_static_path = ["static"]
html_css_files = ["forebay.css"]
html_show_sourcelink = False
html_show_copyright = False


def _without_fields(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A named tuple's fields say ``Alias for field number 0`` if nobody documents them."""
    if len(lines) == 1 and lines[0].startswith("Alias for field number"):
        lines.clear()


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _without_fields)
