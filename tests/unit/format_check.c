/* Tests of src/format/check.c: headers made and doubted, byte by byte.
 * One thread.
 * Must not know other modules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"

static void the_file_header_is_as_specified(void **state)
{
    (void)state;
    static const uint8_t expected[12] = {0x89, 'T', 'A', 'R', 'E', '\r', '\n', 0x1a, 1, 0, 4, 0};
    tare__file_header header;
    memset(&header, 0xEE, sizeof header);
    tare__file_header_make(&header);
    assert_int_equal(sizeof header, 16);
    assert_memory_equal(&header, expected, sizeof expected);
    assert_int_equal(header.crc, tare__crc32c(0, expected, sizeof expected));
}

static tare__block_header sealed(const char *payload)
{
    tare__block_header header = {.kind = TARE__BLOCK_END, .stream = 7};
    header.payload_bytes = (uint32_t)strlen(payload);
    tare__block_header_seal(&header, payload);
    return header;
}

static void a_sealed_header_is_right(void **state)
{
    (void)state;
    tare__block_header header = sealed("payload");
    assert_null(tare__block_header_check(&header));
    assert_memory_equal(&header, "TBLK", 4);
    assert_int_equal(header.payload_crc, tare__crc32c(0, "payload", 7));
}

static void any_flipped_bit_shows(void **state)
{
    (void)state;
    tare__block_header header = sealed("payload");
    for (unsigned bit = 0; bit < 8 * sizeof header; bit++) {
        tare__block_header damaged = header;
        ((uint8_t *)&damaged)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        const char *wrong = tare__block_header_check(&damaged);
        assert_non_null(wrong);
        assert_string_equal(wrong, bit < 32 ? "no block starts here" : "the block's header is damaged");
    }
}

static void a_payload_larger_than_any_is_refused(void **state)
{
    (void)state;
    tare__block_header header = sealed("");
    header.payload_bytes = TARE__BLOCK_PAYLOAD_MAX;
    header.header_crc = tare__crc32c(0, &header, offsetof(tare__block_header, header_crc));
    assert_null(tare__block_header_check(&header));
    header.payload_bytes++;
    header.header_crc = tare__crc32c(0, &header, offsetof(tare__block_header, header_crc));
    assert_non_null(tare__block_header_check(&header));
}

static void sessions(void **state)
{
    (void)state;
    static tare__session_page page;
    memcpy(page.magic, TARE__SESSION_MAGIC, sizeof page.magic);
    page.abi = TARE__RING_ABI;
    page.bytes = sizeof page;
    page.clock = TARE__CLOCK_TSC;
    assert_null(tare__session_check(&page, sizeof page));
    assert_non_null(tare__session_check(&page, sizeof page - 1));
    page.clock = 9;
    assert_string_equal(tare__session_check(&page, sizeof page), "a session with an unknown clock");
    page.clock = TARE__CLOCK_MONOTONIC;
    assert_null(tare__session_check(&page, sizeof page));
    page.abi++;
    assert_string_equal(tare__session_check(&page, sizeof page), "a session of another version of Tare");
    page.abi--;
    page.bytes--;
    assert_non_null(tare__session_check(&page, sizeof page));
    page.bytes++;
    page.magic[3] ^= 1;
    assert_string_equal(tare__session_check(&page, sizeof page), "not a session of Tare");
}

static tare__ring ring;
static uint64_t ring_bytes;

static void make_ring(void)
{
    memset(&ring, 0, sizeof ring);
    memcpy(ring.magic, TARE__RING_MAGIC, sizeof ring.magic);
    ring.abi = TARE__RING_ABI;
    ring.header_bytes = sizeof ring;
    ring.names_offset = (sizeof ring + 4095) / 4096 * 4096;
    ring.chunks_offset = (ring.names_offset + TARE__NAMES_BYTES + TARE__CHUNK_BYTES) / TARE__CHUNK_BYTES *
                         TARE__CHUNK_BYTES;
    ring.chunk_count = 3;
    ring_bytes = ring.chunks_offset + 3 * TARE__CHUNK_BYTES;
}

#define REFUSED_WITH(change)                                                                           \
    do {                                                                                               \
        make_ring();                                                                                   \
        change;                                                                                        \
        assert_non_null(tare__ring_check(&ring, ring_bytes));                                          \
    } while (0)

static void rings(void **state)
{
    (void)state;
    make_ring();
    assert_null(tare__ring_check(&ring, ring_bytes));
    REFUSED_WITH(ring.magic[0] = 't');
    REFUSED_WITH(ring.abi++);
    REFUSED_WITH(ring.header_bytes--);
    REFUSED_WITH(ring_bytes = sizeof ring - 1);
    REFUSED_WITH(ring_bytes--);
    REFUSED_WITH(ring.chunk_count = 4);
    REFUSED_WITH(ring.chunk_count = UINT32_MAX);
    REFUSED_WITH(ring.chunks_offset += 16);
    REFUSED_WITH(ring.chunks_offset = UINT64_MAX / TARE__CHUNK_BYTES * TARE__CHUNK_BYTES);
    REFUSED_WITH(ring.names_offset = 0);
    REFUSED_WITH(ring.names_offset = UINT64_MAX);
    REFUSED_WITH(ring.names_offset = ring.chunks_offset - TARE__NAMES_BYTES + 1);
    REFUSED_WITH(ring.chunk_count = TARE__RING_CHUNKS_MAX + 1; ring_bytes = UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_header_is_as_specified),
        cmocka_unit_test(a_sealed_header_is_right),
        cmocka_unit_test(any_flipped_bit_shows),
        cmocka_unit_test(a_payload_larger_than_any_is_refused),
        cmocka_unit_test(sessions),
        cmocka_unit_test(rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
