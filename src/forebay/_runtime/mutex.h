/* A lock of four bytes for the few lines around a queue or a result, taken and let go by who has the GIL.

   With a GIL nothing but the GIL itself orders who takes it, so that a flag will do; a holder may give the GIL up in
   between (rows are encoded without it, the garbage collector runs finalisers), and who finds it taken gives the GIL up
   too, so that the holder can go on, and sleeps until it is let go.  The road not taken is to yield the processor
   meanwhile: where others compress on all of them, a yield is a whole slice for one of those, or nothing, and is made
   again and again (an eighth of all the time).  It is not fair, since a queue of threads for a lock that is held for
   nanoseconds means a switch of threads each time; who holds it for long and takes it again at once gives way in
   between, or nobody else would ever find it free.  No lock of Python's was cheap enough: before 3.13 each pair reads
   the clock (50 ns, a third of a send), and one atomic exchange waits for the record's bytes to be stored (7 ns).
   Without a GIL it is the interpreter's own PyMutex. */
#ifndef FOREBAY_MUTEX_H
#define FOREBAY_MUTEX_H

#include <Python.h>

#ifdef Py_GIL_DISABLED

#define forebay_has_gil 0
typedef PyMutex forebay_mutex;
#define forebay_acquire(lock) PyMutex_Lock(&(lock))
#define forebay_release(lock) PyMutex_Unlock(&(lock))
#define forebay_give_way(lock) ((void)0) /* it is handed over to who waits for a millisecond */

#else

#include <limits.h>
#include "futex.h"

#define forebay_has_gil 1
typedef union {
    struct { short taken, wanted; }; /* ``wanted``: how many wait */
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
    forebay_futex_wake(&lock->word, INT_MAX); /* who gives way to us */
}

/* Until one who waits has it, for a tenth of a millisecond at most. */
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
