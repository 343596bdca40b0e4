"""Columns of Arrow data, of Python lists and of NumPy arrays, read in place.

``columns`` and ``headers`` read cells without the GIL, and make no Python object for a cell.  ``batch`` opens objects
that have Arrow's C data interface, ``producer._columns.python_columns`` opens others.  Begin with ``columns``.

Columns belong to the call that opened them, on one of the application's threads.
"""
