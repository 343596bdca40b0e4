"""Damaged answers before a connection is ready: proxies, TLS, SASL, SCRAM, Kerberos.

Each ends as an error of this package, or waits for more; it takes little time and little memory, and nothing of it is
believed.  A whole run tries ``WHOLE`` answers in each of the two forms.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import random
import resource
import ssl
import struct
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import pytest

from forebay._network.handshake import authenticate
from forebay._network.proxy import HTTP, SOCKS5, Proxy
from forebay._network.sasl.gss_library import CredentialStore
from forebay._network.sasl.gssapi import Gssapi
from forebay._network.sasl.login import Login
from forebay._network.sasl.mechanism import Blocking, Mechanism
from forebay._network.sasl.plain import Plain
from forebay._network.sasl.scram import Scram
from forebay._network.tls import TlsFilter
from forebay._network.transport import StreamFilter
from forebay.config import Secret
from forebay.config._security_rules import Credentials
from forebay.errors import KafkaError
from forebay.model import Node
from forebay.testing.memory import Link
from tests.conformance.worlds import authority
from tests.fakes.broker import Received
from tests.fakes.damage import Recorder
from tests.fakes.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE, SaslBroker
from tests.property.frames import damaged, printed_seed
from tests.support.examples import FEWEST_CASES, cases
from tests.support.pace import CpuTime, within
from tests.unit._network.sasl.test_gssapi import FakeLibrary
from tests.unit._network.world import World

WHOLE = {
    "proxy": 30_000,
    "sasl": 40_000,
    "client": 1_000,
    "gssapi": 10_000,
    "oauth": 10_000,
    "tokens": 30_000,
    "tls": 20_000,
    "tls-live": 1_000,
}
"""Damaged answers, by what they are damaged of."""
CASES = {kind: cases(whole) for kind, whole in WHOLE.items()}
"""How many of them this run tries."""
SLOWEST_S = within(1)
"""CPU time for one answer, far above what is needed."""
MEMORY_KIB = 64 * 1024
"""By which the process may grow in one test."""
PASSWORD = "canary"
WAITS, REFUSED, TAKEN = "waits", "refused", "taken"

Case = Callable[[random.Random], str]


@pytest.fixture(scope="module")
def dice() -> random.Random:
    return random.Random(printed_seed())


def try_all(kind: str, case: Case, dice: random.Random) -> Counter[str]:
    """Runs the cases of a kind; how they ended."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ends: Counter[str] = Counter()
    slowest = 0.0
    for _ in range(CASES[kind]):
        with CpuTime() as took:
            try:
                end = case(dice)
            except KafkaError as error:
                text, end = str(error), REFUSED
                assert PASSWORD not in text and len(text) < 2000, text
        ends[end] += 1
        slowest = max(slowest, took.seconds)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{kind}: {dict(ends)}, slowest {slowest:.3f} s, {grown} KiB more")
    assert slowest < SLOWEST_S
    assert grown < MEMORY_KIB
    return ends


def feed(stream: StreamFilter, data: bytes, dice: random.Random) -> bool:
    """Gives the bytes in pieces; whether the handshake ended."""
    at = 0
    while at < len(data):
        size = dice.choice((1, 2, 7, len(data)))
        stream.feed(memoryview(data)[at : at + size])
        at += size
        if stream.shake_hands():
            stream.feed(memoryview(data)[at:])
            return True
    return False


# -- proxies ----------------------------------------------------------------------------------------------------

PROXIES = [
    Proxy(kind, "proxy.example", 1, user, password)
    for kind in (SOCKS5, HTTP)
    for user, password in ((None, None), ("ann", Secret(PASSWORD)))
]
GOOD = {
    SOCKS5: [
        b"\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x23\x45",
        b"\x05\x02\x01\x00\x05\x00\x00\x03\x03abc\x23\x45",
        b"\x05\x00\x05\x00\x00\x04" + bytes(18),
    ],
    HTTP: [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.0 200 Connection established\r\nVia: x\r\nDate: y\r\n\r\n",
        b"HTTP/1.1 407 no\r\nProxy-Authenticate: Basic\r\nContent-Length: 3\r\n\r\nabc",
    ],
}


