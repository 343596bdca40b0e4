"""One run: loads and faults for a while, then peace, outcomes, a reader, and the verdict.

Everything that is random comes from the seed: which settings the loads have, what they send, which faults come in
which order.  When exactly a fault meets a request is up to the machine.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient

from tests.soak import transactions
from tests.soak.checker import Finding, Promise, check, summary
from tests.soak.columns import ColumnLoad
from tests.soak.faults import (
    NODE_FAULTS,
    NODE_FAULTS_OF_LONG_RUNS,
    NODE_PEACE_S,
    PROXY_FAULTS,
    PROXY_PEACE_S,
    REQUEST_TIMEOUT_S,
    Happened,
    NodeFaults,
    ProxyFaults,
    Track,
    drawn,
)
from tests.soak.journal import ACKNOWLEDGED
from tests.soak.load import Load, Plan, SendLoad
from tests.soak.secrets import CHANGING, SECRET_FAULTS, SECRET_PEACE_S, SecretFaults
from tests.support.admin import wait_until_healthy
from tests.support.damage import Damage
from tests.support.pace import HANG_S, until, within, within_ms
from tests.support.proxy import KafkaProxy
from tests.support.readback import read_all
from tools.kafka import RealKafka

PARTITIONS = 4
ROUND_S = 60.0
#: What a future may take beyond delivery.timeout.ms.
GRACE_S = within(1)
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


class Verdict(NamedTuple):
    """What a round came to, by load: findings, and counts of outcomes and errors; and the faults that took place."""

    findings: dict[str, list[Finding]]
    told: dict[str, dict[str, int]]
    happened: list[Happened]

    def kinds(self) -> Counter[str]:
        """How many faults of each kind there were, less those that could not be carried out."""
        return _kinds(self.happened)

    def found(self) -> int:
        """How many promises were broken."""
        return sum(map(len, self.findings.values()))

    def __str__(self) -> str:
        lines = [f"{self.kinds().total()} faults: {dict(self.kinds())}"]
        lines += [f"{load}: {told}; {summary(self.findings[load])}" for load, told in self.told.items()]
        if self.found():
            lines += ["faults:", *(f"  {one}" for one in self.happened)]
        return "\n".join(lines)


def _kinds(happened: Iterable[Happened]) -> Counter[str]:
    return Counter(one.fault.kind for one in happened if not one.note)


def plans(seed: str) -> list[Plan]:
    """The loads of a run, with settings drawn from the seed."""
    dice = random.Random(f"{seed}/plans")
    found = [
        _plan(dice, "direct", seed),
        _plan(dice, "proxied", seed, proxied=True),
        _plan(dice, "columns", seed, proxied=dice.random() < 0.5),
        _plan(dice, "plain", seed, proxied=True, extra={"enable.idempotence": False}),
    ]
    names = {name: {"transactional.id": f"{seed}-{name}"} for name in ("transactions", "proxied transactions")}
    return found + [_plan(dice, name, seed, proxied="proxied" in name, extra=extra) for name, extra in names.items()]


def _plan(
    dice: random.Random, name: str, seed: str, *, proxied: bool = False, extra: dict[str, Any] | None = None
) -> Plan:
    delivery_s = within(dice.choice((6, 12, 20)))
    settings: dict[str, Any] = {
        "delivery.timeout.ms": int(1000 * delivery_s),
        "request.timeout.ms": int(1000 * REQUEST_TIMEOUT_S),
        "max.block.ms": within_ms(10_000),
        "retry.backoff.ms": 20,
        "retry.backoff.max.ms": 300,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 300,
        "linger.ms": dice.choice((0, 5, 30)),
        "batch.size": dice.choice((1_000, 4_000, 16_384)),
        "buffer.memory": dice.choice((1 << 20, 32 << 20)),
        "compression.type": dice.choice(COMPRESSIONS),
        "max.in.flight.requests.per.connection": dice.choice((1, 2, 5, 5)),
        **(extra or {}),
    }
    once = settings.get("enable.idempotence", True)
    promise = Promise(delivery_s + GRACE_S, once=once, in_order=once)
    return Plan(name, settings, promise, f"{seed}/{name}", senders=dice.randint(1, 3), proxied=proxied)


def _secured(plan: Plan, secrets: SecretFaults | None) -> Plan:
    """The plan over SASL_SSL; the proxy reads what passes through it, so loads behind it stay plain."""
    if secrets is None or plan.proxied:
        return plan
    dice = random.Random(f"{plan.seed}/secrets")
    # A transactional producer ends with its first refused login, as Java's does.
    own = secrets.options(dice) if "transactional.id" in plan.settings else secrets.changing(dice)
    return replace(plan, settings={**plan.settings, **own})


def delete_topics(kafka: RealKafka, topics: Iterable[str]) -> None:
    """Deletes them, and returns when the controller has done so."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 2})
    for done in admin.delete_topics(list(topics)).values():
        done.result(HANG_S)


def make_load(plan: Plan, bootstrap_servers: str) -> Load:
    """The load that a plan is for."""
    if "transactional.id" in plan.settings:
        return transactions.TransactionLoad(plan, bootstrap_servers)
    kind = ColumnLoad if plan.name == "columns" else SendLoad
    return kind(plan, bootstrap_servers)


