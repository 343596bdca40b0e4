"""What belongs to a whole process: one producer for each process, and an end by SIGTERM that loses nothing.

Servers fork workers, and a producer does not survive a fork.  ``per_process`` gives each process its own, at its first
use.  Neither function here takes a lock, because a signal handler may interrupt it anywhere.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from forebay._runtime.hints import PRODUCER, no_attribute
from forebay._runtime.times import limit, seconds
from forebay._sender import lifecycle
from forebay.config import ProducerConfig
from forebay.config._door import door
from forebay.errors import ConfigError, IllegalStateError
from forebay.producer import KafkaProducer

if TYPE_CHECKING:
    from typing import Unpack

    from forebay._runtime.times import Seconds
    from forebay.config._typed import ProducerOptions

__all__ = ["PerProcess", "end_on_sigterm", "per_process"]


def __dir__() -> list[str]:
    return sorted(__all__)


Token = tuple[int, int]
_made: dict[Token, KafkaProducer] = {}
"""The producers of this process; each step on it is atomic."""
_numbers = itertools.count()


class PerProcess:
    """A producer for each process: a call gives that of the process which calls.  See ``per_process``."""

    def __init__(self, config: ProducerConfig, token: Token) -> None:
        self.config = config
        """The configuration of all of them."""
        self._token = token

    def __call__(self) -> KafkaProducer:
        """This process's producer; made at the first call, and anew after ``close``.

        Raises:
            KafkaError: as KafkaProducer.
        """
        producer = _made.get(self._token)
        return self._make() if producer is None else producer

    def _make(self) -> KafkaProducer:
        own = KafkaProducer(self.config)
        # Not under a lock, which a signal handler that sends would meet again.
        producer = _made.setdefault(self._token, own)
        if producer is not own:
            own.close()
        _watch_celery()
        return producer

    def close(self, timeout: Seconds | None = None) -> None:
        """Closes this process's producer, if there is one; see ``KafkaProducer.close``.

        Raises:
            TimeoutError, KafkaError: as ``KafkaProducer.close``.
        """
        timeout = limit(timeout)
        producer = _made.pop(self._token, None)
        if producer is not None:
            producer.close(timeout)

    def __reduce__(self) -> tuple[Any, ...]:
        return PerProcess, (self.config, self._token)

    if not TYPE_CHECKING:  # a type checker would take it for an attribute of any name

        def __getattr__(self, name: str) -> Any:
            is_one = not name.startswith("_") and (name in PRODUCER or hasattr(KafkaProducer, name))
            wanted = "send" if name in PRODUCER else name
            hint = f"call it for this process's producer, as in producer().{wanted}(...)"
            raise no_attribute(type(self).__name__, name, hint if is_one else None)

    def __repr__(self) -> str:
        return f"<PerProcess {self.config['client.id']}: {_made.get(self._token, 'not used in this process')!r}>"


@door()
def per_process(config: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> PerProcess:
    """One producer for each process, made at its first use, made anew after a fork, closed at the process's exit.

    ::

        producer = per_process(bootstrap_servers="localhost:9092")

        def handle(event: bytes) -> None:
            producer().send("events", event)

    For gunicorn (also with --preload), Celery and multiprocessing.  The value can be pickled: a copy in another process
    has that process's producer.

    Args:
        config: options by Kafka's names; a ProducerConfig will do.
        options: the same as keywords.

    Raises:
        ConfigError: as KafkaProducer, at once; and a ``transactional.id``, which only one process can have.
    """
    checked = ProducerConfig(config, **options)
    if checked["transactional.id"] is not None:
        raise ConfigError(
            "per_process: with one transactional.id each process would fence the one before; make a KafkaProducer with "
            "an id of its own in each process"
        )
    return PerProcess(checked, (os.getpid(), next(_numbers)))


def _watch_celery() -> None:
    """A prefork worker of Celery ends by os._exit, which skips exit handlers; it has a signal of its own instead."""
    signals = sys.modules.get("celery.signals")
    if signals is not None:
        signals.worker_process_shutdown.connect(_end_with_worker, weak=False, dispatch_uid="forebay.per_process")


def _end_with_worker(**_: object) -> None:
    lifecycle.end_all_at_exit()


def _forget_all() -> None:
    _made.clear()


def end_on_sigterm(timeout: Seconds = 20.0, *, exit_code: int = 128 + signal.SIGTERM) -> None:
    """From now on SIGTERM ends this process well: what was accepted is delivered, within ``timeout`` seconds.

    Python's default for SIGTERM ends a process at once, and accepted records are lost.  Here the handler raises
    SystemExit in the main thread, so that ``finally`` and ``with`` blocks run, and the interpreter's exit delivers what
    is left.  What cannot be delivered fails and is logged with its count.  A handler that was set before is called in
    place of the SystemExit: a server such as gunicorn ends in its own way, within the same time.

    Args:
        timeout: seconds from the signal on; less than Kubernetes' terminationGracePeriodSeconds (30 by default).
        exit_code: of the process, 143 as shells give it.

    Raises:
        IllegalStateError: called on another thread than the main one, which alone can set handlers.
        IllegalArgumentError, TypeError: the timeout is negative, or no time.
    """
    timeout = seconds(timeout)
    if threading.current_thread() is not threading.main_thread():
        raise IllegalStateError("end_on_sigterm() sets a signal handler, which only the main thread can do")
    previous = signal.getsignal(signal.SIGTERM)
    if isinstance(previous, _Ending):
        previous = previous.previous

    signal.signal(signal.SIGTERM, _Ending(timeout, exit_code, previous))


class _Ending:
    """The handler of SIGTERM."""

    def __init__(self, timeout: float, exit_code: int, previous: Any) -> None:
        self.timeout = timeout
        self.exit_code = exit_code
        self.previous = previous

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if lifecycle.time_left() is None:  # a second signal gives no more time
            lifecycle.limit_end(self.timeout)
        if callable(self.previous):
            self.previous(number, frame)
        elif self.previous is not signal.SIG_IGN:
            raise SystemExit(self.exit_code)


os.register_at_fork(after_in_child=_forget_all)
