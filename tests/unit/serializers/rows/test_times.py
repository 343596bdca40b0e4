"""Days and times as text; ``test_as_json.py`` has every type with its extremes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from forebay.serializers.rows.times import as_text, first_unwritten, is_time, raw
from tests.support.arrow_types import stored

TYPES = [pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
STAMPS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Asia/Tokyo")]


@pytest.mark.parametrize("kind", [*TYPES, *STAMPS], ids=str)
def test_the_number_in_memory_is_the_raw_value(kind: Any) -> None:
    assert is_time(kind) and not is_time(pa.duration("s"))
    assert raw(stored(kind, 7)).to_pylist() == [7]
    assert first_unwritten(pa.concat_arrays([pa.nulls(2, kind), stored(kind, 0)])) is None
    assert as_text(pa.nulls(2, kind)).to_pylist() == [None, None]


@pytest.mark.parametrize("kind", [kind for kind in [*TYPES, *STAMPS] if "ns" not in str(kind)], ids=str)
def test_the_first_row_without_a_form_is_found(kind: Any) -> None:
    most = 2 ** (kind.bit_width - 1) - 1
    column = pa.chunked_array([pa.nulls(1, kind), stored(kind, 0), stored(kind, most), stored(kind, -most)])
    assert first_unwritten(column) == 2


def test_years_above_9999_have_a_sign_and_others_stay() -> None:
    column = pa.concat_arrays([stored(pa.date32(), day) for day in (0, 2_932_896, 2_932_897, -719_529)])
    assert as_text(column).to_pylist() == ["1970-01-01", "9999-12-31", "+10000-01-01", "-0001-12-31"]
