"""ChunkedBatch: a batch's memory, the pool's chunks that its records are written into or its compressed bytes."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.pool import Buffer
from cython.cimports.forebay._gate import StampedBatch
from cython.cimports.forebay._runtime.piece import piece_at
from cython.cimports.forebay._runtime.primitives import bytes_pointer, put_raw


@cython.no_gc
@cython.cclass
class ChunkedBatch(StampedBatch):
    """Without compression a batch has one chunk; a list for each would be more for the garbage collector to walk."""

    @cython.cfunc
    @cython.exceptval(check=False)
    def begin_with(self, chunk: Buffer) -> cython.void:
        self.first_chunk: Buffer | None = chunk
        self.further_chunks: list[Any] | None = None
        self.write_to(chunk)

    @cython.cfunc
    @cython.exceptval(check=False)
    def write_to(self, chunk: Buffer) -> cython.void:
        self.chunk: Buffer | None = chunk
        self.base = chunk.base
        self.capacity = chunk.size
        self.position = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def seal_chunk(self) -> cython.void:
        if self.chunk is not None:
            self.chunk.used = self.position

    @cython.cfunc
    def go_on_in(self, chunk: Buffer, spare: list[Any]) -> cython.void:
        """The chunk that was written to is full.

        Args:
            spare: an empty list.  Made before the queue's lock was taken: making one may run the garbage collector, and
                that a finaliser which sends to the same partition.
        """
        further: list[Any] = spare if self.further_chunks is None else self.further_chunks
        further.append(chunk)
        self.further_chunks = further
        self.seal_chunk()
        self.write_to(chunk)

    @property
    def buffers(self) -> list[Any]:
        """Its chunks, or the one with its compressed bytes; none once it has let go."""
        return [self.buffer_at(at) for at in range(self.buffer_count())]

    @cython.cfunc
    @cython.exceptval(check=False)
    def buffer_count(self) -> cython.Py_ssize_t:
        if self.first_chunk is None:
            return 0
        return 1 if self.further_chunks is None else 1 + len(self.further_chunks)

    @cython.cfunc
    def buffer_at(self, at: cython.Py_ssize_t) -> Buffer:
        if at == 0:
            return cython.cast(Buffer, self.first_chunk)
        buffer: Buffer = cython.cast(list, self.further_chunks)[at - 1]
        return buffer

    @cython.cfunc
    def written(self) -> list[Any]:
        """What stands in each chunk."""
        self.seal_chunk()
        buffer: Buffer
        at: cython.Py_ssize_t
        if self.buffer_count() == 1:
            buffer = self.buffer_at(0)
            return [piece_at(buffer, buffer.base, 0, buffer.used)]
        pieces: list[Any] = []
        for at in range(self.buffer_count()):
            buffer = self.buffer_at(at)
            pieces.append(piece_at(buffer, buffer.base, 0, buffer.used))
        return pieces

    @cython.cfunc
    def write_over(self, packed: list[Any]) -> list[Any]:
        """Writes ``packed`` into the first chunk, over the records, if that suits: the payload then; else empty.

        At most a quarter of the chunk may be left over, for it is counted as a whole while the batch waits.  Never when
        interpreted: Ctrl-C may come between any two steps then, and records half overwritten are lost.
        """
        payload: list[Any] = []
        first: Buffer | None = self.first_chunk
        piece: bytes
        size: cython.Py_ssize_t = 0
        for piece in packed:
            size += len(piece)
        if cython.compiled and first is not None and first.size - first.size // 4 <= size <= first.size:
            payload.append(piece_at(first, first.base, 0, size))
            # From here on nothing may fail: no object is made.
            first.used = 0
            for piece in packed:
                first.used = put_raw(first.base, first.used, bytes_pointer(piece), len(piece))
        return payload

    @cython.cfunc
    @cython.exceptval(-1)
    def replace_chunks(self, buffer: Buffer | None) -> cython.int:
        """Lets go of what there is, for ``buffer``, which may be the first of them, or for nothing."""
        first: Buffer | None = self.first_chunk
        further: list[Any] | None = self.further_chunks
        self.first_chunk = buffer
        self.further_chunks = self.chunk = None
        chunk: Buffer
        if first is not None and first is not buffer:
            first.release()
        if further is not None:
            for chunk in further:
                chunk.release()
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def hold(self, held: list[Any]) -> cython.int:
        """Adds a holder to each buffer, for a request whose bytes they are, and lists them in ``held``."""
        buffer: Buffer
        at: cython.Py_ssize_t
        for at in range(self.buffer_count()):
            buffer = self.buffer_at(at)
            buffer.retain()
            held.append(buffer)
        return 0
