"""The instance id: known once, or never."""

from __future__ import annotations

from forebay._insight.telemetry.instance import InstanceId
from forebay.errors import KafkaError


def test_an_instance_id_stays() -> None:
    instance = InstanceId()
    instance.known("x")
    instance.never("later")
    assert instance.text == "x" and instance.result.done and instance.result.error is None


def test_an_instance_id_that_will_never_be() -> None:
    instance = InstanceId()
    instance.never("refused")
    assert type(instance.result.error) is KafkaError and str(instance.result.error) == "refused"
