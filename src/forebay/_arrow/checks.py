"""What no column may be, whoever made the table: one of two of a name, and bytes that only their maker can read.

Arrow's C data interface carries bytes, but what they mean may be known to one library alone: addresses of Python
objects in polars, numbers of periods in pandas.  Such a column would be sent as it lies in memory, and nobody could
read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from forebay.errors import IllegalArgumentError

EXTENSION = b"ARROW:extension:name"
"""The key in a field's metadata whose value names the extension type."""
PUBLIC = frozenset({"arrow.json", "arrow.uuid", "geoarrow.wkb", "geoarrow.wkt", "ogc.wkb"})
"""Extension types whose bytes have a published form, which every reader knows."""
_POLARS = frozenset({"Object", "Int128", "UInt128"})
# A TIME WITH TIME ZONE loses its zone on the way to Arrow, and a UHUGEINT its upper half.
_DUCKDB = frozenset({"bit", "uhugeint", "time with time zone"})


def check_once(names: Iterable[str], what: str = "column") -> None:
    """Refuses two of one name: one of them would be lost, or taken for the other.

    Args:
        what: they are.

    Raises:
        IllegalArgumentError: names the first that is there twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise IllegalArgumentError(f"{what} {name!r} is there more than once; rename one, or leave it out")
        seen.add(name)


def foreign(name: str, kind: str, maker: str = "the library that made it") -> IllegalArgumentError:
    """The error of a column that means something only to its maker."""
    return IllegalArgumentError(
        f"column {name!r} is {kind}, which only {maker} can read; cast it to text, bytes or a number"
    )


def check_extension(name: str, schema: int) -> None:
    """Refuses the extension type that the ArrowSchema at this address may have.

    Raises:
        IllegalArgumentError: it has one without a published form.
    """
    from forebay._arrow.abi import schema_metadata  # with ctypes, which few need

    for key, value in _metadata(schema_metadata(schema)):
        if key == EXTENSION and value.decode(errors="replace") not in PUBLIC:
            raise foreign(name, f"the extension type {value.decode(errors='replace')!r}")


def check_own_type(source: Any, name: str) -> None:
    """Refuses a column by the type that it has in its library, where Arrow's type does not show it.

    Args:
        source: a table, or the column itself.
        name: of the column.

    Raises:
        IllegalArgumentError: the library exports bytes that nobody else can read.
    """
    kind = own_types(source, name).get(name)
    if kind is not None:
        raise foreign(name, *kind)


def own_types(source: Any, name: str = "") -> Mapping[str, tuple[str, str]]:
    """The columns of a table that only its library can read, each with its type and the library.

    Args:
        name: of a column that was given alone.
    """
    maker = type(source).__module__.partition(".")[0]
    if maker == "polars":
        kinds = source.collect_schema() if hasattr(source, "collect_schema") else {name: getattr(source, "dtype", None)}
        return {each: (str(kind), maker) for each, kind in kinds.items() if str(kind) in _POLARS}
    if maker in ("duckdb", "_duckdb") and hasattr(source, "types"):
        pairs = zip(source.columns, source.types, strict=True)
        return {each: (str(kind), "DuckDB") for each, kind in pairs if not _DUCKDB.isdisjoint(_within(kind))}
    return {}


def _within(kind: Any) -> Iterator[str]:
    """The names of DuckDB's type and of all that are in it."""
    yield kind.id
    if kind.id in ("struct", "list", "map", "union", "array"):
        for _, inner in kind.children:
            if hasattr(inner, "id"):  # the size of an array is among its children
                yield from _within(inner)


def _metadata(address: int) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of keys and values, as the C data interface has them: counts and sizes in 32 bits before the bytes."""
    import ctypes  # rare

    at = address

    def number() -> int:
        nonlocal at
        at += 4
        return ctypes.c_int32.from_address(at - 4).value

    def text() -> bytes:
        nonlocal at
        size = number()
        at += size
        return ctypes.string_at(at - size, size)

    for _ in range(number() if address else 0):
        yield text(), text()
