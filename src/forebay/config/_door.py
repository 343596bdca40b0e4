"""Where options come in: what is or may be a secret is wrapped before anything else looks at it.

Each public call that takes options goes through ``door``.  It hides the values first, so that no frame below has them
as plain text.  What reads a secret must have its text for a moment, so the errors of wrong options lose the frames of
this package on their way out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar, cast

from forebay.config._aliases import ALIASES
from forebay.config._option import Option
from forebay.config._options import PRODUCER_OPTIONS
from forebay.config._secret import Secret, path_fault, tells
from forebay.config._security import SECURITY_OPTIONS
from forebay.errors import ConfigError
from forebay.errors._base import bare

TABLE: Mapping[str, Option] = MappingProxyType(
    {option.name: option for option in (*PRODUCER_OPTIONS, *SECURITY_OPTIONS)}
)
_SECRET_NAMES = re.compile(r"passw|secret|token|credential|jaas|pem|user.?info|key(?!\W*serial)", re.IGNORECASE)
"""Names that are no options, and whose values are hidden all the same: they may be misspelt."""

Given = ParamSpec("Given")
Made = TypeVar("Made")


def kafka_name(key: str) -> str:
    """Kafka's name of an option, for any of its spellings; ``key`` itself if it is none."""
    name = key if key in TABLE else key.replace("_", ".")
    if name in ALIASES:
        name = ALIASES[name].name
    return name if name in TABLE else key


def wrapped(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """The options with a ``Secret`` in place of each value that is or may be one; never raises."""
    return {name: _wrapped(name, value) for name, value in values.items()}


def _wrapped(name: Any, value: Any) -> Any:
    if value is None or isinstance(value, Secret) or callable(value):
        return value
    option = TABLE.get(kafka_name(name)) if isinstance(name, str) else None
    if option is not None and (option.secret or (option.guarded and isinstance(value, str))):
        return Secret(value)
    if not isinstance(value, (str, bytes)):
        return value
    if option is None:
        return Secret(value) if not isinstance(name, str) or _SECRET_NAMES.search(name) or tells(value) else value
    is_no_path = option.path and isinstance(value, str) and path_fault(value) is not None
    return Secret(value) if is_no_path or tells(value) else value


def door(*kinds: type[Exception], wrap: bool = True) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """A decorator for a call that takes options, in mappings and as keywords.

    Args:
        kinds: errors of what was given, beside ConfigError.
        wrap: whether keywords are options; if not, only its errors lose their frames.
    """
    refused: tuple[type[Exception], ...] = (ConfigError, *kinds)

    def decorate(function: Callable[Given, Made]) -> Callable[Given, Made]:
        call = cast("Callable[..., Made]", function)

        @wraps(function)
        def guarded(*given: Any, **options: Any) -> Made:
            if wrap:
                given = tuple(wrapped(each) if _is_plain(each) else each for each in given)
                options = wrapped(options)
            try:
                return call(*given, **options)
            except refused as error:
                given, options = (), {}  # this frame stays in the traceback
                raise bare(error)  # noqa: B904 -- the same error

        return cast("Callable[Given, Made]", guarded)

    return decorate


def _is_plain(given: Any) -> bool:
    # A ProducerConfig has its secrets wrapped already, and is known by its class where it arrives.
    return isinstance(given, Mapping) and not hasattr(given, "originals")
