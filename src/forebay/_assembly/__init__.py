"""From a configuration to a producer's parts: the only place that calls constructors, and that makes randomness.

``parts`` makes all of a producer, and the connections of a Control; ``security`` what TLS and SASL need.  Begin with
``parts``.  The application's thread runs it, before the sender's thread starts.
"""

from forebay._assembly.parts import (
    Parts,
    Surroundings,
    assemble,
    assemble_control,
    not_made,
    system_surroundings,
)

__all__ = ["Parts", "Surroundings", "assemble", "assemble_control", "not_made", "system_surroundings"]
