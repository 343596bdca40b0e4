"""A Schema Registry in a thread: subjects, versions and ids over HTTP, with a password and TLS if they are wanted."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import pytest


class FakeRegistry:
    """What the server holds; tests look into it, and may fill it.

    ``requests`` are (method, path) of all calls.  ``incompatible`` subjects refuse every new schema.
    """

    def __init__(self) -> None:
        self.subjects: dict[str, list[int]] = {}
        self.schemas: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.incompatible: set[str] = set()
        self.user_info: str | None = None
        self.url = ""

    def add(self, subject: str, body: dict[str, Any]) -> int:
        """The id of the schema, registered under ``subject``."""
        kept = {"schemaType": "AVRO", "references": [], **body}
        if kept not in self.schemas:
            self.schemas.append(kept)
        number = self.schemas.index(kept) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def described(self, subject: str, number: int) -> dict[str, Any]:
        version = self.subjects[subject].index(number) + 1
        return {"subject": subject, "id": number, "version": version, **self.schemas[number - 1]}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON, as Confluent's registry gives them."""
        self.requests.append((method, path))
        words = [unquote(word) for word in path.partition("?")[0].strip("/").split("/")]
        if words[:2] == ["schemas", "ids"]:
            return 200, self.schemas[int(words[2]) - 1]
        subject = words[1]
        if method == "POST" and words[2:] == ["versions"]:
            if subject in self.incompatible:
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible\nwith version 1"}
            return 200, {"id": self.add(subject, body)}
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        if method == "GET":
            return 200, self.described(subject, self.subjects[subject][-1])
        wanted = {"schemaType": "AVRO", "references": [], **body}
        for number in self.subjects[subject]:
            if self.schemas[number - 1] == wanted:
                return 200, self.described(subject, number)
        return 404, {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    """A registry that runs for the body; ``url`` says where.  No proxy of the environment stands before it."""
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            wanted = registry.user_info
            if wanted and self.headers.get("Authorization") != f"Basic {base64.b64encode(wanted.encode()).decode()}":
                status, answer = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, answer = registry.answer(self.command, self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _do

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

    with pytest.MonkeyPatch.context() as environment, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        environment.setenv("no_proxy", "localhost,127.0.0.1")
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        registry.url = f"http{'s' if context else ''}://localhost:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
