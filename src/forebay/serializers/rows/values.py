"""The values of a column as Python's: for encoders, and as people and JSON read them.

For encoders, days, times and timestamps are numbers, as Avro and Protobuf have them: days, milliseconds of a day
(``time32``), microseconds.  Python's own classes end at the year 9999.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from forebay.serializers.rows import times
from forebay.serializers.rows.tables import plain, reason


class Refused(NamedTuple):
    """In the place of a value that Arrow, its type or Python forbids."""

    why: str
    path: str = ""
    """Of the field that has it, below the column."""

    def below(self, name: str) -> Refused:
        """The same for what ``name`` is a field of; ``[]`` is an item of a list or a map."""
        between = "." if self.path and not self.path.startswith("[") else ""
        return Refused(self.why, f"{name}{between}{self.path}")

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


def values_of(column: Any) -> list[Any]:
    """The column as Python's values for an encoder, structs and maps as dicts; ``Refused`` where there is none.

    Field by field: Arrow's own way makes an object of Arrow for each field of each row.
    """
    return _Reader().read(column)


def shown_of(column: Any) -> list[Any]:
    """The column as values for JSON and messages, whatever is wrong with them: times are text, or their numbers."""
    return _Shown().read(column)


def objects_of(column: Any) -> list[Any]:
    """The column as Python's own objects, as Arrow makes them; ``Refused`` where there is none."""
    return _Objects().read(column)


