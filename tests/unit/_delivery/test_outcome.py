"""The values of a result as long as nothing is known of its batch."""

from __future__ import annotations

from forebay._delivery.future import BatchResult


def test_at_first_nothing_is_known() -> None:
    result = BatchResult("test", 3)
    assert (result.topic, result.partition, result.base_offset, result.log_append_time) == ("test", 3, -1, -1)
    assert (result.error, result.record_errors, result.record_count, result.done) == (None, None, 0, False)
    result.check_own_process()
