/* A lock of four bytes for the few lines around a queue or a result, taken and let go by who has the GIL.

   With a GIL nothing but the GIL itself orders who takes it, so that a flag will do; a holder may give the GIL up in
   between (rows are encoded without it, the garbage collector runs finalisers), and who finds it taken gives the GIL up
   too, so that the holder can go on.  It is held for microseconds: waiting is yielding, and short sleeps if that does
   not help (a sleep is twice as long as a window of rows takes).  It is not fair, since a queue of threads for a lock
   that is held for nanoseconds means a switch of threads each time; who holds it for long and takes it again at once
   gives way in between, or nobody else would ever find it free.  No lock of
   Python's was cheap enough: before 3.13 each pair reads the clock (50 ns, a third of a send), and one atomic exchange
   waits for the record's bytes to be stored (7 ns).  Without a GIL it is the interpreter's own PyMutex. */
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

#include <sched.h>
#include <time.h>

#define forebay_has_gil 1
typedef struct { short taken, wanted; } forebay_mutex; /* ``wanted``: how many wait */

static void forebay_mutex_wait(forebay_mutex *lock)
{
    struct timespec nap = {0, 50000};
    int round;
    lock->wanted++;
    for (round = 0; lock->taken; round++) {
        Py_BEGIN_ALLOW_THREADS
        if (round < 100)
            sched_yield();
        else
            nanosleep(&nap, NULL);
        Py_END_ALLOW_THREADS
    }
    lock->wanted--;
}

/* Until one who waits has it, for a tenth of a millisecond at most. */
static inline void forebay_mutex_give_way(forebay_mutex *lock)
{
    int round;
    if (!lock->wanted)
        return;
    Py_BEGIN_ALLOW_THREADS
    for (round = 0; round < 200; round++) {
        if (!__atomic_load_n(&lock->wanted, __ATOMIC_RELAXED) || __atomic_load_n(&lock->taken, __ATOMIC_RELAXED))
            break;
        sched_yield();
    }
    Py_END_ALLOW_THREADS
}

static inline void forebay_mutex_lock(forebay_mutex *lock)
{
    if (lock->taken)
        forebay_mutex_wait(lock);
    lock->taken = 1;
}

#define forebay_acquire(lock) forebay_mutex_lock(&(lock))
#define forebay_release(lock) ((void)((lock).taken = 0))
#define forebay_give_way(lock) forebay_mutex_give_way(&(lock))

#endif
#endif
