# What the selector needs of C: a socket's two directions (Port), all sockets of one selector (Bank), poll(2),
# sendmsg(2), recv(2).  Interpreted twin, same names and results: _io.py.  Nothing here takes or needs the GIL,
# except where a function says so; the selector's thread owns everything but Bank.woken and Bank.polling.

from cpython.buffer cimport Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memmove, memset



cdef extern from *:
    """
    #include <errno.h>
    #include <math.h>
    #include <poll.h>
    #include <sys/socket.h>
    #include <sys/types.h>
    #include <sys/uio.h>
    #include <time.h>
    #include <unistd.h>

    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0  /* macOS: SO_NOSIGPIPE below does it */
    #endif

    static inline int forebay_poll(struct pollfd *polls, int count, double timeout_ms) {
        if (!(timeout_ms > 0)) timeout_ms = 0;
    #if defined(__linux__)
        struct timespec limit;
        if (timeout_ms > 9e14) return ppoll(polls, (nfds_t)count, NULL, NULL);
        limit.tv_sec = (time_t)(timeout_ms / 1e3);
        limit.tv_nsec = (long)((timeout_ms - (double)limit.tv_sec * 1e3) * 1e6);
        if (limit.tv_nsec > 999999999L) limit.tv_nsec = 999999999L;
        return ppoll(polls, (nfds_t)count, &limit, NULL);
    #else
        return poll(polls, (nfds_t)count, timeout_ms > 2147483647.0 ? -1 : (int)ceil(timeout_ms));
    #endif
    }

    static inline void forebay_no_sigpipe(int fd) {
    #ifdef SO_NOSIGPIPE
        int on = 1;
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    #else
        (void)fd;
    #endif
    }

    static inline int forebay_connect_result(int fd) {
        int result = 0;
        socklen_t size = sizeof result;
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size) < 0 ? errno : result;
    }

    static inline void forebay_write_byte(int fd) {
        /* A full pipe wakes as well, a closed one has nobody to wake; errno is the interrupted code's own. */
        int kept = errno;
        if (write(fd, "w", 1) < 0) errno = kept;
    }

    static inline void forebay_drain(int fd) {
        char bytes[64];
        while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes) {}
    }

    #define forebay_swap(at, value) __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST)
    #define forebay_load(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)
    """
    struct pollfd:
        int fd
        short events
        short revents
    struct iovec:
        void* iov_base
        size_t iov_len
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    const short POLLIN, POLLOUT, POLLERR, POLLHUP, POLLNVAL
    const int MSG_NOSIGNAL
    int forebay_poll(pollfd* polls, int count, double timeout_ms) noexcept nogil
    void forebay_no_sigpipe(int fd) noexcept nogil
    int connect_result "forebay_connect_result" (int fd) noexcept nogil
    int forebay_swap(int* at, int value) noexcept nogil
    int forebay_load(int* at) noexcept nogil
    Py_ssize_t sendmsg(int fd, const msghdr* message, int flags) noexcept nogil
    Py_ssize_t recv(int fd, void* to, size_t size, int flags) noexcept nogil
    void forebay_drain(int fd) noexcept nogil
    void forebay_write_byte(int fd) noexcept nogil


cdef enum:                 # Channel.state
    CONNECTING = 0
    OPEN = 1
    CLOSED = 2

cdef enum:                 # what a socket is asked for and found ready for
    READABLE = 1
    WRITABLE = 2

cdef enum:                 # Port.events
    OPENED = 1
    READ = 2
    WROTE = 4
    ENDED = 8              # the peer closed
    FAILED = 16            # Port.error says why
    POLLED = 32            # ready, and its transport is to be served under the GIL

cdef enum:
    VECTOR = 128           # buffers a sendmsg(2); below every system's IOV_MAX
    SEND_LIMIT = 4194304   # bytes a channel, so that one endless write does not starve the others
    RECEIVE_LIMIT = 262144


cdef struct Port:
    int fd
    int state
    int native             # 0: its transport moves the bytes, under the GIL
    int wants              # of such a transport
    int prompt             # a write is queued whose end the caller waits for
    int index              # in the bank, -1 outside
    int events
    int error              # errno of FAILED
    unsigned char* input   # borrowed from the channel's bytearray
    Py_ssize_t begin       # unconsumed input is [begin, end)
    Py_ssize_t end
    Py_ssize_t capacity
    Py_buffer* buffers     # [released, count) are held, [first, count) not yet written
    Py_ssize_t released
    Py_ssize_t first
    Py_ssize_t count
    Py_ssize_t room
    Py_ssize_t offset      # bytes of buffers[first] that are written
    long long queued       # bytes since the start
    long long written

