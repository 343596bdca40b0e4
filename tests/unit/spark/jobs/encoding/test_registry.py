"""The registry's client against a registry of our own, and what each refusal says."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request

import pytest
import trustme

from forebay.config import Secret
from forebay.spark.jobs.encoding.registry import SchemaRegistry, prefix_of, subject_of
from forebay.spark.jobs.job import Registry
from forebay.spark.jobs.table import JobError
from tests.support.registry import FakeRegistry, serving

SCHEMA = '{"type":"string"}'


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with serving() as running:
        yield running


def test_a_schema_is_registered_once_and_found_again(registry: FakeRegistry) -> None:
    client = SchemaRegistry(Registry((registry.url,)))
    assert client.lookup("a/b-value", SCHEMA, "AVRO") is None
    number = client.register("a/b-value", SCHEMA, "AVRO")
    assert client.register("a/b-value", SCHEMA, "AVRO") == number
    assert list(registry.subjects) == ["a/b-value"]
    found = client.lookup("a/b-value", SCHEMA, "AVRO")
    assert found is not None and (found.id, found.version) == (number, 1)
    client.register("a/b-value", "{}", "JSON")
    assert client.latest("a/b-value")[:3] == (number + 1, 2, "{}")
    assert registry.schemas[1]["schemaType"] == "JSON"


def test_a_password_is_sent_and_a_wrong_one_is_told_without_it(registry: FakeRegistry) -> None:
    registry.user_info = "u:secret"
    assert SchemaRegistry(Registry((registry.url,), user_info=Secret("u:secret"))).register("s", SCHEMA, "AVRO") == 1
    with pytest.raises(JobError, match=r"\[registry\] http://.*: HTTP 401: Unauthorized") as caught:
        SchemaRegistry(Registry((registry.url,), user_info=Secret("u:other"))).register("s", SCHEMA, "AVRO")
    assert "other" not in str(caught.value)


def test_a_login_of_the_url_is_sent_to_that_url_alone(registry: FakeRegistry) -> None:
    registry.user_info = "ann:pa/ss"
    logins = {registry.url: Secret("ann:pa/ss")}
    assert SchemaRegistry(Registry((registry.url,), logins=logins)).register("s", SCHEMA, "AVRO") == 1
    with pytest.raises(JobError, match="HTTP 401"):
        SchemaRegistry(Registry((registry.url,), logins={"http://other": Secret("ann:pa/ss")})).latest("s")


def test_a_token_is_sent() -> None:
    seen: list[Request] = []

    def send(request: Request, timeout: float) -> bytes:
        seen.append(request)
        return b'{"id": 7}'

    assert SchemaRegistry(Registry(("http://r",), token=Secret("abc")), send).register("s", SCHEMA, "AVRO") == 7
    assert seen[0].get_header("Authorization") == "Bearer abc"


def test_the_authority_of_the_job_is_trusted_and_no_other(tmp_path: Path) -> None:
    authority, other = trustme.CA(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    paths = [tmp_path / "ca.pem", tmp_path / "other.pem"]
    for path, one in zip(paths, (authority, other), strict=True):
        one.cert_pem.write_to_path(str(path))
    with serving(context) as registry:
        assert SchemaRegistry(Registry((registry.url,), ca=str(paths[0]))).register("s", SCHEMA, "AVRO") == 1
        with pytest.raises(
            JobError, match=r"\[registry\] no answer: https://.*authority is not in that store.*ssl.ca.location="
        ):
            SchemaRegistry(Registry((registry.url,), ca=str(paths[1]))).register("s", SCHEMA, "AVRO")


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(JobError, match=r"ssl.ca.location '.*ca.pem' holds no certificates in PEM"):
        SchemaRegistry(Registry(("https://r",), ca=str(tmp_path / "ca.pem")))


def test_the_next_address_is_asked_if_one_does_not_answer(registry: FakeRegistry) -> None:
    client = SchemaRegistry(Registry(("http://127.0.0.1:9", registry.url)))
    assert client.register("s", SCHEMA, "AVRO") == 1
    with pytest.raises(JobError, match=r"no answer: http://127.0.0.1:9: 127.0.0.1 refuses"):
        SchemaRegistry(Registry(("http://127.0.0.1:9",))).latest("s")


def test_what_the_registry_says_is_one_line(registry: FakeRegistry) -> None:
    registry.incompatible.add("s")
    client = SchemaRegistry(Registry((registry.url,)))
    with pytest.raises(JobError, match="HTTP 409: Schema being registered is incompatible with version 1$"):
        client.register("s", SCHEMA, "AVRO")
    with pytest.raises(JobError, match="has no subject 'none', of which the latest is wanted"):
        client.latest("none")


@pytest.mark.parametrize(
    ("body", "message"), [(b"<html>", "did not answer in JSON; is it a Schema Registry?"), (b"{}", "answer has no id")]
)
def test_another_server_is_told_from_a_registry(body: bytes, message: str) -> None:
    with pytest.raises(JobError, match=message):
        SchemaRegistry(Registry(("http://r",)), lambda request, timeout: body).register("s", SCHEMA, "AVRO")


def test_an_error_of_the_network_is_told_with_the_address() -> None:
    def send(request: Request, timeout: float) -> bytes:
        raise URLError("timed out")

    with pytest.raises(
        JobError, match="no answer: http://a: the connection to a failed .timed out.; http://b: .* failed .timed out"
    ):
        SchemaRegistry(Registry(("http://a", "http://b")), send).latest("s")


def test_subjects_and_prefixes() -> None:
    assert subject_of("TopicNameStrategy", "t", "key", lambda: "n.R") == "t-key"
    assert subject_of("RecordNameStrategy", "t", "key", lambda: "n.R") == "n.R"
    assert subject_of("TopicRecordNameStrategy", "t", "key", lambda: "n.R") == "t-n.R"
    assert prefix_of(258) == b"\0\0\0\1\2"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"[]", "answered no JSON object"),
        (b'{"id": 4294967296}', "the answer has no id"),
        (b'{"id": "1"}', "the answer has no id"),
    ],
)
def test_an_answer_that_makes_no_sense(answer: bytes, words: str) -> None:
    with pytest.raises(JobError, match=words):
        SchemaRegistry(Registry(("http://r",)), lambda request, timeout: answer).register("s", SCHEMA, "AVRO")


def serve_once(answer: bytes) -> str:
    """The URL of a server that says ``answer`` to the first who connects."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            connection.recv(65536)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_what_speaks_no_http_is_told() -> None:
    url = serve_once(b"\x15\x03\x03\x00\x02\x02\x50")
    with pytest.raises(JobError, match=r"\[registry\] no answer: http://"):
        SchemaRegistry(Registry((url,))).register("s", SCHEMA, "AVRO")


def test_a_redirect_is_not_followed(registry: FakeRegistry) -> None:
    """It would carry the password to another host."""
    url = serve_once(f"HTTP/1.1 302 Found\r\nLocation: {registry.url}/x\r\nContent-Length: 0\r\n\r\n".encode())
    with pytest.raises(JobError, match="HTTP 302: Found"):
        SchemaRegistry(Registry((url,), user_info=Secret("u:secret"))).latest("s")
    assert registry.requests == []
