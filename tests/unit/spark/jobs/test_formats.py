"""Spark's source formats: what is refused before Spark starts, by format, option and spelling."""

from __future__ import annotations

import re

import pytest

from forebay.spark.jobs.formats import FILES, MODES, OTHERS, check_source
from forebay.spark.jobs.table import JobError


def refusal(form: str, path: str | None = "rows", **options: str) -> str:
    with pytest.raises(JobError) as caught:
        check_source("source", form, path, options)
    return str(caught.value)


@pytest.mark.parametrize("form", FILES)
def test_each_format_of_files(form: str) -> None:
    assert refusal(form, None) == f"[source] has no path, which format '{form}' reads"
    check_source("source", form, None, {"Path": "rows"})
    for option in FILES[form]:
        for wrong in ("yes", "1", "", "treu"):
            words = f"[source.options] {option.upper()} must be true or false, not '{wrong}'"
            assert refusal(form, **{option.upper(): wrong}) == words
        for right in ("true", "FALSE"):
            check_source("source", form, "rows", {option: right})


@pytest.mark.parametrize("form", OTHERS)
def test_a_format_that_reads_no_files_needs_no_path(form: str) -> None:
    check_source("source", form, None, {"header": "yes"})


@pytest.mark.parametrize("form", [*FILES, *OTHERS])
def test_each_format_misspelt(form: str) -> None:
    for wrong in (form[:-1], f"{form}s", form[1:]):
        assert re.fullmatch(
            rf"\[source\] format is '{wrong}', which is unknown; did you mean '[\w-]+'\?", refusal(wrong)
        )
    for right in (form, form.upper(), f"org.example.{form}", "forebay_test_source"):
        check_source("source", right, "rows", {})


@pytest.mark.parametrize("form", ["csv", "json", "xml"])
def test_modes_of_malformed_rows(form: str) -> None:
    assert refusal(form, mode="FAILFASTT").startswith("[source.options] mode is 'FAILFASTT'. Allowed: PERMISSIVE")
    for mode in MODES:
        check_source("source", form, "rows", {"mode": mode.lower()})
    check_source("source", "parquet", "rows", {"mode": "anything"})
