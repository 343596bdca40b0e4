/* CRC-32C (Castagnoli), as record format v2 signs its batches.
 *
 * Compiled in rather than taken from a package, because it runs inside sections that do not hold the GIL:
 * a Python call there would need it back for every batch.  Hardware instructions where the processor has
 * them (SSE 4.2, checked at run time; ARMv8 CRC, when the compiler targets it), else eight bytes a step
 * by table ("slicing-by-8").
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
__attribute__((target("sse4.2")))
static uint32_t forebay_crc32c_by_instruction(uint32_t crc, const unsigned char *data, size_t size) {
    uint64_t wide = crc;
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        wide = _mm_crc32_u64(wide, word);
        data += 8;
        size -= 8;
    }
    crc = (uint32_t)wide;
    while (size--)
        crc = _mm_crc32_u8(crc, *data++);
    return crc;
}
#elif defined(__ARM_FEATURE_CRC32)
static uint32_t forebay_crc32c_by_instruction(uint32_t crc, const unsigned char *data, size_t size) {
    while (size >= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __crc32cd(crc, word);
        data += 8;
        size -= 8;
    }
    while (size--)
        crc = __crc32cb(crc, *data++);
    return crc;
}
#endif

/* Continues `crc` (0 to begin with) over `size` bytes. */
static inline uint32_t forebay_crc32c(uint32_t crc, const unsigned char *data, size_t size) {
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~forebay_crc32c_by_instruction(crc, data, size);
#elif defined(__ARM_FEATURE_CRC32)
    return ~forebay_crc32c_by_instruction(crc, data, size);
#endif
    return ~forebay_crc32c_by_table(crc, data, size);
}

#endif
