"""The compression codecs: names, numbers, level ranges, and ``Compressor`` objects in Kafka's framing.

gzip is a plain gzip stream, snappy is in the xerial framing, lz4 is a frame of independent 64 KiB blocks without
size or checksum, zstd is one frame.  A package is imported at the first use of its codec; not every Python has all of
them (``codec_packages``).  Every one-shot function gives up the GIL, and beside a computing thread it waits a switch
interval to get it back.  cramjam's ``Compressor`` objects keep the GIL, and zstandard takes many batches in one call.
So ``compress`` (the thread that filled a batch) gives up the GIL.  ``compress_many`` (the sender, for a turn) does not
give it up for each batch.  docs/measurements.md has the figures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple

from forebay._records.codec_framing import (
    LZ4_BLOCK,
    LZ4_HEADER,
    SNAPPY_BLOCK,
    SNAPPY_HEADER,
    has_kafka_blocks,
    lz4_frame_of,
    pieces_of,
    plain_lz4_frame,
    xerial_from_frames,
)
from forebay._records.codec_packages import (
    ZSTD_PACKAGES,
    Chunk,
    StandardZstd,
    is_zstandard,
    load_package,
    optional_package,
)
from forebay._records.layout import CODEC_ZSTD
from forebay._records.zstd_tuning import TUNED_LEVEL, TopicTunings, Tuning
from forebay.errors import IllegalArgumentError

JOIN_LIMIT = 256 * 1024
"""Raw bytes up to which chunks are joined (a copy of microseconds) rather than streamed (a GIL hand-over each)."""


class CompressionType(IntEnum):
    """The codec's number in a batch's attributes; ``label`` is its name in the configuration."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = CODEC_ZSTD

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> CompressionType:
        """The codec called ``label`` in ``compression.type``.

        Raises:
            forebay.errors.IllegalArgumentError: there is none.
        """
        for kind in cls:
            if kind.label == label:
                return kind
        raise IllegalArgumentError(
            f"unknown compression type {label!r}, allowed: {', '.join(kind.label for kind in cls)}"
        )


class LevelRange(NamedTuple):
    """The levels of a codec (KIP-390); ``default`` is allowed too, though gzip's -1 lies outside the range."""

    minimum: int
    maximum: int
    default: int

    def allows(self, level: int) -> bool:
        return self.minimum <= level <= self.maximum or level == self.default


LEVELS = {
    CompressionType.GZIP: LevelRange(1, 9, -1),
    CompressionType.LZ4: LevelRange(1, 17, 9),
    CompressionType.ZSTD: LevelRange(-131072, 22, 3),
}


class Compressor(ABC):
    """Compresses batches of one codec at one level.  Any thread may call it; each call borrows a context.

    ``caller`` tells threads apart: a thread gets the context of its last call again, which is still in the cache.
    """

    type: CompressionType
    caller: Callable[[], object] = object

    def __init__(self, level: int) -> None:
        self.level = level

    @abstractmethod
    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        """Compresses one batch, given as its raw records in pieces.  Batches of one topic count as alike."""

    def compress_to_pieces(self, chunks: Sequence[Chunk], topic: str = "") -> list[bytes]:
        """As ``compress``, but in pieces if joining them would be a copy.

        The caller keeps a single piece as it is.  Several may hold more memory than their size, so it joins them soon.
        """
        return [self.compress(chunks, topic)]

    def compress_many(self, batches: Sequence[Sequence[Chunk]], topics: Sequence[str] = ()) -> list[bytes]:
        """Compresses the batches of one turn of the sender, without giving up the GIL for each small one.

        Args:
            topics: one for each batch, or empty.
        """
        return [
            self.compress(chunks, topic) for chunks, topic in zip(batches, topics or [""] * len(batches), strict=True)
        ]

    @abstractmethod
    def bound(self, size: int, chunks: int = 1) -> int:
        """Most bytes that ``size`` raw bytes in ``chunks`` pieces can become."""

    def copied(self, size: int, chunks: int) -> int:
        """Bytes of the copy of its input that ``compress`` makes while it runs; small copies do not count."""
        return 0

    def copied_by_many(self, sizes: Sequence[int]) -> bool:
        """Whether ``compress_many`` copies all batches of these sizes at the same time."""
        return False


class NoneCompressor(Compressor):
    type = CompressionType.NONE

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        return b"".join(chunks)

    def bound(self, size: int, chunks: int = 1) -> int:
        return size


