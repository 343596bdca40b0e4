"""What a producer shows of its inside: ``describe()``, the snapshot in the log, and the socket for ``forebay top``.

Begin with ``values``, then ``reading``, which makes them of a producer's parts.  ``text`` writes them, and ``server``
gives them to other processes.
"""
