"""The simulated world: an agenda of events, brokers that answer in Kafka's bytes, callers, and the real producer.

Begin with ``world``, which puts a world together and lets its time pass.  ``agenda`` has the events, ``selector`` the
connections, ``peer`` the bytes of the answers, ``service`` the time that brokers take, ``callers`` the records, and
``costs`` what the client's own work takes.
"""
