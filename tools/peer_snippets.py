"""Runs the snippets of another client's documentation, their imports alone changed, against a real Kafka.

``python -m tools.peer_snippets CLIENT CHECKOUT [--original] [TEXT ...]``.  ``CLIENT`` is confluent, kafka or aiokafka,
and ``CHECKOUT`` a folder with that client's sources, as its repository has them.  The snippets are the blocks of Python
in its pages, and its example programs, that have a producer; with a ``TEXT``, those whose place has it.  An import of a
name that the class here has comes from ``forebay.compat``; all else stays.  Addresses become the broker's, and what a
page leaves to its reader is in ``READERS``.  Each snippet runs in a process of its own.  It passes if it ends as it
should, and if records have arrived from it.  ``--original`` leaves the imports as they are, and runs those too that are
said to fail with the original.  Nothing is kept.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.registry import serving
from tools.kafka import RealKafka
from tools.peer_tests import with_tls

PAGES = {
    "confluent": ("README.md", "docs/index.rst", "examples/*.py"),
    "kafka": ("README.rst", "docs/*.rst", "docs/apidoc/*.rst"),
    "aiokafka": ("README.rst", "docs/*.rst", "docs/examples/*.rst", "examples/*.py"),
}
PRODUCER = re.compile(r"\b(producer|p)\.\w+\(|Producer\(")
SENDS = re.compile(r"\.(send|send_and_wait|send_batch|produce)\(")
PACKAGES = {"confluent": "confluent_kafka", "kafka": "kafka", "aiokafka": "aiokafka"}
THEIRS_BESIDE_A_CONSUMER = {"TopicPartition"}
"""A consumer stays the original's, and takes the original's values."""
ADDRESSES = re.compile(
    r"(?<=['\"])(localhost:9092|localhost:1234|broker1:1234|mybroker1,mybroker2|mybroker(\.com)?)(?=['\"])"
)
SECONDS = 60
SECONDS_OF_AN_ENDLESS_ONE = 6


class Snippet(NamedTuple):
    """A block of code, and where it stands."""

    place: str
    code: str


class Reader(NamedTuple):
    """What whoever tries a snippet does beside it: ``text`` is in its code or its place."""

    text: str
    given: str = ""
    """Code before it."""
    arguments: tuple[str, ...] = ()
    typed: str = ""
    feeds: str = ""
    """A topic that gets records while it runs."""
    stops: bool = False
    """It is endless, and is stopped by Ctrl-C."""
    raises: str = ""
    """How it ends."""


WITH_REGISTRY = ("-b", "{broker}", "-s", "{registry}")
READERS: dict[str, tuple[Reader, ...]] = {
    "confluent": (
        Reader("some_data_source", given="some_data_source = ['one', 'two', 'three']"),
        Reader("mylogger", given="import logging"),
        Reader("examples/producer.py", arguments=("{broker}", "snippets"), typed="one\ntwo\n"),
        Reader("examples/context_manager", arguments=("{broker}",)),
        Reader("examples/eos", arguments=("-b", "{broker}", "-t", "filled")),
        Reader("examples/avro_producer.py", arguments=WITH_REGISTRY, typed="A\nroad\n3\nred\n", raises="EOF"),
        Reader("examples/protobuf_prod", arguments=WITH_REGISTRY, typed="A\n3\nred\n"),
        Reader("examples/json_producer.py", arguments=WITH_REGISTRY, typed="A\nroad\n3\nred\n", raises="EOF"),
    ),
    "kafka": (Reader("log.", given="import logging; log = logging.getLogger()"),),
    "aiokafka": (
        Reader("examples/simple_produce", stops=True),
        Reader("examples/idempotent", stops=True),
        Reader("transactional_produce", typed="\n", raises="ValueError"),
        Reader("def transactional_process", feeds="in_topic", stops=True),
        Reader("<partition> <message>", arguments=("0", "hello")),
        Reader('TopicPartition("some-topic"', given="from forebay.compat.aiokafka.structs import TopicPartition"),
    ),
}
# Where a snippet goes on with the one before it, or begins behind the construction.
BEGINNINGS = {
    "confluent": "import forebay.compat.confluent_kafka as confluent_kafka\n",
    "kafka": (
        "from forebay.compat.kafka import DefaultSerializer, JsonSerializer, KafkaProducer, StickyPartitioner\n"
        "producer = KafkaProducer()\n"
    ),
    "aiokafka": (
        "import asyncio\nimport forebay.compat.aiokafka as aiokafka\n"
        "timeout = 10\nproducer = aiokafka.AIOKafkaProducer({options})\nawait producer.start()\n"
    ),
}
DEFAULTS = {
    "confluent": "",
    "kafka": "from forebay.compat.kafka import KafkaProducer as Located",
    "aiokafka": "from forebay.compat.aiokafka import AIOKafkaProducer as Located",
}
AT_THE_USUAL_ADDRESS = """
constructed = Located.__init__
Located.__init__ = lambda self, **given: constructed(self, **{{"bootstrap_servers": "{broker}", **given}})
"""
FAILS = "fails with the original, too"
NOT_APPLICABLE: dict[str, dict[str, str]] = {
    "confluent": {
        "some_user_object": f"{FAILS}: its serializer asks for a context",
        "AIOProducer": "AIOProducer is not here, and importing it says so: see docs/asyncio.md",
        "examples/sasl_": "needs a broker with logins",
        "examples/oauth": "needs a server of tokens",
        "confluent_cloud": "needs an account",
        "_encryption": "needs a service of keys",
        "examples/fips": "about librdkafka's build",
        "imds": "needs a service of tokens",
    },
    "kafka": {"docs/high_level.rst": f"{FAILS}: its JsonSerializer is given bytes"},
    "aiokafka": {
        "send(...)": "has an ellipsis for arguments",
        "from aiokafka.errors import TopicPartition": f"{FAILS}: there is no such name",
    },
}


def snippets(client: str, checkout: Path) -> Iterator[Snippet]:
    """Those that have a producer."""
    for pattern in PAGES[client]:
        for path in sorted(checkout.glob(pattern)):
            text, name = path.read_text(encoding="utf-8"), str(path.relative_to(checkout))
            blocks = [(1, text)] if path.suffix == ".py" else list(blocks_of(text, path.suffix))
            for line, code in blocks:
                if PRODUCER.search(re.sub(r"#.*", "", code)) and not code.lstrip().startswith("$"):
                    yield Snippet(f"{name}:{line}", code)


def blocks_of(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Blocks of Python of a page, each with its line."""
    if suffix == ".md":
        for found in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield text.count("\n", 0, found.start()) + 1, found[1]
        return
    lines = text.splitlines()
    for at, line in enumerate(lines):
        is_directive = re.match(r"\s*\.\. code(-block)?:: *python", line)
        if not is_directive and (not line.rstrip().endswith("::") or line.lstrip().startswith("..")):
            continue
        margin, body = len(line) - len(line.lstrip()), []
        for later in lines[at + 1 :]:
            if later.strip() and len(later) - len(later.lstrip()) <= margin:
                break
            body.append(later)
        yield at + 1, textwrap.dedent("\n".join(body)).strip("\n") + "\n"


