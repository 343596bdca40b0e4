"""From columns to the bytes of keys and values: Avro, Protobuf, and the framing of a Schema Registry.

``plan`` decides on the driver, once; ``rows`` carries it out in the tasks.  Spark's own ``to_avro`` and
``to_protobuf`` need jars, which this package does without.
"""
