"""The client's side of SASL mechanisms, as generators of tokens without I/O.

Begin with ``mechanism``, which says what the handshake needs of one; ``plain`` and ``scram`` are the mechanisms.
``_network/handshake.py`` carries the tokens.  The sender's thread runs them.
"""
