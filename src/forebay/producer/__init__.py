"""What applications call: the producer for threads, for asyncio and for whole processes.

Begin with ``threads.KafkaProducer``; ``aio`` has its counterpart, ``process`` makes one in each process.  A send goes
through ``_path.SendPath``: it serializes, chooses a partition, appends, and waits for memory or metadata.
``_refusals`` has the errors of a record that cannot be taken, ``_transactional`` the calls of the transactional API,
``_columns`` what ``send_batch`` does.  All of it runs on the application's threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.producer.threads import KafkaProducer
else:

    def __getattr__(name):
        # Who needs one of the files below, such as the Spark sink, does not pay for the others.
        if name != "KafkaProducer":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from forebay.producer.threads import KafkaProducer

        return KafkaProducer


__all__ = ["KafkaProducer"]


def __dir__() -> list[str]:
    return sorted(__all__)
