"""Holds the built site to what readers need of it: ``python -m tools.check_site [FOLDER]``, a part of ``make docs``.

The search finds every option, error class and command.  Each error class with a remedy has an anchor there.  Each page
has its source, the version and the button that copies code, and loads nothing from the network.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from sphinx.search.en import SearchEnglish

from forebay._runtime.version import VERSION
from forebay.cli.commands import cli as command_line
from forebay.config import table
from tools.reference_pages import error_classes

SITE = Path(__file__).parents[1] / "build" / "site"
WITHOUT_SOURCE = ("genindex", "search", "py-modindex", "_modules/")
"""Pages that no file of docs/ makes."""
LOADING = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


def index_of(folder: Path) -> dict[str, Any]:
    """The search index, which is a call of a function with one dictionary."""
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text[text.index("(") + 1 : text.rindex(")")])
    return found


def pages_with(index: Mapping[str, Any], text: str) -> set[str]:
    """The pages that a search for all words of the text finds, as the site's own search takes it apart."""
    language = SearchEnglish({})
    found: set[int] | None = None
    for word in re.findall(r"\w+", text):
        if not language.word_filter(word.lower()):
            continue
        stem = language.stem(word.lower())
        here: set[int] = set()
        for kind in ("terms", "titleterms"):
            for term in {stem, word.lower()}:
                at = index[kind].get(term, [])
                here |= {at} if isinstance(at, int) else set(at)
        found = here if found is None else found & here
    return {index["docnames"][number] for number in found or ()}


def wanted() -> Iterator[tuple[str, str]]:
    """What a reader looks for: the kind, and the text."""
    yield from (("option", option.name) for option in table())
    yield from (("error class", kind.__name__) for kind in error_classes())
    yield from (("command", f"forebay {name}") for name in command_line.commands)


def complaints_of_search(index: Mapping[str, Any], texts: Iterable[tuple[str, str]]) -> Iterator[str]:
    for kind, text in texts:
        if not pages_with(index, text):
            yield f"the search does not find the {kind} {text}"


class Page(HTMLParser):
    """What a page loads, its anchors, and all of its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.text = text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        if tag == "a":
            self.links.append(given.get("href", ""))
        address = given.get(LOADING.get(tag, ""), "")
        if address and given.get("rel") not in {"search", "index", "next", "prev", "canonical"}:
            self.loads.append(address)


def complaints_of_page(name: str, page: Page) -> Iterator[str]:
    for address in page.loads:
        if re.match(r"(?:https?:)?//", address):
            yield f"{name}: loads {address}"
    if VERSION not in page.text:
        yield f"{name}: does not say the version"
    if not any("copy.js" in address for address in page.loads):
        yield f"{name}: has no button that copies code"
    if not name.startswith(WITHOUT_SOURCE) and not any("_sources/" in link for link in page.links):
        yield f"{name}: has no link to its source"


def complaints_of_anchors(remedies: Page, classes: Page) -> Iterator[str]:
    """The list of classes leads to each remedy, and each remedy that it leads to is there."""
    led = {link.partition("#")[2] for link in classes.links if "what_to_do_when.html#" in link}
    names = {kind.__name__ for kind in error_classes()}
    yield from (f"what_to_do_when.html: has no anchor {name}" for name in sorted(led - remedies.anchors))
    yield from (
        f"reference/errors.html: no link to the remedy of {name}" for name in sorted(names & remedies.anchors - led)
    )
    if not led:
        yield "reference/errors.html: leads to no remedy"


def check(folder: Path) -> list[str]:
    pages = {
        str(path.relative_to(folder)): Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))
    }
    complaints = [each for name, page in pages.items() for each in complaints_of_page(name, page)]
    complaints += complaints_of_anchors(pages["what_to_do_when.html"], pages["reference/errors.html"])
    return complaints + list(complaints_of_search(index_of(folder), wanted()))


def main(arguments: list[str]) -> int:
    complaints = check(Path(arguments[0]) if arguments else SITE)
    print("\n".join(complaints) if complaints else "site: search, anchors, sources and buttons are there")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
