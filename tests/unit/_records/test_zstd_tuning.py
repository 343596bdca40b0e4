from __future__ import annotations

import itertools
import json
import random
import struct
from collections.abc import Iterator, Sequence

import pytest

from forebay._records.compression import CompressionType, ZstdCompressor, compressor
from forebay._records.decompression import decompress
from forebay._records.zstd_tuning import (
    LEAST_SAMPLE,
    LEAST_TUNED,
    LONG,
    SAMPLE,
    TRUSTED,
    TRUSTED_BATCHES,
    Chunk,
    TopicTunings,
    Tuning,
    best,
    sample_of,
)

ZSTD = CompressionType.ZSTD


def json_events(rng: random.Random) -> Iterator[bytes]:
    while True:
        fields = {"id": rng.randrange(10**9), "type": rng.choice(("view", "click", "buy")), "ms": rng.randrange(900)}
        yield json.dumps(fields).encode() + b"\0"


def csv(rng: random.Random) -> Iterator[bytes]:
    while True:
        yield b"%d,%d,%.3f,%s\n" % (rng.randrange(10**6), 1700000000 + rng.randrange(10**7), rng.random(), b"ab")


def packed_fields(rng: random.Random) -> Iterator[bytes]:
    """As protobuf has it: tags, short strings, numbers."""
    while True:
        name = rng.randbytes(2) + b"user" + rng.randbytes(2)
        kind = rng.choice((b"click", b"views", b"buyit"))
        price = struct.pack("<d", rng.randrange(10000) / 100)
        yield b"\x12\x08" + name + b"\x18" + rng.randbytes(1) + b"\x22\x05" + kind + b"\x29" + price


def records(source: Iterator[bytes], size: int) -> bytes:
    out = bytearray()
    for record in source:
        out += record
        if len(out) >= size:
            return bytes(out[:size])
    raise AssertionError("endless")


class Packer:
    """Pretends that samples become as large as said, by the tuning; remembers what was tried."""

    def __init__(self, sizes: dict[Tuning | None, int]) -> None:
        self.sizes = sizes
        self.tried: list[tuple[int, Tuning | None]] = []

    def __call__(self, sample: Chunk, tuning: Tuning | None) -> bytes:
        self.tried.append((len(sample), tuning))
        return bytes(self.sizes[tuning])


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ((100, 101, 90), LONG[0]),
        ((100, 102, 101), LONG[1]),
        ((100, 102, 102), None),
        ((900, 1, 1), LONG[0]),
        ((901, 1, 1), None),
    ],
)
def test_the_fastest_that_makes_a_sample_no_larger_is_taken(sizes: tuple[int, ...], found: Tuning | None) -> None:
    """By more than a hundredth; and where nothing shrinks nothing is known of the records."""
    packer = Packer(dict(zip((None, *LONG), sizes, strict=True)))
    assert best([bytes(1000)], 1000, packer) is found


@pytest.mark.parametrize(("smaller", "found"), [(True, LONG[0]), (False, None)])
def test_what_suits_the_sample_has_to_suit_the_batch(smaller: bool, found: Tuning | None) -> None:
    """What repeats farther behind than a sample reaches."""
    chunks = [bytes(SAMPLE), bytes(5)]
    tried = []

    def pack(data: Chunk, tuning: Tuning | None) -> bytes:
        tried.append(len(data))
        return bytes(1000 if (tuning is None) == (smaller or len(data) == SAMPLE) else 980)

    assert best(chunks, SAMPLE + 5, pack) is found
    assert tried == [SAMPLE, SAMPLE, SAMPLE + 5, SAMPLE + 5]


def test_a_finding_holds_for_so_many_bytes_of_its_topic() -> None:
    long, plain = Packer({None: 2, LONG[0]: 1}), Packer({None: 1, LONG[0]: 2, LONG[1]: 2})
    tunings = TopicTunings()
    size = TRUSTED // TRUSTED_BATCHES
    data = [bytes(size)]
    assert [tunings.choose("a", data, size, long) for _ in range(TRUSTED_BATCHES)] == [LONG[0]] * TRUSTED_BATCHES
    assert tunings.choose("b", data, size, plain) is None
    assert long.tried == [(SAMPLE, None), (SAMPLE, LONG[0]), (size, LONG[0]), (size, None)]
    # Its records have changed.
    assert tunings.choose("a", data, size, plain) is None
    assert tunings.choose("b", data, size, long) is None


def test_large_batches_are_tried_no_more_often_than_small_ones() -> None:
    packer = Packer({None: 2, LONG[0]: 1})
    tunings = TopicTunings()
    size = 2 * TRUSTED // TRUSTED_BATCHES
    for _ in range(TRUSTED_BATCHES):
        tunings.choose("a", [bytes(size)], size, packer)
    assert len(packer.tried) == 4
    tunings.choose("a", [bytes(size)], size, packer)
    assert len(packer.tried) == 8


