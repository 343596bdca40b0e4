/* The processor's counter, where it counts at a constant rate: the invariant TSC of x86-64, a gigahertz or more.
   Reading it costs less than reading a clock. */
#ifndef FOREBAY_TICKS_H
#define FOREBAY_TICKS_H

#if defined(__x86_64__) && defined(__GNUC__)

#include <cpuid.h>
#include <x86intrin.h>

static inline unsigned long long forebay_ticks(void)
{
    return __rdtsc();
}

static inline int forebay_ticks_are_steady(void)
{
    unsigned int a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
}

#else

#define forebay_ticks() 0ULL
#define forebay_ticks_are_steady() 0

#endif
#endif
