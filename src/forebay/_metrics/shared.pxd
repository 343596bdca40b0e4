from forebay._metrics.sensor cimport Sensor
from forebay._mutex cimport Mutex


cdef class SharedSensor:
    cdef Mutex lock
    cdef Sensor sensor
