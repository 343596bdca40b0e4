"""Predictions of ``forebay tune`` beside a real Kafka: ``python -m tests.truth``."""
