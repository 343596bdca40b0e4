"""What settings of a producer give for a load, before it runs: the real producer on a clock that a simulation moves.

Begin with ``workload``, ``brokers`` and ``goal``, the values that describe a question.  ``files`` reads them from TOML.
"""
