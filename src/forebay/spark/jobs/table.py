"""One table of a job file, read key by key; every refusal names table, key, value and what is allowed."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from forebay._runtime.allowed import path_refusal
from forebay._runtime.files import NoTextError, text_of
from forebay.config._secret import described, shown_name, shown_value
from forebay.errors import ConfigError
from forebay.spark.jobs.job import SECRET

UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
DURATION = re.compile(rf"(\d+) ({'|'.join(UNITS)})s?")
AVRO_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


class JobError(ConfigError):
    """The job file, or what it names, is not right; one line."""


class Table:
    """A table whose keys are known.

    Args:
        values: as TOML has them.
        where: the table's name as it stands in the file.
        allowed: its keys; None allows any, for tables of options.
        folder: that relative paths begin at.

    Raises:
        JobError: no table, or an unknown key.
    """

    def __init__(self, values: Any, where: str, allowed: Iterable[str] | None, folder: Path) -> None:
        if not isinstance(values, dict):
            raise JobError(f"{where} must be a table [{where}], not {shown_value(values)}")
        self.where = where
        self._values: dict[str, Any] = values
        self.folder = folder
        if allowed is not None:
            known(values, tuple(allowed), f"[{where}]")

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str | None:
        """A text that is not empty; None if the key is not there."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            raise JobError(f"[{self.where}] {key} must be a text that is not empty, not {_shown(key, value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty if the key is not there."""
        value = self._values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            raise JobError(f"[{self.where}] {key} must be a list of texts that are not empty, not {value!r}")
        return tuple(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false; a text of these words does too, for values from a command line."""
        value = self._values.get(key, default)
        if value in ("true", "false"):
            return bool(value == "true")
        if not isinstance(value, bool):
            raise JobError(f"[{self.where}] {key} must be true or false, not {value!r}")
        return value

    def choice(self, key: str, allowed: Iterable[str], default: str | None = None) -> str | None:
        """One of the words in ``allowed``."""
        value = self.text(key)
        if value is None:
            return default
        words = tuple(allowed)
        if value not in words:
            raise JobError(
                f"[{self.where}] {key} is {value!r}, which is unknown{_hint(value, words)} Allowed: {', '.join(words)}"
            )
        return value

    def seconds(self, key: str) -> float | None:
        """A duration such as ``30 seconds``."""
        value = self.text(key)
        return None if value is None else duration(value, f"[{self.where}] {key}")

    def options(self, key: str | None = None) -> Mapping[str, str]:
        """The table below ``key``, or this one, as options: texts by dotted names."""
        where = self.where if key is None else f"{self.where}.{key}"
        value = self._values if key is None else self._values.get(key, {})
        if not isinstance(value, dict):
            raise JobError(f"[{where}] must be a table of options, not {shown_value(value)}")
        return _flat(value, where)

    def inner(self, key: str, allowed: Iterable[str] | None, where: str | None = None) -> Table:
        """The table below ``key``; empty if the key is not there."""
        return Table(self._values.get(key, {}), where or key, allowed, self.folder)

    def names(self) -> tuple[str, ...]:
        """The keys in the order of the file."""
        return tuple(self._values)

    def only_one(self, *keys: str) -> None:
        """Refuses two of ``keys`` beside each other."""
        given = [key for key in keys if key in self._values]
        if len(given) > 1:
            raise JobError(f"[{self.where}] has {' and '.join(given)}; give one")

    def place(self, key: str) -> str | None:
        """A path or URL, made absolute."""
        value = self.text(key)
        if value is None or "://" in value:
            return value
        return str((self.folder / Path(value).expanduser()).absolute())

    def existing(self, key: str) -> str | None:
        """A path or pattern that leads to something, or a URL."""
        path = self.place(key)
        if path is not None and "://" not in path and not glob.glob(path):
            raise JobError(f"[{self.where}] {key} {path!r} does not exist")
        return path

    def file(self, key: str) -> str | None:
        """A path that leads to something, within the limits of the environment: of what no Spark reads."""
        path = self.existing(key)
        self._check_limit(key, path)
        return path

    def _check_limit(self, key: str, path: str | None) -> None:
        refusal = None if path is None else path_refusal(path)
        if refusal is not None:
            raise JobError(f"[{self.where}] {key} may not name {path!r}: {refusal}")

    def output(self, key: str) -> str | None:
        """A path of this machine that a file can be written to."""
        path = self.place(key)
        if path is None:
            return None
        if "://" in path or Path(path).is_dir() or not Path(path).parent.is_dir():
            raise JobError(
                f"[{self.where}] {key} {path!r} cannot be written; it must name a file in a folder that exists"
            )
        return path

    def content(self, key: str) -> str | None:
        """The text of the file that ``key`` names."""
        path = self.place(key)
        if path is None:
            return None
        self._check_limit(key, path)
        try:
            return read_text(path)
        except OSError as error:
            raise JobError(f"[{self.where}] {key} {path!r} cannot be read: {error.strerror}") from None
        except NoTextError as error:
            raise JobError(f"[{self.where}] {key} {path!r} {error}") from None


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file in UTF-8, whatever ends its lines.

    Raises:
        OSError: it cannot be read.
        NoTextError: it is no UTF-8.
    """
    return text_of(Path(path).read_bytes()).replace("\r\n", "\n").replace("\r", "\n")


def duration(value: str, what: str) -> float:
    """Seconds of a text such as ``10 seconds``; ``what`` begins the error."""
    found = DURATION.fullmatch(value.strip())
    if found is None or not int(found[1]):
        raise JobError(f"{what} is {value!r}, which is no duration. Allowed: a number over 0 and {', '.join(UNITS)}s")
    return int(found[1]) * UNITS[found[2]]


def known(values: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    """Refuses the first key that is not in ``allowed``, with the nearest that is."""
    for key in values:
        if key not in allowed:
            shown = shown_name(key, values[key])
            raise JobError(f"unknown key {shown} in {where}{_hint(key, allowed)} Allowed: {', '.join(allowed)}")


def _hint(word: str, allowed: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, tuple(allowed), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


def _flat(table: Mapping[str, Any], where: str, prefix: str = "") -> dict[str, str]:
    """Options as text; ``linger.ms = 5`` without quotes is a nested table in TOML and means the same."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        name = prefix + key
        found = _flat(value, where, f"{name}.") if isinstance(value, Mapping) else {name: _as_text(value, where, name)}
        twice = next((name for name in found if name in flat), None)
        if twice is not None:
            raise JobError(f"[{where}] {twice} is given twice, once with quotes around the whole name")
        flat |= found
    return flat


def _as_text(value: Any, where: str, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise JobError(f"[{where}] {name} must be a text, number, true or false, not {_shown(name, value)}")


def _shown(key: str, value: Any) -> str:
    return described(value) if SECRET.search(key) else shown_value(value)
