# What the selector needs of C: one socket with what it writes and reads (Socket), all sockets of one selector
# (PollSet), poll(2), sendmsg(2), recv(2).  Interpreted twin, same names and results: _io.py.  Nothing here takes or needs the GIL,
# except where a function says so; the selector's thread owns everything but PollSet.woken and PollSet.polling.

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
        /* A full pipe wakes as well, and a closed one has no reader.  errno belongs to the interrupted code. */
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

cdef enum:                 # the events that a socket is polled for
    READABLE = 1
    WRITABLE = 2

cdef enum:                 # Socket.events
    OPENED = 1
    READ = 2
    WROTE = 4
    ENDED = 8              # the peer closed
    FAILED = 16            # Socket.error says why

cdef enum:
    VECTOR = 128           # buffers a sendmsg(2); below every system's IOV_MAX
    SEND_LIMIT = 4194304   # bytes a channel, so that one endless write does not starve the others
    RECEIVE_LIMIT = 262144


cdef struct Socket:
    int fd
    int state
    int prompt             # the caller waits for the end of a queued write, which is at ``due``
    int index              # in the poll set, -1 outside
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
    long long due          # the end of the first queued write that the caller waits for, if ``prompt``

ctypedef Socket* SocketPointer

cdef struct PollSet:
    pollfd* polls          # [0] is the wake pipe, [1 + n] is sockets[n]
    SocketPointer* sockets
    int* ready             # indexes of sockets with events after a turn
    int size
    int room
    int ready_count
    int woken              # any thread, atomic
    int polling            # any thread, atomic

ctypedef PollSet* PollSetPointer


# -- under the GIL ------------------------------------------------------------------------------------------

cdef inline SocketPointer new_socket(int fd) except NULL:
    cdef SocketPointer socket = <SocketPointer>calloc(1, sizeof(Socket))
    if socket == NULL:
        raise MemoryError()
    socket.fd = fd
    socket.index = -1
    if fd >= 0:
        forebay_no_sigpipe(fd)
    return socket


cdef inline void release_written(SocketPointer socket) noexcept:
    while socket.released < socket.first:
        PyBuffer_Release(&socket.buffers[socket.released])
        socket.released += 1
    if socket.released == socket.count:
        socket.released = socket.first = socket.count = 0


cdef inline void drop_from(SocketPointer socket, Py_ssize_t kept) noexcept:
    # Releases buffers[kept:].  No byte of these may have been sent, unless all are dropped.
    while socket.count > kept and socket.count > socket.released:
        socket.count -= 1
        PyBuffer_Release(&socket.buffers[socket.count])
    if socket.count == socket.released:
        socket.released = socket.first = socket.count = 0
        socket.offset = 0


cdef inline void free_socket(SocketPointer socket) noexcept:
    if socket != NULL:
        drop_from(socket, 0)
        free(socket.buffers)
        free(socket)


cdef inline int make_slot(SocketPointer socket) except -1:
    # Released buffers are removed first, so that the array of a connection that is never idle stays small.
    cdef Py_ssize_t room = socket.released
    cdef Py_buffer* grown
    if socket.released > 0:
        memmove(socket.buffers, socket.buffers + room, (socket.count - room) * sizeof(Py_buffer))
        socket.released = 0
        socket.first -= room
        socket.count -= room
    if 2 * socket.count > socket.room or socket.room == 0:
        room = 2 * socket.room if socket.room else 8
        grown = <Py_buffer*>realloc(socket.buffers, room * sizeof(Py_buffer))
        if grown == NULL:
            raise MemoryError()
        socket.buffers = grown
        socket.room = room
    return 0


cdef inline Py_ssize_t hold(SocketPointer socket, object data) except -1:
    # Queues a buffer without a copy; it stays exported until it is written or dropped.  Returns its size.
    if socket.count == socket.room:
        make_slot(socket)
    PyObject_GetBuffer(data, &socket.buffers[socket.count], PyBUF_SIMPLE)
    cdef Py_ssize_t size = socket.buffers[socket.count].len
    if size == 0:
        PyBuffer_Release(&socket.buffers[socket.count])
    else:
        socket.count += 1
    return size


cdef inline object unsent(SocketPointer socket, Py_ssize_t at):
    # The unwritten rest of buffers[first + at]; None past the end.
    cdef Py_ssize_t index = socket.first + at
    if index >= socket.count:
        return None
    cdef object view = memoryview(<object>socket.buffers[index].obj)
    return view[socket.offset:] if at == 0 else view


cdef inline PollSetPointer new_pollset(int wake_fd) except NULL:
    cdef PollSetPointer pollset = <PollSetPointer>calloc(1, sizeof(PollSet))
    if pollset == NULL:
        raise MemoryError()
    if grow_pollset(pollset, 8) < 0:
        free_pollset(pollset)
        raise MemoryError()
    pollset.polls[0].fd = wake_fd
    pollset.polls[0].events = POLLIN
    return pollset


cdef inline int grow_pollset(PollSetPointer pollset, int room) noexcept:
    cdef void* grown = realloc(pollset.polls, (room + 1) * sizeof(pollfd))
    if grown == NULL:
        return -1
    pollset.polls = <pollfd*>grown
    grown = realloc(pollset.sockets, room * sizeof(SocketPointer))
    if grown == NULL:
        return -1
    pollset.sockets = <SocketPointer*>grown
    grown = realloc(pollset.ready, room * sizeof(int))
    if grown == NULL:
        return -1
    pollset.ready = <int*>grown
    pollset.room = room
    return 0


