"""What callers of an AdminClient give, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from forebay._protocol.list_offsets import READ_COMMITTED, READ_UNCOMMITTED
from forebay.admin._transactions import NEWEST_TRANSACTION_VERSION
from forebay.errors import IllegalArgumentError, InvalidTopicError
from forebay.model import TopicPartition, TransactionIdentity
from forebay.model._wire import check_text, check_topic, shown

_ISOLATION = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}
MAX_INT16, MAX_INT32, MAX_INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1


def require_text(name: str, value: object, check: Callable[[str], None] | None = None) -> None:
    if not isinstance(value, str) or not value:
        raise IllegalArgumentError(f"{name} must be a non-empty str, got {value!r}")
    check_text(name, value) if check is None else check(value)


def require_topic(name: str) -> None:
    try:
        require_text("topic", name, check_topic)
    except InvalidTopicError as error:
        raise error.with_context(topic=shown(name)) from None


def require_configs(configs: Mapping[str, Any] | None) -> dict[str, str | None]:
    given = {str(key): None if value is None else str(value) for key, value in (configs or {}).items()}
    for key, value in given.items():
        check_text("a key of configs", key)
        check_text(f"configs[{key!r}]", value or "")
    return given


def require_number(name: str, value: object, lowest: int, highest: int, *, default: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise IllegalArgumentError(f"{name} must be an int, got {value!r}")
    if not lowest <= value <= highest and value != default:
        also = "" if default is None else f", or {default} for the broker's default"
        raise IllegalArgumentError(f"{name} must be from {lowest} to {highest}{also}, got {value}")


def require_identity(who: TransactionIdentity) -> None:
    if not isinstance(who, TransactionIdentity):
        raise IllegalArgumentError(f"identity must be a TransactionIdentity, got {type(who).__name__}: {who!r}")
    require_text("transactional_id", who.transactional_id)
    require_number("producer_id", who.producer_id, 0, MAX_INT64)
    require_number("producer_epoch", who.producer_epoch, 0, MAX_INT16)
    require_number("version", who.transaction_version, 0, NEWEST_TRANSACTION_VERSION)


def require_place(topic: str, partition: int) -> TopicPartition:
    require_topic(topic)
    require_number("partition", partition, 0, MAX_INT32)
    return TopicPartition(topic, partition)


def require_isolation(isolation: str) -> int:
    level = _ISOLATION.get(isolation)
    if level is None:
        raise IllegalArgumentError(f"isolation must be one of {', '.join(_ISOLATION)}, got {isolation!r}")
    return level
