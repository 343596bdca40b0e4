"""A TLS server that is no Kafka and does what a broker never does: OpenSSL's own ``s_server``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from forebay import KafkaProducer
from forebay.errors import KafkaError
from tests.support.pace import until

KEY = b"R\n"
"""s_server's command for a renegotiation (a HelloRequest of TLS 1.2)."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    """It, with the options of a producer that takes it for a broker."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no command openssl, whose s_server plays the peer")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    command = [program, "s_server", "-accept", "127.0.0.1:0", "-tls1_2", "-cert", str(tmp_path / "server.pem")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        line = b""
        while b"ACCEPT" not in line:
            line = process.stdout.readline()
            assert line, "s_server did not start"
        yield (
            process,
            {
                "bootstrap.servers": line.split()[-1].decode(),
                "security.protocol": "SSL",
                "ssl.truststore.location": str(tmp_path / "ca.pem"),
            },
        )
        process.kill()


def test_a_renegotiation_is_refused_in_one_sentence(
    server: tuple[subprocess.Popen[bytes], dict[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    process, options = server
    assert process.stdin is not None
    with KafkaProducer({**options, "max.block.ms": "500"}) as producer:
        states = producer._parts.client.states
        until(lambda: states.established_count() == 1, "a connection")
        process.stdin.write(KEY)
        process.stdin.flush()
        until(lambda: "renegotiation" in caplog.text, "its end")
        with pytest.raises(KafkaError) as caught:
            producer.partitions_for("any")
    words = "TLS with 127.0.0.1: the broker ended the session; it had asked for a renegotiation, which is refused here"
    assert words in str(caught.value) and words in caplog.text
