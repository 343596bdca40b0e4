"""``docs/security-recipes.md`` as a stranger follows it: every block is run, but for addresses and the folder."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixtures import ReadBackFactory, real_kafka
from tests.support.kerberos import running_kdc
from tests.support.pace import HANG_S
from tests.support.readme import ROOT, Snippet, run, snippets
from tools.kafka import Listener, RealKafka

pytestmark = pytest.mark.rest("a page of the documentation, and a broker with its listeners")

PAGE = ROOT / "docs" / "security-recipes.md"
PROTOCOLS = {"tls": "SSL", "mtls": "SSL", "scram": "SASL_SSL", "kerberos": "SASL_PLAINTEXT"}


def blocks(language: str) -> list[Snippet]:
    return [snippet for snippet in snippets(PAGE) if snippet.language == language]


def listeners(folder: Path) -> list[Listener]:
    """Those of the page's properties; their files are in ``folder``."""
    found: dict[str, dict[str, str]] = {name: {} for name in PROTOCOLS}
    for block in blocks("properties"):
        for line in block.text.splitlines():
            key, _, value = line.partition("=")
            name, _, option = key.removeprefix("listener.name.").partition(".")
            for file in ("broker.pem", "ca.crt", "kafka.keytab"):
                value = value.replace(file, f"{folder}/{file}")
            found[name][option] = value
    assert all(found.values()), "each way has its listener on the page"
    return [Listener(name.upper(), PROTOCOLS[name], options, "localhost") for name, options in found.items()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealKafka, Path]]:
    """The page's files in a folder, and a Kafka with its listeners."""
    if shutil.which("openssl") is None:
        pytest.fail("the recipes need the command openssl", pytrace=False)
    folder = tmp_path_factory.mktemp("recipes")
    for block in blocks("sh"):
        done = run(block, folder, "", HANG_S)
        assert done.returncode == 0, done.stderr
    commands = [line for block in blocks("console") for line in block.text.splitlines()]
    with running_kdc(folder) as kdc, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(kdc.config))
        for command in commands:
            if command.startswith("kadmin.local"):
                kdc.admin(shlex.split(command)[2])
        options = [f"-Djava.security.krb5.conf={kdc.config}"]
        with real_kafka(advertised_host="localhost", listeners=listeners(folder), jvm_options=options) as kafka:
            (alter,) = [shlex.split(line)[1:] for line in commands if line.startswith("kafka-configs.sh")]
            alter[alter.index("localhost:9092")] = kafka.bootstrap_servers
            kafka.run_tool("kafka.admin.ConfigCommand", *alter)
            kafka.create_topic("recipes", 1)
            yield kafka, folder


def test_every_recipe(place: tuple[RealKafka, Path], read_back: ReadBackFactory) -> None:
    kafka, folder = place
    programs = blocks("python")
    assert len(programs) == len(PROTOCOLS)
    for program in programs:
        text = program.text
        for name in PROTOCOLS:
            text = text.replace(f"localhost:{name.upper()}", kafka.address_of(name.upper()))
        assert text != program.text
        done = run(program._replace(text=text), folder, "", HANG_S)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("recipes-0@"), done.stdout
    found = read_back(kafka, "recipes").wait_for(len(programs))
    assert [record.value for record in found] == [b"by TLS", b"by mutual TLS", b"by SCRAM", b"by Kerberos"]
