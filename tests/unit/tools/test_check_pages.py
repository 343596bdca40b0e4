"""The pages' limits, on pages that break one each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_pages import (
    CODE_WIDTH,
    FIGURE_ROWS,
    FIGURES,
    LINES,
    LONG_WORDS,
    MEDIAN_WORDS,
    PAGES,
    README_LINES,
    REPEATED_WORDS,
    check,
    complaints_of_names,
    complaints_of_readme,
    complaints_of_repetition,
    complaints_of_sentences,
    complaints_of_width,
    paragraphs,
    sentence_lengths,
    without_map,
)
from tools.file_map import BEGIN, END


def words(count: int) -> str:
    return " ".join(["word"] * (count - 1) + ["end."])


def page(*sentences: str) -> str:
    return "# Title\n\n" + "  ".join(sentences) + "\n"


def test_sentences_are_those_of_paragraphs_and_items_not_of_tables_and_code() -> None:
    text = "# Head\n\nOne two.  Three\nfour five!\n\n- a `b.c` d\n  e\n1. f\n"
    text += "\n| x | y |\n\n```\ncode. more.\n```\nlast one\n"
    assert list(paragraphs(text)) == ["One two.  Three four five!", "a `b.c` d e", "f", "last one"]
    assert sentence_lengths(text) == [1, 2, 2, 3, 4]


def test_a_bold_lead_ends_a_sentence() -> None:
    assert sentence_lengths("**A lead.**  And the text.\n") == [2, 3]


def test_what_the_map_says_is_not_measured() -> None:
    assert without_map(f"a\n{BEGIN}\nmap\n{END}\nb\n") == "a\n\nb\n"


def test_the_median_and_the_long_sentences_have_a_limit_each() -> None:
    at_limit = [words(MEDIAN_WORDS)] * 9 + [words(LONG_WORDS)]
    assert list(complaints_of_sentences(page(*at_limit), "P.md")) == []
    (median,) = complaints_of_sentences(page(*[words(MEDIAN_WORDS + 1)] * 10), "P.md")
    assert median == f"P.md: the median sentence has {MEDIAN_WORDS + 1} words, allowed are {MEDIAN_WORDS}"
    (long,) = complaints_of_sentences(page(*[words(3)] * 9, words(LONG_WORDS + 1)), "P.md")
    assert f"{LONG_WORDS + 1} words or more, allowed are {LONG_WORDS}" in long


def test_a_page_without_a_sentence_is_not_taken_for_a_good_one() -> None:
    assert list(complaints_of_sentences("# Title\n", "P.md")) == ["P.md: has no sentence"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "forebay"
    (package / "_runtime").mkdir(parents=True)
    (package / "_send").mkdir()
    (package / "_send/path.py").write_text("class SendPath:\n    def send(self): ...\n")
    (package / "_runtime" / "primitives.pxd").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "quote",
    [
        "_send/path.py",
        "src/forebay/_send/path.py",
        "_runtime/*.pxd",
        "_runtime/",
        ".py",
        "SendPath.send",
        "send()",
        "_runtime",
        "a b",
        "-1",
    ],
)
def test_names_that_lead_somewhere_and_what_is_no_name_pass(root: Path, quote: str) -> None:
    assert list(complaints_of_names(f"See `{quote}`.\n", "P.md", root)) == []


@pytest.mark.parametrize(
    ("quote", "said"),
    [
        ("_sent.py", "no file or folder"),
        ("_network/lending.py", "no file or folder"),
        ("_runtime/*.h", "no file or folder"),
        ("docs/x.md", "no file or folder"),
        ("SendPath.borrow", "no source has the name borrow"),
        ("is_long", "no source has the name is_long"),
        ("lend()", "no source has the name lend"),
    ],
)
def test_names_that_lead_nowhere_are_named(root: Path, quote: str, said: str) -> None:
    (complaint,) = complaints_of_names(f"See `{quote}`.\n", "P.md", root)
    assert complaint.startswith(f"P.md: `{quote}`") and said in complaint


FIGURE_TABLE = FIGURES[0] + "| a | b |\n|---|---|\n" + "| x | 1 |\n" * FIGURE_ROWS + FIGURES[1] + "\n"


def test_readme_has_a_limit_of_lines(root: Path) -> None:
    rest = "x\n" * (README_LINES - FIGURE_TABLE.count("\n"))
    assert list(complaints_of_readme(FIGURE_TABLE + rest, FIGURE_TABLE, root)) == []
    (complaint,) = complaints_of_readme(FIGURE_TABLE + rest + "x\n", FIGURE_TABLE, root)
    assert complaint == f"README.md: {README_LINES + 1} lines, allowed are {README_LINES}"


def test_readme_names_no_file_that_is_not_there(root: Path) -> None:
    (complaint,) = complaints_of_readme(FIGURE_TABLE + "`docs/gone.md`\n", FIGURE_TABLE, root)
    assert complaint == "README.md: `docs/gone.md` is no file or folder"


def test_figures_of_readme_are_those_of_the_page(root: Path) -> None:
    other = FIGURE_TABLE.replace("| x | 1 |", "| x | 2 |", 1)
    (complaint,) = complaints_of_readme(other, FIGURE_TABLE, root)
    assert complaint.endswith("no such row between its marks: | x | 2 |")
    short = FIGURE_TABLE.replace("| x | 1 |\n", "", 1)
    (complaint,) = complaints_of_readme(short, FIGURE_TABLE, root)
    assert f"{FIGURE_ROWS - 1} rows of figures" in complaint
    (complaint,) = complaints_of_readme("Without marks.\n", FIGURE_TABLE, root)
    assert "0 rows of figures" in complaint


@pytest.mark.parametrize(
    "text", [words(REPEATED_WORDS) + "\n", "```python\nprint()\n```\n", "- " + words(REPEATED_WORDS)]
)
def test_what_two_pages_say_is_told_once_for_the_second(text: str) -> None:
    (complaint,) = complaints_of_repetition({"a.md": text + "\n\n" + text, "b.md": text})
    assert complaint.startswith("b.md: a.md says this, too: ")
    assert list(complaints_of_repetition({"a.md": words(REPEATED_WORDS - 1), "b.md": words(REPEATED_WORDS - 1)})) == []


def test_a_line_of_code_has_a_width_and_no_other_line_has() -> None:
    fits, wide = "x" * CODE_WIDTH, "x" * (CODE_WIDTH + 1)
    assert list(complaints_of_width(f"{wide}\n\n```python\n{fits}\n```\n{wide}\n", "P.md")) == []
    (complaint,) = complaints_of_width(f"```sh\n{fits}\n{wide}\n```\n", "P.md")
    assert complaint == f"P.md:3: {CODE_WIDTH + 1} characters of code, allowed are {CODE_WIDTH}"


def test_the_lines_of_the_design_are_counted(root: Path) -> None:
    for name in PAGES:
        (root / name).write_text("One.\n")
    (root / "docs").mkdir()
    (root / "docs" / "measurements.md").write_text("One.\n" + FIGURE_TABLE)
    (root / "README.md").write_text("One.\n" + FIGURE_TABLE)
    body = "One.\n\n" * (LINES // 2)
    (root / "DESIGN.md").write_text(body)
    assert check(root) == []
    (root / "DESIGN.md").write_text(body + "Two.\n")
    assert check(root) == [f"DESIGN.md: {LINES + 1} lines, allowed are {LINES}"]
