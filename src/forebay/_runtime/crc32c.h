/* CRC-32C (Castagnoli), as record format v2 signs its batches.
 *
 * Compiled in rather than taken from a package, because it runs inside sections that do not hold the GIL:
 * a Python call there would need it back for every batch.  Hardware instructions where the processor has
 * them (SSE 4.2, checked at run time; ARMv8 CRC, when the compiler targets it), three streams at a time, else eight
 * bytes a step by table ("slicing-by-8").
 */
#ifndef FOREBAY_CRC32C_H
#define FOREBAY_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

static uint32_t forebay_crc32c_table[8][256];
static int forebay_crc32c_ready = 0;

/* Idempotent: two threads that race here write the same values. */
static void forebay_crc32c_prepare(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
        forebay_crc32c_table[0][n] = crc;
    }
    for (int slice = 1; slice < 8; slice++)
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t previous = forebay_crc32c_table[slice - 1][n];
            forebay_crc32c_table[slice][n] = (previous >> 8) ^ forebay_crc32c_table[0][previous & 0xFF];
        }
    __atomic_store_n(&forebay_crc32c_ready, 1, __ATOMIC_RELEASE);
}

static uint32_t forebay_crc32c_by_table(uint32_t crc, const unsigned char *data, size_t size) {
    if (!__atomic_load_n(&forebay_crc32c_ready, __ATOMIC_ACQUIRE))
        forebay_crc32c_prepare();
    while (size >= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                              (uint32_t)data[3] << 24);
        crc = forebay_crc32c_table[7][low & 0xFF] ^ forebay_crc32c_table[6][(low >> 8) & 0xFF] ^
              forebay_crc32c_table[5][(low >> 16) & 0xFF] ^ forebay_crc32c_table[4][low >> 24] ^
              forebay_crc32c_table[3][data[4]] ^ forebay_crc32c_table[2][data[5]] ^
              forebay_crc32c_table[1][data[6]] ^ forebay_crc32c_table[0][data[7]];
        data += 8;
        size -= 8;
    }
    while (size--)
        crc = (crc >> 8) ^ forebay_crc32c_table[0][(crc ^ *data++) & 0xFF];
    return crc;
}

#if defined(__x86_64__)
#define FOREBAY_CRC_TARGET __attribute__((target("sse4.2")))
#define FOREBAY_CRC_WORD(crc, word) _mm_crc32_u64((crc), (word))
typedef uint64_t forebay_crc_register; /* what the instruction works on: the upper half is 0 */
#define FOREBAY_CRC_BYTE(crc, byte) _mm_crc32_u8((crc), (byte))
#elif defined(__ARM_FEATURE_CRC32)
#define FOREBAY_CRC_TARGET
#define FOREBAY_CRC_WORD(crc, word) __crc32cd((crc), (word))
typedef uint32_t forebay_crc_register;
#define FOREBAY_CRC_BYTE(crc, byte) __crc32cb((crc), (byte))
#endif

#if defined(FOREBAY_CRC_TARGET)
/* The instruction takes three cycles before its result is there, and one begins in each: three parts of the data at a
 * time are three times as fast as one.  What the first two have to be shifted by, to stand before the rest, is a table
 * for each length of a part. */
#define FOREBAY_CRC_LONG 1024
#define FOREBAY_CRC_SHORT 128
static uint32_t forebay_crc32c_shift[2][4][256];
static int forebay_crc32c_shift_ready = 0;

FOREBAY_CRC_TARGET
static void forebay_crc32c_prepare_shift(uint32_t table[4][256], size_t size) {
    uint32_t image[32]; /* of each bit, after `size` zero bytes */
    for (int bit = 0; bit < 32; bit++) {
        forebay_crc_register crc = (forebay_crc_register)1 << bit;
        for (size_t at = 0; at < size; at += 8)
            crc = FOREBAY_CRC_WORD(crc, 0);
        image[bit] = (uint32_t)crc;
    }
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t n = 0; n < 256; n++) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; bit++)
                if (n >> bit & 1)
                    crc ^= image[8 * byte + bit];
            table[byte][n] = crc;
        }
}

static inline void forebay_crc32c_prepare_shifts(void) {
    if (__atomic_load_n(&forebay_crc32c_shift_ready, __ATOMIC_ACQUIRE))
        return;
    forebay_crc32c_prepare_shift(forebay_crc32c_shift[0], FOREBAY_CRC_LONG);
    forebay_crc32c_prepare_shift(forebay_crc32c_shift[1], FOREBAY_CRC_SHORT);
    __atomic_store_n(&forebay_crc32c_shift_ready, 1, __ATOMIC_RELEASE);
}

static inline uint32_t forebay_crc32c_shifted(uint32_t table[4][256], uint32_t crc) {
    return table[0][crc & 0xFF] ^ table[1][crc >> 8 & 0xFF] ^ table[2][crc >> 16 & 0xFF] ^ table[3][crc >> 24];
}

