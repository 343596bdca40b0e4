from __future__ import annotations

import json

from bench.codecs import events, raw_batches
from forebay._records.compression import CompressionType, compressor


def test_events_are_json_of_about_300_bytes_and_the_same_in_every_run() -> None:
    made = events(500)
    assert made == events(500)
    assert len(set(made)) == 500
    assert 290 <= sum(map(len, made)) / 500 <= 330
    assert all(json.loads(one)["status"] in (200, 204, 302, 404, 500) for one in made)


def test_raw_batches_are_cut_where_they_compress_to_a_batch() -> None:
    packer = compressor(CompressionType.ZSTD)
    batches = raw_batches(events(2000), 5000, 16_384, packer)
    assert len(batches) > 10
    assert sum(batch.records for batch in batches) <= 5000
    assert all(abs(len(packer.compress([batch.data])) - 16_384) < 1200 for batch in batches)
