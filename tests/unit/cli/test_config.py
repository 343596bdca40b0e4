"""cli.config: the option table in three forms."""

from __future__ import annotations

import json

import pytest

from forebay.cli.config import render
from forebay.config import table
from forebay.errors import ConfigError


def test_every_form_has_every_option() -> None:
    names = {option.name for option in table()}
    assert {row["name"] for row in json.loads(render("json"))} == names
    assert {line.split("`")[1] for line in render("markdown").splitlines()[2:]} == names
    assert {line.split()[0] for line in render("text").splitlines() if not line.startswith(" ")} == names


def test_filter_by_name_in_both_spellings_and_by_word() -> None:
    found = {row["name"] for row in json.loads(render("json", "linger.ms"))}
    assert found == {"linger.ms", "delivery.timeout.ms"}
    assert "linger.ms  (long, default 5, medium)" in render("text", "linger_ms")
    assert "reconnect" not in render("text", "KIP-794")
    with pytest.raises(ConfigError, match="'xyzzy'"):
        render("text", "xyzzy")


def test_json_row() -> None:
    [row] = [row for row in json.loads(render("json")) if row["name"] == "transactional.id"]
    assert (row["python"], row["type"], row["default"], row["available"]) == ("transactional_id", "string", None, True)


def test_markdown_table_is_rectangular() -> None:
    columns = {line.replace("\\|", "").count("|") for line in render("markdown").splitlines()}
    assert columns == {7}


def test_text_fits_a_terminal_and_marks_what_is_missing() -> None:
    text = render("text")
    assert max(len(line) for line in text.splitlines()) <= 104
    assert "Not in this version: needs metric reporters." in " ".join(text.split())
    assert text.endswith("\n")
