"""What a producer counts and measures, under the names of the Java client.

Begin with ``names``, the table of metrics, then ``producer.ProducerMetrics``, which has a field for each sensor.
``sensor`` has the sensors, ``registry`` turns them into the snapshot that ``metrics()`` returns.  A sensor belongs to
the thread or the lock that owns the state it counts; ``shared`` is for sensors that several threads record to.
"""
