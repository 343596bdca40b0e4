"""Drop-in classes: programs written for another Python client of Kafka change their import, and nothing else.

``forebay.compat.confluent_kafka`` is for users of confluent-kafka, ``forebay.compat.kafka`` for those of kafka-python,
and ``forebay.compat.aiokafka`` for those of aiokafka.  What they do otherwise than the originals is listed in
``docs/from_confluent_kafka.md``, ``docs/from_kafka_python.md`` and ``docs/from_aiokafka.md``.
"""
