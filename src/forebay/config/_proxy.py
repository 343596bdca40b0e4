"""``proxy.url``: how the brokers are reached if not directly."""

from __future__ import annotations

from typing import NamedTuple

from forebay._runtime.allowed import url_refusal
from forebay.config._secret import Called, Secret
from forebay.errors import ConfigError

KINDS = {"socks5": "socks5", "socks5h": "socks5", "http": "http"}
"""Schemes, and what each stands for; ``socks5h`` is what others call a proxy that looks names up, as ours do."""
MAX_LOGIN = 255
"""Bytes of a user and of a password, in SOCKS5 (RFC 1929)."""
_HOW = "write socks5://host:port or http://host:port, with user:password@ before the host if the proxy asks for them"


class ProxyUrl(NamedTuple):
    """The URL in its parts; user and password are given both or not at all."""

    kind: str
    host: str
    port: int
    username: str | None
    password: Secret | None


def parse_proxy(url: Secret) -> ProxyUrl:
    """Reads the URL.  If it has a placeholder, the password is looked up anew for each connection.

    Raises:
        ConfigError: what is wrong with it; the URL, which may hold a password, is not shown.
    """
    found = _parts(url.reveal())

    def password() -> str:
        now = _parts(url.reveal())
        if now.username != found.username or now.password is None:
            raise _wrong("it named another user, or one at all, when the producer was made")
        return now.password.reveal()

    return found._replace(password=Called(password)) if url.deferred and found.password is not None else found


def _parts(url: str) -> ProxyUrl:
    from urllib.parse import unquote, urlsplit  # for those who have a proxy

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _wrong(f"it is no URL; {_HOW}") from None  # the cause may show the password
    kind = KINDS.get(parts.scheme)
    if kind is None:
        # Without // the scheme may be the user.
        begin = f"{parts.scheme!r} is" if "://" in url and parts.scheme.isalpha() else "its scheme is"
        raise _wrong(f"{begin} none of {', '.join(KINDS)}; {_HOW}")
    if not host or any(sign.isspace() for sign in host):
        raise _wrong(f"the host is missing or has spaces; {_HOW}")
    if not port:
        raise _wrong(f"the port is missing; {_HOW}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _wrong(f"there is something after the port; {_HOW} (signs like / and # in them as %2F and %23)")
    _check_limit(parts.scheme, host, port)
    if parts.username is None:
        return ProxyUrl(kind, host, port, None, None)
    username, password = unquote(parts.username), unquote(parts.password or "")
    if not username or not password:
        raise _wrong("the user or the password is empty; give both or neither")
    if kind == "socks5" and max(len(username.encode()), len(password.encode())) > MAX_LOGIN:
        raise _wrong(f"SOCKS5 takes at most {MAX_LOGIN} bytes of user and of password")
    if kind == "http" and ":" in username:
        raise _wrong("an HTTP proxy takes no colon in the user")
    return ProxyUrl(kind, host, port, username, Secret(password))


def _check_limit(scheme: str, host: str, port: int) -> None:
    # Here and not at the option's parser: a placeholder is resolved by now, and again for each connection.
    fault = url_refusal(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
    if fault is not None:
        raise _wrong(fault)


def _wrong(what: str) -> ConfigError:
    return ConfigError(f"Invalid value [hidden] for option proxy.url: {what}")
