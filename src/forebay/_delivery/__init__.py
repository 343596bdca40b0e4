"""What became of a record: its future, the outcome that a batch's records share, and the callbacks.

Begin with ``future``: ``BatchResult`` is one for each batch, ``RecordFuture`` one for each record.  ``outcome`` has the
values, ``callbacks`` the calls that they cause, ``metadata`` what a callback gets; ``split`` and ``failed`` are rare
kinds.  The sender's thread sets an outcome, once, under the result's lock; any thread waits for it or reads it.
"""
