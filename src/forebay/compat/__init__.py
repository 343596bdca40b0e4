"""Drop-in classes: programs written for another Python client of Kafka change their import, and nothing else.

``forebay.compat.confluent_kafka`` is for users of confluent-kafka.  What it does otherwise than the original is listed
in ``docs/from_confluent_kafka.md``.
"""