def imports_changed(client: str, code: str) -> str:
    """The code with each import of the client's package in place of which one of ours goes.

    Raises:
        SyntaxError: it is no Python.
    """
    lines = code.splitlines()
    has_consumer = "Consumer(" in code
    for node in sorted(ast.walk(ast.parse(code)), key=lambda node: getattr(node, "lineno", 0), reverse=True):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        indent = " " * node.col_offset
        changed = [indent + each for each in changed_import(PACKAGES[client], node, has_consumer)]
        lines[node.lineno - 1 : node.end_lineno] = changed
    return "\n".join(lines) + "\n"


def changed_import(package: str, node: ast.Import | ast.ImportFrom, has_consumer: bool) -> list[str]:
    """The statements that take an import's place."""
    if isinstance(node, ast.Import):
        names = [name for name in node.names if name.name == package]
        rest = [name for name in node.names if name.name != package]
        made = [f"import forebay.compat.{package} as {name.asname or package}" for name in names]
        return [*made, *([ast.unparse(ast.Import(rest))] if rest else [])]
    module = node.module or ""
    if module.split(".")[0] != package:
        return [ast.unparse(node)]
    try:
        ours = set(dir(importlib.import_module(f"forebay.compat.{module}")))
    except ModuleNotFoundError:
        return [ast.unparse(node)]
    if has_consumer:
        ours -= THEIRS_BESIDE_A_CONSUMER
    here = [name for name in node.names if name.name in ours]
    there = [name for name in node.names if name.name not in ours]
    made = [ast.unparse(ast.ImportFrom(f"forebay.compat.{module}", here, 0))] if here else []
    return [*made, *([ast.unparse(ast.ImportFrom(module, there, 0))] if there else [])]


