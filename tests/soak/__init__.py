"""A random run of faults under load against three real brokers: ``python -m tests.soak --seed N --seconds S``.

``run.py`` is where to begin: it starts the loads (``load.py``, ``columns.py``, ``transactions.py``) and the faults
(``faults.py``), and compares what the producers said (``journal.py``) with what an independent reader finds
(``checker.py``).
"""
