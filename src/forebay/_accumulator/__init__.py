"""Where records wait: gathered into batches, one queue for each partition, in a bounded amount of memory.

Begin with ``appender.BatchAppender.append``, which runs on the application's threads and never blocks.  Then read
``schedule`` (which nodes have batches to send) and ``drain`` (which batches leave), which run on the sender's thread.
``topic`` has the queues, ``batch`` the batches, ``records`` their bytes, ``pool`` the memory.  ``accumulator`` holds
the parts together.  Locks guard what both sides use: DESIGN.md, "Who owns what" and "Lock order".
"""
