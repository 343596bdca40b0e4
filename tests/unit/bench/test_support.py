from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import support
from bench.support import ChildFailed, Spread, percentile, print_table, run_child, save, work_of_child


def test_a_spread_is_the_median_with_both_ends() -> None:
    assert Spread.of([5, 1, 3]) == (3, 1, 5)
    assert Spread.of([4, 1, 3, 2]) == (2.5, 1, 4)
    assert Spread.of([7]) == (7, 7, 7)


def test_a_spread_in_another_unit_and_as_text() -> None:
    assert Spread(2000, 1000, 3000).times(1e-3) == (2, 1, 3)
    assert Spread(2, 1, 3).text(".1f") == "2.0 (1.0-3.0)"


def test_percentiles_stay_inside_the_values() -> None:
    values = list(range(1, 101))
    assert [percentile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 51, 100, 100]
    assert percentile([8], 0.999) == 8


def test_a_table_is_as_wide_as_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "bb", "c"), [("long", "1", "x"), ("s", "100", "yy")], left=2)
    assert capsys.readouterr().out.splitlines() == [
        "a     bb    c",
        "----  ---  --",
        "long  1     x",
        "s     100  yy",
    ]


def test_a_result_is_kept_as_json_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "ROOT", tmp_path)
    monkeypatch.setattr(support, "RESULTS", tmp_path / "results")
    kept = save("peers-sink", {"figures": {"a": {"x": Spread(2, 1, 3)}}})
    assert kept.startswith("results/peers-sink-")
    assert json.loads((tmp_path / kept).read_text()) == {"figures": {"a": {"x": [2, 1, 3]}}}


def test_only_a_child_is_handed_work() -> None:
    assert work_of_child(["--child", '{"records": 3}']) == {"records": 3}
    assert work_of_child(["--records", "3"]) is None
    assert work_of_child([]) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_a_child_is_measured_by_the_system() -> None:
    found = run_child("tests.unit.bench.child", {"answer": 41}, environment={"FOREBAY_TEST_ADD": "1"})
    assert found["answer"] == 42
    assert found["process_cpu_s"] > 0
    assert max(mib for _, mib in found["memory"]) > 5


def test_a_child_that_fails_says_why() -> None:
    with pytest.raises(ChildFailed, match="no answer was asked for"):
        run_child("tests.unit.bench.child", {})
