"""Holds the pages for people to their limits, and DESIGN.md's names to the code: ``python -m tools.check_pages``.

It checks DESIGN.md: the length, that each path in backticks exists, and that each name in backticks occurs in the
sources.  It checks each page: the median and the 90th percentile of the words in a sentence.
It checks README: the length, that each path in backticks exists, and that docs/measurements.md has its figures.
It checks README and the site together: no sentence and no program stands in two pages, no line of code is too wide.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.file_map import BEGIN, END

PAGES = ("DESIGN.md", "README.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages whose sentences are measured."""
LINES = 380
"""Of DESIGN.md."""
README_LINES = 160
FIGURES = ("<!-- figures:begin -->\n", "<!-- figures:end -->")
"""Around the rows that README and docs/measurements.md have both."""
FIGURE_ROWS = 6
CODE_WIDTH = 88
"""Of a line of code: what the site shows without scrolling."""
CODE = ("python", "sh", "toml", "yaml", "text")
REPEATED_WORDS = 8
"""A sentence of fewer words may stand in several pages."""
MEDIAN_WORDS, LONG_WORDS = 18, 32
"""The most words of the median sentence, and of the sentence at the 90th percentile."""
SOURCES = ("src", "tests", "tools", "bench", "demo")
SOURCE_SUFFIXES = (".py", ".pxd", ".h")
SETTINGS = ("pyproject.toml", "setup.py", "Makefile", ".pre-commit-config.yaml")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]*)*")
FILE_SUFFIXES = (".py", ".pxd", ".pyi", ".h", ".md", ".toml", ".yml", ".yaml")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")
NOT_PROSE = ("|", "#", "<!--", "```")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
SENTENCE_END = re.compile(r"(?<=[.!?])[*\")]*\s+")


def without_map(text: str) -> str:
    """A page without what ``tools.file_map`` writes."""
    before, _, rest = text.partition(BEGIN)
    return before + rest.partition(END)[2]


