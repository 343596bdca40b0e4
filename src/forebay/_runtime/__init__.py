"""What CPython lacks or has too slowly: memory and bytes, locks, clocks, and waiting without the GIL.

A toolbox: read a module when its name occurs elsewhere.  Bytes and memory: ``primitives``, ``memory``, ``piece``.
Threads: ``threads``, ``mutex``, ``ticket``, ``parking``, ``gil``, ``this_thread``, ``owner``.  Time: ``clock``,
``clock_source``, ``backoff``.  Logs: ``log``.  A ``.pxd`` or ``.h`` beside a ``.py`` that is not compiled is its
compiled twin.  No thread owns the package; each module says which threads may use it.
"""
