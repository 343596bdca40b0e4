from forebay._delivery.callbacks cimport DeliveryCallbacks
from forebay._delivery.result cimport BatchResult


cpdef bint split_result(BatchResult whole, list parts)
cdef void move_callbacks(list callbacks, list parts)
cdef void move_waiters(list waiters, list parts, list staying)
