"""The broker's side of SASL for a ``ScriptedBroker``, and a helper whose work is done when the test says so."""

from __future__ import annotations

import struct
from collections.abc import Callable

from forebay._network.sasl.mechanism import Blocking
from tests.fakes.broker import Received, ScriptedBroker

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36


class HandDrivenHelper:
    """In the place of ``Helper``: keeps the work until ``work_off``."""

    def __init__(self) -> None:
        self.tasks: list[Blocking] = []
        self.wake: Callable[[], None] = lambda: None
        self.closed = False

    def begin(self, work: Blocking) -> None:
        work.begun = True
        self.tasks.append(work)

    def work_off(self) -> int:
        """Does all work that there is; how much that was."""
        tasks, self.tasks = self.tasks, []
        for work in tasks:
            work.run()
            self.wake()
        return len(tasks)

    def close(self) -> None:
        self.closed = True


class SaslBroker:
    """Lets a broker ask for SASL: one mechanism, a token after the other.

    Args:
        judge: gets each client token, gives (error code, error's text, token).
        lifetime_ms: of a session.
    """

    def __init__(
        self, broker: ScriptedBroker, judge: Callable[[bytes], tuple[int, str | None, bytes]], lifetime_ms: int = 0
    ) -> None:
        self.tokens: list[bytes] = []
        self.mechanisms: list[str] = []
        self.judge = judge
        self.lifetime_ms = lifetime_ms
        broker.ranges.update({SASL_HANDSHAKE: (0, 1), SASL_AUTHENTICATE: (0, 1)})
        broker.script[SASL_HANDSHAKE] = self._shake
        broker.script[SASL_AUTHENTICATE] = self._authenticate

    def _shake(self, request: Received) -> None:
        size = struct.unpack_from(">h", request.payload)[0]
        name = request.payload[2 : 2 + size].decode()
        self.mechanisms.append(name)
        request.answer_bytes(struct.pack(">hih", 0, 1, size) + name.encode())

    def _authenticate(self, request: Received) -> None:
        size = struct.unpack_from(">i", request.payload)[0]
        self.tokens.append(request.payload[4 : 4 + size])
        code, text, token = self.judge(self.tokens[-1])
        said = struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text.encode()
        lifetime = struct.pack(">q", self.lifetime_ms)
        request.answer_bytes(struct.pack(">h", code) + said + struct.pack(">i", len(token)) + token + lifetime)
