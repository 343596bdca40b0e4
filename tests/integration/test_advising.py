"""``advise`` of running producers before the embedded broker: each kind of producer, and what is not imported."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from forebay import AsyncKafkaProducer, KafkaProducer
from forebay.errors import ProducerClosedError
from forebay.testing import EmbeddedBroker
from tests.support.pace import PROGRAM_S

RECORDS = 5000
CODE = """
import sys
from forebay import KafkaProducer
with KafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
    for number in range(2000):
        producer.send("advised", b"%d" % number)
    producer.flush()
    assert not [name for name in sys.modules if "_closed_forms" in name or name.endswith("advising")]
    print(producer.advise())
assert not [name for name in sys.modules if name.startswith("forebay.tune")]
"""


@pytest.mark.parametrize("options", [{}, {"linger_ms": 0, "compression_type": "lz4"}, {"transactional_id": "a"}])
def test_a_producer_that_has_sent_is_advised(embedded: EmbeddedBroker, options: dict[str, Any]) -> None:
    with KafkaProducer(bootstrap_servers=embedded.bootstrap_servers, **options) as producer:
        if "transactional_id" in options:
            producer.init_transactions()
            producer.begin_transaction()
        for number in range(RECORDS):
            producer.send("advised", b"%d" % number, key=b"%d" % (number % 50))
        producer.flush()
        found = producer.advise(p99_ms=1000)
        if "transactional_id" in options:
            producer.commit_transaction()
    assert found.verdict in ("change", "leave")
    assert found.estimated["present"].requests > 0
    assert 0 < found.measured["requests/s"] <= found.measured["records/s"]
    assert str(found).splitlines()[0].startswith(("Set ", "Leave "))
    with pytest.raises(ProducerClosedError):
        producer.advise()


def test_the_loop_s_producer_is_advised(embedded: EmbeddedBroker) -> None:
    async def main() -> None:
        async with AsyncKafkaProducer(bootstrap_servers=embedded.bootstrap_servers) as producer:
            for number in range(RECORDS):
                await producer.send("advised", b"%d" % number)
            await producer.flush()
            assert producer.advise().verdict in ("change", "leave")

    asyncio.run(main())


def test_a_program_loads_the_formulas_when_it_asks_and_never_the_tuner(embedded: EmbeddedBroker) -> None:
    command = [sys.executable, "-c", CODE, embedded.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_S)
    assert done.returncode == 0, done.stderr
    assert "requests/s" in done.stdout
