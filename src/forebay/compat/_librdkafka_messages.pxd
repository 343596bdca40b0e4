from forebay.model._metadata cimport RecordMetadata
cimport cython

from forebay.producer._frontend cimport CompiledCallback
from forebay.producer._frontend cimport Clock
from forebay.producer._frontend cimport Mutex


cdef class Events


# See StampedBatch.
@cython.no_gc
cdef class Message(CompiledCallback):
    cdef Events events
    cdef object _callback
    cdef object _topic
    cdef object _key
    cdef object _value
    cdef object _headers
    cdef object _failure
    cdef int _partition
    cdef int _timestamp_type
    cdef long long _offset
    cdef long long _timestamp
    cdef double _begun
    cdef double _latency


cdef class Events:
    cdef object __weakref__
    cdef object append                   # of what follows
    cdef object take
    cdef readonly object served          # messages with their outcome, that poll() has not served; any thread
    # Guarded by lock.
    cdef Mutex lock
    cdef object latest                   # the last callback in it
    cdef object current                  # the callback of what poll() took last
    cdef readonly list waiting           # tickets of calls that wait for an event; each call adds and removes its own
    cdef readonly object default_callback
    cdef readonly bint only_errors
    cdef readonly Clock clock
    cpdef void put(self, Message message)
    cdef bint put_behind(self, Message message, object callback, object both) except? -1
    cdef object taken(self)
    cdef object forget(self)
    cpdef Py_ssize_t size(self)


cdef Message new_message(Events events, object topic, object key, object value, object headers, object callback)