class Soak:
    """Loads that live as long as the run, and rounds of faults; close it at the end."""

    def __init__(self, kafka: RealKafka, seed: str, *, long: bool = False, secrets: SecretFaults | None = None) -> None:
        self.seed = seed
        self._kafka = kafka
        self._node_faults = NODE_FAULTS_OF_LONG_RUNS if long else NODE_FAULTS
        self._damage = Damage()
        self._proxy = KafkaProxy(kafka.bootstrap_servers, hooks=[self._damage])
        self._secrets = secrets
        self._loads: list[Load] = [
            make_load(plan, (self._proxy if plan.proxied else kafka).bootstrap_servers)
            for plan in (_secured(plan, secrets) for plan in plans(seed))
        ]
        if secrets is not None:
            secrets.tell = [
                load.log_in
                for load in self._loads
                if isinstance(load, (SendLoad, ColumnLoad)) and load.plan.settings.get("sasl.username") == CHANGING
            ]
        self._rounds = itertools.count()

    def round(self, seconds: float, enough: Callable[[Counter[str]], bool] = lambda kinds: True) -> Verdict:
        """Load and faults for ``seconds``, then the comparison of every record.

        Args:
            enough: of the faults of each kind so far; the round goes on until then.
        """
        number = next(self._rounds)
        topics = {
            load.plan.name: f"soak-{os.getpid()}-{number}-{load.plan.name.replace(' ', '-')}" for load in self._loads
        }
        for topic in topics.values():
            self._kafka.create_topic(topic, PARTITIONS, replication=3)
        wait_until_healthy(self._kafka)
        self._proxy.requests.clear()
        for load in self._loads:
            load.begin(topics[load.plan.name])
        try:
            happened = self._faults(number, seconds, list(topics.values()), enough)
        finally:
            for load in self._loads:
                load.end()
        for load in self._loads:
            load.settle()
        verdict = self._verdict(topics, happened)
        if not verdict.found():
            # A long run would fill the disk.
            delete_topics(self._kafka, topics.values())
        return verdict

    def acknowledged(self) -> dict[str, int]:
        """How many records of each load were acknowledged so far in this round."""
        return {
            load.plan.name: sum(entry.told == ACKNOWLEDGED for entry in load.journal.entries()) for load in self._loads
        }

    def _faults(
        self, number: int, seconds: float, topics: Sequence[str], enough: Callable[[Counter[str]], bool]
    ) -> list[Happened]:
        begun = time.monotonic()
        over = threading.Event()
        nodes = NodeFaults(self._kafka, [(topic, PARTITIONS) for topic in topics], over)
        proxy = ProxyFaults(self._proxy, self._damage, over)
        count = len(self._kafka.node_ids)
        seed = f"{self.seed}/{number}"
        tracks = [
            Track(drawn(f"{seed}/nodes", self._node_faults, NODE_PEACE_S, count), nodes.carry_out, begun, over),
            Track(drawn(f"{seed}/proxy", PROXY_FAULTS, PROXY_PEACE_S, count), proxy.carry_out, begun, over),
        ]
        if self._secrets is not None:
            faults = drawn(f"{seed}/secrets", SECRET_FAULTS, SECRET_PEACE_S, count)
            tracks.append(Track(faults, self._secrets.carry_out, begun, over))
        time.sleep(seconds)
        until(
            lambda: (
                any(track.error for track in tracks)
                or enough(_kinds(one for track in tracks for one in track.happened))
            ),
            "enough faults",
        )
        over.set()
        for track in tracks:
            track.stop(2 * HANG_S)
        for track in tracks:
            if track.error is not None:
                raise track.error
        return sorted(one for track in tracks for one in track.happened)

    def _verdict(self, topics: dict[str, str], happened: list[Happened]) -> Verdict:
        findings, told = {}, {}
        for load in self._loads:
            name = load.plan.name
            records = read_all(self._kafka.bootstrap_servers, topics[name], timeout_s=HANG_S)
            found = check(load.plan.promise, load.journal, records)
            findings[name] = [Finding("raised", text) for text in load.trouble] + found
            load.trouble.clear()
            entries = load.journal.entries()
            told[name] = dict(Counter(entry.told for entry in entries))
            told[name].update(Counter(type(entry.error).__name__ for entry in entries if entry.error is not None))
            told[name]["read"] = len(records)
            if load.journal.transactions:
                told[name].update(Counter(load.journal.transactions.values()))
        return Verdict(findings, told, happened)

    def close(self) -> None:
        """Ends the producers, then the proxy."""
        try:
            for load in self._loads:
                load.close()
        finally:
            self._proxy.close()


def soak(
    kafka: RealKafka,
    seed: str,
    seconds: float,
    *,
    say: Callable[[str], None],
    secrets: SecretFaults | None = None,
    round_s: float = ROUND_S,
) -> int:
    """Rounds until ``seconds`` have passed; how many promises were broken (it ends at the first round with any)."""
    say(f"seed {seed}")
    run = Soak(kafka, seed, long=seconds > 2 * round_s, secrets=secrets)
    deadline = time.monotonic() + seconds
    try:
        for number in itertools.count(1):
            verdict = run.round(min(round_s, max(deadline - time.monotonic(), 1.0)))
            say(f"round {number}: {verdict}")
            if verdict.found() or time.monotonic() >= deadline:
                return verdict.found()
    finally:
        run.close()
    raise AssertionError("rounds have no end of their own")
