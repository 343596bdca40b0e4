# Written by `make generated` from the module beside it (tools/stubs.py): its public part, without Cython.

from typing import Any

class ProducePath:
    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = -1,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
