"""Piece: a part of another object's memory as a buffer; much cheaper than a slice of a memoryview."""

from __future__ import annotations

from typing import Any

import cython

if cython.compiled:
    from cython.cimports.cpython.buffer import Py_buffer, PyBuffer_FillInfo
    from cython.cimports.forebay._runtime.primitives import bytearray_pointer
else:
    from forebay._runtime.primitives import bytearray_pointer


# Not tracked by the garbage collector: it refers to an owner of memory, which refers to no piece.
@cython.final
@cython.no_gc
@cython.freelist(64)
@cython.cclass
class Piece:
    """Exports the bytes read-only; the memory must not move while a piece of it exists.

    Compiled only: interpreted classes cannot export buffers, so ``piece`` makes a memoryview there.
    """

    if not cython.compiled:
        owner: object
        start: Any
        size: int
    else:

        def __getbuffer__(self, view: cython.pointer(Py_buffer), flags: cython.int) -> None:
            PyBuffer_FillInfo(view, self, self.start, self.size, True, flags)

        def __releasebuffer__(self, view: cython.pointer(Py_buffer)) -> None:
            pass

    def __len__(self) -> int:
        return self.size


@cython.cfunc
def piece_at(owner: object, memory: cython.p_uchar, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> Any:
    """The bytes of ``memory``, which belongs to ``owner``, from ``start`` to ``stop``, not copied."""
    if not cython.compiled:
        return memory[start:stop]
    found: Piece = Piece.__new__(Piece)
    found.owner = owner
    found.start = memory + start
    found.size = stop - start
    return found


@cython.ccall
def piece(data: bytearray, start: cython.Py_ssize_t, stop: cython.Py_ssize_t) -> Any:
    """The bytes of ``data`` from ``start`` to ``stop``, not copied."""
    return piece_at(data, bytearray_pointer(data), start, stop)
