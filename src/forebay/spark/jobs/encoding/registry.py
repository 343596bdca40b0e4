"""A Schema Registry over HTTP, asked on the driver: four calls, so the standard library serves.

The road not taken: the client of confluent-kafka, which brings librdkafka and an HTTP client with its own
dependencies for these calls.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from forebay._network.oidc import trouble
from forebay._network.tls_words import of_ssl
from forebay.config._door import door
from forebay.errors._base import printable
from forebay.spark.jobs.job import Registry
from forebay.spark.jobs.table import JobError

CONTENT = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S = 10.0
MOST = 16 * 1024 * 1024
"""Bytes of an answer."""
MOST_SAID = 200
MAGIC = b"\0"
NOT_FOUND = 404

Send = Callable[[Request, float], bytes]


class Registered(NamedTuple):
    """A schema under a subject."""

    id: int
    version: int
    schema: str
    references: bool = False


class SchemaRegistry:
    """Looks up and registers schemas.

    Args:
        options: URLs, credentials, trusted authorities.
        send: does a request and returns the body; for tests.

    Raises:
        JobError: the file of authorities is none.
    """

    def __init__(self, options: Registry, send: Send | None = None) -> None:
        self._options = options
        self._send = send or _opener(options)

    def register(self, subject: str, schema: str, kind: str, references: Sequence[Mapping[str, Any]] = ()) -> int:
        """The schema's id, registered under ``subject`` if it is not yet.

        Raises:
            JobError: the registry refuses it, or cannot be reached.
        """
        answer = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", _body(schema, kind, references))
        return _number(answer, "id")

    def lookup(
        self, subject: str, schema: str, kind: str, references: Sequence[Mapping[str, Any]] = ()
    ) -> Registered | None:
        """The schema as it is registered under ``subject``; None if it is not.

        Raises:
            JobError: the registry cannot be reached, or refuses to answer.
        """
        answer = self._ask(
            "POST", f"/subjects/{quote(subject, safe='')}", _body(schema, kind, references), missing=True
        )
        return None if answer is None else _registered(answer)

    def latest(self, subject: str) -> Registered:
        """The newest schema of ``subject``.

        Raises:
            JobError: there is none, or the registry cannot be reached.
        """
        answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest", missing=True)
        if answer is None:
            raise JobError(
                f"[registry] {self._options.urls[0]} has no subject {subject!r}, of which the latest is wanted"
            )
        return _registered(answer)

    @door(wrap=False)
    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, missing: bool = False) -> Any:
        """Asks the addresses in turn; None for what is not found, if that is an answer."""
        unreached = []
        for url in self._options.urls:
            request = Request(url + path, method=method, headers=self._headers(url))
            if body is not None:
                request.data = json.dumps(body).encode()
            try:
                answer = json.loads(self._send(request, TIMEOUT_S))
            except HTTPError as error:
                with error:
                    if error.code == NOT_FOUND and missing:
                        return None
                    said = f"{url}{path}: HTTP {error.code}: {_said(error)}"
                    if error.code < 500:
                        raise JobError(f"[registry] {said}") from None
                    unreached.append(said)
            except (URLError, OSError, HTTPException) as error:
                unreached.append(f"{url}: {self._trouble(url, error)}")
            except ValueError:
                raise JobError(f"[registry] {url}{path} did not answer in JSON; is it a Schema Registry?") from None
            else:
                if not isinstance(answer, dict):
                    raise JobError(f"[registry] {url}{path} answered no JSON object; is it a Schema Registry?")
                return answer
        raise JobError(f"[registry] no answer: {'; '.join(unreached)}")

    def _trouble(self, url: str, error: Exception) -> str:
        why, host = getattr(error, "reason", error), urlsplit(url).hostname or url
        if isinstance(why, str):
            return f"the connection to {host} failed ({printable(why, MOST_SAID)})"
        store = (
            "the system's certificate authorities"
            if self._options.ca is None
            else f"ssl.ca.location={self._options.ca}"
        )
        of_tls = of_ssl(why, host, store)
        return trouble(why, host) if of_tls is None else of_tls.message

    def _headers(self, url: str) -> dict[str, str]:
        headers = {"Accept": CONTENT, "Content-Type": CONTENT}
        login = self._options.logins.get(url, self._options.user_info)
        if login is not None:
            headers["Authorization"] = "Basic " + base64.b64encode(login.reveal().encode()).decode()
        elif self._options.token is not None:
            headers["Authorization"] = f"Bearer {self._options.token.reveal()}"
        return headers


def _opener(options: Registry) -> Send:
    try:
        context = ssl.create_default_context(cafile=options.ca)
    except (ssl.SSLError, OSError) as error:
        raise JobError(f"[registry] ssl.ca.location {options.ca!r} holds no certificates in PEM: {error}") from None
    opener = build_opener(HTTPSHandler(context=context), _NoRedirect())

    def send(request: Request, timeout: float) -> bytes:
        with opener.open(request, timeout=timeout) as response:
            return response.read(MOST)  # type: ignore[no-any-return]

    return send


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is an error: it would carry the password to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def subject_of(strategy: str, topic: str | None, part: str, record: Callable[[], str]) -> str:
    """The subject of a schema, by Confluent's names of strategies."""
    if strategy == "TopicNameStrategy":
        return f"{topic}-{part}"
    return record() if strategy == "RecordNameStrategy" else f"{topic}-{record()}"


def prefix_of(schema_id: int) -> bytes:
    """What precedes the bytes of a value: a zero byte and the id, 4 bytes, big-endian."""
    return MAGIC + schema_id.to_bytes(4, "big")


def _body(schema: str, kind: str, references: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema}
    # AVRO is the default of every registry, and old ones know no other.
    if kind != "AVRO":
        body["schemaType"] = kind
    if references:
        body["references"] = list(references)
    return body


def _registered(answer: Any) -> Registered:
    references = bool(answer.get("references"))
    return Registered(_number(answer, "id"), _number(answer, "version"), str(answer.get("schema", "")), references)


def _number(answer: Any, key: str) -> int:
    value = answer.get(key)
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise JobError(f"[registry] the answer has no {key}: {str(answer)[:200]}")
    return value


def _said(error: HTTPError) -> str:
    """The registry's own words, or HTTP's."""
    try:
        body = json.loads(error.read())
        return printable(" ".join(str(body["message"]).split()))
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return printable(str(error.reason))
