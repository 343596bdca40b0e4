"""What a command reads: files and standard input as blocks of adjacent records.

``files`` opens them, ``lines``, ``jsonl`` and ``tables`` take them apart.  ``rows`` is a record to be.  ``blocks`` is
what the producer gets.
"""
