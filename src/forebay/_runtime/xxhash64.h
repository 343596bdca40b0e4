/* XXH64, written from its public specification (xxHash fast digest algorithm, XXH64): 32 bytes a step in four lanes.
 *
 * Compiled in rather than taken from a package, because it runs for each row of a table in a section without the GIL.
 * Its interpreted twin is xxhash64.py; both are held to published values and to Spark's own xxhash64().
 */
#ifndef FOREBAY_XXHASH64_H
#define FOREBAY_XXHASH64_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FOREBAY_XX1 0x9E3779B185EBCA87ull
#define FOREBAY_XX2 0xC2B2AE3D27D4EB4Full
#define FOREBAY_XX3 0x165667B19E3779F9ull
#define FOREBAY_XX4 0x85EBCA77C2B2AE63ull
#define FOREBAY_XX5 0x27D4EB2F165667C5ull

static inline uint64_t forebay_xx_left(uint64_t value, int bits) { return (value << bits) | (value >> (64 - bits)); }

static inline uint64_t forebay_xx_load(const unsigned char *from, int size) {
    uint64_t value = 0;
    memcpy(&value, from, (size_t)size);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static inline uint64_t forebay_xx_round(uint64_t lane, uint64_t input) {
    return forebay_xx_left(lane + input * FOREBAY_XX2, 31) * FOREBAY_XX1;
}

static inline uint64_t forebay_xx_merge(uint64_t hash, uint64_t lane) {
    return (hash ^ forebay_xx_round(0, lane)) * FOREBAY_XX1 + FOREBAY_XX4;
}

static uint64_t forebay_xxhash64(uint64_t seed, const unsigned char *data, size_t size) {
    const unsigned char *at = data, *end = data + size;
    uint64_t hash = seed + FOREBAY_XX5;
    if (size >= 32) {
        uint64_t a = seed + FOREBAY_XX1 + FOREBAY_XX2, b = seed + FOREBAY_XX2, c = seed, d = seed - FOREBAY_XX1;
        for (; end - at >= 32; at += 32) {
            a = forebay_xx_round(a, forebay_xx_load(at, 8));
            b = forebay_xx_round(b, forebay_xx_load(at + 8, 8));
            c = forebay_xx_round(c, forebay_xx_load(at + 16, 8));
            d = forebay_xx_round(d, forebay_xx_load(at + 24, 8));
        }
        hash = forebay_xx_left(a, 1) + forebay_xx_left(b, 7) + forebay_xx_left(c, 12) + forebay_xx_left(d, 18);
        hash = forebay_xx_merge(hash, a);
        hash = forebay_xx_merge(hash, b);
        hash = forebay_xx_merge(hash, c);
        hash = forebay_xx_merge(hash, d);
    }
    hash += size;
    for (; end - at >= 8; at += 8)
        hash = forebay_xx_left(hash ^ forebay_xx_round(0, forebay_xx_load(at, 8)), 27) * FOREBAY_XX1 + FOREBAY_XX4;
    if (end - at >= 4) {
        hash = forebay_xx_left(hash ^ (forebay_xx_load(at, 4) * FOREBAY_XX1), 23) * FOREBAY_XX2 + FOREBAY_XX3;
        at += 4;
    }
    for (; at < end; at++)
        hash = forebay_xx_left(hash ^ (*at * FOREBAY_XX5), 11) * FOREBAY_XX1;
    hash = (hash ^ (hash >> 33)) * FOREBAY_XX2;
    hash = (hash ^ (hash >> 29)) * FOREBAY_XX3;
    return hash ^ (hash >> 32);
}

#endif
