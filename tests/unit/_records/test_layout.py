from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay._records import layout
from forebay._records.layout import MAX_SEQUENCE, decrement_sequence, increment_sequence, wrap64
from tests.support.forms import differences


def test_compiled_code_has_the_same_numbers() -> None:
    assert differences(layout) == {}


@pytest.mark.parametrize(
    ("sequence", "by", "expected"),
    [
        (5, 5, 10),
        (MAX_SEQUENCE, 1, 0),
        (MAX_SEQUENCE - 5, 10, 4),
        (0, MAX_SEQUENCE, MAX_SEQUENCE),
        (MAX_SEQUENCE, 100, 99),
        (99, MAX_SEQUENCE, 98),
    ],
)
def test_increment(sequence: int, by: int, expected: int) -> None:
    """A9, J testIncrementSequence: 0 follows 2147483647."""
    assert increment_sequence(sequence, by) == expected


@pytest.mark.parametrize(("sequence", "by", "expected"), [(0, 1, MAX_SEQUENCE), (5, 5, 0)])
def test_decrement(sequence: int, by: int, expected: int) -> None:
    """A9, J testDecrementSequence: 2147483647 precedes 0."""
    assert decrement_sequence(sequence, by) == expected


@given(st.integers(0, MAX_SEQUENCE), st.integers(0, MAX_SEQUENCE))
def test_decrement_undoes_increment(sequence: int, by: int) -> None:
    assert decrement_sequence(increment_sequence(sequence, by), by) == sequence
    assert 0 <= increment_sequence(sequence, by) <= MAX_SEQUENCE


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_wrapped_deltas_lead_back(base: int, other: int) -> None:
    assert wrap64(base + wrap64(other - base)) == other


def test_the_header_is_as_long_as_the_offsets_say() -> None:
    assert struct.calcsize(layout.V2_HEADER_FIELDS) == layout.BATCH_OVERHEAD
    fields = "qiibIhiqqqhii"
    ends = [struct.calcsize(">" + fields[:count]) for count in range(len(fields))]
    assert ends == [
        layout.OFFSET_AT,
        layout.SIZE_AT,
        layout.V2_LEADER_EPOCH_AT,
        layout.MAGIC_AT,
        layout.V2_CRC_AT,
        layout.V2_ATTRIBUTES_AT,
        layout.V2_LAST_OFFSET_DELTA_AT,
        layout.V2_BASE_TIMESTAMP_AT,
        layout.V2_MAX_TIMESTAMP_AT,
        layout.V2_PRODUCER_ID_AT,
        layout.V2_PRODUCER_EPOCH_AT,
        layout.V2_BASE_SEQUENCE_AT,
        layout.V2_COUNT_AT,
    ]
