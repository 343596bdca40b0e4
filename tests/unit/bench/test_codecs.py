from __future__ import annotations

import json

from bench.codecs import events


def test_events_are_json_of_about_300_bytes_and_the_same_in_every_run() -> None:
    made = events(500)
    assert made == events(500)
    assert len(set(made)) == 500
    assert 290 <= sum(map(len, made)) / 500 <= 330
    assert all(json.loads(one)["status"] in (200, 204, 302, 404, 500) for one in made)