ctypedef Port* PortPointer

cdef struct Bank:
    pollfd* polls          # [0] is the wake pipe, [1 + n] is ports[n]
    PortPointer* ports
    int* ready             # indexes of ports with events after a turn
    int size
    int room
    int ready_count
    int woken              # any thread, atomic
    int polling            # any thread, atomic

ctypedef Bank* BankPointer


# -- under the GIL ------------------------------------------------------------------------------------------

cdef inline PortPointer new_port(int fd, bint native) except NULL:
    cdef PortPointer port = <PortPointer>calloc(1, sizeof(Port))
    if port == NULL:
        raise MemoryError()
    port.fd = fd
    port.native = native
    port.index = -1
    if fd >= 0:
        forebay_no_sigpipe(fd)
    return port


cdef inline void release_written(PortPointer port) noexcept:
    while port.released < port.first:
        PyBuffer_Release(&port.buffers[port.released])
        port.released += 1
    if port.released == port.count:
        port.released = port.first = port.count = 0


cdef inline void drop_from(PortPointer port, Py_ssize_t kept) noexcept:
    # Lets go of buffers[kept:], which must not have been touched by a send unless all are dropped.
    while port.count > kept and port.count > port.released:
        port.count -= 1
        PyBuffer_Release(&port.buffers[port.count])
    if port.count == port.released:
        port.released = port.first = port.count = 0
        port.offset = 0


cdef inline void free_port(PortPointer port) noexcept:
    if port != NULL:
        drop_from(port, 0)
        free(port.buffers)
        free(port)


cdef inline int make_slot(PortPointer port) except -1:
    # What is released leaves first, so that a connection that is never idle does not grow for ever.
    cdef Py_ssize_t room = port.released
    cdef Py_buffer* grown
    if port.released > 0:
        memmove(port.buffers, port.buffers + room, (port.count - room) * sizeof(Py_buffer))
        port.released = 0
        port.first -= room
        port.count -= room
    if 2 * port.count > port.room or port.room == 0:
        room = 2 * port.room if port.room else 8
        grown = <Py_buffer*>realloc(port.buffers, room * sizeof(Py_buffer))
        if grown == NULL:
            raise MemoryError()
        port.buffers = grown
        port.room = room
    return 0


cdef inline Py_ssize_t hold(PortPointer port, object data) except -1:
    # Queues a buffer without copying it; it stays exported until it is written or dropped.  Its size.
    if port.count == port.room:
        make_slot(port)
    PyObject_GetBuffer(data, &port.buffers[port.count], PyBUF_SIMPLE)
    cdef Py_ssize_t size = port.buffers[port.count].len
    if size == 0:
        PyBuffer_Release(&port.buffers[port.count])
    else:
        port.count += 1
    return size


cdef inline object unsent(PortPointer port, Py_ssize_t at):
    # buffers[first + at] less what is written of it; None past the end.  Such a port holds memoryviews only
    # (Channel.write sees to it): an object may export other bytes a second time.
    cdef Py_ssize_t index = port.first + at
    if index >= port.count:
        return None
    cdef object view = memoryview(<object>port.buffers[index].obj)
    return view[port.offset:] if at == 0 else view


cdef inline BankPointer new_bank(int wake_fd) except NULL:
    cdef BankPointer bank = <BankPointer>calloc(1, sizeof(Bank))
    if bank == NULL:
        raise MemoryError()
    if grow_bank(bank, 8) < 0:
        free_bank(bank)
        raise MemoryError()
    bank.polls[0].fd = wake_fd
    bank.polls[0].events = POLLIN
    return bank


cdef inline int grow_bank(BankPointer bank, int room) noexcept:
    cdef void* grown = realloc(bank.polls, (room + 1) * sizeof(pollfd))
    if grown == NULL:
        return -1
    bank.polls = <pollfd*>grown
    grown = realloc(bank.ports, room * sizeof(PortPointer))
    if grown == NULL:
        return -1
    bank.ports = <PortPointer*>grown
    grown = realloc(bank.ready, room * sizeof(int))
    if grown == NULL:
        return -1
    bank.ready = <int*>grown
    bank.room = room
    return 0


cdef inline void free_bank(BankPointer bank) noexcept:
    if bank != NULL:
        free(bank.polls)
        free(bank.ports)
        free(bank.ready)
        free(bank)