def proxy_case(dice: random.Random) -> str:
    proxy = dice.choice(PROXIES)
    tunnel = proxy.tunnel(lambda: ("broker.example", 9092), None)
    tunnel.start()
    return TAKEN if feed(tunnel, damaged(dice.choice(GOOD[proxy.kind]), dice), dice) else WAITS


@pytest.mark.sized
def test_proxies(dice: random.Random) -> None:
    ends = try_all("proxy", proxy_case, dice)
    assert min(ends[REFUSED], ends[WAITS], ends[TAKEN]) > CASES["proxy"] // 60, "an address in an answer may be any"


# -- SASL -------------------------------------------------------------------------------------------------------

NODE = Node(1, "127.0.0.1", 9001)


class Versions:
    """A broker that takes the newest of ours."""

    @staticmethod
    def choose(api: int, oldest: int, newest: int) -> int:
        return newest


class Ask(NamedTuple):
    """A request of the handshake."""

    api: int
    version: int
    encode: Callable[[int], list[bytes]]
    decode: Callable[[int, bytes], Any]


class Answer(NamedTuple):
    """A response to it."""

    body: Any


def ask(api: int, oldest: int, newest: int, encode: Any, decode: Any) -> Any:
    return Ask(api, newest, encode, decode)


class Server:
    """A SCRAM server that knows the password."""

    salt = b"0123456789"
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, 4096)

    def __init__(self) -> None:
        self.first = self.bare = b""

    def answer(self, token: bytes) -> bytes:
        if not self.first:
            self.bare = token[3:]
            nonce = dict(part.split(b"=", 1) for part in self.bare.split(b","))[b"r"]
            self.first = b"r=" + nonce + b"xyz,s=" + base64.b64encode(self.salt) + b",i=4096"
            return self.first
        final, _, _proof = token.rpartition(b",p=")
        key = hmac.digest(self.salted, b"Server Key", "sha256")
        return b"v=" + base64.b64encode(hmac.digest(key, b",".join((self.bare, self.first, final)), "sha256"))


def sasl_answer(token: bytes, code: int = 0, text: bytes | None = None, lifetime: int = 0) -> bytes:
    """The body of a SaslAuthenticate v2 answer, flexible."""
    said = b"\0" if text is None else bytes([len(text) + 1]) + text
    return struct.pack(">h", code) + said + varint(len(token) + 1) + token + struct.pack(">q", lifetime) + b"\0"


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def mechanisms_answer(dice: random.Random) -> bytes:
    names = dice.choice(([b"SCRAM-SHA-256"], [b"PLAIN", b"SCRAM-SHA-512"], []))
    each = b"".join(struct.pack(">h", len(name)) + name for name in names)
    return struct.pack(">hi", dice.choice((0, 0, 0, 33, 34)), len(names)) + each


LOGIN = Login(lambda: Credentials("alice", Secret(PASSWORD)))
SCRAM = Scram("SCRAM-SHA-256", LOGIN, lambda size: bytes(range(size)))
"""One for all, so that the salted password is computed once."""
PLAIN = Plain(LOGIN)
TEXTS = (None, b"Authentication failed", b"x" * 100)


def run_login(mechanism: Mechanism, reply: Callable[[Ask, int], bytes]) -> str:
    """Drives a login; ``reply`` gives each answer's body, damaged or not."""
    steps: Generator[Any, Any, int] = authenticate(NODE, mechanism, Versions(), ask)  # type: ignore[arg-type]
    wanted, number = next(steps), 0
    try:
        while not isinstance(wanted, Blocking):
            body = wanted.decode(wanted.version, reply(wanted, number))
            wanted = steps.send(Answer(body))
            number += 1
            assert number < 10, "a login without an end"
    except StopIteration as end:
        assert isinstance(end.value, int) and end.value >= 0
        return TAKEN
    return WAITS


