# Written by `make generated` from the module beside it (tools/stubs.py): its public part, without Cython.

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, final

class AppendedMetadata(NamedTuple):
    offset: int
    crc: None
    size: int
    timestamp: int

@final
class BatchBuilder:
    def __init__(
        self,
        limit: int,
        now: Callable[[], int],
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
    ) -> None: ...
    def append(
        self, *, timestamp: int | None, key: Any, value: Any, headers: Iterable[tuple[str, bytes | None]] | None = None
    ) -> AppendedMetadata | None: ...
    def close(self) -> None: ...
    def closed(self) -> bool: ...
    def size(self) -> int: ...
    def record_count(self) -> int: ...
