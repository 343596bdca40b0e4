"""The arguments of ``send_batch`` as pieces of open columns, and the call that sends them.

A table, and columns that were given apart from it, may be cut into chunks at different rows.  A piece ends where the
first chunk ends.  Columns with a known length are compared before anything is sent, so unequal lengths are refused at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from forebay._arrow.batch import ArrowBatch, batches, speaks_arrow
from forebay._arrow.checks import check_once, check_own_type
from forebay.errors import IllegalArgumentError
from forebay.model._arguments import IfThere
from forebay.producer._columns import python_columns
from forebay.producer._columns.batch_delivery import BatchDelivery
from forebay.producer._columns.columns import Columns
from forebay.producer._columns.python_columns import ENDLESS, is_listed, is_numpy
from forebay.producer._columns.table_appender import TableAppender
from forebay.producer._path import SendPath

TABLES = (
    "an Arrow table, record batch or reader (pyarrow, polars, pandas ...), a dict of columns, a structured NumPy array"
    ", or one column of values: an Arrow array, a NumPy array, a list of bytes"
)
COLUMNS = "a column's name, None, or a column: an Arrow array, a NumPy array, a list"

FIRST = ("value", "value")
"""The role that a table of a single column has, and the name that it may be called by."""

Opened = dict[str, Any]


class Role(NamedTuple):
    """One part of a record: the argument's name, and how a column of it is opened."""

    name: str
    of_arrow: Callable[[ArrowBatch, str], Any]
    of_objects: Callable[[str, Any], Any]
    takes_int: bool = False


ROLES = (
    Role("value", ArrowBatch.bytes_column, python_columns.bytes_of),
    Role("key", ArrowBatch.bytes_column, python_columns.bytes_of),
    Role("headers", ArrowBatch.headers_column, python_columns.headers_of),
    Role("partition", ArrowBatch.int_column, python_columns.ints_of, True),
    Role("timestamp", ArrowBatch.timestamp_column, python_columns.timestamps_of, True),
    Role("topic_column", ArrowBatch.bytes_column, python_columns.bytes_of),
)


class Feed:
    """Columns that come from one source, chunk by chunk.

    Args:
        what: the source, in words.
        pieces: opens the next chunk's columns by their roles.
        length: rows in all; None if only reading them shows it.
    """

    def __init__(self, what: str, pieces: Iterator[Opened], length: int | None) -> None:
        self.what = what
        self.columns: Opened = {}
        self.length = length
        self.left = 0
        self.given = 0
        self._pieces = pieces

    def fill(self) -> bool:
        """Whether there is a row; opens the next chunk that has any."""
        while self.left == 0:
            columns = next(self._pieces, None)
            if columns is None:
                return False
            self.columns = columns
            self.left = min(column.length for column in columns.values())
        return True

    def advance(self, rows: int) -> None:
        """The next piece begins so many rows later."""
        self.left -= rows
        self.given += rows
        if self.left:
            for column in self.columns.values():
                column.advance(rows)


def send_table(path: SendPath, topic: str | None, table: Any, wanted: Mapping[str, Any]) -> BatchDelivery:
    """Appends every row of ``table``; see ``KafkaProducer.send_batch``.

    Args:
        wanted: for each role a name, a column or None.

    Raises:
        TypeError, IllegalArgumentError, KafkaError, OSError: as ``send_batch``; the error has ``delivery``.
    """
    delivery = BatchDelivery()
    try:
        if callable(wanted["value"]):
            table, wanted = with_made_values(table, wanted)
        appender = TableAppender(path, delivery)
        with appender.helped():
            given = 0
            for columns in pieces(topic, table, wanted):
                appender.append(columns, given)
                given += len(columns)
    except BaseException as error:
        error.delivery = delivery  # type: ignore[attr-defined]
        raise
    finally:
        delivery._end_call()
    return delivery


