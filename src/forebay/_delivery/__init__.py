"""What became of a record: its future, the outcome that a batch's records share, and the callbacks.

Begin with ``result``: a BatchResult for each batch has the outcome and calls the callbacks.  ``future`` has what
``send()`` gives back, ``callbacks`` the callbacks that came with the records, ``metadata`` what a callback gets.
``callback_thread`` has the rules for the user's code, ``sender_lock`` those for waits in signal handlers.
``awaiting`` has what ``await future`` needs.  ``split`` is a rare case.

The sender's thread sets an outcome, once, under the result's lock.  Any thread waits for it or reads it.
"""