def sasl_case(dice: random.Random) -> str:
    server = Server()
    wrong = dice.randrange(3)
    deep = dice.random() < 0.5
    unharmed = True

    def harmed(data: bytes) -> bytes:
        nonlocal unharmed
        found = damaged(data, dice)
        unharmed = unharmed and found == data
        return found

    def reply(request: Ask, number: int) -> bytes:
        if number == 0:
            frame = mechanisms_answer(dice) if wrong == 0 else struct.pack(">hi", 0, 0)
            return harmed(frame) if wrong == 0 else frame
        token = server.answer(b"".join(request.encode(request.version)).split(b"\0")[0][1:] or b"")
        if number != wrong:
            return sasl_answer(token)
        if deep:  # the mechanism's own bytes
            return sasl_answer(harmed(token))
        return harmed(sasl_answer(token, dice.choice((0, 0, 58)), dice.choice(TEXTS), dice.choice((0, -1, 2**63 - 1))))

    end = run_login(SCRAM, reply)
    if end is TAKEN and deep and wrong:
        assert unharmed, "a damaged token was believed"
    return end


def test_an_unharmed_login_is_taken() -> None:
    server = Server()

    def reply(request: Ask, number: int) -> bytes:
        if number == 0:
            return struct.pack(">hi", 0, 0)
        return sasl_answer(server.answer(b"".join(request.encode(request.version)).split(b"\0")[0][1:]))

    assert run_login(SCRAM, reply) is TAKEN


@pytest.mark.sized
def test_sasl_and_scram(dice: random.Random) -> None:
    ends = try_all("sasl", sasl_case, dice)
    assert ends[REFUSED] > CASES["sasl"] // 2 and ends[TAKEN] > CASES["sasl"] // 80


class DamagedLogins:
    """A client in memory whose broker's first answers to a login are damaged, whole frames of them."""

    def __init__(self, dice: random.Random) -> None:
        mechanism = dice.choice((PLAIN, SCRAM))
        self.world = World(sasl=mechanism, bootstrap=[NODE], reconnect_backoff_ms=50, reconnect_backoff_max_ms=100)
        self._dice, self._harm = dice, dice.randrange(1, 4)
        self._server = Server()
        broker = self.world.broker()
        SaslBroker(broker, lambda token: (0, None, self._answer(token)))
        for api in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            broker.script[api] = partial(self._reply, broker.script[api])

    def _answer(self, token: bytes) -> bytes:
        if token.startswith(b"n,,"):
            self._server = Server()
        return self._server.answer(token) if token[:1] != b"\0" else b""

    def _reply(self, answer: Any, request: Received) -> None:
        recorder = Recorder()
        answer(replace(request, link=cast(Link, recorder)))
        data = recorder.data
        if self._harm > 0:
            self._harm -= 1
            data = damaged(data, self._dice)
        request.link.send(data)


def client_case(dice: random.Random) -> str:
    """Whatever came, the producer's sender goes on, and logs in once the answers are whole."""
    case = DamagedLogins(dice)
    for turn in range(400):
        if case.world.client.ready(case.world.node(), case.world.now):
            return TAKEN if turn < 20 else REFUSED
        case.world.poll(500)
    raise AssertionError("it does not log in any more")


@pytest.mark.sized
def test_a_client_logs_in_once_the_answers_are_whole(dice: random.Random, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "forebay")  # it says what it thinks of each
    ends = try_all("client", client_case, dice)
    assert ends[TAKEN] + ends[REFUSED] == CASES["client"]


# -- Kerberos ---------------------------------------------------------------------------------------------------


def gssapi_case(dice: random.Random) -> str:
    offer = damaged(dice.choice((b"\x01\x00\x10\x00", b"\x07\xff\xff\xff", b"\x01\0\0\0")), dice)
    mechanism = Gssapi(FakeLibrary(offer=offer), "kafka", CredentialStore("me", "/keys", None))
    exchange = mechanism.exchange("broker.example")
    given: Any = None
    try:
        while True:
            wanted = exchange.send(given)
            if isinstance(wanted, Blocking):
                wanted.run()
                assert wanted.error is None
                given = wanted.result
            else:
                given = damaged(b"a token of the broker", dice) or b"x"
    except StopIteration:
        assert len(offer) == 4 and offer[0] & 1
        return TAKEN


