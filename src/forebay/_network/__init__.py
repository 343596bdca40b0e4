"""The network of one producer: connections to the brokers, requests and their answers, and the cluster's metadata.

``NetworkClient`` (client.py) is what other packages use; begin with its ``poll``, one turn of the sender's thread.
Below it, a ``Selector`` moves the bytes of all ``Channel``s, ``Connection`` is one connection's side of the protocol,
and ``ConnectionStates`` has what is known of each node.  ``Metadata`` answers which topics and leaders there are, for
every thread; its updater asks for them over the client.  All of the package belongs to the sender's thread, except
``wakeup``, what ``Metadata`` keeps under its lock, and the resolvers' helper threads.
"""
