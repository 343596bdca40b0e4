// Preloaded into a measured process (bench/arrival.py): when the last bytes came out of a socket, noted by the thread
// that took them, which needs no GIL for it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <time.h>

long long forebay_bench_last_arrival_ns;

ssize_t recv(int fd, void *to, size_t size, int flags)
{
    static ssize_t (*next)(int, void *, size_t, int);
    if (!next)
        next = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    ssize_t got = next(fd, to, size, flags);
    if (got > 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        __atomic_store_n(&forebay_bench_last_arrival_ns, now.tv_sec * 1000000000LL + now.tv_nsec, __ATOMIC_RELAXED);
    }
    return got;
}
