"""Options of exactly-once writes: whatever is missing or contradictory is refused, with the remedy."""

from __future__ import annotations

import pytest

from forebay.errors import ConfigError
from forebay.spark.exactly_once.settings import Settings, parse

EXACTLY = {"deliveryguarantee": "exactly-once", "transactionalidprefix": "orders"}


def test_without_the_option_it_is_at_least_once() -> None:
    assert parse({"topic": "t"}, streaming=False) is None
    assert parse({"deliveryguarantee": "at-least-once"}, streaming=True) is None


def test_a_stream_needs_a_prefix_and_no_id() -> None:
    assert parse(EXACTLY, streaming=True) == Settings("orders", "__orders_spark_commits")
    assert parse({**EXACTLY, "controltopic": "c"}, streaming=True) == Settings("orders", "c")


def test_a_batch_may_have_an_id_and_a_version() -> None:
    given = {**EXACTLY, "txnappid": " daily ", "txnversion": "20261124", "abandonunfinished": "daily/3"}
    found = Settings("orders", "__orders_spark_commits", "daily", 20261124, "daily/3")
    assert parse(given, streaming=False) == found
    rewritten = {**EXACTLY, "rewriteunfinished": "daily/3"}
    assert parse(rewritten, streaming=True) == Settings("orders", "__orders_spark_commits", rewrite="daily/3")
    assert parse(EXACTLY, streaming=False) == Settings("orders", "__orders_spark_commits")


@pytest.mark.parametrize(
    ("given", "streaming", "words"),
    [
        ({"deliveryguarantee": "exactly_once"}, False, "must be 'at-least-once' or 'exactly-once', not 'exactly_once'"),
        ({"deliveryguarantee": "exactly-once"}, False, "needs the option 'transactionalIdPrefix'"),
        ({"transactionalidprefix": "p"}, False, "'transactionalIdPrefix' needs the option deliveryGuarantee=exactly"),
        ({"txnappid": "a", "txnversion": "1"}, False, "'txnAppId' needs the option deliveryGuarantee=exactly-once"),
        ({**EXACTLY, "transactionalidprefix": "a/b"}, False, "'transactionalIdPrefix' must be 1 to 180 letters"),
        ({**EXACTLY, "transactionalidprefix": ""}, False, "'transactionalIdPrefix' must be 1 to 180 letters"),
        ({**EXACTLY, "controltopic": "a b"}, False, "'controlTopic' must be 1 to 180 letters"),
        ({**EXACTLY, "controltopic": ".."}, False, "'controlTopic' names no topic that can be, '..': it is '..'"),
        ({**EXACTLY, "txnappid": "a"}, False, "'txnAppId' needs the option 'txnVersion'"),
        ({**EXACTLY, "txnversion": "1"}, False, "'txnVersion' needs the option 'txnAppId'"),
        ({**EXACTLY, "txnappid": "", "txnversion": "1"}, False, "'txnAppId' is empty"),
        ({**EXACTLY, "txnappid": "a", "txnversion": "-1"}, False, "'txnVersion' must be a whole number"),
        ({**EXACTLY, "txnappid": "a", "txnversion": "1"}, True, "'txnAppId' is for batch writes"),
        (
            {**EXACTLY, "abandonunfinished": "a/1", "rewriteunfinished": "a/1"},
            True,
            "'abandonUnfinished' and 'rewriteUnfinished' are two answers",
        ),
        ({**EXACTLY, "txnversion": "1"}, True, "'txnVersion' is for batch writes"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, str], streaming: bool, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(given, streaming=streaming)
