"""Which filter a configuration asks for, and which files are looked at again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forebay._assembly.tls import credential_files, tls_filters
from forebay.config import ProducerConfig
from forebay.testing import ManualClock

SERVERS = {"bootstrap.servers": "h:1"}
LOGIN = {"sasl.username": "u", "sasl.password": "p"}


def test_without_tls_there_is_no_filter() -> None:
    assert tls_filters(ProducerConfig(SERVERS), ManualClock()) is None


def test_filters() -> None:
    make = tls_filters(ProducerConfig({**SERVERS, "security.protocol": "SSL"}), ManualClock())
    assert make is not None
    made = make("broker")
    made.start()
    assert made.outgoing()[:1] == b"\x16", "a ClientHello"


def test_a_producer_without_tls_imports_no_ssl() -> None:
    program = (
        "import sys; from forebay import KafkaProducer; KafkaProducer(bootstrap_servers='127.0.0.1:1').close(); "
        "print([name for name in ('ssl', 'hmac', 'forebay._network.tls') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_files_of_keys_and_passwords_are_watched(tmp_path: Path) -> None:
    ca, words = tmp_path / "ca.pem", tmp_path / "words"
    words.write_text("p=one")
    options = {
        **SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": f"${{file:{words}:p}}",
        "config.providers": "file",
        "ssl.truststore.location": str(ca),
    }
    look = credential_files(ProducerConfig(options))
    assert look is not None
    first = look()
    assert look() == first
    ca.touch()
    second = look()
    words.write_text("p=another")
    assert len({repr(found) for found in (first, second, look())}) == 3
    assert credential_files(ProducerConfig({**SERVERS, **LOGIN})) is None


def test_a_file_whose_path_is_looked_up_is_watched_where_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("same")
    options = {**SERVERS, "security.protocol": "SSL", "config.providers": "env", "ssl.ca.location": "${env:FOREBAY_CA}"}
    look = credential_files(ProducerConfig(options))
    assert look is not None
    found = [look()]
    for name in ("one", "two"):
        monkeypatch.setenv("FOREBAY_CA", str(tmp_path / name))
        found.append(look())
    assert len({repr(each) for each in found}) == 3
