"""What the check of the site finds, on pages and an index that lack one thing each."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._runtime.version import VERSION

pytest.importorskip("sphinx", reason="the site is built with the extra docs")

from tools.check_site import (
    Page,
    complaints_of_anchors,
    complaints_of_page,
    complaints_of_search,
    pages_with,
    wanted,
)

INDEX: dict[str, Any] = {
    "docnames": ["options", "tuning", "errors"],
    "terms": {"linger": [0, 1], "ms": 0, "batch": 1, "recordtoolargeerror": 2},
    "titleterms": {"size": 1},
}
GOOD = (
    f'<html><title>forebay {VERSION}</title><script src="_static/copy.js"></script>'
    '<link rel="search" href="//anything"><a href="_sources/memory.md.txt">source</a></html>'
)


def test_a_page_is_found_by_all_words_of_a_text() -> None:
    assert pages_with(INDEX, "linger.ms") == {"options"}
    assert pages_with(INDEX, "batch.size") == {"tuning"}, "in the text and in a title"
    assert pages_with(INDEX, "linger.batch.ms") == set()
    assert pages_with(INDEX, "RecordTooLargeError") == {"errors"}


def test_what_the_search_does_not_find_is_named() -> None:
    found = complaints_of_search(INDEX, [("option", "linger.ms"), ("command", "forebay perf")])
    assert list(found) == ["the search does not find the command forebay perf"]


def test_options_errors_and_commands_are_looked_for() -> None:
    found = set(wanted())
    assert found >= {("option", "linger.ms"), ("error class", "KafkaTimeoutError"), ("command", "forebay perf")}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (GOOD.replace("_static/copy.js", "https://cdn.example/copy.js"), "loads https://cdn.example/copy.js"),
        (GOOD.replace("_static/copy.js", "//cdn.example/copy.js"), "loads //cdn.example/copy.js"),
        (GOOD.replace(VERSION, "?"), "does not say the version"),
        (GOOD.replace("_static/copy.js", "_static/other.js"), "has no button that copies code"),
        (GOOD.replace("_sources/", "elsewhere/"), "has no link to its source"),
    ],
)
def test_what_a_page_lacks_is_named(page: str, said: str) -> None:
    assert list(complaints_of_page("memory.html", Page(GOOD))) == []
    assert list(complaints_of_page("memory.html", Page(page))) == [f"memory.html: {said}"]


def test_each_remedy_is_led_to_and_each_link_leads_somewhere() -> None:
    remedies = Page('<code id="KafkaTimeoutError">')
    link = '<a href="../what_to_do_when.html#{}">'
    assert list(complaints_of_anchors(remedies, Page(link.format("KafkaTimeoutError")))) == []
    assert list(complaints_of_anchors(remedies, Page(link.format("GoneError")))) == [
        "what_to_do_when.html: has no anchor GoneError",
        "reference/errors.html: no link to the remedy of KafkaTimeoutError",
    ]
    assert "reference/errors.html: leads to no remedy" in list(complaints_of_anchors(remedies, Page("")))
