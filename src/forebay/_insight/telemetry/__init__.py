"""Client telemetry (KIP-714): a cluster that asks for it gets this producer's metrics, with nothing set up here.

Begin with ``offer``, which every producer has: it waits for a broker that takes metrics.  Then ``reporter`` sends the
requests, ``dialog`` decides what is due (the states, without I/O), and ``payload`` makes OpenTelemetry's bytes.
Everything here belongs to the sender's thread, except what ``client_instance_id`` reads, and the beginning: imports
could make that thread wait, so a thread of their own makes them.
"""
