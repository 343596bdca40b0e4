"""Certificates and passwords that change while loads use them.

The brokers get certificates of a new authority, which the loads' trust store has learned before.  Stored passwords get
another salt and another number of iterations, so what a client keeps of them is of no use any more.  Sessions end after
some seconds by the brokers' settings (KIP-368).  Nobody may notice any of it.

One user gets another password now and then, and its loads are told right after the brokers.  A login between the two is
refused, and has to be repeated with the new password.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

import trustme
from confluent_kafka import KafkaException

from tests.soak.faults import Fault, Kind
from tests.support.pace import HANG_S
from tests.support.secure import MECHANISMS, PASSWORD, USER, add_scram_users
from tests.support.three import Three, certificate

SECRET_FAULTS = {
    "new certificates": Kind(2, 0.0, 0.0),
    "new salt": Kind(1, 0.0, 0.0),
    "new password": Kind(2, 1.0, 2.0),
}
SECRET_PEACE_S = (2.0, 5.0)
CHANGING = "carol"
"""The user whose password changes."""


class SecretFaults:
    """What can happen to the secrets of a cluster."""

    def __init__(self, three: Three) -> None:
        self._three = three
        self._count = 0
        self._password = f"{PASSWORD}-0"
        self.tell: list[Callable[[str, str], None]] = []
        """What gives the loads of ``CHANGING`` their new username and password."""
        add_scram_users(three.kafka, user=CHANGING, password=self._password)

    def changing(self, dice: random.Random) -> dict[str, str]:
        """The options of a client whose password will change: one by SCRAM, since PLAIN's are in the brokers' files."""
        mechanism = dice.choice([name for name in MECHANISMS if name.startswith("SCRAM")])
        own = {"sasl.mechanism": mechanism, "sasl.username": CHANGING, "sasl.password": self._password}
        return {**self.options(dice), **own}

    def options(self, dice: random.Random) -> dict[str, str]:
        """Those of a client over SASL_SSL, by one of the mechanisms."""
        kafka = self._three.kafka
        return {
            "bootstrap.servers": ",".join(kafka.address_of("SASLS", node) for node in kafka.node_ids),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": str(self._three.ca),
            "sasl.mechanism": dice.choice(MECHANISMS),
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }

    def carry_out(self, fault: Fault) -> str:
        """Does it; a note says that it could not be done."""
        table: dict[str, Callable[[Fault], str]] = {
            "new certificates": self.renew,
            "new salt": self.salt,
            "new password": self.change_password,
        }
        return table[fault.kind](fault)

    def renew(self, fault: Fault) -> str:
        """The trust store learns an authority, then each broker gets a certificate of it."""
        authority = trustme.CA()
        ca = self._three.ca
        fresh = ca.with_suffix(".new")
        # Atomically, and with the older ones: a broker that is away now keeps its certificate.
        fresh.write_bytes(ca.read_bytes() + authority.cert_pem.bytes())
        os.replace(fresh, ca)
        self._count += 1
        path = certificate(self._three.folder, f"server-{self._count}", authority)
        refusals = [self._install(node, str(path)) for node in self._three.kafka.node_ids]
        # A broker that is away keeps its certificate, whose authority stays trusted.
        return "; ".join(refusals) if all(refusals) else ""

    def salt(self, fault: Fault) -> str:
        """The same password, stored anew."""
        try:
            add_scram_users(self._three.kafka, iterations=4096 + fault.die % 1000)
        except KafkaException as error:
            return str(error)
        return ""

    def change_password(self, fault: Fault) -> str:
        """The brokers get it first, then the loads."""
        # The topic of a round is known by then: ``send`` would raise a refusal while it is not.
        time.sleep(fault.seconds)
        self._count += 1
        self._password = f"{PASSWORD}-{self._count}"
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                add_scram_users(self._three.kafka, user=CHANGING, password=self._password)
                break
            except KafkaException:
                # It may have been stored, so it has to be in the end.
                if time.monotonic() > deadline:
                    raise
        for tell in self.tell:
            tell(CHANGING, self._password)
        return ""

    def _install(self, node: int, path: str) -> str:
        """Why the broker does not use the certificate; empty if it does."""
        from confluent_kafka import admin as confluent

        names: Any = confluent  # they are exported, but not by __all__
        host, port = self._three.kafka.address(node)
        admin = names.AdminClient({"bootstrap.servers": f"{host}:{port}", "log_level": 0})
        option = "listener.name.sasls.ssl.keystore.location"
        entry = names.ConfigEntry(option, path, incremental_operation=names.AlterConfigOpType.SET)
        resource = names.ConfigResource(names.ConfigResource.Type.BROKER, str(node), incremental_configs=[entry])
        try:
            for done in admin.incremental_alter_configs([resource], request_timeout=HANG_S / 4).values():
                done.result(HANG_S)
        except KafkaException as error:
            return f"node {node}: {error}"
        return ""
