/* A lock of four bytes for the few lines around a queue or a result.  A thread takes and releases it with the GIL.

   The GIL orders the threads that take it, so a flag is enough.  The holder may give the GIL up in between: rows are
   encoded without it, and the garbage collector may run a finaliser.  A thread that finds the lock taken gives the GIL
   up too, so that the holder can go on, and sleeps until the lock is released.  The lock is not fair: fair order for a
   lock that is held for nanoseconds means a switch of threads each time.  So a thread that holds it for long, and takes
   it again at once, gives way in between.
   The roads not taken: to yield the processor instead of sleeping, which wastes time while other threads compress on
   all processors; a lock of Python's, which reads the clock before 3.13; an atomic exchange, which waits until the
   record's bytes are stored.  Without a GIL this is the interpreter's own PyMutex. */
#ifndef FOREBAY_MUTEX_H
#define FOREBAY_MUTEX_H

#include <Python.h>

#ifdef Py_GIL_DISABLED

#define forebay_has_gil 0
typedef PyMutex forebay_mutex;
#define forebay_acquire(lock) PyMutex_Lock(&(lock))
#define forebay_release(lock) PyMutex_Unlock(&(lock))
#define forebay_give_way(lock) ((void)0) /* PyMutex hands over to a thread that waits for a millisecond */

#else

#include <limits.h>
#include "futex.h"

#define forebay_has_gil 1
typedef union {
    struct { short taken, wanted; }; /* ``wanted``: how many threads wait */
    int word;
} forebay_mutex;

static void forebay_mutex_wait(forebay_mutex *lock)
{
    int seen;
    lock->wanted++;
    while (lock->taken) {
        seen = lock->word;
        Py_BEGIN_ALLOW_THREADS
        forebay_futex_wait(&lock->word, seen, 1000000);
        Py_END_ALLOW_THREADS
    }
    lock->wanted--;
    lock->taken = 1;
    forebay_futex_wake(&lock->word, INT_MAX); /* a thread that gives way */
}

/* Sleeps until a waiting thread has the lock, for a tenth of a millisecond at most. */
static inline void forebay_mutex_give_way(forebay_mutex *lock)
{
    int seen;
    if (!lock->wanted)
        return;
    seen = lock->word;
    Py_BEGIN_ALLOW_THREADS
    forebay_futex_wait(&lock->word, seen, 100000);
    Py_END_ALLOW_THREADS
}

static inline void forebay_mutex_lock(forebay_mutex *lock)
{
    if (lock->taken)
        forebay_mutex_wait(lock);
    else
        lock->taken = 1;
}

static inline void forebay_mutex_unlock(forebay_mutex *lock)
{
    lock->taken = 0;
    if (lock->wanted)
        forebay_futex_wake(&lock->word, INT_MAX);
}

#define forebay_acquire(lock) forebay_mutex_lock(&(lock))
#define forebay_release(lock) forebay_mutex_unlock(&(lock))
#define forebay_give_way(lock) forebay_mutex_give_way(&(lock))

#endif
#endif
