"""Rows of a table as values for ``send_batch``: as JSON, and as Avro with a schema registry's framing.

Begin with ``as_json`` and ``as_avro``.  ``avro`` has what declared jobs use, too.  The caller's thread does everything.
"""

from __future__ import annotations

from forebay.serializers.rows.as_avro import rows_as_avro
from forebay.serializers.rows.as_json import rows_as_json

__all__ = ["rows_as_avro", "rows_as_json"]


def __dir__() -> list[str]:
    return sorted(__all__)
