/* Sleeps until a word changes, and wakes threads that sleep for it.  Without a futex it sleeps for a moment. */
#ifndef FOREBAY_FUTEX_H
#define FOREBAY_FUTEX_H

#include <time.h>
#if defined(__linux__) && defined(__LP64__) /* elsewhere its time may be of another size */
#define FOREBAY_FUTEX
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Sleeps while ``*word`` equals ``seen``; true if ``nanoseconds`` (less than a second) passed first.  No GIL. */
static inline int forebay_futex_wait(int *word, int seen, long nanoseconds)
{
    struct timespec most = {0, nanoseconds};
#ifdef FOREBAY_FUTEX
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0) == -1 && errno == ETIMEDOUT;
#else
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    if (nanoseconds > 50000)
        most.tv_nsec = 50000;
    while (__atomic_load_n(word, __ATOMIC_RELAXED) == seen) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((now.tv_sec - begun.tv_sec) * 1000000000LL + now.tv_nsec - begun.tv_nsec >= nanoseconds)
            return 1;
        nanosleep(&most, NULL);
    }
    return 0;
#endif
}

/* Wakes ``count`` threads that sleep for the word, the longest sleeper first.  Without a futex they wake by time. */
static inline void forebay_futex_wake(int *word, int count)
{
#ifdef FOREBAY_FUTEX
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
#else
    (void)word, (void)count;
#endif
}

#endif
