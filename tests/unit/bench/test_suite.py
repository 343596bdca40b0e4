from __future__ import annotations

import sys
from typing import Any

import pytest

from bench import __main__ as command
from bench import goals, page, quiet, suite
from bench.page import SECTIONS
from bench.part import Part, result_of
from bench.suite import PARTS, STEPS, Step, chosen, parse
from bench.support import ChildFailed


def names(*arguments: str) -> list[str]:
    return [step.part.name for step, _ in chosen(parse(arguments))]


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_arguments_of_both_forms_are_those_of_the_bench(part: Part) -> None:
    assert part.about
    for form in (part.full, part.quick or ()):
        assert part.parse(form)


def test_every_bench_is_a_step_and_has_a_name_of_its_own() -> None:
    assert {step.part.name for step in STEPS} == set(PARTS)
    assert {step.part.name for step in STEPS} <= set(SECTIONS)


def test_every_goal_reads_results_that_the_full_form_has() -> None:
    wanted: set[str] = set()

    class Recorder(goals.Results):
        def value(self, bench: str, label: str, figure: str) -> float:
            wanted.add(bench)
            return 1.0

    for goal in goals.GOALS:
        # A ratio of equal figures is one, a difference none.
        assert goal.read(Recorder({})) in (pytest.approx(1.0), pytest.approx(0.0))
    full = {f"{step.part.name}{'-sink' if '--sink' in arguments else ''}" for step, arguments in chosen(parse([]))}
    quick = {
        f"{step.part.name}{'-sink' if '--sink' in arguments else ''}" for step, arguments in chosen(parse(["--quick"]))
    }
    assert wanted <= full
    # Sessions of Spark take minutes to start.
    assert wanted - quick == {"spark"}


def test_the_quick_form_leaves_out_what_takes_long() -> None:
    assert "instructions" in names()
    assert "instructions" not in names("--quick")
    assert names("--quick", "--only", "instructions, peers") == ["peers", "peers", "instructions"]


def test_a_number_of_rounds_goes_to_each_bench_that_has_rounds() -> None:
    given = {step.part.name: arguments for step, arguments in chosen(parse(["--rounds", "2"]))}
    assert given["columns"] == ("--rounds", "2")
    assert given["memory"] == ()


def test_an_unknown_bench_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--only", "columns,nothing"])
    assert "there is no bench nothing, only peers, sender" in capsys.readouterr().err


def test_a_bench_that_fails_is_named_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(options: object) -> Any:
        raise ChildFailed("gone")

    def start_up(options: object) -> Any:
        return result_of("startup", [{"label": "forebay", "total_ms": 90.0}])

    def of(name: str, measure: Any) -> Step:
        return Step(Part(name, "about", lambda parser: None, measure, lambda result: None))

    kept: dict[str, Any] = {}
    monkeypatch.setattr(suite, "STEPS", (of("one", fail), of("startup", start_up)))
    monkeypatch.setattr(suite, "save", lambda name, result: kept.setdefault(name, result) and name)
    monkeypatch.setattr("bench.part.save", lambda name, result: name)
    monkeypatch.setattr(page, "write", lambda: "a-page")
    monkeypatch.setattr(quiet, "state", lambda: {"steady": True})
    assert suite.main([]) == 1
    printed = capsys.readouterr()
    assert "bench: failed: one : gone" in printed.err
    assert f"1 of {len(goals.GOALS)} met, 0 missed" in printed.out
    assert kept["targets"]["failed"] == ["one : gone"]
    assert [row["met?"] for row in kept["targets"]["targets"]].count("yes") == 1


def test_the_command_refuses_what_is_no_bench(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "nothing"])
    assert command.main() == 2
    assert "there is no bench 'nothing', only peers" in capsys.readouterr().err
