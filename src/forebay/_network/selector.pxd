from forebay._runtime.gil cimport GilClaim
from forebay._network._io cimport PollSetPointer
from forebay._network.channel cimport Channel


cdef class Selector:
    cdef readonly GilClaim claim

    cpdef list turn(self, double timeout_ms, double now)


cdef class SocketSelector(Selector):
    cdef object pipe                     # WakePipe; lives as long as this object, for wakeup() on any thread
    cdef int wake_fd
    cdef PollSetPointer pollset
    cdef list channels                   # in the order of the poll set's sockets
    cdef list crowded                    # channels whose input was full after the last turn
    cdef int next_id

    cdef void _make_rooms(self)
    cdef void _move_bytes(self, double timeout_ms, double until) noexcept
    cdef list _settle(self, double now)
    cdef bint _settle_one(self, Channel channel, double now)
    cdef void _remove(self, Channel channel)
