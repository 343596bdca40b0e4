"""Kafka's protocol: versions, framing, and the messages of a producer and an AdminClient.

Begin with ``versions``, the table of APIs, and ``primitives``.  Each API has a module with its ``encode_`` and
``decode_`` functions.  Every record passes ``produce`` and ``produce_response``, which are compiled.  Bytes go in and
values come out.  There is no state, so any thread may call.
"""
