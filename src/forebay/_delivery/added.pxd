from forebay._delivery.result cimport BatchResult
from forebay._delivery.callbacks cimport AddedCallback, DeliveryCallbacks
from forebay._delivery.future cimport RecordFuture


cdef bint repeat_added(RecordFuture future, int kind, object function, Py_ssize_t number) noexcept
cdef object added_callback(RecordFuture future, bint of_earlier)
cdef bint put_added(RecordFuture future, object before, AddedCallback callback, object function) except? -1
