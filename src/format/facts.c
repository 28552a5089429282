/* facts: encodes what hooks into libraries know about the program as columns, and decodes it.
 * Owned by the calling thread.
 * Must not know what the keys mean. */
#include <string.h>

#include "format.h"
#include "tare.h"

enum { KEY, FILE_NAME, LINE, TEXT, TICKS, VALUE, COLUMNS };

static void fill_columns(const tare__fact *facts, uint32_t n, uint64_t first_ticks, uint8_t **at)
{
    for (uint32_t i = 0; i < n; i++) {
        const tare__fact *fact = &facts[i];
        at[KEY] = tare__varint_write(at[KEY], tare__name_or_lost(fact->key));
        at[FILE_NAME] = tare__varint_write(at[FILE_NAME], fact->file);
        at[LINE] = tare__varint_write(at[LINE], fact->line);
        at[TEXT] = tare__varint_write(at[TEXT], fact->text);
        at[TICKS] = tare__varint_write(at[TICKS], fact->ticks - first_ticks);
        memcpy(at[VALUE], &fact->value, sizeof fact->value);
        at[VALUE] += sizeof fact->value;
    }
}

int tare__facts_seal(const tare__fact *facts, uint32_t n, tare__squeezer *squeezer, tare__block_header *header,
                     tare__text *out)
{
    if (n > TARE__FACTS_MAX)
        return TARE_E_USAGE;
    size_t each = (size_t)n * TARE__VARINT_BYTES;
    uint8_t *room = tare__squeezer_room(squeezer, each * COLUMNS), *starts[COLUMNS], *ends[COLUMNS];
    if (!room)
        return TARE_E_MEMORY;
    header->kind = TARE__BLOCK_FACTS;
    header->count = n;
    header->first_ticks = n ? UINT64_MAX : 0;
    header->last_ticks = 0;
    for (uint32_t i = 0; i < n; i++) {
        header->first_ticks = facts[i].ticks < header->first_ticks ? facts[i].ticks : header->first_ticks;
        header->last_ticks = facts[i].ticks > header->last_ticks ? facts[i].ticks : header->last_ticks;
    }
    for (unsigned i = 0; i < COLUMNS; i++)
        starts[i] = ends[i] = room + i * each;
    fill_columns(facts, n, header->first_ticks, ends);
    return tare__columns_seal(squeezer, header, starts, ends, COLUMNS, out);
}

static bool read_fact(tare__reader *readers, const tare__block_header *header, tare__fact *fact)
{
    uint64_t numbers[VALUE];
    for (unsigned i = 0; i < VALUE; i++)
        numbers[i] = tare__read_varint(&readers[i]);
    for (unsigned i = KEY; i <= TEXT; i++)
        if (numbers[i] > UINT32_MAX)
            return false;
    if (numbers[KEY] == 0 || numbers[TICKS] > header->last_ticks - header->first_ticks ||
        (size_t)(readers[VALUE].end - readers[VALUE].at) < sizeof fact->value)
        return false;
    *fact = (tare__fact){.key = (uint32_t)numbers[KEY],
                         .file = (uint32_t)numbers[FILE_NAME],
                         .text = (uint32_t)numbers[TEXT],
                         .line = (uint32_t)numbers[LINE],
                         .ticks = header->first_ticks + numbers[TICKS]};
    memcpy(&fact->value, readers[VALUE].at, sizeof fact->value);
    readers[VALUE].at += sizeof fact->value;
    return true;
}

int tare__facts_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                     tare__fact *facts)
{
    tare__reader reader = {payload, payload + header->payload_bytes, false}, readers[COLUMNS];
    if (header->kind != TARE__BLOCK_FACTS || header->flags || header->count > TARE__FACTS_MAX ||
        header->last_ticks < header->first_ticks)
        return TARE_E_INPUT;
    int status = tare__columns_open(squeezer, &reader, readers, COLUMNS,
                                    (size_t)TARE__FACTS_MAX * TARE__VARINT_BYTES);
    if (status)
        return status;
    for (uint32_t i = 0; i < header->count; i++)
        if (!read_fact(readers, header, &facts[i]))
            return TARE_E_INPUT;
    return tare__columns_done(readers, COLUMNS) ? 0 : TARE_E_INPUT;
}
