"""From a configuration to a producer's parts: the only place that calls constructors, and that makes randomness.

Begin with ``parts``.  It makes all of a producer, and connections alone.  ``surroundings`` names what comes
in and what is made.  ``tls`` and ``security`` make what TLS, SASL and a proxy need, ``oauth`` what fetches tokens.
``user_parts`` makes and closes what runs the user's code: serializers, interceptors, the partitioner.  ``insight``
connects what shows a producer.  The application's thread runs all of it, before the sender's thread starts.
"""

from forebay._assembly.parts import assemble, assemble_connections, not_made
from forebay._assembly.surroundings import Components, Surroundings, system_surroundings

__all__ = ["Components", "Surroundings", "assemble", "assemble_connections", "not_made", "system_surroundings"]
