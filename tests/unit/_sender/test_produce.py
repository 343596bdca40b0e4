"""A produce request from batches, and what each answer means."""

from __future__ import annotations

from typing import Any

import pytest

from forebay._protocol.produce_response import PartitionResponse
from forebay._records.compression import CompressionType, compressor
from forebay._records.reader import read_batches
from forebay._sender.produce import ProduceCall, error_in, match, record_errors_in
from forebay.errors import (
    ClusterAuthorizationError,
    IllegalArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
    for_code,
)
from tests.unit._accumulator.shelf import Shelf
from tests.unit._protocol.kio_peer import decode, schema

OLD, NEW = b"o" * 16, b"n" * 16


def answer(code: int = 0, **fields: object) -> PartitionResponse:
    given: dict[str, object] = {
        "topic": "test",
        "partition": 0,
        "error_code": code,
        "base_offset": -1,
        "log_append_time": -1,
        "log_start_offset": -1,
        "record_errors": [],
        "error_message": None,
        "leader_id": -1,
        "leader_epoch": -1,
        **fields,
    }
    return PartitionResponse(**given)  # type: ignore[arg-type]


def call_of(shelf: Shelf, *partitions: int, acks: int = -1) -> ProduceCall:
    for partition in partitions:
        shelf.append(partition, 2, timestamp=5)
    batches = shelf.drain(0)
    shelf.accumulator.closer.close_drained(batches)
    codec = shelf.compressor or compressor(CompressionType.NONE)
    return ProduceCall(0, batches, shelf.now, acks=acks, timeout_ms=1500, compressor=codec)


def identified(*topic_ids: bytes | None) -> list[Any]:
    """Batches for partitions 0, 1, ..., drained while metadata gave their topic these ids."""
    shelf = Shelf(leaders=(0,) * len(topic_ids))
    batches = []
    for partition, topic_id in enumerate(topic_ids):
        if topic_id is not None:
            shelf.topic_id = topic_id
            shelf.update()
        shelf.append(partition)
        batches += shelf.drain(0)
    shelf.accumulator.closer.close_drained(batches)
    return batches


def call_for(batches: list[Any]) -> ProduceCall:
    return ProduceCall(0, batches, 0, acks=-1, timeout_ms=1500, compressor=compressor(CompressionType.NONE))


def test_the_newest_version_is_the_last_by_name_where_an_id_is_unknown() -> None:
    assert call_for(identified(OLD, NEW)).newest == 13
    assert call_for(identified(None, OLD)).newest == 12


def test_the_body_by_id() -> None:
    body = decode(
        schema("produce", 13, "request").ProduceRequest,
        b"".join(map(bytes, call_for(identified(OLD, OLD, NEW)).build(13))),
    )
    topics = [(topic.topic_id.bytes, [part.index for part in topic.partition_data]) for topic in body.topic_data]
    assert topics == [(OLD, [0, 1]), (NEW, [2])]
    with pytest.raises(IllegalArgumentError, match="of 'test' it is None"):
        call_for(identified(None)).build(13)


def test_answers_by_id_get_the_name_that_was_asked_for() -> None:
    """In any order; an id that was not in the request, or was for another partition, is about no batch."""
    batches = identified(OLD, OLD, NEW)
    same = [answer(topic="", partition=number, topic_id=(OLD, OLD, NEW)[number]) for number in range(3)]
    assert match(batches, same) == same and [each.topic for each in same] == ["test"] * 3
    turned = [answer(topic="", partition=number, topic_id=(OLD, OLD, NEW)[number]) for number in (2, 0, 1)]
    assert match(batches, turned) == [turned[1], turned[2], turned[0]]
    assert [each.topic for each in turned] == ["test"] * 3
    wrong = [answer(topic="", partition=number, topic_id=b"x" * 16) for number in range(3)]
    assert match(batches, wrong) == [None] * 3
    assert match(batches, [answer(topic="", partition=0, topic_id=NEW), same[2]]) == [None, None, same[2]]
    assert match(identified(None), [answer(topic="", topic_id=OLD)]) == [None]


def test_answers_by_name_are_matched_by_name_whatever_ids_are_known() -> None:
    """Of a request in which another topic had none."""
    batches = identified(OLD, NEW)
    answers = [answer(partition=number) for number in range(2)]
    assert match(batches, answers) == answers
    assert match(batches, answers[::-1]) == answers


@pytest.mark.parametrize("version", range(3, 13))
def test_the_body_by_kio(version: int) -> None:
    call = call_of(Shelf(leaders=(0, 0, 0)), 0, 2)
    body = decode(schema("produce", version, "request").ProduceRequest, b"".join(map(bytes, call.build(version))))
    assert (body.transactional_id, body.acks, body.timeout.total_seconds()) == (None, -1, 1.5)
    (topic,) = body.topic_data
    assert [part.index for part in topic.partition_data] == [0, 2]
    for part in topic.partition_data:
        (batch,) = read_batches(part.records)
        assert (batch.count, batch.magic, batch.records[0].value) == (2, 2, b"value")


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_old_brokers_get_old_formats(version: int, magic: int) -> None:
    """F testMessageFormatDownConversion: the batch is written anew as a message set."""
    call = call_of(Shelf(leaders=(0,)), 0)
    # kio begins with version 3, which only puts the transactional id before what these have.
    payload = b"\xff\xff" + b"".join(map(bytes, call.build(version)))
    body = decode(schema("produce", 3, "request").ProduceRequest, payload)
    messages = read_batches(body.topic_data[0].partition_data[0].records)
    assert {message.magic for message in messages} == {magic}
    records = [record for message in messages for record in message.records]
    assert [(record.key, record.value) for record in records] == [(b"key", b"value")] * 2


