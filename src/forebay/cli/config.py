"""The table of options as text, Markdown or JSON: what ``forebay config`` prints."""

from __future__ import annotations

import json
import textwrap
from typing import Any, Literal

from forebay.config import AVAILABLE, Option, table
from forebay.errors import ConfigError

Format = Literal["text", "markdown", "json"]
_WIDTH = 100


def render(fmt: Format = "text", contains: str = "") -> str:
    """The options whose name or description contains ``contains`` (without regard to case), ending in a newline.

    Raises:
        ConfigError: no option does.
    """
    wanted = contains.lower().replace("_", ".")
    options = [
        option for option in table() if wanted in option.name or contains.lower() in option.documentation.lower()
    ]
    if not options:
        raise ConfigError(f"No option contains {contains!r}")
    return {"text": _text, "markdown": _markdown, "json": _json}[fmt](options)


def _default(option: Option) -> str:
    if option.default is None:
        return "not set"
    if isinstance(option.default, tuple):
        return ",".join(option.default) or "empty"
    if isinstance(option.default, bool):
        return str(option.default).lower()
    if option.name == "acks":
        return "all"  # kept as -1
    return str(option.default) or "empty"


def _remark(option: Option) -> str:
    """What the option waits for, if it does."""
    if option.feature is None or option.feature in AVAILABLE:
        return ""
    return f"Not in this version: needs {option.feature.value}."


def _text(options: list[Option]) -> str:
    lines: list[str] = []
    for option in options:
        lines.append(f"{option.name}  ({option.type.value}, default {_default(option)}, {option.importance.value})")
        body = f"{option.documentation} Must be {option.allowed()}. {_remark(option)}".strip()
        lines.extend(textwrap.wrap(body, _WIDTH, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines) + "\n"


def _markdown(options: list[Option]) -> str:
    head = ["| option | type | default | allowed | importance | meaning |", "|---|---|---|---|---|---|"]
    rows = (
        (
            f"`{option.name}`",
            option.type.value,
            f"`{_default(option)}`",
            option.allowed(),
            option.importance.value,
            f"{option.documentation} {_remark(option)}".strip(),
        )
        for option in options
    )
    return (
        "\n".join([*head, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)]) + "\n"
    )


def _json(options: list[Option]) -> str:
    rows: list[dict[str, Any]] = [
        {
            "name": option.name,
            "type": option.type.value,
            "default": option.default,
            "allowed": option.allowed(),
            "importance": option.importance.value,
            "documentation": option.documentation,
            "available": option.feature is None or option.feature in AVAILABLE,
            "python": option.name.replace(".", "_"),
        }
        for option in options
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
