// Preloaded into a measured process (bench/arrival.py): a log of its connections, written by the threads that send and
// receive, which need no GIL for it.  Entries are in the order in which they began; what is in them is read at the end.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { SENT = 1, READ = 2, HELD = 3 };
enum { UNKNOWN = 0, FOLLOWED = 1, LEFT_ALONE = 2 };
enum { STREAMS = 4096, LENGTH = 4, EVENTS = 64 };

// As bench/arrival.py reads it; the bytes follow, up to the next multiple of 8.
struct entry {
    int kind;
    int fd;
    int generation; // of the descriptor: another one is another connection
    int size;
    long long at;       // CLOCK_MONOTONIC in ns, after the call
    long long received; // READ: the system's stamp on the same clock, 0 without one; HELD: bytes since the connection
};

// A descriptor.  Generation: any thread, atomic; all else: whoever has the connection's turn.
struct stream {
    int state;
    int generation;
    int error; // met after some bytes had been read: for the next call
    int known; // bytes of the frame's length that were read
    unsigned char length[LENGTH];
    size_t left; // of a frame whose length is known
};

char *forebay_bench_log;
size_t forebay_bench_log_used; // atomic; beyond the end once it is full
int forebay_bench_log_full;

static size_t log_size;
static struct stream streams[STREAMS];
static int watcher = -1;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

__attribute__((constructor)) static void map_log(void)
{
    const char *asked = getenv("FOREBAY_BENCH_LOG_BYTES");
    log_size = asked ? strtoull(asked, NULL, 10) : (size_t)256 << 20;
    // A page costs memory once it is written.
    void *at = mmap(NULL, log_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        log_size = 0;
    else
        forebay_bench_log = at;
}

static long long read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void note(struct entry about, const struct iovec *parts)
{
    size_t whole = sizeof about + (((size_t)about.size + 7) & ~(size_t)7);
    size_t at = __atomic_fetch_add(&forebay_bench_log_used, whole, __ATOMIC_RELAXED);
    if (at + whole > log_size) {
        __atomic_store_n(&forebay_bench_log_full, 1, __ATOMIC_RELAXED);
        return;
    }
    char *to = forebay_bench_log + at + sizeof about;
    for (size_t left = about.size; left; parts++) {
        size_t size = parts->iov_len < left ? parts->iov_len : left;
        memcpy(to, parts->iov_base, size);
        to += size;
        left -= size;
    }
    memcpy(forebay_bench_log + at, &about, sizeof about);
}

// Notes how much a connection has received whenever that grows.  The stamp of a read alone is not enough: the system
// joins bytes that arrive while earlier ones wait, and gives all of them the later stamp.
static void *watch(void *unused)
{
    struct epoll_event found[EVENTS];
    struct sched_param first = {.sched_priority = 1};
    // Its looks must not wait behind the computing thread and the broker; where that is not allowed they are later.
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    for (;;) {
        int count = epoll_wait(watcher, found, EVENTS, -1);
        for (int at = 0; at < count; at++) {
            int fd = (int)(unsigned)found[at].data.u64, generation = (int)(found[at].data.u64 >> 32);
            struct tcp_info about;
            socklen_t size = sizeof about;
            memset(&about, 0, sizeof about);
            if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &about, &size))
                continue;
            long long now = read_clock(CLOCK_MONOTONIC);
            // Looked at last: a descriptor is given again only after its generation has changed.
            if (__atomic_load_n(&streams[fd].generation, __ATOMIC_SEQ_CST) == generation)
                note((struct entry){HELD, fd, generation, 0, now, (long long)about.tcpi_bytes_received}, NULL);
        }
    }
    return unused;
}

static void begin_watching(void)
{
    pthread_t thread;
    sigset_t all, before;
    watcher = epoll_create1(EPOLL_CLOEXEC);
    // Signals are for the process' own threads.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (watcher >= 0 && pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void begin(int fd, struct stream *stream)
{
    int type = 0, on = 1, before = errno;
    socklen_t size = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM)
        stream->state = LEFT_ALONE;
    else {
        struct epoll_event event = {EPOLLIN | EPOLLET, {.u64 = (unsigned)fd}};
        event.data.u64 |= (unsigned long long)stream->generation << 32;
        stream->state = FOLLOWED;
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        pthread_once(&watching, begin_watching);
        epoll_ctl(watcher, EPOLL_CTL_ADD, fd, &event);
    }
    errno = before;
}

