"""Limits of the paths and URLs that options may name, which no option can lift: two environment variables.

A platform that takes options from its users sets them where it starts the process.  Each is a list with commas.  Not
set, there is no limit; set and empty, nothing is allowed.  They are read at each use, since a link may lead elsewhere
by then.
"""

from __future__ import annotations

import os
from typing import NamedTuple

PATHS = "FOREBAY_ALLOWED_PATHS"
"""Files and folders; a folder allows what is in it."""
URLS = "FOREBAY_ALLOWED_URLS"
"""Beginnings of URLs: scheme, host, port, and whole segments of the path."""
_PORTS = {"http": 80, "https": 443}


class _Place(NamedTuple):
    """A URL in the parts that are compared."""

    scheme: str
    host: str
    port: int | None
    segments: tuple[str, ...]

    def holds(self, other: _Place) -> bool:
        begins = other.segments[: len(self.segments)] == self.segments
        return begins and (self.scheme, self.host, self.port) == (other.scheme, other.host, other.port)


def path_refusal(path: str) -> str | None:
    """Why no option may name this path, in words to be put behind its name; None: it may."""
    roots = _listed(PATHS)
    if roots is None:
        return None
    if "\0" in path:
        return f"it is not among the paths of {PATHS}"
    for root in roots:
        if not os.path.isabs(root):
            return f"{PATHS} names {root!r}, which is no absolute path, so nothing is allowed"
    # Links and ".." of both are followed, so that none leads out.
    real = os.path.realpath(path)
    within = (os.path.realpath(root).rstrip("/") for root in roots)
    if any(real == root or real.startswith(f"{root}/") for root in within):
        return None
    return f"it is not among the paths of {PATHS}"


def url_refusal(url: str) -> str | None:
    """Why no option may name this URL, in words to be put behind its name; None: it may.

    The path of a ``file:`` URL is judged as a path, too.
    """
    is_file = url.strip()[:5].lower() == "file:"
    limit = _url_limit(url)
    if limit is not None or not is_file:
        return limit
    from urllib.parse import unquote, urlsplit  # for those who have a URL and a limit

    return path_refusal(unquote(urlsplit(url.strip()).path))


def _url_limit(url: str) -> str | None:
    prefixes = _listed(URLS)
    if prefixes is None:
        return None
    places = []
    for prefix in prefixes:
        place = _place(prefix)
        if place is None or "@" in prefix or "?" in prefix or "#" in prefix:
            return f"{URLS} has an entry that is no URL of scheme, host and path, so nothing is allowed"
        places.append(place)
    asked = _place(url)
    if asked is not None and any(place.holds(asked) for place in places):
        return None
    return f"it is not among the URLs of {URLS}"


def _listed(variable: str) -> list[str] | None:
    given = os.environ.get(variable)
    return None if given is None else [part.strip() for part in given.split(",") if part.strip()]


def _place(url: str) -> _Place | None:
    """The parts of a URL; None if they cannot be told without doubt, or its path leads upwards."""
    if any(sign <= " " or sign in "\\\x7f" for sign in url):
        return None
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not (parts.hostname or parts.scheme == "file"):
        return None
    path = parts.path
    # A server may undo escapes more often than once.
    while (plain := unquote(path)) != path:
        path = plain
    segments = path.split("/")[1:] if path.startswith("/") else path.split("/")
    if "\\" in path or not {".", ".."}.isdisjoint(segments):
        return None
    while segments and not segments[-1]:
        segments.pop()
    host = "" if parts.scheme == "file" and parts.hostname == "localhost" else parts.hostname or ""
    return _Place(parts.scheme, host, port or _PORTS.get(parts.scheme), tuple(segments))
