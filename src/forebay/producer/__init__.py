"""``send()`` on the caller's thread, up to the accumulator.

Begin with ``path.SendPath``: it serializes, chooses a partition, appends, and waits for memory or metadata.
``refusals`` has the errors of a record that cannot be taken, ``transactional`` the calls of the transactional API.  All
of it runs on the application's threads.
"""