cdef inline void free_pollset(PollSetPointer pollset) noexcept:
    if pollset != NULL:
        free(pollset.polls)
        free(pollset.sockets)
        free(pollset.ready)
        free(pollset)


cdef inline int add_socket(PollSetPointer pollset, SocketPointer socket) except -1:
    if pollset.size == pollset.room and grow_pollset(pollset, 2 * pollset.room) < 0:
        raise MemoryError()
    socket.index = pollset.size
    pollset.sockets[pollset.size] = socket
    pollset.size += 1
    return socket.index


cdef inline void remove_socket(PollSetPointer pollset, SocketPointer socket) noexcept:
    # The last socket takes its place: their order means nothing.
    pollset.size -= 1
    pollset.sockets[socket.index] = pollset.sockets[pollset.size]
    pollset.sockets[socket.index].index = socket.index
    socket.index = -1


cdef inline void set_wake_fd(PollSetPointer pollset, int fd) noexcept:
    pollset.polls[0].fd = fd


# -- any thread ---------------------------------------------------------------------------------------------

cdef inline void wake_pollset(PollSetPointer pollset, int fd) noexcept nogil:
    # Only the first call writes a byte, and only while a thread is about to sleep.
    if not forebay_swap(&pollset.woken, 1) and forebay_load(&pollset.polling):
        forebay_write_byte(fd)


# -- without the GIL ----------------------------------------------------------------------------------------

cdef inline void advance(SocketPointer socket, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t left
    socket.written += size
    while size > 0:
        left = socket.buffers[socket.first].len - socket.offset
        if size < left:
            socket.offset += size
            return
        size -= left
        socket.first += 1
        socket.offset = 0


cdef inline int send_some(SocketPointer socket) noexcept nogil:
    # As much as the socket takes now; 0 or the errno that ends the connection.
    cdef iovec vector[VECTOR]
    cdef msghdr message
    cdef Py_ssize_t sent, asked, moved = 0
    cdef int used
    memset(&message, 0, sizeof(msghdr))
    message.msg_iov = vector
    while socket.first < socket.count and moved < SEND_LIMIT:
        asked = -socket.offset
        used = 0
        while used < VECTOR and socket.first + used < socket.count:
            vector[used].iov_base = socket.buffers[socket.first + used].buf
            vector[used].iov_len = socket.buffers[socket.first + used].len
            asked += socket.buffers[socket.first + used].len
            used += 1
        vector[0].iov_base = <char*>vector[0].iov_base + socket.offset
        vector[0].iov_len -= socket.offset
        message.msg_iovlen = used
        sent = sendmsg(socket.fd, &message, MSG_NOSIGNAL)
        if sent < 0:
            if errno == EINTR:
                continue
            return 0 if errno == EAGAIN else errno
        socket.events |= WROTE
        advance(socket, sent)
        moved += sent
        if sent < asked:
            return 0
    return 0


cdef inline int receive_some(SocketPointer socket) noexcept nogil:
    # One recv(2) into the free end of the input; 0 or the errno that ends the connection.
    cdef Py_ssize_t room = socket.capacity - socket.end
    cdef Py_ssize_t size
    if room == 0:
        return 0
    size = recv(socket.fd, socket.input + socket.end, RECEIVE_LIMIT if room > RECEIVE_LIMIT else room, 0)
    if size > 0:
        socket.end += size
        socket.events |= READ
    elif size == 0:
        socket.events |= ENDED
    elif errno != EAGAIN and errno != EINTR:
        return errno
    return 0


cdef inline void watch(PollSetPointer pollset, int at, int asked) noexcept nogil:
    cdef short events = 0
    if asked & READABLE:
        events |= POLLIN
    if asked & WRITABLE:
        events |= POLLOUT
    pollset.polls[at + 1].fd = pollset.sockets[at].fd
    pollset.polls[at + 1].events = events
    pollset.polls[at + 1].revents = 0


cdef inline int seen(PollSetPointer pollset, int at) noexcept nogil:
    # An error or hang-up counts as ready for both: the next call on the socket says what happened.
    cdef short events = pollset.polls[at + 1].revents
    if events & (POLLERR | POLLHUP | POLLNVAL):
        return READABLE | WRITABLE
    return (READABLE if events & POLLIN else 0) | (WRITABLE if events & POLLOUT else 0)


cdef inline bint wait_ready(PollSetPointer pollset, double timeout_ms) noexcept nogil:
    # Fills seen().  An interrupting signal ends the wait with nothing seen.  False: it was over, or somebody woke it.
    cdef int at, found
    forebay_swap(&pollset.polling, 1)
    if forebay_load(&pollset.woken):
        timeout_ms = 0
    pollset.polls[0].revents = 0
    found = forebay_poll(pollset.polls, pollset.size + 1, timeout_ms)
    if found < 0:
        for at in range(pollset.size + 1):
            pollset.polls[at].revents = 0
    forebay_swap(&pollset.polling, 0)
    if pollset.polls[0].revents:
        forebay_drain(pollset.polls[0].fd)
    return not forebay_swap(&pollset.woken, 0) and found > 0
