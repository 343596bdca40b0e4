"""What interceptors are told of a record that ``send`` took."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forebay.model import ProducerRecord
from tests.fakes.waiting import Watching
from tests.fakes.world import World


def test_interceptors_get_the_headers_as_they_were_sent() -> None:
    """KIP-512: those of other interceptors and of serializers, too."""

    class Marking:
        def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
            if data is not None:
                headers.append(("by", b"serializer"))
            return None if data is None else bytes(data)

    class Hearing:
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def on_acknowledgement(self, metadata: Any, error: Any, headers: Any = ()) -> None:
            self.heard.append(headers)

    def add(record: ProducerRecord) -> ProducerRecord:
        return replace(record, headers=[*record.headers, ("by", b"interceptor")])

    plain, marked = Hearing(), Hearing()
    World(interceptor_classes=[plain, Watching(add)]).send(b"v", headers=[("own", b"1")])
    assert plain.heard == []
    cases: list[tuple[Hearing, dict[str, Any]]] = [(plain, {}), (marked, {"value_serializer": Marking()})]
    for hearing, options in cases:
        world = World(interceptor_classes=[hearing, Watching(add)], **options)
        world.send(b"v", headers=[("own", b"1")])
        world.settle()
        (record,) = world.cluster.logs["test", 0].records
        assert hearing.heard == [record.headers]
    assert [name for name, _ in plain.heard[0]] == ["own", "by"]
    assert marked.heard[0][-1] == ("by", b"serializer")
