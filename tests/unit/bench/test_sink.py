from __future__ import annotations

import random
import socket
import threading

import pytest

from bench.sink import RECEIVE_SIZE, Log, Stream, serve
from forebay import KafkaProducer
from tests.support.pace import HANG_S

DATA = random.Random(3).randbytes(5 << 20)


def given_in_pieces(rng: random.Random) -> socket.socket:
    """The receiving end of a connection that DATA comes through."""
    receiving, sending = socket.socketpair()

    def send() -> None:
        at = 0
        with sending:
            while at < len(DATA):
                size = rng.choice((1, 5, 70_000, 600_000))
                sending.sendall(DATA[at : at + size])
                at += size

    threading.Thread(target=send, daemon=True).start()
    return receiving


@pytest.mark.parametrize("seed", range(5))
def test_a_stream_gives_what_is_taken_and_passes_over_what_is_skipped(seed: int) -> None:
    rng = random.Random(seed)
    at = 0
    with given_in_pieces(rng) as receiving:
        stream = Stream(receiving)
        while at < len(DATA):
            if rng.random() < 0.5:
                size = min(rng.choice((1, 2, 27, 5000, RECEIVE_SIZE)), len(DATA) - at)
                begin = stream.take(size)
                assert bytes(stream.buffer[begin : begin + size]) == DATA[at : at + size]
            else:
                size = min(rng.choice((0, 1, 30, 600_000, 1_500_000)), len(DATA) - at)
                stream.skip(size)
            at += size
            assert stream.taken == at
        with pytest.raises(EOFError):
            stream.take(1)


def test_topics_that_go_by_their_ids_are_counted_by_their_names() -> None:
    log = Log(2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taking = threading.Thread(target=serve, args=(listener, log), daemon=True)
        taking.start()
        with KafkaProducer({"bootstrap.servers": f"127.0.0.1:{listener.getsockname()[1]}"}) as producer:
            where = [producer.send(f"topic-{number % 2}", b"v", partition=0).result(HANG_S) for number in range(6)]
        # Before it is closed: the thread would go on with whatever gets the same descriptor.
        listener.shutdown(socket.SHUT_RDWR)
        taking.join(HANG_S)
    assert not taking.is_alive()
    assert [(found.topic, found.offset) for found in where] == [
        (f"topic-{number % 2}", number // 2) for number in range(6)
    ]
    assert set(log.names.values()) == {b"topic-0", b"topic-1"} and {len(each) for each in log.names} == {16}
    assert log.summary()["records"] == {"topic-0": 3, "topic-1": 3}


def test_clients_are_asked_for_their_metrics_if_it_is_told_so() -> None:
    log = Log(1, push_interval_ms=100)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taking = threading.Thread(target=serve, args=(listener, log), daemon=True)
        taking.start()
        with KafkaProducer({"bootstrap.servers": f"127.0.0.1:{listener.getsockname()[1]}"}) as producer:
            assert producer.client_instance_id(HANG_S) == "AAAAAAAAAAAAAAAAAAAAAQ"
        listener.shutdown(socket.SHUT_RDWR)
        taking.join(HANG_S)
    assert log.summary()["pushes"] >= 1, "the last one, if no other"
