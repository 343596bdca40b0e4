"""What a producer's owner asks the cluster for besides producing: see ``forebay.control``.

Begin with ``session.ControlSession``: its own connections, polled by the thread that asks.  One thread at a time, under
the lock of ``Control``.  ``transactions``, ``topics`` and ``tail`` are the questions.
"""