class GzipCompressor(Compressor):
    """zlib, or for many small batches cramjam's object, which keeps the GIL."""

    type = CompressionType.GZIP
    HELD_LIMIT = 64 * 1024

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._zlib = load_package(self.type.label, "zlib")
        self._cramjam = optional_package("cramjam")

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        return b"".join(self.compress_to_pieces(chunks))

    def compress_to_pieces(self, chunks: Sequence[Chunk], topic: str = "") -> list[bytes]:
        if len(chunks) == 1:
            return [self._zlib.compress(chunks[0], self.level, 31)]
        if _size(chunks) <= JOIN_LIMIT:
            return [self._zlib.compress(b"".join(chunks), self.level, 31)]
        stream = self._zlib.compressobj(self.level, self._zlib.DEFLATED, 31)
        pieces = [stream.compress(chunk) for chunk in chunks]
        pieces.append(stream.flush())
        return pieces

    def compress_many(self, batches: Sequence[Sequence[Chunk]], topics: Sequence[str] = ()) -> list[bytes]:
        if len(batches) < 2 or self._cramjam is None:
            return super().compress_many(batches, topics)
        return [self._held(chunks) if _size(chunks) <= self.HELD_LIMIT else self.compress(chunks) for chunks in batches]

    def _held(self, chunks: Sequence[Chunk]) -> bytes:
        stream = self._cramjam.gzip.Compressor(6 if self.level == -1 else self.level)
        stream.compress(b"".join(chunks))
        return bytes(stream.finish())

    def bound(self, size: int, chunks: int = 1) -> int:
        # An eighth covers the fastest level of zlib-ng, which may write 9 bits for each 8.
        return size + (size >> 3) + 64


class SnappyCompressor(Compressor):
    """Raw blocks of at most 32 KiB behind the xerial header; a block never spans two chunks."""

    type = CompressionType.SNAPPY
    HELD_LIMIT = 1024 * 1024

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._snappy = load_package(self.type.label, "cramjam").snappy

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        size = _size(chunks)
        # One block costs one hand-over of the GIL; several blocks would cost one each, for little work.
        return self._held(chunks) if SNAPPY_BLOCK < size <= self.HELD_LIMIT else self._released(chunks)

    def compress_many(self, batches: Sequence[Sequence[Chunk]], topics: Sequence[str] = ()) -> list[bytes]:
        if len(batches) < 2:
            return super().compress_many(batches, topics)
        return [
            self._held(chunks) if _size(chunks) <= self.HELD_LIMIT else self._released(chunks) for chunks in batches
        ]

    def _released(self, chunks: Sequence[Chunk]) -> bytes:
        out = bytearray(SNAPPY_HEADER)
        for piece in pieces_of(chunks, SNAPPY_BLOCK):
            block = self._snappy.compress_raw(piece)
            out += len(block).to_bytes(4, "big")
            out += memoryview(block)
        return bytes(out)

    def _held(self, chunks: Sequence[Chunk]) -> bytes:
        """The same blocks, taken out of the chunks of cramjam's frame format, whose CRCs are left out."""
        stream = self._snappy.Compressor()
        framed = bytearray()
        for piece in pieces_of(chunks, SNAPPY_BLOCK):
            stream.compress(bytes(piece))
            framed += memoryview(stream.flush())
        return xerial_from_frames(framed)

    def bound(self, size: int, chunks: int = 1) -> int:
        blocks = size // SNAPPY_BLOCK + max(chunks, 1)
        return len(SNAPPY_HEADER) + size + size // 6 + blocks * 40


