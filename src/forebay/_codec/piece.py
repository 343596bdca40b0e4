"""Piece: some bytes of a bytearray, for whoever takes buffers, at a tenth of what a slice of a memoryview costs."""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import Py_buffer, PyBuffer_FillInfo
    from cython.cimports.forebay._codec._prim import bytearray_pointer_at
else:
    from forebay._codec._prim import bytearray_pointer_at


# Not tracked by the garbage collector: it refers to a bytearray alone.
@cython.final
@cython.no_gc
@cython.freelist(64)
@cython.cclass
class Piece:
    """Exports the bytes read-only; the bytearray must keep its size as long as a piece of it is there.

    Compiled only: ``piece`` makes a view of a memoryview when interpreted, where classes cannot export buffers.
    """

    if not cython.compiled:
        data: bytearray
        start: Any
        size: int
    else:

        def __getbuffer__(self, view: cython.pointer(Py_buffer), flags: cython.int) -> None:
            PyBuffer_FillInfo(view, self, self.start, self.size, True, flags)

        def __releasebuffer__(self, view: cython.pointer(Py_buffer)) -> None:
            pass

    def __len__(self) -> int:
        return self.size


@cython.ccall
def piece(data: bytearray, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> Any:
    """The bytes from ``start`` to ``stop``, not copied."""
    if not cython.compiled:
        return memoryview(data)[start:stop]
    found: Piece = Piece.__new__(Piece)
    found.data = data
    found.start = bytearray_pointer_at(data, start)
    found.size = stop - start
    return found