static inline uint64_t forebay_crc32c_word(const unsigned char *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

/* Three parts of `part` bytes, one behind the other. */
FOREBAY_CRC_TARGET
static inline uint32_t forebay_crc32c_three(
    uint32_t crc, const unsigned char *data, const size_t part, uint32_t table[4][256]
) {
    forebay_crc_register first = crc, second = 0, third = 0;
    for (size_t at = 0; at < part; at += 8) {
        first = FOREBAY_CRC_WORD(first, forebay_crc32c_word(data + at));
        second = FOREBAY_CRC_WORD(second, forebay_crc32c_word(data + part + at));
        third = FOREBAY_CRC_WORD(third, forebay_crc32c_word(data + 2 * part + at));
    }
    crc = forebay_crc32c_shifted(table, (uint32_t)first) ^ (uint32_t)second;
    return forebay_crc32c_shifted(table, crc) ^ (uint32_t)third;
}

FOREBAY_CRC_TARGET
static uint32_t forebay_crc32c_by_instruction(uint32_t crc, const unsigned char *data, size_t size) {
    if (size >= 3 * FOREBAY_CRC_SHORT)
        forebay_crc32c_prepare_shifts();
    for (; size >= 3 * FOREBAY_CRC_LONG; size -= 3 * FOREBAY_CRC_LONG, data += 3 * FOREBAY_CRC_LONG)
        crc = forebay_crc32c_three(crc, data, FOREBAY_CRC_LONG, forebay_crc32c_shift[0]);
    for (; size >= 3 * FOREBAY_CRC_SHORT; size -= 3 * FOREBAY_CRC_SHORT, data += 3 * FOREBAY_CRC_SHORT)
        crc = forebay_crc32c_three(crc, data, FOREBAY_CRC_SHORT, forebay_crc32c_shift[1]);
    for (; size >= 8; size -= 8, data += 8)
        crc = (uint32_t)FOREBAY_CRC_WORD(crc, forebay_crc32c_word(data));
    while (size--)
        crc = FOREBAY_CRC_BYTE(crc, *data++);
    return crc;
}
#endif

#if defined(FOREBAY_CRC_TARGET)
static inline int forebay_crc32c_has_instruction(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return 1;
#endif
}
#endif

/* Continues `crc` (0 to begin with) over `size` bytes. */
static inline uint32_t forebay_crc32c(uint32_t crc, const unsigned char *data, size_t size) {
    crc = ~crc;
#if defined(FOREBAY_CRC_TARGET)
    if (forebay_crc32c_has_instruction())
        return ~forebay_crc32c_by_instruction(crc, data, size);
#endif
    return ~forebay_crc32c_by_table(crc, data, size);
}

/* Polynomials over GF(2) below the 32nd degree, the lowest power in the highest bit, as the checksum has them. */
static inline uint32_t forebay_crc32c_product(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (; a; a <<= 1) {
        product ^= b & (0u - (a >> 31));
        b = (b >> 1) ^ (0x82F63B78u & (0u - (b & 1u)));
    }
    return product;
}

/* `crc` less what `size` zero bytes behind it make of it; the powers are those of a zero byte, two, four ... */
static inline uint32_t forebay_crc32c_moved(uint32_t crc, size_t size) {
    static uint32_t powers[8 * sizeof(size_t)];
    static int ready = 0;
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        uint32_t power = 0x00800000u; /* x to the power of 8 */
        for (size_t bit = 0; bit < 8 * sizeof(size_t); bit++, power = forebay_crc32c_product(power, power))
            __atomic_store_n(&powers[bit], power, __ATOMIC_RELAXED);
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    }
    for (size_t bit = 0; size >> bit; bit++)
        if (size >> bit & 1)
            crc = forebay_crc32c_product(crc, powers[bit]);
    return crc;
}

#if defined(FOREBAY_CRC_TARGET)
/* A product is a hundred instructions and more, a look-up in the tables ten: they move by what a batch has. */
#define FOREBAY_CRC_NEAR ((size_t)1 << 15)
FOREBAY_CRC_TARGET
static uint32_t forebay_crc32c_moved_near(uint32_t crc, size_t size) {
    forebay_crc32c_prepare_shifts();
    for (; size >= FOREBAY_CRC_LONG; size -= FOREBAY_CRC_LONG)
        crc = forebay_crc32c_shifted(forebay_crc32c_shift[0], crc);
    for (; size >= FOREBAY_CRC_SHORT; size -= FOREBAY_CRC_SHORT)
        crc = forebay_crc32c_shifted(forebay_crc32c_shift[1], crc);
    for (; size >= 8; size -= 8)
        crc = (uint32_t)FOREBAY_CRC_WORD(crc, 0);
    while (size--)
        crc = FOREBAY_CRC_BYTE(crc, 0);
    return crc;
}
#endif

/* Of two pieces one behind the other, by the checksum of each: that of the first is moved by the second's bytes. */
static uint32_t forebay_crc32c_combined(uint32_t first, uint32_t second, size_t size) {
#if defined(FOREBAY_CRC_TARGET)
    if (forebay_crc32c_has_instruction())
        return forebay_crc32c_moved_near(
            forebay_crc32c_moved(first, size & ~(FOREBAY_CRC_NEAR - 1)), size & (FOREBAY_CRC_NEAR - 1)
        ) ^ second;
#endif
    return forebay_crc32c_moved(first, size) ^ second;
}

#endif
