"""What is counted of a produce request when it is sent: its batches, their records, by topic and altogether."""

from __future__ import annotations

from typing import Any

import cython
from cython.cimports.forebay._accumulator.batch import ProducerBatch
from cython.cimports.forebay._accumulator.closing import observed_ratio
from cython.cimports.forebay._metrics.sensor import Sensor, TopicSensors
from cython.cimports.forebay._sender.outcomes import BatchOutcomes


@cython.final
@cython.cclass
class RequestSensors:
    """The producer's sensors of its produce requests, looked up once; sender thread only."""

    def __init__(self, metrics: Any) -> None:
        self.batch_size: Sensor = metrics.batch_size
        self.queue_time: Sensor = metrics.queue_time
        self.compression_rate: Sensor = metrics.compression_rate
        self.record_size: Sensor = metrics.record_size
        self.records_sent: Sensor = metrics.records_sent
        self.request_latency: Sensor = metrics.request_latency
        self.throttle_time: Sensor = metrics.produce_throttle_time

    @cython.cfunc
    def record(self, batches: list[Any], outcomes: BatchOutcomes, now: cython.double) -> object:
        """A request with ``batches`` is on its way."""
        records: cython.longlong = 0
        batch: ProducerBatch
        for batch in batches:
            size: cython.Py_ssize_t = batch.estimated_size()
            ratio: cython.double = 1.0
            if batch.compressed:
                ratio = observed_ratio(batch)
            records += batch.record_count
            self.batch_size.record(size)
            self.queue_time.record(batch.drained - batch.created)
            self.compression_rate.record(ratio)
            self.record_size.record_many(batch.raw_size, batch.record_count, batch.max_record_size)
            topic: TopicSensors = outcomes.topic_sensors(batch, now)
            topic.records.record(batch.record_count)
            topic.bytes.record(size)
            topic.compression_rate.record(ratio)
        self.records_sent.record(records)
        return None
