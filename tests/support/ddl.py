"""Spark's types from text without a Spark session: what ``StructType.fromDDL`` does in the JVM, for simple types."""

from __future__ import annotations

import re

from pyspark.sql import types as T

SIMPLE: dict[str, T.DataType] = {
    "STRING": T.StringType(),
    "BINARY": T.BinaryType(),
    "BOOLEAN": T.BooleanType(),
    "SMALLINT": T.ShortType(),
    "INT": T.IntegerType(),
    "BIGINT": T.LongType(),
    "FLOAT": T.FloatType(),
    "DOUBLE": T.DoubleType(),
    "DATE": T.DateType(),
    "TIMESTAMP": T.TimestampType(),
    "TIMESTAMP_NTZ": T.TimestampNTZType(),
    "INTERVAL": T.DayTimeIntervalType(),
}


def struct(text: str) -> T.StructType:
    """Columns as in ``a INT, b ARRAY<STRING>, c STRUCT<x: INT>``."""
    return T.StructType([_field(part) for part in _split(text)])


def _field(text: str) -> T.StructField:
    found = re.fullmatch(r"`?([^`]+?)`?:? ([A-Z_]+(?:[<(].*)?)", text.strip())
    assert found is not None, text
    return T.StructField(found[1], kind(found[2]))


def kind(text: str) -> T.DataType:
    """One type."""
    word, _, inside = text.strip().partition("<")
    if word in SIMPLE:
        return SIMPLE[word]
    if word.startswith("DECIMAL("):
        precision, scale = word.removeprefix("DECIMAL(").rstrip(")").split(",")
        return T.DecimalType(int(precision), int(scale))
    parts = _split(inside.removesuffix(">"))
    if word == "ARRAY":
        return T.ArrayType(kind(parts[0]))
    if word == "MAP":
        return T.MapType(kind(parts[0]), kind(parts[1]))
    assert word == "STRUCT", text
    return T.StructType([_field(part) for part in parts])


def _split(text: str) -> list[str]:
    """Parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
