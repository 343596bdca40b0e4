"""An exactly-once stream whose tasks, workers, executors, driver and broker are killed; every row is compared.

``points`` says where something can be killed, ``source`` is the data source that does it in Spark's processes,
``stream`` the driver program, ``run`` starts it again until the stream is done and judges what a reader sees.
"""
