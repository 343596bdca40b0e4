"""``${provider:path:key}`` in the options of TLS and SASL (KIP-297, KIP-421): env, file and directory.

They are resolved where a connection is made and at each login, not here.  So a configuration, its pickle and Spark's
plan hold the placeholder only, and a value that changes is used from the next login on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from forebay._runtime.files import NoTextError, read_small, text_of
from forebay.config._properties import HALF, EscapeError, properties
from forebay.config._secret import Secret
from forebay.errors import ConfigError
from forebay.model._wire import NOT_UTF8, is_utf8

PROVIDERS = ("env", "file", "directory")
MOST = 1024 * 1024
"""Bytes of a file."""
_PLACEHOLDER = re.compile(r"\$\{([^}:]+):(?:([^}:]*):)?([^}]+)\}")


class Providers(NamedTuple):
    """``config.providers`` and what restricts them."""

    names: tuple[str, ...] = ()
    allowed_file_paths: tuple[str, ...] = ()
    """``config.providers.file.param.allowed.paths``; empty: all."""
    allowed_directory_paths: tuple[str, ...] = ()
    env_pattern: str | None = None
    """``config.providers.env.param.allowlist.pattern``"""

    def has(self, text: str) -> bool:
        """Whether there is a placeholder of one of these providers in ``text``."""
        return any(found.group(1) in self.names for found in _PLACEHOLDER.finditer(text))

    def resolve(self, text: str) -> str:
        """The text with its placeholders replaced; may block.

        Raises:
            ConfigError: a value is not there, or not allowed; no value is in the message.
        """
        return _PLACEHOLDER.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        provider, path, key = found.groups()
        if provider not in self.names:
            return found.group()
        if provider == "env":
            return self._env(key if path is None else f"{path}:{key}")
        if not path:
            raise ConfigError(f"{found.group()}: write ${{{provider}:/path:key}}")
        if provider == "file":
            _check_allowed(found.group(), path, self.allowed_file_paths)
            return _property(found.group(), path, key)
        _check_allowed(found.group(), path, self.allowed_directory_paths)
        if "/" in key or key in (".", ".."):
            raise ConfigError(f"{found.group()}: {key!r} must be a file of that folder")
        return _read(found.group(), os.path.join(path, key)).rstrip("\r\n")

    def _env(self, name: str) -> str:
        if self.env_pattern is not None and not re.fullmatch(self.env_pattern, name):
            raise ConfigError(f"${{env:{name}}}: config.providers.env.param.allowlist.pattern does not allow it")
        if name not in os.environ:
            raise ConfigError(f"${{env:{name}}}: there is no such environment variable")
        if not is_utf8(os.environ[name]):
            raise ConfigError(f"${{env:{name}}}: {NOT_UTF8}")
        return os.environ[name]


class Placeholder(Secret):
    """A text with placeholders; ``reveal`` resolves them.  It pickles as the text."""

    __slots__ = ("_option", "_providers")

    deferred = True

    def __init__(self, value: str, providers: Providers, option: str = "") -> None:
        super().__init__(value)
        self._providers = providers
        self._option = option
        """That it was given for, for messages."""

    def reveal(self) -> str:
        """See ``Secret.reveal``."""
        try:
            return self._providers.resolve(self._value)
        except ConfigError as error:
            raise ConfigError(f"{self._option}={error.message}" if self._option else error.message) from None

    def files(self) -> tuple[str, ...]:
        """The files that are read."""
        found = [match.groups() for match in _PLACEHOLDER.finditer(self._value)]
        return tuple(
            path if provider == "file" else os.path.join(path, key)
            for provider, path, key in found
            if provider in self._providers.names and provider in ("file", "directory") and path
        )

    def given(self) -> str:
        """The text as it was given."""
        return str(self._value)

    def __repr__(self) -> str:
        # What is beside a placeholder may be secret.
        return str(self._value) if _PLACEHOLDER.fullmatch(self._value) else super().__repr__()

    def __reduce__(self) -> tuple[Any, ...]:
        return Placeholder, (self._value, self._providers, self._option)


def providers_of(values: Mapping[str, Any]) -> Providers:
    """The providers of a configuration's parsed values."""

    def paths(name: str) -> tuple[str, ...]:
        return tuple(os.path.abspath(path) for path in values[f"config.providers.{name}.param.allowed.paths"] or ())

    names = tuple(values["config.providers"])
    for name in names:
        if name not in PROVIDERS:
            raise ConfigError(f"config.providers: {name!r} is not allowed, only {', '.join(PROVIDERS)}")
    pattern = values["config.providers.env.param.allowlist.pattern"]
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            text = f"config.providers.env.param.allowlist.pattern={pattern!r} is no regular expression: {error}"
            raise ConfigError(text) from None
    return Providers(names, paths("file"), paths("directory"), pattern)


def looks_like_one(text: str) -> bool:
    """Whether a value is a placeholder and nothing else."""
    found = _PLACEHOLDER.fullmatch(text)
    return found is not None and found.group(1) in PROVIDERS


def _check_allowed(placeholder: str, path: str, allowed: tuple[str, ...]) -> None:
    # A link may lead out of what is allowed.
    real = os.path.realpath(path)
    roots = [os.path.realpath(root) for root in allowed]
    if roots and not any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots):
        raise ConfigError(f"{placeholder}: the path is not among allowed.paths={','.join(allowed)}")


def _property(placeholder: str, path: str, key: str) -> str:
    """The value of a key in a file of Java's form .properties."""
    try:
        found = {name: value for _, name, value in properties(_read(placeholder, path))}
    except EscapeError as error:
        raise ConfigError(f"{placeholder}: {path}:{error.number}: {error}") from None
    if key not in found:
        raise ConfigError(f"{placeholder}: the file has no key {key!r}")
    if not is_utf8(found[key]):
        raise ConfigError(f"{placeholder}: {path}: {HALF}")
    return found[key]


def _read(placeholder: str, path: str) -> str:
    try:
        return text_of(read_small(path, MOST))
    except OSError as error:
        raise ConfigError(f"{placeholder}: {path}: {error.strerror or error}") from None
    except NoTextError as error:
        raise ConfigError(f"{placeholder}: {path} {error}") from None
