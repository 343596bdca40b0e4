"""Kafka's protocol: versions, framing, and the messages a producer exchanges with every broker."""
