"""What a task does to its rows before they go to the sink: encode, frame, and put aside what cannot be encoded.

It runs in Spark's ``mapInArrow``, so it gets and gives Arrow batches; columns that it does not encode go through as
they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from forebay.errors import KafkaError
from forebay.serializers.rows.as_json import plain_text
from forebay.serializers.rows.values import Refused, shown_of, values_of
from forebay.spark.failure import shown_alone

MOST_SHOWN = 400
"""Characters of a row that an error shows."""
HEADERS = "dead-letter."
"""What the names of the headers of a dead letter begin with."""


class EncodeError(KafkaError):
    """A row cannot be encoded; the message says which one, which part of it, and why."""


class Encoder(Protocol):
    """From one row's value to bytes."""

    name: str

    def encode(self, value: Any) -> bytes:
        """The bytes.

        Raises:
            ValueError: the value does not fit; says why.
        """
        ...


@dataclass(frozen=True)
class Part:
    """How the key or the value of all rows is made."""

    name: str
    """``key`` or ``value``, which is the column's name too."""
    encoder: Encoder | None = None
    """None for text and bytes, which go through."""
    prefixes: Mapping[str | None, bytes] | None = None
    """What precedes the bytes, by topic; under None for every topic.  None itself: nothing precedes them."""

    def encoded(self, value: Any, topic: str | None) -> bytes | None:
        """The bytes as they are sent; a null stays null.

        Raises:
            ValueError: the value does not fit.
        """
        if value is None:
            return None  # a null key, or a tombstone
        if isinstance(value, Refused):
            raise ValueError(str(value))
        if self.encoder is not None:
            data = self.encoder.encode(value)
        else:
            data = value.encode() if isinstance(value, str) else value
        if self.prefixes is None:
            return data
        prefix = self.prefixes.get(None)
        # A topic outside the list is refused before this.
        return (self.prefixes[topic] if prefix is None else prefix) + data


@dataclass(frozen=True)
class RowStep:
    """The whole step; pickled into tasks, called there with a task's batches.

    Args:
        parts: what is encoded; other columns go through.
        job: its name, for headers of dead letters.
        topic: where every row goes if there is no topic column.
        topics: those that the column may name; empty allows any.
        dead_letters: the topic for rows that cannot be encoded; None raises at the first.  It needs columns
            ``topic`` and ``headers``.
    """

    parts: tuple[Part, ...]
    job: str
    topic: str | None = None
    topics: tuple[str, ...] = ()
    dead_letters: str | None = None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches with bytes in the columns of the parts.

        Raises:
            EncodeError: a row cannot be encoded, and there is no topic for dead letters.
        """
        with shown_alone():
            before = 0
            for batch in batches:
                yield from self._step(batch, before)
                before += batch.num_rows

    def _step(self, batch: Any, before: int) -> Iterator[Any]:
        import pyarrow as pa

        topics = values_of(batch.column("topic")) if self.topic is None else [self.topic] * batch.num_rows
        given = [values_of(batch.column(part.name)) for part in self.parts]
        made: list[list[bytes | None]] = [[] for _ in self.parts]
        failed: dict[int, str] = {}
        for row, topic in enumerate(topics):
            encoded, error = self._row([values[row] for values in given], topic)
            if error is not None:
                if self.dead_letters is None:
                    raise EncodeError(f"{_place(before + row)}: {error}. The row: {_shown(batch.slice(row, 1))}")
                failed[row] = error
            for values, data in zip(made, encoded, strict=True):
                values.append(data)
        done = _with(
            batch, {part.name: pa.array(values, pa.binary()) for part, values in zip(self.parts, made, strict=True)}
        )
        if not failed:
            yield done
            return
        yield done.filter(pa.array([row not in failed for row in range(batch.num_rows)]))
        yield self._letters(batch.take(pa.array(list(failed), pa.int64())), list(failed.values()))

    def _row(self, values: list[Any], topic: str | None) -> tuple[list[bytes | None], str | None]:
        """One row's bytes by part, and what is wrong with it."""
        if not topic:
            return [None] * len(values), f"its topic is {'null' if topic is None else 'empty'}"
        if isinstance(topic, Refused):
            return [None] * len(values), f"its topic is refused: {topic}"
        if self.topics and topic not in self.topics:
            return [None] * len(values), f"its topic is {topic!r}, and [sink] topics are {', '.join(self.topics)}"
        made: list[bytes | None] = []
        for part, value in zip(self.parts, values, strict=True):
            try:
                made.append(part.encoded(value, topic))
            except ValueError as error:
                what = "" if part.encoder is None else f" as {part.encoder.name}"
                why = " ".join(str(error).split())
                return [None] * len(values), f"its {part.name} cannot be encoded{what}: {why}"
        return made, None

    def _letters(self, rows: Any, errors: list[str]) -> Any:
        """Rows that failed, as records of their own: the parts as JSON, the reason in headers."""
        import pyarrow as pa

        headers = [
            [*(kept or ()), *self._reason(error, topic)]
            for kept, error, topic in zip(
                shown_of(rows.column("headers")), errors, shown_of(rows.column("topic")), strict=True
            )
        ]
        kinds = {field.name: field.type for field in rows.schema}
        changed = {
            "headers": pa.array(headers, kinds["headers"]),
            "topic": pa.array([self.dead_letters] * len(errors), kinds["topic"]),
        }
        for part in self.parts:
            texts = [_text(value) for value in shown_of(rows.column(part.name))]
            changed[part.name] = pa.array(texts, pa.binary())
        if "partition" in kinds:
            # It was chosen for the other topic.
            changed["partition"] = pa.nulls(len(errors), kinds["partition"])
        return _with(rows, changed)

    def _reason(self, error: str, topic: str | None) -> list[dict[str, Any]]:
        pairs = {"error": error, "topic": topic, "job": self.job}
        return [
            {"key": HEADERS + name, "value": None if text is None else text.encode()} for name, text in pairs.items()
        ]


def _with(batch: Any, changed: Mapping[str, Any]) -> Any:
    """The batch with other columns.  All may be null: batches of one task must not differ in that."""
    import pyarrow as pa

    columns = [changed.get(field.name, batch.column(field.name)) for field in batch.schema]
    fields = [pa.field(field.name, column.type) for field, column in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _place(row: int) -> str:
    from pyspark import TaskContext

    context = TaskContext.get()
    return f"row {row}" if context is None else f"row {row} of Spark partition {context.partitionId()}"


def _shown(batch: Any) -> str:
    row = {field.name: shown_of(column)[0] for field, column in zip(batch.schema, batch.columns, strict=True)}
    text = json.dumps(row, default=plain_text, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _text(value: Any) -> bytes | None:
    """What a dead letter holds in place of bytes that could not be made."""
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value, default=plain_text, ensure_ascii=False)).encode()
