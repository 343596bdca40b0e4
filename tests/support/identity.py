"""A small identity provider: signed tokens, the keys to check them, and every way to answer badly.

``POST /token`` takes client_credentials with the client's secret or a signed assertion, and jwt-bearer.  Other paths
answer badly (``BAD``).  It can be stopped, and started again on its port.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "forebay", "pa+ss=&canary"
SUBJECT = "alice"
BAD = ("/redirect", "/large", "/drip", "/nojson", "/empty", "/busy", "/close")


class IdentityProvider:
    """Serves on a loopback port from ``start`` to ``stop``.

    Args:
        tls: serves https with this context.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        self.client_key = rsa.generate_private_key(65537, 2048)
        self.lifetime_s = 300.0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.signing_key = self.key
        """Another one makes tokens that brokers refuse."""
        self._tls = tls
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        provider = self

        class Handler(_Handler):
            owner = provider

        server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        server.daemon_threads = True
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True)
        self._server, self._port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True, name="identity provider").start()

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    @property
    def scheme(self) -> str:
        return "http" if self._tls is None else "https"

    def url(self, path: str = "/token") -> str:
        return f"{self.scheme}://localhost:{self._port}{path}"

    def token(self, **claims: Any) -> str:
        """A token for SUBJECT."""
        now = time.time()
        content = {"sub": SUBJECT, "iss": "tests", "aud": "kafka", "iat": now, "exp": now + self.lifetime_s, **claims}
        return jwt.encode(content, self.signing_key, "RS256", headers={"kid": "1"})

    def jwks(self) -> bytes:
        entry = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**entry, "kid": "1", "alg": "RS256", "use": "sig"}]}).encode()

    def judge(self, headers: Any, fields: dict[str, str]) -> bool:
        """Whether a request gets a token."""
        if fields.get("grant_type") == "client_credentials" and "client_assertion" not in fields:
            given = base64.b64decode(headers.get("Authorization", "Basic ").removeprefix("Basic ")).decode()
            return given == f"{CLIENT}:{SECRET}"
        try:
            assertion = fields.get("client_assertion") or fields.get("assertion") or ""
            jwt.decode(assertion, self.client_key.public_key(), ["RS256"], audience="tests")
        except jwt.InvalidTokenError:
            return False
        return True


class _Handler(BaseHTTPRequestHandler):
    owner: IdentityProvider

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(200, self.owner.jwks())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        fields = {name: values[0] for name, values in parse_qs(body).items()}
        self.owner.requests.append((self.path, fields))
        if self.path == "/token":
            if self.owner.judge(self.headers, fields):
                self._answer(200, json.dumps({"access_token": self.owner.token(), "expires_in": -1}).encode())
            else:
                self._answer(401, b'{"error": "invalid_client"}')
        elif self.path == "/drip":
            self._drip()
        elif self.path == "/redirect":
            self._answer(302, b"", Location=self.owner.url())
        elif self.path != "/close":
            code, answer = {
                "/large": (200, b"x" * (10 * 1024 * 1024)),
                "/nojson": (200, b"<html>canary</html>"),
                "/empty": (200, b"{}"),
                "/busy": (503, b"busy"),
            }[self.path]
            self._answer(code, answer)

    def _answer(self, code: int, body: bytes, **headers: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # the client has read enough

    def _drip(self) -> None:
        """A byte now and then, for ever: each read of the client is in time, the answer is not."""
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while True:
                self.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            pass
