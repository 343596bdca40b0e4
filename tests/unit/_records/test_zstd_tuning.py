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
    CANDIDATES,
    LEAST_SAMPLE,
    LEAST_SHARE,
    LEAST_TUNED,
    SAMPLE,
    SHOWS_ALL,
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
        ((100, 101, 90, 90, 90, 90), CANDIDATES[0]),
        ((100, 102, 101, 90, 90, 90), CANDIDATES[1]),
        ((100, 102, 102, 102, 102, 101), CANDIDATES[4]),
        ((100, 102, 102, 102, 102, 102), None),
        ((900, 1, 1, 1, 1, 1), CANDIDATES[0]),
        ((901, 1, 1, 1, 1, 1), None),
    ],
)
def test_the_fastest_that_makes_a_sample_no_larger_is_taken(sizes: tuple[int, ...], found: Tuning | None) -> None:
    """By more than a hundredth; and where nothing shrinks nothing is known of the records."""
    packer = Packer(dict(zip((None, *CANDIDATES), sizes, strict=True)))
    assert best([bytes(1000)], 1000, packer) is found


@pytest.mark.parametrize(
    ("suits", "found", "wholes"),
    [("01", 0, 2), ("12", 1, 3), ("24", None, 3), ("", None, 3)],
)
def test_what_suits_the_sample_has_to_suit_the_batch(suits: str, found: int | None, wholes: int) -> None:
    """What repeats farther behind than a sample reaches; all candidates but the third are as small for the sample."""
    tried: list[int] = []

    def pack(data: Chunk, tuning: Tuning | None) -> bytes:
        tried.append(len(data))
        number = None if tuning is None else CANDIDATES.index(tuning)
        if len(data) == SAMPLE:
            return bytes(1000 if number == 2 else 980)
        return bytes(980 if number is None or str(number) in suits else 1000)

    answer = best([bytes(SAMPLE), bytes(5)], SAMPLE + 5, pack)
    assert answer == (None if found is None else CANDIDATES[found])
    assert tried.count(SAMPLE + 5) == wholes


def test_a_finding_holds_for_so_many_bytes_of_its_topic() -> None:
    long, plain = Packer({None: 2, CANDIDATES[0]: 1}), Packer({None: 1, **dict.fromkeys(CANDIDATES, 2)})
    tunings = TopicTunings()
    size = TRUSTED // TRUSTED_BATCHES
    data = [bytes(size)]
    assert [tunings.choose("a", data, size, long) for _ in range(TRUSTED_BATCHES)] == [CANDIDATES[0]] * TRUSTED_BATCHES
    assert tunings.choose("b", data, size, plain) is None
    assert long.tried == [(SAMPLE, None), (SAMPLE, CANDIDATES[0]), (size, None), (size, CANDIDATES[0])]
    # Its records have changed.
    assert tunings.choose("a", data, size, plain) is None
    assert tunings.choose("b", data, size, long) is None


def test_large_batches_are_tried_no_more_often_than_small_ones() -> None:
    packer = Packer({None: 2, CANDIDATES[0]: 1})
    tunings = TopicTunings()
    size = 2 * TRUSTED // TRUSTED_BATCHES
    for _ in range(TRUSTED_BATCHES):
        tunings.choose("a", [bytes(size)], size, packer)
    assert len(packer.tried) == 4
    tunings.choose("a", [bytes(size)], size, packer)
    assert len(packer.tried) == 8


@pytest.mark.parametrize(
    "sizes",
    [(60_000, 120_000, 1 << 20, 60_000, 3 << 20), (340_000, 374_000, 425_000, 510_000, 680_000), (262_144, 524_288)],
)
def test_what_was_found_for_a_small_batch_is_not_taken_for_granted_for_a_large_one(sizes: Sequence[int]) -> None:
    """States that are polled in turn repeat in a batch that holds them all, far behind, and not in a smaller one."""
    data = records(far_repetition(random.Random(9)), max(sizes))
    packer = compressor(ZSTD)
    assert isinstance(packer, ZstdCompressor)
    for size in sizes:
        packed = packer.compress([data[:size]], "topic")
        assert len(packed) <= 1.05 * len(packer._packed(data[:size], None))