def without_code(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def paragraphs(text: str) -> Iterator[str]:
    """Paragraphs and list items, each on one line; no tables, headings or code."""
    gathered: list[str] = []
    for raw in [*without_code(without_map(text)).split("\n"), ""]:
        line = raw.strip()
        starts = ITEM.match(line) is not None
        if gathered and (not line or starts or line.startswith(NOT_PROSE)):
            yield " ".join(gathered)
            gathered = []
        if line and not line.startswith(NOT_PROSE):
            gathered.append(ITEM.sub("", line, count=1) if starts else line)


def sentence_lengths(text: str) -> list[int]:
    """Words of each sentence, shortest first."""
    sentences = (sentence for paragraph in paragraphs(text) for sentence in SENTENCE_END.split(paragraph))
    return sorted(len(sentence.split()) for sentence in sentences if sentence)


def complaints_of_sentences(text: str, page: str) -> Iterator[str]:
    """What is over the limits of English."""
    lengths = sentence_lengths(text)
    if not lengths:
        yield f"{page}: has no sentence"
        return
    median, long = statistics.median(lengths), lengths[len(lengths) * 9 // 10]
    if median > MEDIAN_WORDS:
        yield f"{page}: the median sentence has {median:g} words, allowed are {MEDIAN_WORDS}"
    if long > LONG_WORDS:
        yield f"{page}: one sentence in ten has {long} words or more, allowed are {LONG_WORDS}"


def quoted(text: str) -> list[str]:
    """What stands in backticks outside code and the map, each once."""
    return sorted(set(re.findall(r"`([^`\n]+)`", without_code(without_map(text)))))


def is_path(quote: str) -> bool:
    """Whether it is meant as a file or folder of this repository."""
    if quote in FILE_SUFFIXES or PATH.fullmatch(quote) is None:
        return False
    return "/" in quote or quote.endswith(FILE_SUFFIXES)


def exists(path: str, root: Path) -> bool:
    """Whether a path or pattern leads somewhere, from the root or from the package."""
    return any(next(base.glob(path.rstrip("/")), None) is not None for base in (root, root / "src" / "forebay"))


def words_of_sources(root: Path) -> set[str]:
    """Every identifier of the sources and the settings, and the names of files."""
    found: set[str] = set()
    files = [path for folder in SOURCES for path in (root / folder).rglob("*") if path.suffix in SOURCE_SUFFIXES]
    for path in (*files, *(root / name for name in SETTINGS)):
        if path.name != Path(__file__).name and path.is_file():
            found.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
            found.add(path.stem)
    return found | {path.name for folder in SOURCES for path in (root / folder).rglob("*") if path.is_dir()}


def complaints_of_names(text: str, page: str, root: Path) -> Iterator[str]:
    """Paths and names in backticks that lead nowhere."""
    words = words_of_sources(root)
    for quote in quoted(text):
        if is_path(quote):
            if not exists(quote, root):
                yield f"{page}: `{quote}` is no file or folder, neither here nor in src/forebay"
        elif NAME.fullmatch(quote):
            gone = [part for part in quote.removesuffix("()").split(".") if part not in words]
            if gone:
                yield f"{page}: `{quote}`: no source has the name {gone[0]}"


def pages_of_the_site(root: Path) -> list[str]:
    """Those of docs/ that have text of their own, and not only what they include."""
    pages = [path for path in sorted((root / "docs").glob("*.md")) if sentence_lengths(path.read_text("utf-8"))]
    return [str(path.relative_to(root)) for path in pages]


def between(text: str, marks: tuple[str, str]) -> list[str]:
    """The lines between two marks; none if the first is not there."""
    return text.partition(marks[0])[2].partition(marks[1])[0].splitlines()


def complaints_of_readme(text: str, measurements: str, root: Path) -> Iterator[str]:
    """What README is too long for, names in vain, or says otherwise than the page of figures."""
    if (lines := text.count("\n")) > README_LINES:
        yield f"README.md: {lines} lines, allowed are {README_LINES}"
    for quote in quoted(text):
        if is_path(quote) and not exists(quote, root):
            yield f"README.md: `{quote}` is no file or folder"
    here, there = between(text, FIGURES), between(measurements, FIGURES)
    if len(here) != FIGURE_ROWS + 2:
        yield f"README.md: {max(0, len(here) - 2)} rows of figures between its marks, it must have {FIGURE_ROWS}"
    for line in here:
        if line not in there:
            yield f"README.md: docs/measurements.md has no such row between its marks: {line}"


def complaints_of_width(text: str, page: str) -> Iterator[str]:
    """Lines of code that a reader would have to scroll."""
    language = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            language = line[3:].strip() if not language else ""
        elif language in CODE and len(line) > CODE_WIDTH:
            yield f"{page}:{number}: {len(line)} characters of code, allowed are {CODE_WIDTH}"


def said(text: str) -> Iterator[str]:
    """The longer sentences of a page, and its programs."""
    for paragraph in paragraphs(text):
        for sentence in SENTENCE_END.split(paragraph):
            if len(sentence.split()) >= REPEATED_WORDS:
                yield sentence
    yield from re.findall(r"^```(?:python|sh|toml)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def complaints_of_repetition(pages: Mapping[str, str]) -> Iterator[str]:
    """What a page says that one before it has said."""
    seen: dict[str, str] = {}
    for page, text in pages.items():
        for each in said(text):
            if seen.setdefault(each, page) != page:
                yield f"{page}: {seen[each]} says this, too: {' '.join(each.split())[:80]}"


def check(root: Path) -> list[str]:
    """Every line of complaint about the pages at ``root``."""
    complaints: list[str] = []
    for page in (*PAGES, *pages_of_the_site(root)):
        text = (root / page).read_text(encoding="utf-8")
        complaints += complaints_of_sentences(text, page)
    readme, *others = ["README.md", *pages_of_the_site(root)]
    texts = {page: (root / page).read_text(encoding="utf-8") for page in (readme, *others)}
    complaints += complaints_of_readme(texts[readme], texts.get("docs/measurements.md", ""), root)
    complaints += complaints_of_repetition(texts)
    for page, text in texts.items():
        complaints += complaints_of_width(text, page)
    design = (root / "DESIGN.md").read_text(encoding="utf-8")
    if (lines := design.count("\n")) > LINES:
        complaints.append(f"DESIGN.md: {lines} lines, allowed are {LINES}")
    return complaints + list(complaints_of_names(design, "DESIGN.md", root))


def main() -> int:
    complaints = check(Path(__file__).parents[1])
    print("\n".join(complaints) if complaints else "pages: all of it is as it should be")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
