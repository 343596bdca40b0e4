"""The client's side of SASL mechanisms, as generators of tokens without I/O.

Begin with ``mechanism``, which says what the handshake needs of one.  The mechanisms are ``plain``, ``scram``,
``oauthbearer`` and ``gssapi``.
``_network/handshake.py`` carries the tokens.  The sender's thread runs them.
"""