def finite(value: float) -> float | str:
    """The number, or text for what JSON has no number for, as Spark's to_json has it."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


class _Holed(list[Any]):
    """A list with ``Refused`` in it."""


class _Reader:
    """Reads columns for encoders."""

    def read(self, column: Any) -> list[Any]:
        """All values of the column."""
        import pyarrow as pa

        if isinstance(column, pa.ChunkedArray):
            return _joined([self.read(chunk) for chunk in column.chunks])
        try:
            column, types = plain(column), pa.types
        except pa.ArrowException as error:  # a dictionary has not all values that its rows refer to
            if len(column) < 2:
                return _noted([self.hole(column, error)])
            return _joined([self.read(column.slice(row, 1)) for row in range(len(column))])
        if types.is_struct(column.type) and column.type.num_fields:
            return self._structs(column)
        if types.is_map(column.type):
            return self._maps(column)
        return self._lists(column) if is_list(column.type) else self._leaves(column)

    def leaves(self, column: Any) -> list[Any]:
        """The values of a column that is not nested; may raise anything."""
        return _numbers(column) if times.is_time(column.type) else column.to_pylist()

    def hole(self, cell: Any, error: BaseException) -> Any:
        """What stands for the only cell of ``cell``, which cannot be read."""
        return Refused(reason(error))

    def double(self, key: Any, pairs: list[tuple[Any, Any]]) -> Any:
        """What stands for a map that has a key twice."""
        return Refused(f"the key {key!r} is there twice")

    def _leaves(self, column: Any) -> list[Any]:
        try:
            return self.leaves(column)
        except Exception:  # noqa: BLE001 -- Arrow, Python and the codec of a text have their own
            return _noted([value for row in range(len(column)) for value in self._leaf(column.slice(row, 1))])

    def _leaf(self, cell: Any) -> list[Any]:
        try:
            return self.leaves(cell)
        except Exception as error:  # noqa: BLE001
            return [self.hole(cell, error)]

    def _structs(self, column: Any) -> list[Any]:
        names = [field.name for field in column.type]
        parts = [self.read(field) for field in column.flatten()]
        made: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        for name, part in zip(reversed(names), reversed(parts), strict=True):  # of two the first stays
            if isinstance(part, _Holed):
                made = _Holed(
                    one.below(name) if isinstance(one, Refused) else value
                    for value, one in zip(made, part, strict=True)
                )
        return _with_nulls(column, made)

    def _lists(self, column: Any) -> list[Any]:
        import pyarrow.compute as pc

        items = self.read(column.flatten())
        made, at = [], 0
        for length in pc.list_value_length(column).to_pylist():
            made.append(None if length is None else items[at : at + length])
            at += length or 0
        if not isinstance(items, _Holed):
            return made
        return _Holed(_bad(one or ()) or one for one in made)

    def _maps(self, column: Any) -> list[Any]:
        ends = column.offsets.to_pylist()
        first, count = ends[0], ends[-1] - ends[0]
        pairs = list(
            zip(
                self.read(column.keys.slice(first, count)),
                self.read(column.items.slice(first, count)),
                strict=True,
            )
        )
        made = [self._map(pairs[begin - first : end - first]) for begin, end in pairwise(ends)]
        return _noted(_with_nulls(column, made))

    def _map(self, pairs: list[tuple[Any, Any]]) -> Any:
        made: dict[Any, Any] = {}
        for key, value in pairs:
            bad = _bad((key, value))
            if bad is not None:
                return bad
            if key in made:
                return self.double(key, pairs)
            made[key] = value
        return made


class _Objects(_Reader):
    """Reads columns for ``json.dumps``, with pairs for maps."""

    def leaves(self, column: Any) -> list[Any]:
        row = times.first_unwritten(column) if times.is_time(column.type) else None
        if row is not None:
            raise ValueError(f"{times.raw(column)[row]} as {column.type}, {times.ALLOWED}")
        return column.to_pylist()  # type: ignore[no-any-return]

    def _map(self, pairs: list[tuple[Any, Any]]) -> Any:
        return _bad(one for pair in pairs for one in pair) or pairs


class _Shown(_Reader):
    """Reads columns for people."""

    def leaves(self, column: Any) -> list[Any]:
        if times.is_time(column.type):
            if times.first_unwritten(column) is not None:
                raise ValueError("no text")  # then cell by cell
            column = times.as_text(column)
        return [finite(value) if isinstance(value, float) else value for value in column.to_pylist()]

    def hole(self, cell: Any, error: BaseException) -> Any:
        if times.is_time(cell.type):
            return times.raw(cell).to_pylist()[0]
        return error.object.decode(errors="replace") if isinstance(error, UnicodeDecodeError) else reason(error)

    def double(self, key: Any, pairs: list[tuple[Any, Any]]) -> Any:
        return [list(pair) for pair in pairs]


def is_list(kind: Any) -> bool:
    """Whether Arrow's type is a list, in any of its layouts."""
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<", "list_view<", "large_list_view<"))


def _numbers(column: Any) -> list[Any]:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        return times.raw(column.cast(pa.timestamp("us", kind.tz))).to_pylist()  # type: ignore[no-any-return]
    if types.is_date(kind):
        return times.raw(column.cast(pa.date32())).to_pylist()  # type: ignore[no-any-return]
    column = column.cast(pa.time32("ms") if types.is_time32(kind) else pa.time64("us"))
    row = times.first_unwritten(column)
    numbers = times.raw(column).to_pylist()
    if row is not None:
        raise ValueError(f"{numbers[row]} {column.type.unit} is no time of a day")
    return numbers  # type: ignore[no-any-return]


def _joined(parts: list[list[Any]]) -> list[Any]:
    made = [value for part in parts for value in part]
    return _Holed(made) if any(isinstance(part, _Holed) for part in parts) else made


def _noted(values: list[Any]) -> list[Any]:
    return _Holed(values) if any(isinstance(one, Refused) for one in values) else values


def _bad(values: Iterable[Any]) -> Refused | None:
    return next((one.below("[]") for one in values if isinstance(one, Refused)), None)


def _with_nulls(column: Any, made: list[Any]) -> list[Any]:
    if not column.null_count:
        return made
    there = column.is_valid().to_pylist()
    found = [value if valid else None for value, valid in zip(made, there, strict=True)]
    return _Holed(found) if isinstance(made, _Holed) else found
