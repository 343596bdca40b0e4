"""Days, times of a day and timestamps as text in ISO 8601, by Arrow's own functions.

Arrow's casts do not raise where they cannot write a value: the text is then ``<value out of range: ...>``, or wrong.
So each column is compared with its limits before it is cast.
"""

from __future__ import annotations

from typing import Any

DAY_S = 86_400
SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of Arrow in a second."""
# Years from -32767 to 32767: Arrow writes no others.
FIRST_DAY, LAST_DAY = -12_687_428, 11_248_737
YEAR_10000 = 2_932_897
"""Its first day, since 1970."""
ALLOWED = "which has no form as text; allowed: years from -32767 to 32767, times within a day, whole days"


def is_time(kind: Any) -> bool:
    """Whether Arrow's type is a day, a time of a day, or a timestamp."""
    import pyarrow as pa

    return any(check(kind) for check in (pa.types.is_date, pa.types.is_time, pa.types.is_timestamp))


def raw(column: Any) -> Any:
    """Its numbers, in the unit of its type."""
    import pyarrow as pa

    kind = column.type
    short = pa.types.is_date32(kind) or pa.types.is_time32(kind)
    numbers = column.cast(pa.int32()) if short else column.cast(pa.int64())
    return numbers.cast(pa.int64())


def first_unwritten(column: Any) -> int | None:
    """The first row that has no form as text: a year beyond 32767, a time outside of a day, a day with a time in it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, numbers = column.type, raw(column)
    least, most = _limits(kind)
    wrong = pc.or_(pc.less(numbers, least), pc.greater(numbers, most))
    if pa.types.is_date64(kind):
        wrong = pc.or_(wrong, pc.not_equal(pc.multiply(_days(pc, numbers), DAY_S * 1000), numbers))
    row: int = pc.index(wrong, pa.scalar(True)).as_py()
    return None if row < 0 else row


def as_text(column: Any) -> Any:
    """The column as large text.  A zone is turned into UTC; years above 9999 have a plus sign, as in Java and Spark.

    ``first_unwritten`` must have found no row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_time(kind):
        return column.cast(pa.large_string())
    if pa.types.is_date64(kind):
        column = _days(pc, raw(column)).cast(pa.int32()).cast(pa.date32())
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    text = column.cast(pa.large_string())
    if pa.types.is_timestamp(kind):
        text = pc.replace_substring(text, " ", "T", max_replacements=1)
    most = pc.max(raw(column)).as_py()
    is_late = most is not None and most >= YEAR_10000 * _day(column.type)
    return pc.replace_substring_regex(text, r"^(\d{5})", r"+\1") if is_late else text


def _limits(kind: Any) -> tuple[int, int]:
    """The least and the greatest number that has a form as text."""
    import pyarrow as pa

    day = _day(kind)
    if pa.types.is_time(kind):
        return 0, day - 1
    # 64 bits of nanoseconds end before these years.
    return max(FIRST_DAY * day, -(2**63)), min((LAST_DAY + 1) * day - 1, 2**63 - 1)


def _day(kind: Any) -> int:
    """A day in the unit of the type."""
    import pyarrow as pa

    if pa.types.is_date32(kind):
        return 1
    return DAY_S * (1000 if pa.types.is_date64(kind) else SECOND[kind.unit])


def _days(pc: Any, milliseconds: Any) -> Any:
    """Whole days; Arrow divides towards zero, and what is no whole day was refused."""
    return pc.divide(milliseconds, DAY_S * 1000)
