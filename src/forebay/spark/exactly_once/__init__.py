"""Exactly-once writes: each task leaves a transaction open, and the driver commits one a task, or none.

``protocol`` has the values and every decision, without I/O; begin there.  ``driver`` carries the decisions out before
the tasks start and after they end, ``control_topic`` is what it asks of Kafka, and ``task`` is the part in a task.
``settings`` are the options.
"""
