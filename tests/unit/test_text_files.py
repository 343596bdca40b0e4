"""Every file of text that a user hands over: with a mark it is what it is without, and in UTF-16 it is refused."""

from __future__ import annotations

import ast
import codecs
import datetime as dt
import gzip
import io
import ssl
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

import forebay
from forebay._network.assertions import AssertionSettings, _key, assertion
from forebay._network.oidc import read_text, read_token_file
from forebay._network.tls_context import TlsSettings, make_context
from forebay.cli.console import _reader
from forebay.cli.failure import CommandError
from forebay.cli.input.files import Layout, open_one
from forebay.cli.input.lines import LineFormat, LineInput
from forebay.cli.input.rows import Row
from forebay.cli.kcat import file_options
from forebay.cli.payloads import from_file
from forebay.cli.properties import load_properties
from forebay.config import ProducerConfig
from forebay.config._jaas import parse_jaas
from forebay.config._placeholders import Providers
from forebay.config._secret import Secret
from forebay.errors import KafkaError
from forebay.pipeline import load
from forebay.spark.jobs.table import Table
from tests.unit.cli.fakes import rows_of

SOURCE = Path(forebay.__file__).parent
OTHERS = {
    "utf-16-le": (codecs.BOM_UTF16_LE, "UTF-16"),
    "utf-16-be": (codecs.BOM_UTF16_BE, "UTF-16"),
    "utf-32-le": (codecs.BOM_UTF32_LE, "UTF-32"),
    "utf-32-be": (codecs.BOM_UTF32_BE, "UTF-32"),
}
OPTIONS = "bootstrap.servers=a:1\nclient.id=é\n"
JOB = '[source]\nsql = "SELECT 1"\n[sink]\ntopic = "t"\n[producer]\n"bootstrap.servers" = "a:1"\n'


@cache
def authority() -> trustme.CA:
    return trustme.CA()


@cache
def identity() -> tuple[str, str]:
    """A client's key, and its certificates."""
    issued = authority().issue_cert("client.example")
    return issued.private_key_pem.bytes().decode(), issued.cert_chain_pems[0].bytes().decode()


@cache
def revocations() -> str:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    now = dt.datetime(2026, 1, 1)
    made = x509.CertificateRevocationListBuilder().issuer_name(name).last_update(now).next_update(now)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def trusted(path: Path) -> Any:
    return make_context(TlsSettings(truststore=str(path)))[0].cert_store_stats()


def revoked(path: Path) -> Any:
    return make_context(TlsSettings(crl=str(path), truststore=str(path.with_name("ca.pem"))))[0].cert_store_stats()


def identified(path: Path) -> Any:
    return isinstance(make_context(TlsSettings(keystore=str(path)))[0], ssl.SSLContext)


def identified_by_two(path: Path) -> Any:
    chain = path.with_name("chain.pem")
    chain.write_text(identity()[1])
    return isinstance(make_context(TlsSettings(keystore=str(chain), key_file=str(path)))[0], ssl.SSLContext)


def signed(path: Path) -> Any:
    return _key(AssertionSettings(str(path), claims={})).private_numbers()


def from_template(path: Path) -> Any:
    key = path.with_name("key.pem")
    key.write_text(identity()[0])
    settings = AssertionSettings(str(key), claims={}, algorithm="ES256", template_file=str(path))
    return assertion(settings, lambda: 0, lambda: "").split(".")[0]


def sent(path: Path) -> Any:
    source = open_one(str(path), Layout())
    try:
        return rows_of(source.blocks())
    finally:
        source.close()


def unpacked(path: Path) -> Any:
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    return sent(packed)


def sql_of_a_job(path: Path) -> Any:
    return Table({"file": path.name}, "sql", None, path.parent).content("file")


def schema_of_a_job(path: Path) -> Any:
    job = path.with_name("job.toml")
    job.write_text(f'{JOB}[value]\nformat = "avro"\nschema_file = "{path.name}"\n[map]\nvalue = "x"\n')
    return load(job).encodings


