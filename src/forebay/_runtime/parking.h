/* Threads sleep until a turn wakes them.  Each turn wakes the thread that has slept longest. */
#ifndef FOREBAY_PARKING_H
#define FOREBAY_PARKING_H

#include "futex.h"

typedef struct {
    int turns, asleep;
} forebay_parking;

/* Sleeps until a turn after ``seen``; true if ``nanoseconds`` (less than a second) passed first.  No GIL. */
static inline int forebay_parking_park(forebay_parking *lot, int seen, long nanoseconds)
{
    int late;
    __atomic_add_fetch(&lot->asleep, 1, __ATOMIC_SEQ_CST);
    late = forebay_futex_wait(&lot->turns, seen, nanoseconds);
    __atomic_sub_fetch(&lot->asleep, 1, __ATOMIC_SEQ_CST);
    return late;
}

/* A thread that is about to sleep has counted itself in ``asleep``, or will see the new turn. */
static inline void forebay_parking_next(forebay_parking *lot)
{
    __atomic_add_fetch(&lot->turns, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&lot->asleep, __ATOMIC_SEQ_CST))
        forebay_futex_wake(&lot->turns, 1);
}

#define forebay_park(lot, seen, nanoseconds) forebay_parking_park(&(lot), seen, nanoseconds)
#define forebay_next_turn(lot) forebay_parking_next(&(lot))
#define forebay_asleep(lot) __atomic_load_n(&(lot).asleep, __ATOMIC_SEQ_CST)
#define forebay_turn_of(lot) __atomic_load_n(&(lot).turns, __ATOMIC_SEQ_CST)

#endif
