"""The sender: turn by turn, batches leave the accumulator for the brokers, and answers come back to the batches.

Begin with ``sender.Sender.run_once``, which is one turn.  ``draining`` takes the batches of a turn, ``produce`` makes a
request of them and reads the answer, and ``outcomes`` applies what became of each batch, with the errors of
``failure_words``.
``producer_id`` and ``transactional`` send the requests of ``_transactions``; ``purging`` and ``warming`` do what a call
asks for.  ``thread`` is the thread that calls
``run_once``.  It owns everything here.  Other threads only wake it and ask it to end.
"""
