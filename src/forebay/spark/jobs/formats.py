"""Spark's own source formats: what can be said of a source's table before Spark starts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from forebay.spark.jobs.table import JobError

_OF_FILES = ("ignoreCorruptFiles", "ignoreMissingFiles", "recursiveFileLookup")
FILES: dict[str, tuple[str, ...]] = {
    "csv": (
        *("header", "inferSchema", "enforceSchema", "multiLine", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
        *("preferDate", "enableDateTimeParsingFallback", "escapeQuotes", "quoteAll", *_OF_FILES),
    ),
    "json": (
        *("multiLine", "primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames"),
        *("allowSingleQuotes", "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter"),
        *("allowUnquotedControlChars", "allowNonNumericNumbers", "dropFieldIfAllNull", *_OF_FILES),
    ),
    "xml": ("excludeAttribute", "inferSchema", "ignoreSurroundingSpaces", "ignoreNamespace", *_OF_FILES),
    "parquet": ("mergeSchema", *_OF_FILES),
    "orc": ("mergeSchema", *_OF_FILES),
    "text": ("wholetext", *_OF_FILES),
    "avro": _OF_FILES,
    "binaryFile": _OF_FILES,
}
"""Formats that read files, and their options that are true or false: Spark takes what is neither for false, or says
so after its start."""
OTHERS = ("jdbc", "kafka", "rate", "rate-micro-batch", "socket", "delta", "iceberg", "hudi")
"""Formats that need no path."""
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_WITH_MODES = ("csv", "json", "xml")
NEAR = 0.65


def check_source(where: str, form: str, path: str | None, options: Mapping[str, str]) -> None:
    """Refuses a source that Spark would refuse, or read otherwise than it says.

    A format that is none of Spark's is taken: a package or the user's code may have it.

    Raises:
        JobError: a format whose name is nearly one of Spark's; no path; an option that is neither true nor false.
    """
    names = {name.lower(): name for name in (*FILES, *OTHERS)}
    if form.lower() not in names:
        near = difflib.get_close_matches(form.lower(), names, n=1, cutoff=NEAR)
        if near and "." not in form:
            raise JobError(f"[{where}] format is {form!r}, which is unknown; did you mean {names[near[0]]!r}?")
        return
    known = names[form.lower()]
    if known not in FILES:
        return
    lower = {key.lower(): key for key in options}
    if path is None and "path" not in lower:
        raise JobError(f"[{where}] has no path, which format {form!r} reads")
    for name in FILES[known]:
        key = lower.get(name.lower())
        if key is not None and options[key].strip().lower() not in ("true", "false"):
            raise JobError(f"[{where}.options] {key} must be true or false, not {options[key]!r}")
    mode = lower.get("mode")
    if known in _WITH_MODES and mode is not None and options[mode].upper() not in MODES:
        raise JobError(f"[{where}.options] {mode} is {options[mode]!r}. Allowed: {', '.join(MODES)}")
