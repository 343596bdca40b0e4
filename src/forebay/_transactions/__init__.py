"""The producer's identity: ids, epochs and sequences (idempotence), and transactions on top of them.

Begin with the two tables, ``state`` and ``errors``.  Three objects follow, each with one kind of caller:

- ``manager.TransactionManager``: producer id, epoch, and the sequences of each partition's batches.  Every idempotent
  producer has one.  It is the accumulator's gate, and belongs to the sender's thread.
- ``dialog.TransactionMachine``: what is under way with the coordinators of one id: its state, the requests
  that wait (``pending``), what answers do (``answers``).  The sender's thread takes its requests and brings answers.
  It tells its ``manager`` which identity to use; the manager tells its ``dialog`` of a batch that failed.
- ``session.TransactionCalls``: the calls of the transactional API, on the application's threads.  Each call changes
  the state of its ``dialog`` under the dialog's lock and adds a request.

Nothing here does I/O: ``_sender.transactional`` and ``_sender.producer_id`` send the requests.
"""
