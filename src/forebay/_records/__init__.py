"""The bytes of record batches: written, compressed and read back.

Begin with ``batch_v2``, the format of all present brokers.  ``rows`` writes its records from columns, ``batch_legacy``
converts them for old brokers.  ``compression`` has a compressor for each codec, on ``codec_framing`` and
``codec_packages``.  ``reader`` and ``decompression`` go the other way.  No thread owns anything here: an object belongs
to its caller, but for compressors and ``ratio``, which any thread may use.
"""
