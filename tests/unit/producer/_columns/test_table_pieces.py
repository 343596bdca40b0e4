"""What ``send_batch`` takes for a table and for a column, how chunks are put side by side, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from forebay.errors import (
    IllegalArgumentError,
    InvalidTopicError,
    KafkaError,
    ProducerClosedError,
    RecordTooLargeError,
)
from forebay.model import ProducerRecord
from tests.fakes.world import Told, World

KEYS = [b"k0", None, b"k2"]
VALUES = [b"v0", b"v1", None]
STRUCTURED = np.array([(b"v0", b"k0"), (b"v1", b"k1")], dtype=[("value", "S2"), ("key", "S2")])


def sent(table: Any, **columns: Any) -> list[tuple[bytes | None, bytes | None]]:
    """(key, value) of what stands in the only partition."""
    world = World(topics={"t": 1}, max_block_ms=0)
    delivery = world.producer.send_batch("t", table, **columns)
    world.settle(40)
    found = [(record.key, record.value) for record in world.cluster.logs["t", 0].records]
    assert delivery.result(0) == ({("t", 0): ((0, len(found)),)} if found else {})
    assert len(delivery) == len(found)
    return found


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (pa.table({"value": VALUES, "key": KEYS}), {}),
        (pa.record_batch({"v": VALUES, "k": KEYS, "key": [1, 2, 3]}), {"value": "v", "key": "k"}),
        (
            pa.table({"value": pa.chunked_array([VALUES[:1], VALUES[1:]])}),
            {"key": pa.chunked_array([KEYS[:2], KEYS[2:]])},
        ),
        (pa.table({"value": VALUES, "key": KEYS}).to_reader(max_chunksize=2), {}),
        (pd.DataFrame({"value": ["v0", "v1", None], "key": ["k0", None, "k2"]}), {}),
        ({"value": VALUES, "key": pa.chunked_array([KEYS[:2], KEYS[2:]])}, {}),
        ({"value": np.array(VALUES, object)}, {"key": KEYS}),
        (VALUES, {"key": KEYS}),
        (pa.array(VALUES), {"key": pa.array(KEYS)}),
        (np.array(VALUES, object), {"key": tuple(KEYS)}),
        (pa.chunked_array([VALUES[:2], [], VALUES[2:]]), {"key": KEYS}),
    ],
)
def test_the_same_rows_in_every_form(table: Any, columns: dict[str, Any]) -> None:
    assert sent(table, **columns) == list(zip(KEYS, VALUES, strict=True))


def test_structured_arrays_have_columns() -> None:
    assert sent(STRUCTURED) == [(b"k0", b"v0"), (b"k1", b"v1")]


def test_a_datetime_is_the_timestamp_of_all_rows() -> None:
    world = World(topics={"t": 1}, max_block_ms=0)
    world.producer.send_batch("t", VALUES, timestamp=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    world.settle(40)
    assert [record.timestamp for record in world.cluster.logs["t", 0].records] == [1000] * 3
    with pytest.raises(IllegalArgumentError, match="has no time zone"):
        world.producer.send_batch("t", VALUES, timestamp=datetime(1970, 1, 1))


def test_none_leaves_a_column_out_and_a_value_of_none_makes_tombstones() -> None:
    assert sent(pa.table({"value": [b"v"], "key": [b"k"]}), key=None) == [(None, b"v")]
    assert sent(pa.table({"value": [b"v"], "key": [b"k"]}), value=None) == [(b"k", None)]


def test_an_empty_table_is_done_at_once() -> None:
    assert sent([]) == []
    assert sent(pa.table({"value": pa.array([], pa.binary())})) == []


@pytest.mark.parametrize(
    ("table", "columns", "error", "message"),
    [
        (3, {}, TypeError, "table must be an Arrow table.*; got int"),
        ("text", {}, TypeError, "table must be .*; got str"),
        ([b"a"], {"key": 3}, TypeError, "column 'key' must be a column's name, None, or a column: .*; got int"),
        ([b"a"], {"partition": 1.5}, TypeError, "column 'partition' must be .*, an int for all rows; got float"),
        ([b"a"], {"key": pa.table({"k": [b"a"]})}, TypeError, "got rows with the columns k"),
        ([b"a"], {"key": "k"}, IllegalArgumentError, "column 'k' is missing: the table is one column of values"),
        (pa.table({"v": [b"a"]}), {}, IllegalArgumentError, "column 'value' is missing; columns: v"),
        ({"v": [b"a"]}, {}, IllegalArgumentError, "column 'value' is missing; columns: v"),
        (pa.table({"v": [b"a"]}), {"value": [b"a"]}, IllegalArgumentError, "no column of the table is used"),
        ({"v": [b"a"]}, {"value": [b"a"]}, IllegalArgumentError, "no column of the table is used"),
        (
            pa.table({"value": [1.5]}),
            {},
            IllegalArgumentError,
            "column 'value': Arrow type double is not read",
        ),
        ([b"a"], {"key": [b"a", b"b"]}, IllegalArgumentError, "column 'value' has 1 rows, column 'key' has 2"),
        ([b"a"], {"topic": None}, IllegalArgumentError, "no topic: give a topic, a topic_column, or both"),
        ([b"a"], {"topic": ""}, InvalidTopicError, "No topic can be named '': it is empty"),
        ([b"a"], {"topic": b"t"}, TypeError, "topic must be a str or None, got bytes"),
        ([b"a"], {"headers": [{"a": "b"}]}, TypeError, "column 'headers', row 0: the value of header 'a' must be"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    table: Any, columns: dict[str, Any], error: type[Exception], message: str
) -> None:
    world = World(topics={"t": 1}, max_block_ms=0)
    with pytest.raises(error, match=message) as caught:
        world.producer.send_batch(**{"topic": "t", "table": table, **columns})
    assert caught.value.delivery.taken() == []  # type: ignore[attr-defined]
    assert not world.accumulator.has_incomplete()


def reader(values: list[list[bytes]], error: Exception | None = None) -> pa.RecordBatchReader:
    def read() -> Iterator[pa.RecordBatch]:
        for chunk in values:
            yield pa.record_batch({"value": pa.array(chunk, pa.binary())})
        if error is not None:
            raise error

    return pa.RecordBatchReader.from_batches(pa.schema([("value", pa.binary())]), read())


def test_a_stream_that_fails_leaves_the_rows_before_it_in_the_delivery() -> None:
    world = World(topics={"t": 1})
    with pytest.raises(OSError, match="the disk is gone") as caught:
        world.producer.send_batch("t", reader([[b"a", b"b"], [b"c"]], ValueError("the disk is gone")))
    world.settle(20)
    delivery = caught.value.delivery  # type: ignore[attr-defined]
    assert delivery.taken() == [range(3)]
    assert delivery.result(0) == {("t", 0): ((0, 3),)}


@pytest.mark.parametrize(("keys", "longer"), [(2, "the table has more"), (4, "column 'key' has more")])
def test_a_stream_shows_only_at_its_end_that_lengths_differ(keys: int, longer: str) -> None:
    world = World(topics={"t": 1})
    with pytest.raises(IllegalArgumentError, match=longer) as caught:
        world.producer.send_batch("t", reader([[b"a", b"b"], [b"c"]]), key=[b"k"] * keys)
    assert caught.value.delivery.taken() == [range(min(keys, 3))]


def test_streams_are_read_one_batch_after_the_other() -> None:
    world = World(topics={"t": 1}, linger_ms=1000)
    seen: list[int] = []

    def read() -> Iterator[pa.RecordBatch]:
        for _ in range(3):
            seen.append(sum(batch.record_count for batch in world.queue("t").batches))
            yield pa.record_batch({"value": pa.array([b"v"] * 5, pa.binary())})

    world.producer.send_batch("t", pa.RecordBatchReader.from_batches(pa.schema([("value", pa.binary())]), read()))
    assert seen == [0, 5, 10]


def test_a_refused_row_names_itself_and_what_was_taken() -> None:
    """Row 2 of partition 1 waits its turn behind rows of partition 0 that find no memory."""
    world = World(topics={"t": 2}, buffer_memory=2000, batch_size=1000, max_block_ms=0)
    with pytest.raises(KafkaError) as caught:
        world.producer.send_batch("t", [bytes(33)] * 100, partition=[int(row == 2) for row in range(100)])
    taken = caught.value.delivery.taken()
    assert caught.value.context["row"] == 2
    assert [2 in rows for rows in taken] == [False, False]
    assert sum(map(len, taken)) == len(caught.value.delivery) > 40


def test_a_refusal_counts_as_a_record_s_error_and_pickles_without_its_delivery() -> None:
    import pickle

    world = World(topics={"t": 1}, max_request_size=1000)
    before = world.metric("record-error-total")
    with pytest.raises(RecordTooLargeError) as caught:
        world.producer.send_batch("t", [b"a", bytes(2000)])
    assert world.metric("record-error-total") == before + 1
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.context["row"], copied.delivery) == (1, None)


def test_a_closed_producer_takes_no_table() -> None:
    world = World(topics={"t": 1})
    world.producer._set_state(1)
    with pytest.raises(ProducerClosedError):
        world.producer.send_batch("t", [b"a"])


def test_serializers_are_not_asked() -> None:
    def refuse(value: Any) -> bytes:
        raise ValueError("not for columns")

    world = World(topics={"t": 1}, value_serializer=refuse, key_serializer=refuse)
    world.producer.send_batch("t", [b"a"], key=[b"k"])
    world.settle()
    assert world.values("t") == [b"a"]


class Interceptor:
    """Marks every value, and hears of every end."""

    def __init__(self) -> None:
        self.told = Told()

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        partition = None if record.value == b"v1" else record.partition
        headers = (*record.headers, ("seen", b"1"))
        return ProducerRecord(
            record.topic,
            b"<%s>" % record.value,
            record.key,
            headers=headers,
            partition=partition,
            timestamp=record.timestamp,
        )

    def on_acknowledgement(self, metadata: Any, error: BaseException | None) -> None:
        self.told.append((metadata, error))


def test_interceptors_see_every_row() -> None:
    interceptor = Interceptor()
    world = World(topics={"t": 2}, interceptor_classes=[interceptor], max_request_size=1000)
    delivery = world.producer.send_batch(
        "t", [b"v0", b"v1"], partition=1, timestamp=[5, 6], headers=[None, {"a": None}]
    )
    world.settle(20)
    assert sum(run.records for runs in delivery.result(0).values() for run in runs) == 2
    records = [one for number in range(2) for one in world.cluster.logs["t", number].records]
    assert sorted((one.value or b"", one.timestamp, one.headers) for one in records) == [
        (b"<v0>", 5, (("seen", b"1"),)),
        (b"<v1>", 6, (("a", None), ("seen", b"1"))),
    ]
    assert [error for _, error in interceptor.told] == [None, None]
    with pytest.raises(RecordTooLargeError, match="row=0"):
        world.producer.send_batch("t", [bytes(2000)])
    assert isinstance(interceptor.told[-1][1], RecordTooLargeError)


def test_an_interceptor_may_not_need_a_serializer() -> None:
    class Text(Interceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return ProducerRecord(record.topic, "text")

    world = World(topics={"t": 1}, interceptor_classes=[Text()])
    with pytest.raises(TypeError, match="an interceptor made the value a str; columns pass no serializer"):
        world.producer.send_batch("t", [b"a"])


def test_a_slice_of_structs_is_sent_and_no_row_behind_it() -> None:
    world = World(topics={"t": 1})
    rows = pa.array([{"value": b"%d" % row} for row in range(10)])
    assert world.producer.send_batch("t", pa.chunked_array([rows[2:5], rows[7:8]])).rows == 4
    world.settle()
    assert world.values("t") == [b"2", b"3", b"4", b"7"]


def test_something_has_to_say_how_many_rows_there_are() -> None:
    world = World(topics={"t": 1}, max_block_ms=0)
    with pytest.raises(IllegalArgumentError, match="nothing says how many rows there are") as caught:
        world.producer.send_batch("t", {"partition": 0, "timestamp": 5}, value=None)
    assert caught.value.delivery.rows == 0


def test_a_table_that_does_not_know_its_length_is_read_to_its_end() -> None:
    class Query:
        """As query builders have it, which want to be asked with a query."""

        def __len__(self) -> int:
            raise RuntimeError("use count()")

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"value": [b"a", b"b"]}).__arrow_c_stream__(requested_schema)

    world = World(topics={"t": 1})
    assert world.producer.send_batch("t", Query()).rows == 2


def test_a_topic_that_is_no_text_is_refused_with_its_row() -> None:
    for interceptors in ([], [Interceptor()]):
        world = World(topics={"t": 1}, max_block_ms=0, interceptor_classes=interceptors)
        with pytest.raises(InvalidTopicError, match=r"No topic can be named.*row=1"):
            world.producer.send_batch(None, {"value": [b"a", b"b"], "name": [b"t", b"\xff"]}, topic_column="name")
