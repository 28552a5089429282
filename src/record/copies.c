/* copies: one owner of the state. A process may load the library twice (linked statically, and again by
 * a plugin); the first copy owns the state, later ones of the same ABI call it, others do not record.
 * Runs once, when a copy is loaded. Must not know what is recorded. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

#include "record.h"

#define NOTE_NAME "Tare"
#define NOTE_TYPE 1

static uint64_t home_aggregate_begin(void)
{
    return tare_aggregate_begin();
}
static void home_aggregate_end(tare_site *site, uint64_t start)
{
    tare_aggregate_end(site, start);
}
static uint64_t home_sampled_begin(tare_site *site)
{
    return tare_sampled_begin(site);
}
static void home_sampled_end(tare_site *site, uint64_t start)
{
    tare_sampled_end(site, start);
}

/* Referenced by the note below, through which other copies find it. */
__attribute__((visibility("hidden"), used)) tare__home tare__this_home = {
    .abi = TARE__RING_ABI,
    .bytes = sizeof(tare__home),
    .gate = &tare__gate,
    .begin = tare_begin,
    .end = tare_end,
    .next = tare_next,
    .aggregate_begin = home_aggregate_begin,
    .aggregate_end = home_aggregate_end,
    .sampled_begin = home_sampled_begin,
    .sampled_end = home_sampled_end,
    .mark = tare_mark,
    .counter = tare_counter,
    .number = tare_number,
    .indexed = tare__indexed,
    .complete = tare_complete,
    .fact = tare__fact_tell,
    .dynamic = tare__dynamic,
    .track = tare_track,
    .now = tare_now,
    .thread_name = tare_thread_name,
    .start = tare_start,
    .stop = tare_stop,
    .pause = tare_pause,
    .resume = tare_resume,
    .recording = tare_recording,
    .output = tare_output,
};

__asm__(".pushsection .note.tare, \"a\", @note\n"
        ".balign 4\n"
        ".long 5, 8, 1\n" /* sizes of name and descriptor, type */
        ".asciz \"Tare\"\n"
        ".balign 4\n"
        "0: .quad tare__this_home - 0b\n"
        ".popsection\n");

const tare__home *tare__forward;

static tare__home *home_in(const char *note, const char *end)
{
    while (end - note >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) header;
        memcpy(&header, note, sizeof header);
        const char *name = note + sizeof header;
        const char *descriptor = name + ((header.n_namesz + 3) & ~3u);
        const char *next = descriptor + ((header.n_descsz + 3) & ~3u);
        if (next > end || next <= note)
            return NULL;
        if (header.n_namesz == sizeof NOTE_NAME && memcmp(name, NOTE_NAME, sizeof NOTE_NAME) == 0 &&
            header.n_type == NOTE_TYPE && header.n_descsz == 8) {
            int64_t offset;
            memcpy(&offset, descriptor, sizeof offset);
            return (tare__home *)(void *)(uintptr_t)(descriptor + offset);
        }
        note = next;
    }
    return NULL;
}

static int find_home(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const char *notes = (const char *)(info->dlpi_addr + segment->p_vaddr);
        tare__home *home = home_in(notes, notes + segment->p_memsz);
        if (home && home != &tare__this_home && atomic_load(&home->claimed)) {
            *(tare__home **)found = home;
            return 1;
        }
    }
    return 0;
}

bool tare__home_claim(void)
{
    tare__home *other = NULL;
    dl_iterate_phdr(find_home, &other);
    if (!other) {
        atomic_store(&tare__this_home.claimed, 1);
        return true;
    }
    if (other->abi == TARE__RING_ABI && other->bytes == sizeof(tare__home))
        tare__forward = other;
    return false;
}
