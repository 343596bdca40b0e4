// Preloaded into a measured process (bench/arrival.py): when the last bytes came out of a socket, noted by the thread
// that took them, which needs no GIL for it; and when the system had received them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

long long forebay_bench_last_arrival_ns;
long long forebay_bench_last_received_ns;

static long long read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// Bytes with the system's stamp of the last of them, on the clock of the other note; now where there is none.
static ssize_t stamped(int fd, void *to, size_t size, int flags, long long *received)
{
    char control[128];
    struct iovec part = {to, size};
    struct msghdr message;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = recvmsg(fd, &message, flags);
    *received = read_clock(CLOCK_MONOTONIC);
    if (got <= 0)
        return got;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one))
        if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
            *received -= read_clock(CLOCK_REALTIME) - (stamp.tv_sec * 1000000000LL + stamp.tv_nsec);
        }
    return got;
}

ssize_t recv(int fd, void *to, size_t size, int flags)
{
    static __thread int asked = -1;
    if (asked != fd) {
        // Of the connection that is read from here on; what has come before has no stamp.
        int on = 1;
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        asked = fd;
    }
    long long received;
    ssize_t got = stamped(fd, to, size, flags, &received);
    if (got > 0) {
        __atomic_store_n(&forebay_bench_last_received_ns, received, __ATOMIC_RELAXED);
        __atomic_store_n(&forebay_bench_last_arrival_ns, read_clock(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
    }
    return got;
}
