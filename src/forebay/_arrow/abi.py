"""The interpreted twin of ``abi.pxd``: Arrow's C data interface through ctypes, same names and results.

An address is an int, and 0 is no address.  A "pointer" is a bytes object with a copy of the bytes there.  As in the
compiled form, nothing checks bounds or lifetimes: the caller holds the object that owns the memory.
"""

from __future__ import annotations

import ctypes
from typing import Any

_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_ERROR = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)


class ArrowSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowArray(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class ArrowArrayStream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_INTEGERS: dict[int, Any] = {
    1: ctypes.c_int8,
    2: ctypes.c_int16,
    4: ctypes.c_int32,
    8: ctypes.c_int64,
    -1: ctypes.c_uint8,
    -2: ctypes.c_uint16,
    -4: ctypes.c_uint32,
}


def _python_api(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    # A separate function object, because setting restype on the shared one would change it for all code.
    return ctypes.PYFUNCTYPE(result, *arguments)(ctypes.cast(function, ctypes.c_void_p).value or 0)


_capsule_pointer = _python_api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_calloc = _python_api("PyMem_RawCalloc", ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_free = _python_api("PyMem_RawFree", None, ctypes.c_void_p)


def capsule_address(capsule: object, name: bytes) -> int:
    return int(_capsule_pointer(capsule, name))


def schema_format(schema: int) -> bytes:
    return bytes(ArrowSchema.from_address(schema).format)


def schema_name(schema: int) -> bytes:
    return ArrowSchema.from_address(schema).name or b""


def schema_metadata(schema: int) -> int:
    return ArrowSchema.from_address(schema).metadata or 0


def schema_child_count(schema: int) -> int:
    return int(ArrowSchema.from_address(schema).n_children)


def schema_child(schema: int, at: int) -> int:
    return int(ArrowSchema.from_address(schema).children[at] or 0)


def schema_dictionary(schema: int) -> int:
    return ArrowSchema.from_address(schema).dictionary or 0


def array_length(array: int) -> int:
    return int(ArrowArray.from_address(array).length)


def array_offset(array: int) -> int:
    return int(ArrowArray.from_address(array).offset)


def array_buffer(array: int, at: int) -> int:
    return int(ArrowArray.from_address(array).buffers[at] or 0)


def array_buffers(array: int) -> int:
    return ctypes.cast(ArrowArray.from_address(array).buffers, ctypes.c_void_p).value or 0


def array_child(array: int, at: int) -> int:
    return int(ArrowArray.from_address(array).children[at] or 0)


def array_dictionary(array: int) -> int:
    return ArrowArray.from_address(array).dictionary or 0


def array_released(array: int) -> bool:
    return not ArrowArray.from_address(array).release


def new_array() -> int:
    return _calloc(1, ctypes.sizeof(ArrowArray)) or 0


def new_schema() -> int:
    return _calloc(1, ctypes.sizeof(ArrowSchema)) or 0


def drop_array(array: int) -> None:
    _release(ArrowArray.from_address(array).release, array)
    _free(array)


def drop_schema(schema: int) -> None:
    _release(ArrowSchema.from_address(schema).release, schema)
    _free(schema)


def _release(function: int | None, what: int) -> None:
    if function:
        _RELEASE(function)(what)


def stream_schema(stream: int, schema: int) -> int:
    return int(_GET(ArrowArrayStream.from_address(stream).get_schema)(stream, schema))


def stream_next(stream: int, array: int) -> int:
    return int(_GET(ArrowArrayStream.from_address(stream).get_next)(stream, array))


def stream_error(stream: int) -> bytes:
    return _ERROR(ArrowArrayStream.from_address(stream).get_last_error)(stream) or b""


def bit_at(bitmap: int, at: int) -> bool:
    return bool(ctypes.c_uint8.from_address(bitmap + (at >> 3)).value >> (at & 7) & 1)


def load_integer(base: int, at: int, width: int) -> int:
    return int(_INTEGERS[width].from_address(base + at * abs(width)).value)


def load_address(base: int, at: int) -> int:
    return ctypes.c_size_t.from_address(base + at * ctypes.sizeof(ctypes.c_size_t)).value


def pointer_to(address: int, size: int) -> Any:
    return ctypes.string_at(address, size) if size > 0 else b""


ALL_NULL, VARIABLE, FIXED, VIEW, DICTIONARY, STRIPPED, OBJECTS, RUNS = range(8)
"""Layouts of a CellSource.  The last three are not Arrow's: fixed sizes without zeros at the end (NumPy's S), addresses
of Python objects, and runs, whose ends are searched."""


class CellSource:
    """One column of byte strings in any layout; the compiled form is a C struct, zero where nothing was set."""

    __slots__ = (
        "addresses",
        "buffers",
        "data",
        "found",
        "layout",
        "offset",
        "offsets",
        "run",
        "runs",
        "sizes",
        "stride",
        "validity",
        "values",
        "width",
    )

    def __init__(self) -> None:
        self.layout = self.width = self.offset = self.stride = self.runs = self.run = 0
        self.validity = self.offsets = self.data = self.buffers = 0
        self.values: CellSource | None = None
        self.addresses: list[Any] = []
        self.sizes: list[int] = []
        self.found: Any = b""


def new_cells() -> CellSource:
    return CellSource()


def drop_cells(source: CellSource) -> None:
    source.values = None
