"""What a start imports: modules are time, and a fresh process with its first acknowledgement has 150 ms."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forebay

SOURCES = Path(forebay.__file__).parents[1]

# What `import forebay` loads besides what every Python has loaded: Spark does it four times a job, mostly for nothing.
PACKAGE_ALONE = {"forebay", "forebay._interpreted"}
IMPORT_SYSTEM = ("__future__", "os", "importlib", "importlib.machinery")

# What a producer's modules may import from the standard library, each with what needs it.
STANDARD = {
    "array": "socket's own",
    "atexit": "the end of the interpreter",
    "bisect": "the table of the sticky partitioner",
    "codecs": "StringSerializer",
    "collections": "queues",
    "collections.abc": "types that are looked at while it runs",
    "contextlib": "exits of the transactional calls",
    "copy": "a copy of a failed record's error for each who asks",
    "enum": "names of states and options",
    "errno": "what a socket says",
    "functools": "callbacks of the network",
    "heapq": "transactional requests by priority",
    "importlib": "classes that options name",
    "importlib.machinery": "which form of the package runs",
    "logging": "the log (traceback, string, re and weakref with it)",
    "math": "infinity",
    "operator": "callbacks of the network",
    "os": "descriptors",
    "queue": "what the resolver is asked",
    "random": "jitter and sticky partitions",
    "re": "bootstrap.servers",
    "select": "the wake pipe",
    "socket": "addresses (selectors with it)",
    "struct": "fixed layouts",
    "threading": "the sender's thread",
    "types": "read-only mappings",
    "typing": "named tuples and protocols",
    "weakref": "producers of this process",
    "zlib": "CRC32 of the consistent_random partitioner",
}
# Ours, but not a plain producer's.
FOR_OTHERS = {
    "forebay.model._inputs": "dataclasses: for records as objects, interceptors and offsets",
    "forebay._accumulator.split": "for a batch that a broker found too large",
    "forebay._records.reader": "for splits and brokers before 0.11",
    "forebay._records.decompression": "as the reader",
    "forebay.admin._session": "for AdminClient",
    "forebay._insight.reading": "for who looks into a producer",
    "forebay._insight.server": "for describe.socket",
    "forebay._sender.transactional": "for transactions",
    "forebay._insight.telemetry.reporter": "for clusters that take metrics",
    "forebay._insight.telemetry.dialog": "as the reporter",
    "forebay._transactions.session": "for transactions",
    "forebay._transactions.requests": "for transactions",
    "forebay.errors._others": "for codes that no producer meets",
}


def loaded(program: str) -> set[str]:
    """The modules in a fresh Python after ``program``, without ``site``, which brings what the machine likes."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"{program}\nimport sys; print(*sys.modules)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), *cython_folder()])},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def cython_folder() -> list[str]:
    """The interpreted form runs on Cython, which only ``site`` would find."""
    if forebay.implementation == "compiled":
        return []
    import Cython

    return [str(Path(Cython.__file__).parents[1])]


def test_the_package_alone_loads_next_to_nothing() -> None:
    usual = loaded(f"import {', '.join(IMPORT_SYSTEM)}")
    if forebay.implementation == "interpreted":
        usual |= loaded("import cython, importlib.util")
    assert loaded("import forebay") - usual == PACKAGE_ALONE


def test_a_producer_loads_what_it_needs_and_what_is_on_the_list() -> None:
    usual = loaded(f"import {', '.join(STANDARD)}")
    if forebay.implementation == "interpreted":
        # From 3.14 on ctypes loads more with the first structure.
        structure = "type('Any', (ctypes.Structure,), {'_fields_': []})"
        usual |= loaded(f"import crc32c, cython, ctypes, gc, importlib.util; {structure}")
    found = {name for name in loaded("from forebay import KafkaProducer") - usual if not name.startswith("_")}
    strangers = {name for name in found if name.removeprefix("cython.cimports.").partition(".")[0] != "forebay"}
    strangers -= {"cython_runtime"}
    assert not strangers, f"import what is rarely needed where it is needed, or say in STANDARD why: {strangers}"


def test_a_plain_producer_leaves_to_others_what_is_theirs() -> None:
    program = (
        "from forebay import KafkaProducer\n"
        "with KafkaProducer(bootstrap_servers='127.0.0.1:1', compression_type='none') as producer: pass"
    )
    found = loaded(program)
    assert "forebay.producer" in found
    assert {name: reason for name, reason in FOR_OTHERS.items() if name in found} == {}


# Makes every call of a producer that finds no broker, and says what that imported.
CALLS = """
import contextlib, sys
from forebay import KafkaProducer
from forebay.errors import KafkaError
class Interceptor:
    def on_send(self, record): return record
    def on_acknowledgement(self, metadata, error): pass
options = {options}
producer = KafkaProducer(bootstrap_servers="127.0.0.1:1", max_block_ms=1, compression_type="zstd", **options)
before = set(sys.modules)
def attempt(call, *arguments, **named):
    with contextlib.suppress(KafkaError):
        call(*arguments, **named)
attempt(producer.send("t", b"v", key=b"k", headers=[("a", b"b")]).result, 0)
attempt(producer.send_nowait, "t", b"v")
attempt(producer.send_batch, "t", [b"v"], headers=[[("a", b"b")]])
attempt(producer.send_batch, "t", dict(value=[b"v"], key=[b"k"]))
attempt(producer.partitions_for, "t")
attempt(producer.flush, 1)
producer.metrics()
attempt(producer.init_transactions, 0)
attempt(producer.begin_transaction)
attempt(producer.send_offsets_to_transaction, {{}}, "group")
attempt(producer.commit_transaction)
attempt(producer.abort_transaction)
attempt(producer.close, 0)
print(*sorted(name for name in set(sys.modules) - before if name.startswith("forebay")))
"""


@pytest.mark.parametrize("options", ["{}", "{'transactional_id': 'a'}", "{'interceptor_classes': [Interceptor()]}"])
def test_a_producer_s_calls_import_nothing(options: str) -> None:
    """A signal handler that makes the same call amid an import would find a module that is half there."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS.format(options=options)],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "\n", done.stderr


def test_a_plain_host_name_needs_no_codec_for_international_ones() -> None:
    program = (
        "import socket; from forebay._network.resolver import system_lookup as look\n"
        "assert look('127.0.0.1', 9092, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)"
    )
    assert "encodings.idna" not in loaded(program)


def test_what_is_left_to_others_exists() -> None:
    missing = [name for name in FOR_OTHERS if not list(SOURCES.glob(f"{name.replace('.', '/')}*"))]
    assert missing == []
