"""What Avro wants of values before fastavro writes them: defaults as bytes, milliseconds, UUIDs, one branch of a union.

All of it follows from the schema, once; a schema that wants nothing costs nothing for a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from forebay.errors import IllegalArgumentError

Change = Callable[[Any], Any]
"""From a value as ``values_of`` has it to what is written; raises ValueError for one that the logical type forbids."""
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MILLIS = ("timestamp-millis", "local-timestamp-millis")
NEVER: Mapping[str, Any] = {"type": "fixed", "name": "never", "size": -1}
"""In the place of a branch of a union, whose number is written, that no value is written as."""
_JSON: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "int": (int,), "long": (int,), "float": (int, float),
    "double": (int, float), "string": (str,), "enum": (str,), "bytes": (str,), "fixed": (str,), "array": (list,),
    "map": (dict,), "record": (dict,), "error": (dict,),
}  # fmt: skip


def with_defaults(named: Mapping[str, Any]) -> None:
    """Makes values as they are written of the defaults in records: JSON has text in place of bytes (ISO 8859-1).

    Args:
        named: the schemas that have names, as fastavro parsed them; changed in place.

    Raises:
        IllegalArgumentError: a default of bytes has other characters, or one of ``fixed`` another size.
    """
    for name, schema in named.items():
        for field in schema.get("fields", ()):
            if "default" in field:
                try:
                    field["default"] = _default(field["default"], field["type"], named)
                except ValueError as error:
                    raise IllegalArgumentError(
                        f"this is no Avro schema: the default of {name}.{field['name']}: {error}"
                    ) from None


def _default(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        branches = [one for one in schema if isinstance(value, _JSON.get(_type(one, named), ()))]
        return _default(value, branches[0], named) if branches else value
    kind = _type(schema, named)
    if kind in ("bytes", "fixed") and isinstance(value, str):
        data = value.encode("latin-1")
        if kind == "fixed" and len(data) != schema["size"]:
            raise ValueError(f"{len(data)} bytes, and the size is {schema['size']}")
        return data
    if kind == "array" and isinstance(value, list):
        return [_default(one, schema["items"], named) for one in value]
    if kind == "map" and isinstance(value, dict):
        return {key: _default(one, schema["values"], named) for key, one in value.items()}
    if kind in ("record", "error") and isinstance(value, dict):
        types = {field["name"]: field["type"] for field in schema["fields"]}
        return {key: _default(one, types[key], named) if key in types else one for key, one in value.items()}
    return value


def _type(schema: Any, named: Mapping[str, Any]) -> str:
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    return str(schema["type"]) if isinstance(schema, dict) else str(schema)


class Changes:
    """Finds the changes that the values of a schema need.

    Args:
        named: the schemas that have names.
        exact: whether a timestamp with microseconds is refused by ``timestamp-millis``, which else drops them.
    """

    def __init__(self, named: Mapping[str, Any], exact: bool) -> None:
        self._named = named
        self._exact = exact
        self._records: dict[str, Change | None] = {}

    def of(self, schema: Any) -> Change | None:
        """The change of values of this schema; None if there is none."""
        if isinstance(schema, list):
            found = [change for one in schema if (change := self.of(one)) is not None]
            return _all_of(found) if found else None
        if isinstance(schema, str):
            return self.of(self._named[schema]) if schema in self._named else None
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._of_record(schema)
        if kind in ("array", "map"):
            inner = self.of(schema["items" if kind == "array" else "values"])
            return None if inner is None else _each(inner)
        logical = schema.get("logicalType")
        if kind == "long" and logical in MILLIS:
            return self._exact_millis if self._exact else _millis
        return _uuid if (kind, logical) == ("string", "uuid") else None

    def _of_record(self, schema: Any) -> Change | None:
        name = schema["name"]
        if name in self._records:
            # A record inside itself is found here; its fields are complete before a value comes.
            return self._records[name]
        if not _wants(schema, self._named, set()):
            self._records[name] = None
            return None
        changes: dict[str, Change] = {}
        self._records[name] = made = _fields(changes)
        for field in schema["fields"]:
            change = self.of(field["type"])
            if change is not None:
                changes[field["name"]] = change
        return made

    @staticmethod
    def _exact_millis(value: Any) -> Any:
        if type(value) is int and value % 1000:
            raise ValueError(f"{value} microseconds are no whole milliseconds, and exact_times is on")
        return _millis(value)


def _wants(schema: Any, named: Mapping[str, Any], seen: set[str]) -> bool:
    """Whether there is a logical type anywhere in a schema whose values are changed."""
    if isinstance(schema, list):
        return any(_wants(one, named, seen) for one in schema)
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if not isinstance(schema, dict) or schema.get("name") in seen:
        return False
    if "name" in schema:
        seen.add(schema["name"])
    inner = [field["type"] for field in schema.get("fields", ())]
    inner += [schema[key] for key in ("items", "values") if key in schema]
    return schema.get("logicalType") in (*MILLIS, "uuid") or any(_wants(one, named, seen) for one in inner)


def _millis(value: Any) -> Any:
    return value // 1000 if type(value) is int else value


def _uuid(value: Any) -> Any:
    if isinstance(value, str) and UUID.fullmatch(value) is None:
        raise ValueError(f"{value[:80]!r} is no UUID")
    return value


def _all_of(changes: list[Change]) -> Change:
    # Each looks at values of its own class alone.
    def change(value: Any) -> Any:
        for one in changes:
            value = one(value)
        return value

    return changes[0] if len(changes) == 1 else change


def _each(inner: Change) -> Change:
    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [inner(one) for one in value]
        return {key: inner(one) for key, one in value.items()} if isinstance(value, dict) else value

    return change


def _fields(changes: Mapping[str, Change]) -> Change:
    def change(row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        made = dict(row)
        for name, inner in changes.items():
            if name in made:
                try:
                    made[name] = inner(made[name])
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
        return made

    return change