#: What a user hands over: the file's name, what is in it, and how it is read.
FILES: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "properties": ("p.properties", OPTIONS, lambda path: ProducerConfig.from_properties(path).originals()),
    "properties of a command": (
        "p.properties",
        OPTIONS,
        lambda path: {key: value for _, key, value in load_properties(str(path))},
    ),
    "properties of a reader": (
        "r.properties",
        "parse.key=true\n",
        lambda path: _reader({"reader_files": [path], "reader": []}),
    ),
    "a provider's file": ("s", "key=é\n", lambda path: Providers(("file",)).resolve(f"${{file:{path}:key}}")),
    "a provider's folder": (
        "s",
        "é\n",
        lambda path: Providers(("directory",)).resolve(f"${{directory:{path.parent}:s}}"),
    ),
    "options of kcat": ("kcat.conf", "linger.ms=5\n", lambda path: file_options(str(path), {})),
    "a job": ("job.toml", JOB, lambda path: load(path).producer),
    "SQL of a job": ("q.sql", "SELECT 'é'\r\n", sql_of_a_job),
    "a schema of a job": ("s.avsc", '{"type": "string"}', schema_of_a_job),
    "a token": ("token", "a.b.c\n", lambda path: read_token_file(f"file://{path}")),
    "an assertion": ("assertion", "a.b.c\n", lambda path: read_text(str(path), "option")),
    "a template": ("t.json", '{"header": {"kid": "é"}}', from_template),
    "a key that signs": ("key.pem", "", signed),
    "authorities": ("ca.pem", "", trusted),
    "revocations": ("crl.pem", "", revoked),
    "key and certificates": ("client.pem", "", identified),
    "a key alone": ("key.pem", "", identified_by_two),
    "lines": ("x.txt", "é\nb", sent),
    "lines, packed": ("x.txt", "é\nb\n", unpacked),
    "JSON lines": ("x.jsonl", '{"a": "é"}\n{"b": 1}\n', sent),
    "JSON lines, packed": ("x.jsonl", "1\n2\n", unpacked),
    "CSV": ("x.csv", "a,b\né,2\n", sent),
    "CSV with quotes": ("x.csv", '"a","b"\né,2\n', sent),
    "TSV": ("x.tsv", "a\tb\né\t2\n", sent),
    "payloads": ("p", "é", lambda path: next(from_file(str(path), b"\n", lambda text: None))),
}
KEYS: dict[str, Callable[[], str]] = {
    "a key that signs": lambda: identity()[0],
    "authorities": lambda: authority().cert_pem.bytes().decode(),
    "revocations": revocations,
    "key and certificates": lambda: "".join(identity()),
    "a key alone": lambda: identity()[0],
}


def given(what: str, folder: Path) -> tuple[Path, str, Callable[[Path], Any]]:
    name, text, read = FILES[what]
    (folder / "ca.pem").write_bytes(authority().cert_pem.bytes())
    return folder / name, KEYS[what]() if what in KEYS else text, read


@pytest.mark.parametrize("what", FILES)
def test_a_mark_of_utf_8_is_passed_over(what: str, tmp_path: Path) -> None:
    path, text, read = given(what, tmp_path)
    path.write_bytes(text.encode())
    plain = read(path)
    path.write_bytes(codecs.BOM_UTF8 + text.encode())
    assert plain and read(path) == plain


@pytest.mark.parametrize("encoding", OTHERS)
@pytest.mark.parametrize("what", FILES)
def test_another_encoding_is_refused_by_its_name(what: str, encoding: str, tmp_path: Path) -> None:
    path, text, read = given(what, tmp_path)
    mark, name = OTHERS[encoding]
    path.write_bytes(mark + text.encode(encoding))
    with pytest.raises((KafkaError, CommandError)) as refused:
        read(path)
    assert f"is text in {name}, as its byte order mark says; save it as UTF-8" in str(refused.value)
    assert path.name in str(refused.value)


def test_a_text_that_a_program_read_may_have_its_mark_still() -> None:
    key, chain = identity()
    texts = [Secret(f"\ufeff{text}") for text in (authority().cert_pem.bytes().decode(), key, chain)]
    context, _ = make_context(TlsSettings(certificates=texts[0], key=texts[1], chain=texts[2]))
    assert context.cert_store_stats()["x509_ca"] == 1
    module = parse_jaas('\ufeffPlainLoginModule required username="a";')
    assert (module.name, module.text("username")) == ("PlainLoginModule", "a")


def test_a_file_that_is_one_record_keeps_all_of_its_bytes(tmp_path: Path) -> None:
    for mark in (codecs.BOM_UTF8, *(mark for mark, _ in OTHERS.values())):
        (tmp_path / "x").write_bytes(mark + b"a")
        source = open_one(str(tmp_path / "x"), Layout("whole"))
        assert [row.value for row in rows_of(source.blocks()) if isinstance(row, Row)] == [mark + b"a"]
        source.close()


def test_no_module_reads_text_in_another_way() -> None:
    """A new file of text is read with ``_runtime/files.py``; the rest is what forebay itself has written."""
    own = {"spark/commit.py", "spark/jobs/streaming.py", "cli/__main__.py"}
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            encoded = any(keyword.arg == "encoding" for keyword in node.keywords)
            if (name in ("open", "read_text") and encoded) or (name == "decode" and "sig" in ast.unparse(node)):
                found.add(str(path.relative_to(SOURCE)))
    assert found == own


class Trickle(io.RawIOBase):
    """Gives a byte a time."""

    def __init__(self, data: bytes) -> None:
        self._left = [data[at : at + 1] for at in range(len(data))]

    def read1(self, size: int) -> bytes:
        return self._left.pop(0) if self._left else b""


def values(data: bytes) -> list[bytes | None]:
    found = rows_of(LineInput("x", Trickle(data), LineFormat(), limit=9).blocks())
    return [row.value for row in found if isinstance(row, Row)]


def test_pieces_of_a_mark_that_come_one_by_one() -> None:
    assert values(codecs.BOM_UTF8 + b"a\nb") == [b"a", b"b"]
    assert values(codecs.BOM_UTF8) == []
    for almost in (b"\xef", b"\xef\xbb", b"\xef\n", b"\xef\xbba\n", b"\0\0\n", b"\xff\n", b"\xfe", b"\0\0\xfe"):
        assert values(almost) == almost.split(b"\n")[:1]