// NULL for what is not followed.
static struct stream *stream_of(int fd)
{
    if (fd < 0 || fd >= STREAMS)
        return NULL;
    struct stream *stream = &streams[fd];
    if (stream->state == UNKNOWN)
        begin(fd, stream);
    return stream->state == FOLLOWED ? stream : NULL;
}

static void pass(struct stream *stream, const unsigned char *data, size_t size)
{
    while (size) {
        if (stream->known < LENGTH) {
            stream->length[stream->known++] = *data++;
            size--;
            if (stream->known == LENGTH) {
                unsigned length;
                memcpy(&length, stream->length, LENGTH);
                stream->left = ntohl(length);
            }
        }
        if (stream->known == LENGTH) {
            size_t part = size < stream->left ? size : stream->left;
            data += part;
            size -= part;
            stream->left -= part;
            if (!stream->left)
                stream->known = 0;
        }
    }
}

// How many bytes may be read without going past a frame's end; what recv(2) says where there are none.  Of what is no
// Kafka the first bytes are taken for the length of a frame that does not end.
static ssize_t within_frame(int fd, const struct stream *stream, int flags)
{
    if (stream->known == LENGTH)
        return (ssize_t)stream->left;
    unsigned char bytes[LENGTH];
    int missing = LENGTH - stream->known;
    ssize_t seen = recvfrom(fd, bytes, missing, flags | MSG_PEEK, NULL, NULL);
    if (seen < missing)
        return seen;
    unsigned char length[LENGTH];
    unsigned size;
    memcpy(length, stream->length, stream->known);
    memcpy(length + stream->known, bytes, missing);
    memcpy(&size, length, LENGTH);
    return seen + (ssize_t)ntohl(size);
}

// Reads of one frame at most, and notes it.
static ssize_t read_piece(int fd, struct stream *stream, void *to, size_t room, int flags)
{
    ssize_t most = within_frame(fd, stream, flags);
    if (most <= 0)
        return most;
    char control[128];
    struct iovec part = {to, (size_t)most < room ? (size_t)most : room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, flags);
    if (got <= 0)
        return got;
    struct entry about = {READ, fd, stream->generation, (int)got, read_clock(CLOCK_MONOTONIC), 0};
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
            about.received = about.at - (read_clock(CLOCK_REALTIME) - (stamp.tv_sec * 1000000000LL + stamp.tv_nsec));
        }
    pass(stream, to, got);
    note(about, &part);
    return got;
}

// As many bytes as without the library: frame by frame, only the first of which is waited for on a blocking socket.
ssize_t recv(int fd, void *to, size_t size, int flags)
{
    // Other flags (to peek, above all) are of no client here.
    struct stream *stream = size && !(flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL)) ? stream_of(fd) : NULL;
    if (!stream)
        return recvfrom(fd, to, size, flags, NULL, NULL);
    if (stream->error) {
        errno = stream->error;
        stream->error = 0;
        return -1;
    }
    int before = errno;
    size_t total = 0;
    while (total < size) {
        ssize_t got = read_piece(fd, stream, (char *)to + total, size - total, total ? flags | MSG_DONTWAIT : flags);
        if (got <= 0 && !total)
            return got;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            stream->error = errno;
        if (got <= 0)
            break;
        total += got;
    }
    errno = before;
    return (ssize_t)total;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct stream *stream = stream_of(fd);
    ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
    if (stream && sent > 0)
        note((struct entry){SENT, fd, stream->generation, (int)sent, read_clock(CLOCK_MONOTONIC), 0}, message->msg_iov);
    return sent;
}

int close(int fd)
{
    if (fd >= 0 && fd < STREAMS && streams[fd].state != UNKNOWN) {
        struct stream next = {.generation = streams[fd].generation};
        __atomic_fetch_add(&streams[fd].generation, 1, __ATOMIC_SEQ_CST);
        next.generation++;
        streams[fd] = next;
    }
    return (int)syscall(SYS_close, fd);
}
