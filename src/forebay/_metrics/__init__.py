"""What a producer counts and measures, under the names of the Java client.

Begin with ``names``, the table of metrics, then ``producer.ProducerMetrics``, which has a field for each sensor.
``sensor`` has the sensors, ``registry`` turns them into the snapshot that ``metrics()`` returns.  A Sensor belongs to
the thread that owns the state it counts, which is the sender's.  Several threads may record to a SharedSensor.
"""