class Lz4Compressor(Compressor):
    """Level 9, the default, is the fast compressor, as in Java.  All other levels are high compression.

    Without the package lz4, cramjam compresses.  Its one-shot function gives up the GIL, but is the fast compressor
    alone: other levels go by its object, which keeps the GIL.
    """

    type = CompressionType.LZ4
    HELD_LIMIT = 256 * 1024

    def __init__(self, level: int) -> None:
        super().__init__(level)
        cramjam = optional_package("cramjam")
        self._cramjam: Any = cramjam.lz4 if cramjam is not None and has_kafka_blocks(cramjam.lz4) else None
        self._frame = optional_package("lz4.frame") if self._cramjam else load_package(self.type.label, "lz4.frame")
        # The library calls its fast compressor 0 and starts high compression at 3; above 12 nothing changes.
        self._effort = 0 if level == 9 else min(max(level, 3), 12)

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        return b"".join(self.compress_to_pieces(chunks))

    def compress_to_pieces(self, chunks: Sequence[Chunk], topic: str = "") -> list[bytes]:
        if self._frame is None:
            # Two to four blocks would cost a hand-over of the GIL each, for little work.
            held = self._effort != 0 or LZ4_BLOCK < _size(chunks) <= self.HELD_LIMIT
            return [self._held(chunks) if held else self._released(chunks)]
        if len(chunks) == 1 or _size(chunks) <= JOIN_LIMIT:
            data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            return [
                self._frame.compress(
                    data,
                    compression_level=self._effort,
                    block_size=self._frame.BLOCKSIZE_MAX64KB,
                    block_linked=False,
                    store_size=False,
                )
            ]
        stream = self._frame.LZ4FrameCompressor(
            compression_level=self._effort, block_size=self._frame.BLOCKSIZE_MAX64KB, block_linked=False
        )
        pieces = [stream.begin()]
        pieces.extend(stream.compress(chunk) for chunk in chunks)
        pieces.append(stream.flush())
        return pieces

    def compress_many(self, batches: Sequence[Sequence[Chunk]], topics: Sequence[str] = ()) -> list[bytes]:
        if len(batches) < 2 or self._cramjam is None:
            return super().compress_many(batches, topics)
        limit = self.HELD_LIMIT if self._effort == 0 else LZ4_BLOCK
        return [self._held(chunks) if _size(chunks) <= limit else self.compress(chunks) for chunks in batches]

    def _released(self, chunks: Sequence[Chunk]) -> bytes:
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        pack = self._cramjam.compress_block
        return lz4_frame_of(data, lambda piece: memoryview(pack(piece, store_size=False)))

    def _held(self, chunks: Sequence[Chunk]) -> bytes:
        stream = self._cramjam.Compressor(self._effort, False, False)
        stream.compress(b"".join(chunks))
        return plain_lz4_frame(memoryview(stream.finish()))

    def bound(self, size: int, chunks: int = 1) -> int:
        return len(LZ4_HEADER) + size + 4 * (size // LZ4_BLOCK + 1) + 8

    def copied(self, size: int, chunks: int) -> int:
        return size if self._frame is None and chunks > 1 and size > JOIN_LIMIT else 0


class ZstdCompressor(Compressor):
    """Input is always one piece: a stream goes through a ring in the package, which is slower than a copy.

    Up to level 3 the window is at most 512 KiB.  Those levels remember 2^17 places at most.  A large batch
    overwrites them before it could refer further back, so a larger window gains no size and costs time.
    """

    type = CompressionType.ZSTD
    FORGETFUL_LEVEL = 3
    WINDOW_LOG = 19

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._package = load_package(self.type.label, *ZSTD_PACKAGES)
        # Idle contexts by the caller that used them last, because their tables are in the cache of that thread's
        # processor.  There is one for each thread that compresses at the same time.  Each step is atomic, so it needs
        # no lock.
        self._idle: dict[Tuning | None, dict[object, Any]] = {}
        self._tunings = TopicTunings() if level == TUNED_LEVEL else None

    def compress(self, chunks: Sequence[Chunk], topic: str = "") -> bytes:
        tuning = self._tuning(topic, chunks)  # before the copy, because a trial may copy too
        return self._packed(chunks[0] if len(chunks) == 1 else b"".join(chunks), tuning)

    def compress_to_pieces(self, chunks: Sequence[Chunk], topic: str = "") -> list[bytes]:
        if _size(chunks) <= JOIN_LIMIT:
            return [self.compress(chunks, topic)]
        tuning = self._tuning(topic, chunks)
        # An empty one more, or it would be kept with the block that it was cut out of.
        return [self._cut_out(chunks[0] if len(chunks) == 1 else b"".join(chunks), tuning), b""]

    def _packed(self, data: Chunk, tuning: Tuning | None) -> bytes:
        # A copy of what comes out: the package cuts its result out of a block as large as the input, and the rests
        # would be holes between all batches that wait (20 MiB more for 32 MiB of them).
        return bytes(memoryview(self._cut_out(data, tuning)))

    def _cut_out(self, data: Chunk, tuning: Tuning | None) -> bytes:
        with self._context(tuning) as context:
            packed: bytes = context.compress(data)
            return packed

    def _tuning(self, topic: str, chunks: Sequence[Chunk]) -> Tuning | None:
        return None if self._tunings is None else self._tunings.choose(topic, chunks, _size(chunks), self._try)

    def _try(self, data: Chunk, tuning: Tuning | None) -> bytes:
        # With a context of its own: only one of the tunings is used later, and each context that stays costs memory.
        packed: bytes = self._new_context(tuning).compress(data)
        return packed

    def compress_many(self, batches: Sequence[Sequence[Chunk]], topics: Sequence[str] = ()) -> list[bytes]:
        """Compresses all batches with the same tuning in one call without the GIL, if all are small."""
        if not self.copied_by_many([_size(chunks) for chunks in batches]):
            return super().compress_many(batches, topics)
        alike: dict[Tuning | None, list[int]] = {}
        for at, (chunks, topic) in enumerate(zip(batches, topics or [""] * len(batches), strict=True)):
            alike.setdefault(self._tuning(topic, chunks), []).append(at)
        packed: dict[int, bytes] = {}
        for tuning, places in alike.items():
            data = [b"".join(batches[at]) for at in places]
            packed.update(zip(places, self._pack_many(data, tuning), strict=True))
        return [packed[at] for at in range(len(batches))]

    def _pack_many(self, data: list[bytes], tuning: Tuning | None) -> list[bytes]:
        with self._context(tuning) as context:
            many = getattr(context, "multi_compress_to_buffer", None)
            if many is not None and any(data):
                return [segment.tobytes() for segment in many(data, threads=0)]
        return [self._packed(each, tuning) for each in data]

    def copied_by_many(self, sizes: Sequence[int]) -> bool:
        # Large batches are not all copied at the same time; the package refuses a call with only empty ones.
        return len(sizes) > 1 and 0 < max(sizes) <= JOIN_LIMIT

    @contextmanager
    def _context(self, tuning: Tuning | None) -> Iterator[Any]:
        idle = self._idle.setdefault(tuning, {})
        caller = self.caller()
        context = idle.pop(caller, None)
        if context is None:
            try:
                _, context = idle.popitem()
            except KeyError:
                context = self._new_context(tuning)
        try:
            yield context
        finally:
            idle[caller] = context

    def _new_context(self, tuning: Tuning | None) -> Any:
        given = {"window_log": self.WINDOW_LOG} if tuning is None else tuning._asdict()
        if self.level > self.FORGETFUL_LEVEL:
            given = {}
        if not is_zstandard(self._package):
            return StandardZstd(self._package, self.level, given)
        if not given:
            return self._package.ZstdCompressor(level=self.level, write_content_size=False)
        parameters = self._package.ZstdCompressionParameters(
            compression_level=self.level, write_content_size=False, **given
        )
        return self._package.ZstdCompressor(compression_params=parameters)

    def bound(self, size: int, chunks: int = 1) -> int:
        return size + (size >> 8) + 256

    def copied(self, size: int, chunks: int) -> int:
        return size if chunks > 1 and size > JOIN_LIMIT else 0


_COMPRESSORS: dict[CompressionType, Callable[[int], Compressor]] = {
    CompressionType.NONE: NoneCompressor,
    CompressionType.GZIP: GzipCompressor,
    CompressionType.SNAPPY: SnappyCompressor,
    CompressionType.LZ4: Lz4Compressor,
    CompressionType.ZSTD: ZstdCompressor,
}


def compressor(kind: CompressionType, level: int | None = None, caller: Callable[[], object] = object) -> Compressor:
    """A compressor for ``kind`` at ``level``, None for its default.  A codec without levels ignores it.

    Args:
        caller: identifies the calling thread, as ``threading.get_ident`` does.

    Raises:
        forebay.errors.IllegalArgumentError: the codec has no such level.
        forebay.errors.ConfigError: a package that the codec needs is not installed.
    """
    levels = LEVELS.get(kind)
    if level is None or levels is None:
        level = 0 if levels is None else levels.default
    elif not levels.allows(level):
        also = "" if levels.minimum <= levels.default <= levels.maximum else f" or {levels.default}"
        raise IllegalArgumentError(
            f"{kind.label} doesn't support compression level {level}, "
            f"allowed: {levels.minimum} to {levels.maximum}{also}"
        )
    found = _COMPRESSORS[kind](level)
    found.caller = caller
    return found


def _size(chunks: Sequence[Chunk]) -> int:
    return sum(map(len, chunks))