@pytest.mark.sized
def test_gssapi(dice: random.Random) -> None:
    ends = try_all("gssapi", gssapi_case, dice)
    assert min(ends[REFUSED], ends[TAKEN]) > CASES["gssapi"] // 20


# -- TLS --------------------------------------------------------------------------------------------------------


def tls_client() -> TlsFilter:
    return TlsFilter(CLIENT, "localhost", "the tests' store")


def context_pair(version: ssl.TLSVersion) -> ssl.SSLContext:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.maximum_version = version
    authority().issue_cert("localhost").configure_cert(server)
    return server


CLIENT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
authority().configure_trust(CLIENT)
SERVERS = [context_pair(ssl.TLSVersion.TLSv1_2), context_pair(ssl.TLSVersion.TLSv1_3)]


class TlsServer:
    """The other end in memory."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def answer(self, data: bytes) -> bytes:
        self.incoming.write(data)
        try:
            self.tls.do_handshake()
        except ssl.SSLError:
            pass  # what it has to say is in its output
        return self.outgoing.read()


def flight(context: ssl.SSLContext) -> bytes:
    """What a server says to a client: recorded once, for its damage needs no server that computes."""
    ours = tls_client()
    ours.start()
    return TlsServer(context).answer(ours.outgoing())


FLIGHTS = [flight(context) for context in SERVERS]
ALERTS = [bytes((21, 3, 3, 0, 2, level, code)) for level in (1, 2) for code in range(0, 120, 3)]
RECORDS = [
    *ALERTS,
    b"\x16\x03\x03" + (2**14 + 257).to_bytes(2, "big") + bytes(300),
    b"\x16\x03\x03\x00\x01\x02" * 300,
    b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
    b"\x17\x03\x03\x00\x05hello",
    b"\x14\x03\x03\x00\x01\x01" * 50,
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"SSH-2.0-x\r\n",
    b"\0\0\0\x10" + bytes(16),
]


def tls_case(dice: random.Random) -> str:
    ours = tls_client()
    ours.start()
    data = damaged(dice.choice(FLIGHTS if dice.random() < 0.5 else RECORDS), dice)
    assert not feed(ours, data[:20_000], dice), "a server that never saw this client"
    assert len(ours.cut_off()) > 10
    return WAITS


@pytest.mark.sized
def test_tls(dice: random.Random) -> None:
    ends = try_all("tls", tls_case, dice)
    assert min(ends[REFUSED], ends[WAITS]) > CASES["tls"] // 40


def live_case(dice: random.Random) -> str:
    """A server of this very client; the damage comes in its handshake, or in what follows."""
    ours, theirs = tls_client(), TlsServer(dice.choice(SERVERS))
    ours.start()
    late = dice.random() < 0.5
    done = False
    for _ in range(4):
        answer = theirs.answer(ours.outgoing())
        if answer and not late:
            answer = damaged(answer, dice)
        done = feed(ours, answer, dice) or done
        if done:
            break
    if not done:
        return WAITS
    theirs.answer(ours.outgoing())
    text = dice.randbytes(dice.choice((1, 100, 5000)))
    try:
        theirs.tls.write(text)
    except ssl.SSLError:
        return REFUSED  # the other end noticed
    data = theirs.outgoing.read()
    ours.feed(memoryview(damaged(data, dice) if late else data))
    into, found = memoryview(bytearray(20_000)), b""
    while (size := ours.receive(into)) > 0:
        found += bytes(into[:size])
    assert text.startswith(found), "a damaged record was believed"
    return TAKEN


@pytest.mark.sized
def test_live_tls(dice: random.Random) -> None:
    ends = try_all("tls-live", live_case, dice)
    assert min(ends[REFUSED], ends[TAKEN]) > CASES["tls-live"] // 20


def test_there_are_as_many_as_is_said() -> None:
    assert sum(WHOLE.values()) > 100_000
    assert all(FEWEST_CASES <= CASES[kind] <= whole for kind, whole in WHOLE.items())
