"""The names of Arrow's types for messages, as pyarrow prints them.  The C data interface has letters instead.

Only errors need it, so it is imported when there is one, and it reads schemas through ctypes in both forms.
"""

from __future__ import annotations

from forebay._arrow.abi import ArrowSchema

LONGEST = 300
"""Most characters of a name in a message: a structure may have a thousand fields."""

_ORDERED, _NULLABLE, _SORTED = 1, 2, 4

_PLAIN = {
    "n": "null",
    "b": "bool",
    "c": "int8",
    "C": "uint8",
    "s": "int16",
    "S": "uint16",
    "i": "int32",
    "I": "uint32",
    "l": "int64",
    "L": "uint64",
    "e": "halffloat",
    "f": "float",
    "g": "double",
    "z": "binary",
    "Z": "large_binary",
    "vz": "binary_view",
    "u": "string",
    "U": "large_string",
    "vu": "string_view",
    "tdD": "date32[day]",
    "tdm": "date64[ms]",
    "tts": "time32[s]",
    "ttm": "time32[ms]",
    "ttu": "time64[us]",
    "ttn": "time64[ns]",
    "tDs": "duration[s]",
    "tDm": "duration[ms]",
    "tDu": "duration[us]",
    "tDn": "duration[ns]",
    "tiM": "month_interval",
    "tiD": "day_time_interval",
    "tin": "month_day_nano_interval",
}
_TIMESTAMPS = {"tss": "s", "tsm": "ms", "tsu": "us", "tsn": "ns"}
_NESTED = {
    "+l": "list",
    "+L": "large_list",
    "+vl": "list_view",
    "+vL": "large_list_view",
    "+s": "struct",
}
_UNIONS = {"+us": "sparse_union", "+ud": "dense_union"}


def type_name(schema: int) -> str:
    """The name of the type that the ArrowSchema at this address describes, cut off where it is very long."""
    name = _name(ArrowSchema.from_address(schema))
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}..."


def _name(schema: ArrowSchema) -> str:
    code = schema.format.decode(errors="replace")
    if schema.dictionary:
        values = _name(ArrowSchema.from_address(schema.dictionary))
        return f"dictionary<values={values}, indices={_PLAIN.get(code, code)}, ordered={schema.flags & _ORDERED}>"
    if code.startswith("+"):
        return _nested(schema, code)
    head, _, rest = code.partition(":")
    if head in _TIMESTAMPS:
        return f"timestamp[{_TIMESTAMPS[head]}{', tz=' + rest if rest else ''}]"
    if head == "d":
        precision, scale, bits = (*rest.split(","), "128")[:3]
        return f"decimal{bits}({precision}, {scale})"
    if head == "w":
        return f"fixed_size_binary[{rest}]"
    return _PLAIN.get(code) or f"a type with the format {code!r}"


def _nested(schema: ArrowSchema, code: str) -> str:
    children = [ArrowSchema.from_address(schema.children[at]) for at in range(schema.n_children)]
    fields = [_field(child) for child in children]
    head, _, rest = code.partition(":")
    if head in _NESTED:
        return f"{_NESTED[head]}<{', '.join(fields)}>"
    if head == "+r":
        return f"run_end_encoded<run_ends: {_name(children[0])}, values: {_name(children[1])}>"
    if head == "+w":
        return f"fixed_size_list<{fields[0]}>[{rest}]"
    if head == "+m":
        key, value = (ArrowSchema.from_address(children[0].children[at]) for at in (0, 1))
        return f"map<{_name(key)}, {_name(value)}{', keys_sorted' if schema.flags & _SORTED else ''}>"
    if head in _UNIONS:
        marked = (f"{field}={number}" for field, number in zip(fields, rest.split(","), strict=False))
        return f"{_UNIONS[head]}<{', '.join(marked)}>"
    return f"a type with the format {code!r}"


def _field(schema: ArrowSchema) -> str:
    name = (schema.name or b"").decode(errors="replace")
    return f"{name}: {_name(schema)}{'' if schema.flags & _NULLABLE else ' not null'}"
