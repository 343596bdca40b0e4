"""The table of errors against the one in words: every code of every API."""

from __future__ import annotations

import pytest

from forebay._protocol.versions import ApiKey
from forebay._transactions.errors import TABLE, Action, action_for
from forebay.errors import KafkaError, error_for

COLUMNS = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
    ApiKey.FIND_COORDINATOR,
)
LETTERS = {
    "L": Action.LOOK_UP,
    "R": Action.RETRY,
    "S": Action.RETRY_SOON,
    "A": Action.ABORTABLE,
    "C": Action.COMMIT_FAILED,
    "B": Action.ABORTABLE_BUMP,
    "U": Action.REFUSED,
    "F": Action.FATAL,
    "P": Action.FENCED,
}
# Written out by hand: InitProducerId, AddPartitions, AddOffsets, TxnOffsetCommit, EndTxn, FindCoordinator.
ROWS = {
    15: "LLLLLR",
    16: "LLLLLR",
    7: "RRRLRR",
    14: "RRRRRR",
    3: "RRRRRR",
    51: "RSRRRR",
    47: "PPPPPF",
    90: "PPPPPF",
    53: "UFFFFF",
    31: "UAFFFF",
    30: "FAAAFA",
    29: "FAFFFF",
    55: "FAFFFF",
    48: "FFFFFF",
    49: "FBBFBF",
    59: "FBBFBF",
    82: "FAFAFF",
    22: "FAFCFF",
    25: "FAFCFF",
    113: "FAFCFF",
    43: "FAFFFF",
    120: "AAAAAA",
    -1: "FAFFFF",
    42: "FAFFFF",
}


@pytest.mark.parametrize(("code", "row"), list(ROWS.items()))
def test_every_row(code: int, row: str) -> None:
    for api, letter in zip(COLUMNS, row, strict=True):
        error = error_for(code)
        assert error is not None
        assert action_for(api, error) is LETTERS[letter], f"{error.name} in {api.name}"


def test_an_error_without_a_code() -> None:
    assert action_for(ApiKey.END_TXN, KafkaError("?")) is Action.FATAL
    assert action_for(ApiKey.ADD_PARTITIONS_TO_TXN, KafkaError("?")) is Action.ABORTABLE


def test_every_api_has_a_table() -> None:
    assert set(TABLE) == set(COLUMNS)


def test_the_worst_wins() -> None:
    """A request with several parts follows its worst one: the order of the actions is that of their weight."""
    order = [Action.RETRY, Action.RETRY_SOON, Action.LOOK_UP, Action.ABORTABLE, Action.ABORTABLE_BUMP, Action.FATAL]
    assert sorted(order, key=lambda action: action.value) == order
