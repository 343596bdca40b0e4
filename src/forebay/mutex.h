/* A lock of four bytes for the few lines around a queue or a result.

   From Python 3.13 on it is the interpreter's own PyMutex.  Before that no lock of Python's will do: PyThread_type_lock
   reads the clock and makes a system call's worth of detours at each pair (50 ns, a third of a send); this is one
   compare-and-swap (5 ns).  Who finds it taken gives the GIL up while it waits, so that the holder can go on, and takes
   the lock before it asks for the GIL again, never the other way round.  It is held for microseconds, so waiting is
   yielding and short sleeps. */
#ifndef FOREBAY_MUTEX_H
#define FOREBAY_MUTEX_H

#include <Python.h>

#if PY_VERSION_HEX >= 0x030d0000

typedef PyMutex forebay_mutex;
#define forebay_acquire(lock) PyMutex_Lock(&(lock))
#define forebay_release(lock) PyMutex_Unlock(&(lock))

#else

#include <sched.h>
#include <time.h>
typedef struct { int taken; } forebay_mutex;
#define FOREBAY_TRY(lock) (__atomic_exchange_n(&(lock)->taken, 1, __ATOMIC_ACQUIRE) == 0)
#define FOREBAY_CLEAR(lock) __atomic_store_n(&(lock)->taken, 0, __ATOMIC_RELEASE)

static inline void forebay_mutex_pause(int round)
{
    struct timespec nap = {0, 50000};
    if (round < 16)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

static void forebay_mutex_wait(forebay_mutex *lock)
{
    int round = 0;
    Py_BEGIN_ALLOW_THREADS
    while (!FOREBAY_TRY(lock)) {
        forebay_mutex_pause(round);
        round++;
    }
    Py_END_ALLOW_THREADS
}

static inline void forebay_mutex_lock(forebay_mutex *lock)
{
    if (!FOREBAY_TRY(lock))
        forebay_mutex_wait(lock);
}

#define forebay_acquire(lock) forebay_mutex_lock(&(lock))
#define forebay_release(lock) FOREBAY_CLEAR(&(lock))

#endif
#endif
