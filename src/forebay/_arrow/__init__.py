"""Columns of Arrow data, of Python lists and of NumPy arrays, read in place.

``columns`` and ``headers`` read cells without the GIL and without a Python object a cell; ``batch`` opens what speaks
Arrow's C data interface, ``objects`` what does not.  Begin with ``columns``.

Columns belong to the call that opened them, on one of the application's threads.
"""
