"""Whatever a user gives as a serializer, behind one call.

The kinds are told apart by their calls: nothing of another client is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from forebay.errors import ConfigError, KafkaError, SerializationError, UnserializableTypeError

BYTES = (bytes, bytearray, memoryview)


class BoundSerializer:
    """A serializer of any accepted kind behind one call, with checked results and errors that say what and where."""

    __slots__ = ("_close", "_function", "name", "passes_bytes", "what")

    def __init__(
        self,
        what: str,
        name: str,
        function: Callable[[str, Any, Any], Any] | None,
        close: Callable[[], object] | None = None,
    ) -> None:
        self.what: str = what
        """``key`` or ``value``."""
        self.name: str = name
        self.passes_bytes: bool = function is None
        """No serializer was given: bytes and None go through, anything else is refused."""
        self._function = function
        self._close = close

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
        """The bytes of ``data``, or None.

        Raises:
            UnserializableTypeError: no serializer was given and ``data`` is not bytes; it is a TypeError, too.
            SerializationError: the serializer failed (its error is the cause), or did not return bytes.
        """
        if self._function is None:
            result = data
        else:
            try:
                result = self._function(topic, headers, data)
            except KafkaError as error:
                error.with_context(topic=topic, part=self.what)
                raise
            except Exception as error:
                raise SerializationError(
                    f"The {self.what} serializer {self.name} failed on {type(data).__name__} "
                    f"for topic {topic}: {type(error).__name__}: {error}"
                ) from error
        if result is None or type(result) is bytes:
            return result
        if isinstance(result, BYTES):
            return bytes(result)
        raise self.refusal(topic, result)

    def refusal(self, topic: str, result: Any) -> SerializationError:
        """The error for what is not bytes: the data itself, or what the serializer returned."""
        found = type(result).__name__
        if not self.passes_bytes:
            return SerializationError(
                f"The {self.what} serializer {self.name} returned {found} for topic {topic}; "
                "it must return bytes or None"
            )
        remedy = "call .encode() on it" if isinstance(result, str) else "turn it into bytes"
        return UnserializableTypeError(
            f"The {self.what} for topic {topic} is {found}, but without a serializer it must be bytes or None: "
            f"{remedy}, or set {self.what}_serializer"
        )

    def close(self) -> None:
        """Closes the serializer; once, however often it is called."""
        close, self._close = self._close, None
        if close is not None:
            close()


def as_serializer(given: Any, *, is_key: bool, configs: Mapping[str, Any]) -> BoundSerializer:
    """Whatever a user gave as ``key.serializer`` or ``value.serializer``, ready for use.

    None, a callable(value), a class of a serializer (made and configured here), an object with
    ``serialize(topic, headers, data)`` or ``serialize(topic, data)``, or a callable(value, ctx) as confluent's Schema
    Registry serializers are; which of them is looked up once, here.

    Raises:
        ConfigError: it is none of these.
    """
    what = "key" if is_key else "value"
    if given is None:
        return BoundSerializer(what, "none", None)
    if isinstance(given, type) and hasattr(given, "serialize"):
        given = given()
        configure = getattr(given, "configure", None)
        if configure is not None:
            configure(configs, is_key)
    name = getattr(given, "__qualname__", type(given).__qualname__)
    if hasattr(given, "serialize"):
        return BoundSerializer(what, name, _with_headers(given.serialize, what), getattr(given, "close", None))
    if callable(given):
        return BoundSerializer(what, name, _of_context(given, what) if _takes_context(given) else _of_value(given))
    raise ConfigError(
        f"{what}.serializer must be a callable(value), or have serialize(topic, headers, data); "
        f"got {type(given).__name__}"
    )


def _of_value(function: Callable[[Any], Any]) -> Callable[[str, Any, Any], Any]:
    def serialize(topic: str, headers: Any, data: Any) -> Any:
        return None if data is None else function(data)

    return serialize


def _takes_context(function: Callable[..., Any]) -> bool:
    """Whether it has the call of confluent's serializers: (obj, ctx)."""
    names = [parameter.name for parameter in _positional(function) or ()]
    return len(names) == 2 and names[1] == "ctx"


def _of_context(function: Callable[[Any, Any], Any], what: str) -> Callable[[str, Any, Any], Any]:
    from inspect import iscoroutinefunction

    if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
        raise ConfigError(
            f"{what}.serializer: {type(function).__name__} is a coroutine, and a record is serialized without a wait; "
            "use the one without Async in its name"
        )
    # Such a serializer has loaded the package; it is not imported for others.
    confluent = sys.modules.get("confluent_kafka.serialization")
    context = _context if confluent is None else confluent.SerializationContext

    def serialize(topic: str, headers: Any, data: Any) -> Any:
        return None if data is None else function(data, context(topic, what, headers))

    return serialize


def _context(topic: str, field: str, headers: Any) -> Any:
    return SimpleNamespace(topic=topic, field=field, headers=headers)


def _positional(function: Callable[..., Any]) -> list[Any] | None:
    """The parameters that may be given by position; None if any number may, or if nothing is known."""
    from inspect import signature

    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _with_headers(serialize: Callable[..., Any], what: str) -> Callable[[str, Any, Any], Any]:
    """The three-argument form of ``serialize``."""
    positional = _positional(serialize)
    required = 3 if positional is None else sum(p.default is p.empty for p in positional)
    if positional is None or required == 3:
        return serialize  # without a signature it has to take what the protocol says
    if required <= 2 <= len(positional):
        return lambda topic, headers, data: serialize(topic, data)
    raise ConfigError(f"{what}.serializer: serialize must take (topic, headers, data) or (topic, data)")