def test_idempotence_with_an_old_broker() -> None:
    """B testIdempotenceWithOldMagic: refused, with what to do about it."""
    call = call_of(Shelf(leaders=(0,)), 0)
    call.batches[0].set_producer_state(1, 0, 0, False)
    with pytest.raises(UnsupportedVersionError, match="enable.idempotence=false"):
        call.build(2)
    assert call.build(3)


def test_zstd_with_an_old_broker() -> None:
    call = call_of(Shelf(leaders=(0,), compressor=compressor(CompressionType.ZSTD)), 0)
    with pytest.raises(UnsupportedCompressionTypeError, match="zstd needs version 7"):
        call.build(6)
    assert call.build(7)


def test_it_holds_the_memory_until_the_connection_is_through() -> None:
    """O1: expired and let go by its batch, the memory stays while it may still be written."""
    shelf = Shelf(batch_size=512, pool=512, leaders=(0,))
    call = call_of(shelf, 0)
    (batch,) = call.batches
    (buffer,) = batch.records.buffers
    shelf.finish(batch)
    assert shelf.pool.available() == 512 - buffer.size < 512
    call.release()
    assert shelf.pool.available() == 512
    call.release()
    assert shelf.pool.available() == 512


def test_answers_are_matched_in_any_order() -> None:
    shelf = Shelf(leaders=(0, 0, 0))
    batches = call_of(shelf, 0, 1, 2).batches
    same = [answer(partition=number) for number in range(3)]
    assert match(batches, same) == same
    turned = list(reversed(same))
    assert match(batches, turned) == same
    assert match(batches, [same[1], answer(topic="else")]) == [None, same[1], None]


def test_success_and_duplicates_are_no_errors() -> None:
    assert error_in(answer(0)) is None
    assert error_in(answer(46)) is None


@pytest.mark.parametrize("code", [code for code in range(-1, 134) if code not in (0, 46)])
def test_every_code_has_its_class(code: int) -> None:
    error = error_in(answer(code))
    expected = for_code(code)
    assert type(error) is (expected or UnknownServerError)
    assert error is not None and str(error)


def test_default_and_custom_messages() -> None:
    """F testDefaultErrorMessage, testCustomErrorMessage: INVALID_REQUEST."""
    default, custom = error_in(answer(42)), error_in(answer(42, error_message="testCustomErrorMessage"))
    assert default is not None and custom is not None
    assert default.message == type(default).default_message() != "INVALID_REQUEST"
    assert custom.message == "testCustomErrorMessage"
    assert "partition=test-0" in str(custom)


def test_authorization_says_what_for() -> None:
    topic, cluster = error_in(answer(29)), error_in(answer(31))
    assert isinstance(topic, TopicAuthorizationError) and "[test]" in topic.message
    assert isinstance(cluster, ClusterAuthorizationError) and "idempotent" in cluster.message


def test_too_large_names_the_broker_s_option() -> None:
    error = error_in(answer(10))
    assert isinstance(error, RecordTooLargeError)
    assert "test-0" in error.message and "message.max.bytes" in error.message


def test_errors_of_several_records() -> None:
    """F testRecordErrorPropagatedToApplication: their own texts or the default; the others a plain KafkaError."""
    refused = answer(87, record_errors=[(0, "0"), (2, "2"), (3, None)])
    error = error_in(refused)
    assert isinstance(error, InvalidRecordError)
    rest, single = record_errors_in(refused, error)
    assert type(rest) is KafkaError and "one more more invalid records" in rest.message
    assert single is not None and sorted(single) == [0, 2, 3]
    assert all(type(each) is InvalidRecordError for each in single.values())
    assert [single[index].message for index in (0, 2, 3)] == ["0", "2", InvalidRecordError.default_message()]


def test_the_partition_s_text_stands_in_for_a_record_s() -> None:
    refused = answer(87, record_errors=[(0, None), (1, "own")], error_message="of the partition")
    error = error_in(refused)
    assert error is not None
    _, single = record_errors_in(refused, error)
    assert single is not None
    assert [single[index].message for index in (0, 1)] == ["of the partition", "own"]


def test_the_only_record_gets_the_partition_s_class() -> None:
    refused = answer(32, record_errors=[(1, "too old")])
    error = error_in(refused)
    assert error is not None
    _, single = record_errors_in(refused, error)
    assert single is not None and type(single[1]) is InvalidTimestampError


def test_without_record_errors_all_get_the_same() -> None:
    error = NotLeaderOrFollowerError()
    assert record_errors_in(answer(6), error) == (error, None)
