"""The bytes of record batches: written, compressed and read back.

Begin with ``batch_v2``, the format of all present brokers.  ``rows`` writes its records from columns, ``batch_legacy``
converts them for old brokers.  ``compression`` has a compressor for each codec, on ``codec_framing`` and
``codec_packages``.  ``reader`` and ``decompression`` go the other way.  An object here belongs to its caller.  Any
thread may use compressors and ``ratio``.
"""
