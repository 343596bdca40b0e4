"""Rows of Arrow columns into record batches, without a Python object a row.

``Columns`` opens the columns of one Arrow batch; ``append_columns`` carries their rows into the accumulator by the same
rules as ``send()``; ``Deliveries`` follows what became of them, batch by batch.
"""

from __future__ import annotations

from forebay._columnar.append import append_columns
from forebay._columnar.columns import Columns
from forebay._columnar.deliveries import Deliveries

__all__ = ["Columns", "Deliveries", "append_columns"]