def with_made_values(table: Any, wanted: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
    """The table and the wanted columns, once a function of the table has made the values, such as ``rows_as_json``.

    Raises:
        TypeError: the table is a stream, which the function would use up.
    """
    if length_of(table) is None:
        raise TypeError("a function for the values needs a table, which is read twice; this is a stream: read it first")
    made = wanted["value"](table)
    names = names_of(table)
    if names is not None and not any(isinstance(given, str) and given in names for given in wanted.values()):
        return made, {**wanted, "value": "value"}  # no other column of the table is used
    return table, {**wanted, "value": made}


def names_of(table: Any) -> list[str] | None:
    """The names of its columns; None if that is not known (of pyarrow, pandas and polars it is)."""
    if isinstance(table, Mapping):
        return [str(name) for name in table]
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    return None if names is None else [str(name) for name in names]


def pieces(topic: str | None, table: Any, wanted: Mapping[str, Any]) -> Iterator[Columns]:
    """Pieces of open columns, each as long as the shortest chunk.  The caller uses a piece up before the next one.

    Raises:
        TypeError, IllegalArgumentError: an unknown kind of source, or a column of a wrong length or type.
    """
    check_topic(topic, wanted)
    feeds = feeds_of(table, wanted)
    check_lengths([(feed.what, feed.length) for feed in feeds if feed.length is not None])
    if all(feed.length == ENDLESS for feed in feeds):
        raise IllegalArgumentError("nothing says how many rows there are: each column is an int for all rows")
    while True:
        alive = [feed.fill() for feed in feeds]
        # A column with one value for all rows ends with the others.
        if not all(alive):
            check_lengths([(feed.what, feed.given) for feed in feeds if feed.length != ENDLESS], feeds, alive)
            return
        count = min(feed.left for feed in feeds)
        opened: Opened = {}
        for feed in feeds:
            opened |= feed.columns
        yield Columns(count, topic, **opened)
        for feed in feeds:
            feed.advance(count)


def check_topic(topic: str | None, wanted: Mapping[str, Any]) -> None:
    """Refuses a call without a topic."""
    if topic is not None and not isinstance(topic, str):
        raise TypeError(f"topic must be a str or None, got {type(topic).__name__}")
    if topic is None and wanted["topic_column"] is None:
        raise IllegalArgumentError("no topic: give a topic, a topic_column, or both (the topic for null cells)")


def check_lengths(lengths: list[tuple[str, int]], feeds: list[Feed] | None = None, alive: Any = ()) -> None:
    """Refuses columns of unequal lengths.

    Args:
        feeds: given if rows were read already.  A feed with a row left is longer than one without.
        alive: for each of ``feeds``, whether it has a row left.
    """
    if feeds is not None:
        longer = [feed.what for feed, more in zip(feeds, alive, strict=True) if more and feed.length != ENDLESS]
        if longer:
            shorter = next(feed for feed, more in zip(feeds, alive, strict=True) if not more)
            raise IllegalArgumentError(
                f"columns of unequal lengths: {shorter.what} ended after {shorter.given} rows, {longer[0]} has more; "
                f"the first {shorter.given} rows were taken"
            )
        return
    finite = [(what, length) for what, length in lengths if length != ENDLESS]
    for what, length in finite:
        if length != finite[0][1]:
            first, rows = finite[0]
            raise IllegalArgumentError(f"columns of unequal lengths: {first} has {rows} rows, {what} has {length}")


def feeds_of(table: Any, wanted: Mapping[str, Any]) -> list[Feed]:
    """The table's feeds, and a feed for each column that was given directly."""
    named = {role: wanted[role.name] for role in ROLES if isinstance(wanted[role.name], str)}
    feeds = table_feeds(table, named)
    if not feeds:
        raise IllegalArgumentError("no column of the table is used: every column was given directly, or is None")
    for role in ROLES:
        given = wanted[role.name]
        if given is not None and role not in named:
            feeds.append(column_feed(role, role.name, given))
    return feeds


def column_feed(role: Role, name: str, given: Any) -> Feed:
    """The feed of a column that was given directly.

    Raises:
        TypeError: it is no column.
    """
    what = f"column {name!r}"
    if speaks_arrow(given):
        check_own_type(given, name)
        opened = ({role.name: role.of_arrow(_bare(name, batch), name)} for batch in batches(given, bare=True))
        return Feed(what, opened, length_of(given))
    if not (
        is_numpy(given)
        or is_listed(given)
        or (role.takes_int and (isinstance(given, int) or hasattr(given, "utcoffset")))
    ):
        also = ", an int for all rows" if role.takes_int else ""
        raise TypeError(f"{what} must be {COLUMNS}{also}; got {type(given).__name__}")
    column = role.of_objects(name, given)
    return Feed(what, iter([{role.name: column}]), column.length)


def _bare(name: str, batch: ArrowBatch) -> ArrowBatch:
    if batch.names is not None:
        raise TypeError(f"column {name!r} must be {COLUMNS}; got rows with the columns {', '.join(batch.names)}")
    return batch


def table_feeds(table: Any, named: dict[Role, str]) -> list[Feed]:
    """The feeds of the table itself; none if no column of it is used.

    Raises:
        TypeError: it is no table.
        IllegalArgumentError: it does not have a named column.
    """
    if speaks_arrow(table):
        for name in named.values():
            check_own_type(table, name)
        return [Feed("the table", _arrow_pieces(table, named), length_of(table))]
    if isinstance(table, Mapping):
        check_once(map(str, table))
        columns = {str(name): column for name, column in table.items()}
    elif is_numpy(table) and table.dtype.names is not None:
        columns = {name: table[name] for name in table.dtype.names}
    elif is_numpy(table) or is_listed(table):
        check_only_values(named)
        return [column_feed(ROLES[0], "value", table)] if named else []
    else:
        raise TypeError(f"table must be {TABLES}; got {type(table).__name__}")
    found = {role: name for role, name in named.items() if is_there(name, tuple(columns))}
    return [column_feed(role, str(name), columns[name]) for role, name in found.items()]


def _arrow_pieces(table: Any, named: dict[Role, str]) -> Iterator[Opened]:
    for batch in batches(table, bare=True):
        if batch.names is None:
            check_only_values(named)
            yield {"value": batch.bytes_column("value")}
            continue
        found = {role: str(name) for role, name in named.items() if is_there(name, batch.names)}
        if not found:
            raise IllegalArgumentError("no column of the table is used: every column was given directly, or is None")
        yield {role.name: role.of_arrow(batch, name) for role, name in found.items()}


def is_there(name: str, names: tuple[str, ...]) -> bool:
    """Whether the table has the column.  Only a column that the user named must be there.

    Raises:
        IllegalArgumentError: it must be there, and is not.
    """
    if name in names:
        return True
    if isinstance(name, IfThere):
        return False
    raise IllegalArgumentError(f"column {name!r} is missing; columns: {', '.join(names)}")


def check_only_values(named: dict[Role, str]) -> None:
    """Refuses names of columns for a table that is a single column without a name.

    Raises:
        IllegalArgumentError: a name was given.
    """
    asked = [name for role, name in named.items() if not isinstance(name, IfThere) and (role.name, name) != FIRST]
    if asked:
        raise IllegalArgumentError(
            f"column {asked[0]!r} is missing: the table is one column of values without a name; "
            "give the others directly"
        )


def length_of(source: Any) -> int | None:
    """Its number of rows; None if it does not say, as a stream."""
    try:
        return len(source)
    except Exception:  # noqa: BLE001 - TypeError mostly; query builders have errors of their own
        return None
