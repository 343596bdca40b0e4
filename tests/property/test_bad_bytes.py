"""Every response parser, found by its name, under damaged and random bytes: a value or ProtocolError, quickly, in
little memory.

A parser that is added to ``_protocol`` or ``_control`` is in here without being asked for; if no valid frames can
be made for it, that fails here.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import forebay._protocol
import forebay.admin
from forebay._protocol.framing import MAX_RESPONSE_SIZE, correlation_id, frame_size, response_header
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay._records.batch_v2 import checksum
from forebay._records.reader import read_batches
from forebay.errors import CorruptRecordError, InvalidRecordError, ProtocolError
from tests.property.frames import DAMAGE, damaged, printed_seed, valid_frame
from tests.support.examples import cases
from tests.support.pace import CpuTime, within
from tests.unit._records.goldens import V0_MESSAGE, V1_MESSAGE, V2_GOLDENS

FRAMES = cases(60_000)
"""In each of the two forms that the tests run in."""
SLOWEST_S = within(1)
"""CPU time for one frame, far above what is needed."""
BATCHES = cases(8000)
FIXED_MEMORY, MEMORY_A_BYTE = 64 * 1024, 100
LIMIT = 1 << 20
"""Most bytes that a batch may decompress to; decoders have buffers of their own besides."""


class Parser(NamedTuple):
    """``decode_<api>(version, payload)``."""

    api: str
    decode: Callable[[int, bytes], Any]
    versions: range


def modules() -> Iterator[ModuleType]:
    for package in (forebay._protocol, forebay.admin):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def parsers() -> list[Parser]:
    found = {}
    for module in modules():
        for name, decode in vars(module).items():
            if name.startswith("decode_") and getattr(decode, "__module__", None) == module.__name__:
                api = name.removeprefix("decode_")
                oldest, newest = SUPPORTED[ApiKey[api.upper()]]
                found[api] = Parser(api, decode, range(oldest, newest + 1))
    return [found[api] for api in sorted(found)]


def judged(
    parse: Callable[[bytes], Any],
    frame: bytes,
    what: str,
    allowed: tuple[type[Exception], ...] = (ProtocolError,),
    fixed_memory: int = FIXED_MEMORY,
) -> bool:
    """Whether ``frame`` has a value; fails unless it has one or is refused, soon and in proportion to its size.

    Tracing is on: by whom it is called.
    """
    base = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    with CpuTime() as took:
        try:
            parse(frame)
            good = True
        except allowed as error:
            assert str(error), f"{what}: an error without a word for {frame.hex()}"
            good = False
        except Exception as error:
            raise AssertionError(f"{what}: {error!r} for {frame.hex()}") from error
    assert took.seconds < SLOWEST_S, f"{what}: too slow for {frame.hex()}"
    peak = tracemalloc.get_traced_memory()[1] - base
    assert peak < fixed_memory + MEMORY_A_BYTE * len(frame), f"{what}: {peak} bytes for {frame.hex()}"
    return good


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.sized
def test_every_parser_survives_any_bytes() -> None:
    draw = random.Random(printed_seed())
    found = parsers()
    assert {"api_versions", "init_producer_id", "metadata", "produce"} <= {parser.api for parser in found}
    parsed = [(parser, version) for parser in found for version in parser.versions]
    counts: Counter[str] = Counter()
    for parser, version in parsed:
        what = f"{parser.api} v{version}"
        parse = partial(parser.decode, version)
        # Not each can be: some answers must be about the one thing that was asked for.
        wholes = (valid_frame(parser.api, version, draw) for _ in range(1000))
        readable = list(islice((frame for frame in wholes if judged(parse, frame, what)), 20))
        assert len(readable) == 20, f"{what}: hardly any frame that kio makes can be read"
        for number in range(-(-FRAMES // len(parsed))):
            frame = damaged(readable[number % len(readable)], draw)
            counts["read" if judged(parse, frame, what) else "refused"] += 1
    print(f"{counts.total()} frames of {len(found)} APIs: {dict(counts)}")
    assert counts.total() >= FRAMES
    assert min(counts["read"], counts["refused"]) > FRAMES // 10


def test_every_cut_of_a_valid_frame_is_refused() -> None:
    """A prefix never passes for the whole: where an answer ends, nothing may be made up."""
    draw = random.Random(printed_seed())
    for parser in parsers():
        for version in parser.versions:
            frame = max((valid_frame(parser.api, version, draw) for _ in range(8)), key=len)
            try:
                parser.decode(version, frame)
            except ProtocolError:
                continue
            for size in {*range(min(len(frame), 60)), *range(max(0, len(frame) - 60), len(frame))}:
                if parser.api == "api_versions" and frame[:2] == b"\0\x23":
                    continue  # UNSUPPORTED_VERSION alone is enough to go on
                with pytest.raises(ProtocolError):
                    parser.decode(version, frame[:size])


@pytest.mark.sized
def test_headers_of_any_bytes() -> None:
    draw = random.Random(printed_seed())
    for _ in range(cases(4000)):
        frame = damaged(b"\0\0\0\x07\0", draw)
        for api, version in ((ApiKey.METADATA, 12), (ApiKey.PRODUCE, 3), (ApiKey.API_VERSIONS, 4)):
            judged(partial(response_header, api, version), frame, f"header of {api.name} v{version}")
        judged(correlation_id, frame, "correlation id")
        judged(partial(frame_size, max_size=MAX_RESPONSE_SIZE), frame, "frame size")


@pytest.mark.sized
def test_record_batches_of_any_bytes() -> None:
    """Damaged batches, with the checksum as it was and made right again."""
    draw = random.Random(printed_seed())
    wholes = [*V2_GOLDENS.values()]
    legacy = [b"\0" * 8 + len(message).to_bytes(4, "big") + message for message in (V0_MESSAGE, V1_MESSAGE)]
    allowed = (CorruptRecordError, InvalidRecordError)
    counts: Counter[bool] = Counter()
    for number in range(BATCHES):
        frame = damaged([*wholes, *legacy][number % (len(wholes) + len(legacy))], draw)
        if number % 2:
            frame = signed(frame)
        good = judged(partial(read_batches, limit=LIMIT), frame, "batch", allowed, 2 * LIMIT)
        counts[good] += 1
    print(dict(counts))
    assert min(counts.values()) > BATCHES // 40


def signed(batch: bytes) -> bytes:
    """Its size and checksum made to fit what is there."""
    if len(batch) < 61:
        return batch
    sized = batch[:8] + (len(batch) - 12).to_bytes(4, "big") + batch[12:16] + b"\x02" + batch[17:]
    return sized[:17] + checksum(sized[21:]).to_bytes(4, "big") + sized[21:]


def test_damage_is_of_every_kind_and_comes_back_with_its_seed() -> None:
    whole = bytes(range(200))
    assert [damaged(whole, random.Random(7)) for _ in range(3)] == [damaged(whole, random.Random(7))] * 3
    for damage in set(DAMAGE):
        changed = [damage(whole, random.Random(number)) for number in range(40)]
        assert len(set(changed)) > 3 and any(frame != whole for frame in changed)
