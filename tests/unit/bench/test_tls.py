from __future__ import annotations

import pytest

from bench.goals import GOALS, Results, of_tls
from bench.tls import KINDS, MECHANISMS, WAYS, handshakes


@pytest.mark.parametrize("key", ["RSA", "ECDSA"])
def test_a_handshake_takes_one_round_trip(key: str) -> None:
    assert handshakes({"key": key, "count": 2})["handshake_ms"] > 0


def test_every_goal_reads_a_figure_that_the_bench_has() -> None:
    """By the labels that its runs have."""
    cpu = {"cpu_s_per_million": [1.0, 1.0, 1.0]}
    figures = {way.label: cpu for way in WAYS}
    figures |= {f"handshake, {key}": {"handshake_ms": [1.0]} for key in ("RSA", "ECDSA")}
    figures |= {f"reconnections, {name}": {"reconnection_ms": [1.0]} for name in MECHANISMS}
    figures |= {f"10,000/s, {never}re-authentication": {"p99_ms": [1.0]} for never in ("", "no ")}
    figures |= {"construction, the system's authorities": {"first_ms": [1.0], "second_ms": [1.0]}}
    figures |= {"three frozen brokers": {"over_buffer_mib": [1.0]}}
    results = Results({"tls": {"figures": figures}})
    goals = of_tls()
    assert len(goals) == 10 and {goal.what for goal in goals} <= {goal.what for goal in GOALS}
    assert {goal.read(results) for goal in goals} == {0.0, 1.0}
    assert set(KINDS) == {"handshakes", "reconnections", "steady", "constructions", "frozen"}
