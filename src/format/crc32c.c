/* crc32c: the checksum of blocks. Pure function; any thread.
 * Must not know what it sums. */
#include <string.h>

#include "format.h"

/* Reflected polynomial of Castagnoli. */
#define POLYNOMIAL 0x82F63B78u

static uint32_t crc_bytewise(uint32_t crc, const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (POLYNOMIAL & -(crc & 1));
    }
    return crc;
}

#if defined(__x86_64__)
/* Three instructions in flight would be three times as fast; blocks are small and this is already far
 * from being what takes the time. */
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc, const uint8_t *data, size_t bytes)
{
    uint64_t wide = crc;
    for (; bytes >= 8; data += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; bytes; data++, bytes--)
        crc = __builtin_ia32_crc32qi(crc, *data);
    return crc;
}
#endif

uint32_t tare__crc32c(uint32_t crc, const void *data, size_t bytes)
{
#if defined(__x86_64__)
    if (tare__cpu_has_crc32())
        return ~crc_hardware(~crc, data, bytes);
#endif
    return ~crc_bytewise(~crc, data, bytes);
}