cdef inline int add_port(BankPointer bank, PortPointer port) except -1:
    if bank.size == bank.room and grow_bank(bank, 2 * bank.room) < 0:
        raise MemoryError()
    port.index = bank.size
    bank.ports[bank.size] = port
    bank.size += 1
    return port.index


cdef inline void remove_port(BankPointer bank, PortPointer port) noexcept:
    # The last one takes its place: the order of ports means nothing.
    bank.size -= 1
    bank.ports[port.index] = bank.ports[bank.size]
    bank.ports[port.index].index = port.index
    port.index = -1


cdef inline void set_wake_fd(BankPointer bank, int fd) noexcept:
    bank.polls[0].fd = fd


# -- any thread ---------------------------------------------------------------------------------------------

cdef inline void wake_bank(BankPointer bank, int fd) noexcept nogil:
    # A byte only for a thread that is about to sleep: the first to raise the flag writes it.
    if not forebay_swap(&bank.woken, 1) and forebay_load(&bank.polling):
        forebay_write_byte(fd)


# -- without the GIL ----------------------------------------------------------------------------------------

cdef inline void advance(PortPointer port, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t left
    port.written += size
    while size > 0:
        left = port.buffers[port.first].len - port.offset
        if size < left:
            port.offset += size
            return
        size -= left
        port.first += 1
        port.offset = 0


cdef inline int send_some(PortPointer port) noexcept nogil:
    # As much as the socket takes now; 0 or the errno that ends the connection.
    cdef iovec vector[VECTOR]
    cdef msghdr message
    cdef Py_ssize_t sent, asked, moved = 0
    cdef int used
    memset(&message, 0, sizeof(msghdr))
    message.msg_iov = vector
    while port.first < port.count and moved < SEND_LIMIT:
        asked = -port.offset
        used = 0
        while used < VECTOR and port.first + used < port.count:
            vector[used].iov_base = port.buffers[port.first + used].buf
            vector[used].iov_len = port.buffers[port.first + used].len
            asked += port.buffers[port.first + used].len
            used += 1
        vector[0].iov_base = <char*>vector[0].iov_base + port.offset
        vector[0].iov_len -= port.offset
        message.msg_iovlen = used
        sent = sendmsg(port.fd, &message, MSG_NOSIGNAL)
        if sent < 0:
            if errno == EINTR:
                continue
            return 0 if errno == EAGAIN else errno
        port.events |= WROTE
        advance(port, sent)
        moved += sent
        if sent < asked:
            return 0
    return 0


cdef inline int receive_some(PortPointer port) noexcept nogil:
    # One recv(2) into the free end of the input; 0 or the errno that ends the connection.
    cdef Py_ssize_t room = port.capacity - port.end
    cdef Py_ssize_t size
    if room == 0:
        return 0
    size = recv(port.fd, port.input + port.end, RECEIVE_LIMIT if room > RECEIVE_LIMIT else room, 0)
    if size > 0:
        port.end += size
        port.events |= READ
    elif size == 0:
        port.events |= ENDED
    elif errno != EAGAIN and errno != EINTR:
        return errno
    return 0


cdef inline void watch(BankPointer bank, int at, int asked) noexcept nogil:
    cdef short events = 0
    if asked & READABLE:
        events |= POLLIN
    if asked & WRITABLE:
        events |= POLLOUT
    bank.polls[at + 1].fd = bank.ports[at].fd
    bank.polls[at + 1].events = events
    bank.polls[at + 1].revents = 0


cdef inline int seen(BankPointer bank, int at) noexcept nogil:
    # An error or hang-up makes a socket ready for both: the call that follows says what it is.
    cdef short events = bank.polls[at + 1].revents
    if events & (POLLERR | POLLHUP | POLLNVAL):
        return READABLE | WRITABLE
    return (READABLE if events & POLLIN else 0) | (WRITABLE if events & POLLOUT else 0)


cdef inline void wait_ready(BankPointer bank, double timeout_ms) noexcept nogil:
    # Fills seen().  An interrupting signal ends the wait with nothing seen.
    cdef int at
    forebay_swap(&bank.polling, 1)
    if forebay_load(&bank.woken):
        timeout_ms = 0
    bank.polls[0].revents = 0
    if forebay_poll(bank.polls, bank.size + 1, timeout_ms) < 0:
        for at in range(bank.size + 1):
            bank.polls[at].revents = 0
    forebay_swap(&bank.polling, 0)
    if bank.polls[0].revents:
        forebay_drain(bank.polls[0].fd)
    forebay_swap(&bank.woken, 0)
