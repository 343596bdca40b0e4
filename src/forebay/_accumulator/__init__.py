"""Where records wait: gathered into batches, one queue for each partition, in a bounded amount of memory.

Begin with ``accumulator.RecordAccumulator.append``, which runs on the application's threads and never blocks, then
``schedule`` (which nodes have something to send) and ``drain`` (which batches leave), which run on the sender's thread.
``topic`` has the queues, ``batch`` the batches, ``pool`` the memory.  Locks guard what both sides touch: DESIGN.md,
"Who owns what" and "Lock order".
"""
