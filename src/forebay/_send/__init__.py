"""The way of ``send()`` on the caller's thread, up to the accumulator.

Begin with ``path.SendPath``: serialize, choose a partition, append, and wait where memory or metadata is missing.
``refusals`` has the errors of a wait in vain, ``transactional`` the calls of the transactional API.  All of it runs on
the application's threads.
"""
