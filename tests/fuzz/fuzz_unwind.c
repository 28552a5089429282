/* Fuzzes the readers of programs and libraries: any bytes as an ELF file, for unwind tables and for symbols; and, after
 * a first byte of 0, as .eh_frame with a stack and registers. One thread.
 * Must not need a process. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sample/symbols_inner.h"
#include "sample/unwind_inner.h"

static void use_tables(tare__unwind *unwind, const tare__elf *elf)
{
    uint32_t object = tare__unwind_object_of(unwind, elf, "/x");
    tare__unwind_file *file = tare__unwind_file_at(unwind, object);
    bool has;
    for (size_t i = 0; file && file->usable && i < file->table.n_entries && i < 64; i++)
        tare__unwind_table_find(unwind, &file->table,
                                file->table.base + (uint64_t)(int64_t)file->table.entries[i].start + i, &has);
}

static void use_symbols(const tare__elf *elf)
{
    uint64_t offsets[64];
    tare__symbols_entry entries[64];
    tare__arena *texts = tare__arena_new();
    memset(entries, 0, sizeof(entries));
    for (size_t i = 0; i < 64; i++)
        offsets[i] = i * i * 37;
    if (texts)
        tare__symbols_table(elf, texts, offsets, 64, entries);
    tare__arena_free(texts);
}

static void as_file(const uint8_t *data, size_t bytes)
{
    tare__elf elf;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    tare__unwind *unwind = tare__unwind_new();
    if (unwind && fd >= 0 && pwrite(fd, data, bytes, 0) == (ssize_t)bytes && tare__elf_file(&elf, fd)) {
        use_tables(unwind, &elf);
        use_symbols(&elf);
    }
    tare__unwind_free(unwind);
    if (fd >= 0)
        close(fd);
}

typedef struct part {
    const uint8_t *data;
    size_t bytes;
} part;

#define BASE 0x1000u
static size_t source(void *context, uint64_t address, void *out, size_t bytes)
{
    const part *from = context;
    if (address < BASE || address - BASE >= from->bytes)
        return 0;
    size_t left = from->bytes - (address - BASE), take = bytes < left ? bytes : left;
    memcpy(out, from->data + (address - BASE), take);
    return take;
}

/* Entries one after another, each compiled; its rules are used on registers that come from the same bytes. */
static void as_entries(const uint8_t *data, size_t bytes)
{
    tare__unwind_rules rules;
    tare__unwind_rows rows = {0};
    part part = {data, bytes};
    const tare__unwind_memory memory = {data, BASE, bytes, NULL};
    uint64_t start, length, next;
    if (tare__unwind_rules_new(&rules))
        for (uint64_t at = BASE; at < BASE + bytes; at = next) {
            tare__unwind_function function;
            tare__unwind_compile(source, &part, at, &rules, &rows, &function);
            tare__unwind_range(source, &part, at, &start, &length, &next);
            if (next <= at)
                break;
        }
    for (size_t i = 0; i < rules.n; i++) {
        tare__unwind_regs regs = {.known = i % 3 ? UINT64_MAX : 0x10080};
        uint64_t cfa;
        bool outermost;
        for (unsigned k = 0; k < TARE__UNWIND_REGS; k++)
            regs.value[k] = BASE + k * 8 + (k % 5 ? 0 : UINT64_MAX - 0x10000);
        tare__unwind_apply(&rules, rules.at[i], i % 2 ? &tare__unwind_aarch64 : &tare__unwind_x86_64, &memory, &regs,
                           &cfa, &outermost);
    }
    free(rows.at);
    tare__unwind_rules_free(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes && data[0] == 0)
        as_entries(data + 1, bytes - 1);
    else
        as_file(data, bytes);
    return 0;
}
