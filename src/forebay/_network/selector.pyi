# Written by `make generated` from the module beside it (tools/stubs.py): its public part, without Cython.

from typing import Any

from forebay._network.channel import Channel
from forebay._network.transport import Address, StreamFilter

class Selector:
    def __init__(self) -> None: ...
    def open(
        self,
        address: Address,
        *,
        context: object,
        now: float,
        send_buffer: int,
        receive_buffer: int,
        stream_filter: StreamFilter | None = None,
    ) -> Channel: ...
    def turn(self, timeout_ms: float, now: float) -> list[Any]: ...
    def close(self, channel: Channel) -> None: ...
    def close_all(self) -> None: ...
    def close_after_fork(self) -> None: ...
    def wakeup(self) -> None: ...
