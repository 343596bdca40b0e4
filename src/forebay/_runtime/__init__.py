"""What CPython lacks or has too slowly: memory and bytes, locks, clocks, and waiting without the GIL.

A toolbox: look a module up when its name occurs.  Bytes and memory: ``primitives``, ``arrays``, ``memory``, ``piece``,
``lists``.  Threads: ``threads``, ``mutex``, ``ticket``, ``parking``, ``gil``, ``this_thread``, ``owner``.  Time:
``clock``, ``clock_source``, ``backoff``.  Logs: ``log``.  A ``.pxd`` or ``.h`` beside a ``.py`` is the compiled twin of
what the ``.py`` does as Python.  Each module says which threads may use it.
"""
