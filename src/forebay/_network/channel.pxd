from forebay._network._io cimport SocketPointer


cdef class Channel:
    # Owned by the sender's thread; no other thread reads it.
    cdef readonly int id
    cdef readonly int state              # CONNECTING, OPEN, CLOSED of _io.pxd
    cdef readonly object error           # why it is CLOSED; None: its owner closed it
    cdef public object context           # the owner's
    cdef public double last_active       # monotonic ms of the last turn that moved bytes
    cdef readonly Py_ssize_t received_size
    cdef readonly Py_ssize_t pending     # bytes queued and not yet taken by the system
    cdef readonly str peer
    cdef object transport                # TcpTransport, or None where a selector has no sockets
    cdef object filter                   # StreamFilter (TLS) between the descriptor's bytes and the stream; or None
    cdef object failure                  # the filter's error; the selector closes the channel with it
    cdef list early                      # arguments of writes that wait for the filter's handshake
    cdef bytearray input
    cdef SocketPointer socket
    cdef list writes                     # of (socket.written at its end, on_written)

    cpdef object received(self)
    cdef bytes copied(self)
    cpdef void consume(self, Py_ssize_t size)
    cpdef bytes take(self, Py_ssize_t size)
    cpdef long long int32_at(self, Py_ssize_t at)
    cpdef void write(self, list buffers, object on_written, bint prompt=*)
    cpdef bint takes_more(self)
    cdef void start_filter(self)
    cdef int filter_input(self, double now) except? -1
    cdef void _write_filtered(self, list buffers, object on_written, bint prompt)
    cdef void _queue(self, bytes data)
    cdef void _wait_for(self, long long end)
    cdef void _note_write(self, object on_written, bint prompt)
    cdef void _filter_failed(self, object error)
    cpdef void mark_open(self, double now)
    cpdef object room(self)
    cpdef void filled(self, Py_ssize_t size, double now)
    cpdef list outgoing(self, Py_ssize_t limit)
    cpdef bint sent(self, Py_ssize_t size, double now)
    cpdef void shut(self, object error)
    cdef bint _complete(self)
    cdef void _make_room(self)
    cdef void _set_input(self, bytearray data)
