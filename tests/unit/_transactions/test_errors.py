"""The table of errors against the one in words: every code of every API."""

from __future__ import annotations

import pytest

from forebay._protocol.versions import ApiKey
from forebay._transactions.errors import TABLE, Action, action_for, for_call
from forebay.errors import KafkaError, KafkaTimeoutError, RecordTooLargeError, TransactionAbortableError, error_for
from forebay.errors._base import judged

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


def test_a_call_raises_the_class_of_what_went_wrong() -> None:
    failed = judged(RecordTooLargeError("2 MB", topic="t"), requires_abort=True)
    assert for_call(failed) is failed
    error = for_call(failed, "In an error state: ")
    assert type(error) is RecordTooLargeError and str(error) == "In an error state: 2 MB (topic=t)"
    assert error.txn_requires_abort and error.__cause__ is failed


@pytest.mark.parametrize("fatal", [False, True])
def test_no_call_raises_what_asks_for_the_same_call_again(fatal: bool) -> None:
    failed = judged(KafkaTimeoutError("Expiring 1 record(s)", attempts=3), fatal=fatal, requires_abort=not fatal)
    error = for_call(failed)
    assert type(error) is TransactionAbortableError and error.__cause__ is failed
    assert str(error) == "KafkaTimeoutError: Expiring 1 record(s) (attempts=3)"
    assert (error.fatal, error.txn_requires_abort, error.retriable) == (fatal, not fatal, False)