class Trial:
    """A broker, a folder, and where to look for what arrived."""

    def __init__(
        self, client: str, checkout: Path, kafka: RealKafka, folder: Path, registry: str, original: bool
    ) -> None:
        self.client = client
        self.checkout = checkout
        self.kafka = kafka
        self.folder = folder
        self.registry = registry
        self.original = original

    def program(self, snippet: Snippet, reader: Reader) -> str:
        """What is run: the snippet behind what its reader has."""
        code = snippet.code if self.original else imports_changed(self.client, snippet.code)
        broker = self.kafka.bootstrap_servers
        code = ADDRESSES.sub(broker, code).replace("bootstrap_servers=...", f"bootstrap_servers={broker!r}")
        code = code.replace("localhost:9093", self.kafka.address_of("SSL")).replace(
            "http://localhost:8081", self.registry
        )
        for theirs, own in (("./ca-cert", "ca.crt"), ("./cert-signed", "client.crt"), ("./cert-key", "client.key")):
            code = code.replace(theirs, str(self.folder / own))
        before = ""
        if not snippet.place.startswith("examples/"):
            options = "transactional_id='snippet'" if "transaction()" in code else ""
            fragment = self.client != "aiokafka" or not re.search(r"producer = |def ", code)
            before = BEGINNINGS[self.client].replace("{options}", options) if fragment else "import asyncio\n"
            before += "" if fragment or "import" in code else "import forebay.compat.aiokafka as aiokafka\n"
        default = DEFAULTS[self.client]
        located = default + AT_THE_USUAL_ADDRESS.format(broker=broker) if default else ""
        before += reader.given + "\n"
        if self.original:
            located, before = (text.replace("forebay.compat.", "") for text in (located, before))
        whole = before + code
        if re.search(r"^\s*(await|async (with|for)) ", re.sub(r"(?ms)^async def .*?(?=^\S)", "", whole), re.MULTILINE):
            whole = f"import asyncio\nasync def program():\n{textwrap.indent(whole, '    ')}\nasyncio.run(program())\n"
        return located + whole

    def records(self) -> int:
        """How many there are in all topics."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap_servers, "group.id": "none"})
        try:
            return sum(
                consumer.get_watermark_offsets(TopicPartition(name, number), timeout=10)[1]
                for name, topic in consumer.list_topics(timeout=10).topics.items()
                if not name.startswith("__")
                for number in topic.partitions
            )
        finally:
            consumer.close()

    def run(self, snippet: Snippet, reader: Reader) -> str:
        """Why it did not pass; empty if it did.

        Raises:
            SyntaxError: it is no Python.
        """
        path = self.folder / "snippet.py"
        path.write_text(self.program(snippet, reader), encoding="utf-8")
        before = self.records()
        paths = [str(Path("src").resolve()), str(self.checkout / "examples")]
        places = {"broker": self.kafka.bootstrap_servers, "registry": self.registry}
        process = subprocess.Popen(
            [sys.executable, str(path), *(each.format(**places) for each in reader.arguments)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        seconds = SECONDS_OF_AN_ENDLESS_ONE if reader.stops else SECONDS
        if reader.feeds:
            time.sleep(seconds)
            fill(self.kafka.bootstrap_servers, reader.feeds)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(reader.typed, timeout=seconds)
        is_late = process.poll() is None
        if is_late:
            process.send_signal(signal.SIGINT if reader.stops else signal.SIGKILL)
        said = process.communicate(timeout=SECONDS)[0]
        if is_late != reader.stops:
            return f"it {'did not end' if is_late else 'ended'}: {said[-2000:]}"
        ending = "KeyboardInterrupt" if reader.stops else reader.raises
        if (process.returncode != 0) != bool(ending) or ending not in said:
            return said[-2000:]
        if SENDS.search(snippet.code) and self.records() == before:
            return f"no record arrived: {said[-2000:]}"
        return ""


def reason_not(client: str, snippet: Snippet, original: bool) -> str | None:
    """Why a snippet cannot apply."""
    for text, reason in NOT_APPLICABLE[client].items():
        if (text in snippet.code or text in snippet.place) and not (original and reason.startswith(FAILS)):
            return reason
    return None


def main(client: str, checkout: Path, texts: list[str], original: bool) -> int:
    """Prints what passed; 0 if all that apply did."""
    found = [each for each in snippets(client, checkout) if not texts or any(text in each.place for text in texts)]
    passed, failed = 0, 0
    properties = {"num.partitions": "3", "transaction.state.log.num.partitions": "4"}
    with tempfile.TemporaryDirectory() as made, with_tls(Path(made), properties) as kafka, serving() as registry:
        trial = Trial(client, checkout.resolve(), kafka, Path(made), registry.url, original)
        for folder in (checkout.resolve() / "examples").glob("*/"):  # programs read what lies beside them
            (Path(made) / folder.name).symlink_to(folder)
        for topic in ("my_topic", "test-topic", "foobar", "in_topic", "some-topic", "filled"):
            kafka.create_topic(topic, 3)
        fill(kafka.bootstrap_servers, "filled", "in_topic")
        for snippet in found:
            reader = next((one for one in READERS[client] if one.text in snippet.code + snippet.place), Reader(""))
            why_not, why = reason_not(client, snippet, original), ""
            try:
                why = "" if why_not else trial.run(snippet, reader)
            except SyntaxError as error:
                why_not = f"is no Python by itself: {error}"
            if lacks := re.search(r"ModuleNotFoundError: No module named '((?!forebay)[\w.]+)'", why):
                why_not = f"lacks the package {lacks[1]}"
            passed, failed = passed + (not why_not and not why), failed + (not why_not and bool(why))
            verdict = f"not applicable: {why_not}" if why_not else "FAILED" if why else "passed"
            print(f"{client} {snippet.place}: {verdict}", why if why and not why_not else "", sep="\n" if why else "")
    print(
        f"{client}: {passed} of {passed + failed} applicable snippets pass; {len(found) - passed - failed} do not apply"
    )
    return 0 if passed and not failed else 1


def fill(address: str, *topics: str) -> None:
    """Records for snippets that read some."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for topic in topics:
        for number in range(20):
            producer.produce(topic, f"value {number}", f"key {number % 3}", partition=0)
    producer.flush(30)


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument != "--original"]
    if len(given) < 2 or given[0] not in PAGES:
        sys.exit(f"usage: python -m tools.peer_snippets {'|'.join(PAGES)} CHECKOUT [--original] [TEXT ...]")
    sys.exit(main(given[0], Path(given[1]), given[2:], "--original" in sys.argv))