def test_a_few_records_are_no_sample_and_not_worth_a_tuning() -> None:
    packer = Packer({None: 2, LONG[0]: 1})
    tunings = TopicTunings()
    assert tunings.choose("a", [bytes(LEAST_SAMPLE - 1)], LEAST_SAMPLE - 1, packer) is None and packer.tried == []
    assert tunings.choose("a", [bytes(LEAST_SAMPLE)], LEAST_SAMPLE, packer) is LONG[0]
    # What is known of the topic is good for its smaller batches too, down to a few records.
    assert tunings.choose("a", [bytes(LEAST_TUNED)], LEAST_TUNED, packer) is LONG[0]
    assert tunings.choose("a", [bytes(LEAST_TUNED - 1)], LEAST_TUNED - 1, packer) is None
    assert len(packer.tried) == 2


@pytest.mark.parametrize(
    ("sizes", "size"),
    [((SAMPLE + 9,), SAMPLE), ((LEAST_SAMPLE, 99), LEAST_SAMPLE), ((9000,) * 9, SAMPLE), ((5, 6), 11)],
)
def test_a_sample_is_the_first_bytes(sizes: Sequence[int], size: int) -> None:
    data = random.Random(1).randbytes(sum(sizes))
    ends = [0, *itertools.accumulate(sizes)]
    chunks = [data[start:end] for start, end in itertools.pairwise(ends)]
    assert bytes(sample_of(chunks)) == data[:size]


@pytest.mark.parametrize(("source", "tuned"), [(json_events, True), (csv, True), (packed_fields, False)])
def test_text_is_searched_for_long_repetitions_and_binary_is_not(source: object, tuned: bool) -> None:
    data = records(source(random.Random(7)), 1 << 20)  # type: ignore[operator]
    packer = compressor(ZSTD)
    assert isinstance(packer, ZstdCompressor)
    packed = packer.compress([data], "topic")
    as_the_level_is = len(packer._packed(data, None))
    if tuned:
        assert len(packed) < as_the_level_is
    else:
        assert len(packed) == as_the_level_is < min(len(packer._packed(data, tuning)) for tuning in LONG)
    assert decompress(ZSTD, packed, len(data)) == data


def far_repetition(rng: random.Random) -> Iterator[bytes]:
    """The states of many devices, polled again and again: one comes again 350 KiB later."""
    devices = [json.dumps({"device": number, "state": rng.randbytes(100).hex()}).encode() for number in range(1500)]
    for number in itertools.count():
        yield devices[number % 1500] + b"\0"


def noise_first(rng: random.Random) -> Iterator[bytes]:
    yield rng.randbytes(SAMPLE)
    yield from packed_fields(rng)


@pytest.mark.parametrize("source", [far_repetition, noise_first])
@pytest.mark.parametrize("size", [60_000, 256 * 1024, 1 << 20, 3 << 20])
def test_what_a_sample_does_not_show_costs_nothing(source: object, size: int) -> None:
    data = records(source(random.Random(9)), size)  # type: ignore[operator]
    packer = compressor(ZSTD)
    assert isinstance(packer, ZstdCompressor)
    first, second = packer.compress([data], "topic"), packer.compress([data], "topic")
    assert first == second and len(first) <= 1.01 * len(packer._packed(data, None))


@pytest.mark.parametrize("level", [1, 2, 4, 19])
def test_other_levels_are_left_alone(level: int) -> None:
    data = records(json_events(random.Random(3)), 100_000)
    packer = compressor(ZSTD, level)
    assert isinstance(packer, ZstdCompressor)
    assert packer.compress([data], "topic") == packer._packed(data, None)


def test_topics_of_one_turn_have_each_their_own() -> None:
    rng = random.Random(11)
    inputs = {"text": records(json_events(rng), 90_000), "binary": records(packed_fields(rng), 90_000)}
    packer = compressor(ZSTD)
    assert isinstance(packer, ZstdCompressor)
    topics = ["text", "binary", "text", "new", "binary"]
    batches = [[inputs.get(topic, b"")] for topic in topics]
    expected = [
        packer._packed(chunks[0], LONG[0] if topic == "text" else None)
        for topic, chunks in zip(topics, batches, strict=True)
    ]
    assert packer.compress_many(batches, topics) == expected
    assert [packer.compress(chunks, topic) for chunks, topic in zip(batches, topics, strict=True)] == expected
    with pytest.raises(ValueError, match="zip"):
        packer.compress_many(batches, topics[1:])
