from forebay.producer._frontend cimport BatchResult
from forebay.producer._frontend cimport RecordFuture
from forebay.producer._path cimport SendPath


cdef class DeliveryFuture


cdef class Origin:
    cdef readonly object loop
    cdef readonly bint has_answers
    cdef readonly object ready           # futures with an outcome; any thread adds, the loop's takes
    cdef bint asked                      # the loop will call ``run``
    cdef object where                    # the partition of the metadata that was made last
    cdef void put(self, DeliveryFuture future)


# The loop's thread only, but for ``wake``.
cdef class DeliveryFuture:
    cdef RecordFuture _record
    cdef Origin _origin
    cdef object _outcome                 # RecordMetadata or the error, once it was asked for
    cdef list _callbacks                 # flat: function, context, function ...
    cdef object _cancel_message
    cdef bint _cancelled
    cdef bint _subscribed
    cdef public bint _asyncio_future_blocking
    cdef bint is_there(self) noexcept
    cdef object outcome(self)
    cdef object metadata(self)
    cdef void schedule(self)
    cdef int tell(self) except? -1


cdef class SendCalls:
    cdef readonly SendPath _native       # None before ``start`` and after a ``start`` that failed
    cdef readonly Origin _origin