def test_batches_of_changing_sizes_are_not_tried_each() -> None:
    packer = Packer({None: 2, CANDIDATES[0]: 1})
    tunings = TopicTunings()
    grown = SAMPLE * 11 // 10
    for size in (SAMPLE, grown, grown + 1, SAMPLE, 4 * SAMPLE, SAMPLE, SHOWS_ALL, 9 * SHOWS_ALL):
        assert tunings.choose("a", [bytes(size)], size, packer) is CANDIDATES[0]
    wholes = [size for size, tuning in packer.tried if tuning is None and size != SAMPLE]
    assert wholes == [grown + 1, 4 * SAMPLE, SHOWS_ALL]


def test_one_thread_tries_at_a_time() -> None:
    """The others go by what is known meanwhile; by the level where that was a much smaller batch, or nothing."""
    tunings = TopicTunings()
    seen: list[tuple[int, Tuning | None]] = []

    def pack(data: Chunk, tuning: Tuning | None) -> bytes:
        for size in (SAMPLE // 2, len(data)):
            seen.append((len(data), tunings.choose("a", [bytes(size)], size, refuse)))
        return bytes(1 if tuning else 2)

    def refuse(data: Chunk, tuning: Tuning | None) -> bytes:
        raise AssertionError("tried twice")

    assert tunings.choose("a", [bytes(SAMPLE)], SAMPLE, pack) is CANDIDATES[0]
    assert {tuning for _, tuning in seen} == {None}
    seen.clear()
    for _ in range(TRUSTED // SAMPLE):
        assert tunings.choose("a", [bytes(SAMPLE)], SAMPLE, pack) is CANDIDATES[0]
    assert seen and {tuning for _, tuning in seen} == {CANDIDATES[0]}
    seen.clear()
    assert tunings.choose("a", [bytes(4 * SAMPLE)], 4 * SAMPLE, pack) is CANDIDATES[0]
    assert seen and {tuning for _, tuning in seen} == {None}


def test_a_few_records_are_no_sample_and_not_worth_a_tuning() -> None:
    packer = Packer({None: 2, CANDIDATES[0]: 1})
    tunings = TopicTunings()
    assert tunings.choose("a", [bytes(LEAST_SAMPLE - 1)], LEAST_SAMPLE - 1, packer) is None and packer.tried == []
    assert tunings.choose("a", [bytes(LEAST_SAMPLE)], LEAST_SAMPLE, packer) is CANDIDATES[0]
    # What is known of the topic is good for its smaller batches too, down to a few records, or a share of a sample.
    assert tunings.choose("a", [bytes(LEAST_TUNED)], LEAST_TUNED, packer) is CANDIDATES[0]
    assert tunings.choose("a", [bytes(LEAST_TUNED - 1)], LEAST_TUNED - 1, packer) is None
    assert len(packer.tried) == 2
    assert tunings.choose("b", [bytes(2 * SAMPLE)], 2 * SAMPLE, packer) is CANDIDATES[0]
    share = SAMPLE // LEAST_SHARE
    assert [tunings.choose("b", [bytes(size)], size, packer) for size in (share, share - 1)] == [CANDIDATES[0], None]


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
def test_records_are_searched_as_suits_them(source: object, tuned: bool) -> None:
    data = records(source(random.Random(7)), 1 << 20)  # type: ignore[operator]
    packer = compressor(ZSTD)
    assert isinstance(packer, ZstdCompressor)
    packed = packer.compress([data], "topic")
    as_the_level_is = len(packer._packed(data, None))
    if tuned:
        assert len(packed) < as_the_level_is
    else:
        assert len(packed) == as_the_level_is < min(len(packer._packed(data, tuning)) for tuning in CANDIDATES)
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
        packer._packed(chunks[0], CANDIDATES[0] if topic == "text" else None)
        for topic, chunks in zip(topics, batches, strict=True)
    ]
    assert packer.compress_many(batches, topics) == expected
    assert [packer.compress(chunks, topic) for chunks, topic in zip(batches, topics, strict=True)] == expected
    with pytest.raises(ValueError, match="zip"):
        packer.compress_many(batches, topics[1:])
