from forebay._metrics.sensor cimport Sensor
from forebay._runtime.mutex cimport Mutex


cdef class SharedSensor:
    cdef Mutex lock
    cdef Sensor sensor
