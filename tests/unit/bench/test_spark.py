"""The order of the runs, and what is made of their figures."""

from __future__ import annotations

from bench import goals
from bench.spark import CASES, OURS, SPARKS, Case, figures_of, options_of, ratios_of, runs_of


def test_each_case_begins_with_a_round_that_is_not_counted_and_the_ways_take_turns() -> None:
    runs = runs_of([CASES[0]], ["noop", "forebay", "kafka"], 2, "h:1")
    assert [run["round"] for run in runs] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [run["sink"] for run in runs[3:6]] == ["forebay", "kafka", "noop"]
    assert len({run["topic"] for run in runs}) == 9
    assert {run["options"]["kafka.batch.size"] for run in runs} == {"16384"}


def test_a_case_is_called_by_what_it_varies() -> None:
    assert Case("JSON", 1, 1 << 20, "zstd").label() == "JSON zstd, 1 MiB"
    assert Case("100 B", 1, 16 << 10).label() == "100 B, 16 KiB"
    assert Case("100 B", 1, 0).label() == "100 B, defaults"


def test_sizes_are_the_same_for_both_sinks_or_left_to_each() -> None:
    assert options_of(Case("100 B", 1, 1 << 20), "h:1", "t")["kafka.batch.size"] == "1048576"
    assert set(options_of(Case("100 B", 1, 0), "h:1", "t")) == {
        "topic",
        "kafka.bootstrap.servers",
        "kafka.compression.type",
    }


def test_the_goals_read_the_figures_of_the_cases() -> None:
    figures = {}
    for case in CASES:
        figures[f"{case.label()}, {OURS}"] = {"cpu_s_per_million": [1.0], "rows_per_s": [3.0]}
        figures[f"{case.label()}, {SPARKS}"] = {"cpu_s_per_million": [4.0], "rows_per_s": [1.0]}
    found = [one for one in goals.verdicts({"spark": {"figures": figures}}) if one.goal.what == "DataFrames"]
    assert [one.met for one in found] == [goals.MET] * 8
    assert {one.value for one in found} == {0.25, 3.0}


def test_a_sinks_cpu_is_what_it_adds_to_reading_in_the_same_round() -> None:
    def run(sink: str, number: int, cpu: float, seconds: float) -> dict[str, object]:
        same = {"label": "c", "rows": 2_000_000, "requests": 4, "bytes": 2 << 20}
        return {**same, "sink": sink, "round": number, "cpu_s": cpu, "seconds": seconds}

    found = [run("noop", 1, 1.0, 1.0), run("forebay", 1, 3.0, 2.0), run("kafka", 1, 5.0, 4.0)]
    found += [run("noop", 2, 2.0, 1.0), run("forebay", 2, 4.0, 2.0), run("kafka", 2, 6.0, 4.0)]
    figures = list(figures_of(found))
    assert [figure["cpu_s_per_million"] for figure in figures] == [1.0, 2.0, 1.0, 2.0]
    assert figures[0]["requests_per_mib"] == 2.0
    assert ratios_of(figures) == {"c": {"cpu_s_per_million": 0.5, "rows_per_s": 2.0}}
