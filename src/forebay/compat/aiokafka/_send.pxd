from forebay._delivery.future cimport RecordFuture
from forebay._send.path cimport SendPath


cdef class Origin:
    cdef readonly object loop
    cdef readonly object handover
    cdef readonly bint has_answers


# The loop's thread only, but for ``wake``.
cdef class DeliveryFuture:
    cdef RecordFuture _record
    cdef Origin _origin
    cdef object _outcome                 # RecordMetadata or the error, once it was asked for
    cdef list _callbacks                 # pairs of function and context
    cdef object _cancel_message
    cdef bint _cancelled
    cdef bint _subscribed
    cdef public bint _asyncio_future_blocking
    cdef bint is_there(self) noexcept
    cdef object outcome(self)
    cdef object metadata(self)
    cdef void schedule(self)


cdef class SendCalls:
    cdef readonly SendPath _native       # None before ``start`` and after a ``start`` that failed
    cdef readonly Origin _origin
