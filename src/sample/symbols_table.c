/* symbols_table: functions by the symbol tables of an ELF file. The table is read once, in pieces, for all offsets; of
 * the names only those that are used.
 * Any thread: no state.
 * Must not trust any number in the file. */
#include "symbols_inner.h"

#include <stdlib.h>
#include <string.h>

#define PIECE 4096u /* symbols */
#define NAME_MAX_BYTES 16384u
/* Of all tables of a file, whose sections may overlap. */
#define TABLES_BYTES_MAX (UINT64_C(1) << 30)
#define NAMES_FEW (1u << 20)
#define NAMES_EACH 64u
#define OFFERS_MAX (UINT64_C(1) << 26) /* of a symbol to an offset */

typedef struct table {
    const tare__elf *elf;
    const tare__elf_sections *sections;
    const Elf64_Shdr *strings;
    tare__arena *texts;
    const uint64_t *offsets;
    size_t n;
    tare__symbols_entry *entries;
    uint64_t bytes_left, names_left, offers_left; /* to be read or done yet */
} table;

static bool is_code(const table *table, const Elf64_Sym *symbol)
{
    unsigned kind = ELF64_ST_TYPE(symbol->st_info);
    return (kind == STT_FUNC || kind == STT_GNU_IFUNC || kind == STT_NOTYPE) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_shndx < table->sections->n && symbol->st_name &&
           table->sections->at[symbol->st_shndx].sh_flags & SHF_EXECINSTR;
}

static const char *name_of(table *table, const Elf64_Sym *symbol)
{
    char name[NAME_MAX_BYTES];
    const Elf64_Shdr *strings = table->strings;
    if (symbol->st_name >= strings->sh_size || strings->sh_offset > table->elf->bytes ||
        strings->sh_size > table->elf->bytes - strings->sh_offset || !table->names_left)
        return NULL;
    table->names_left--;
    uint64_t left = strings->sh_size - symbol->st_name;
    size_t got, take = 256, n;
    for (;; take = sizeof(name)) { /* nearly all are short */
        take = left < take ? (size_t)left : take;
        if (tare__pread_all(table->elf->fd, name, take, strings->sh_offset + symbol->st_name, &got) != 0)
            return NULL;
        n = strnlen(name, got);
        if (n < got || got < take || take == left || take == sizeof(name))
            break;
    }
    /* Those of aarch64 that begin with $ mark data in code. */
    return n && name[0] != '$' ? tare__arena_copy(table->texts, name, n) : NULL;
}

/* Of several names of a function, the public one: `read` is better than `__read`, and that than `__GI___read`. */
static bool is_better_name(const char *name, const char *than)
{
    size_t dashes = strspn(name, "_"), others = strspn(than, "_");
    if (dashes != others)
        return dashes < others;
    return strlen(name) < strlen(than);
}

static void offer(table *table, size_t i, const Elf64_Sym *symbol, bool sized)
{
    table->offers_left -= table->offers_left > 0;
    tare__symbols_entry *entry = &table->entries[i];
    bool same = entry->found && entry->start == symbol->st_value && entry->sized == sized;
    if (entry->found && !same && (entry->sized != sized ? !sized : entry->start > symbol->st_value))
        return;
    const char *name = name_of(table, symbol);
    if (!name || (same && !is_better_name(name, entry->name)))
        return;
    *entry = (tare__symbols_entry){symbol->st_value, entry->barrier, true, sized, name};
}

static size_t first_at(const table *table, uint64_t address)
{
    size_t low = 0, high = table->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->offsets[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where a symbol with a size begins that does not include the offset, one before it without a size ends. */
static void set_barrier(const table *table, const Elf64_Sym *symbol)
{
    size_t i = first_at(table, symbol->st_value + symbol->st_size);
    if (i < table->n && symbol->st_value >= table->entries[i].barrier)
        table->entries[i].barrier = symbol->st_value;
}

/* A symbol without a size (assembler) may be of all following offsets of its section, until another one is closer. */
static void take_symbol(table *table, const Elf64_Sym *symbol)
{
    uint64_t end = symbol->st_value + symbol->st_size;
    if (!is_code(table, symbol) || end < symbol->st_value)
        return;
    size_t i = first_at(table, symbol->st_value);
    if (symbol->st_size) {
        for (; i < table->n && table->offsets[i] < end; i++)
            offer(table, i, symbol, true);
        set_barrier(table, symbol);
        return;
    }
    const Elf64_Shdr *section = &table->sections->at[symbol->st_shndx];
    for (; i < table->n && table->offsets[i] - section->sh_addr < section->sh_size; i++) {
        const tare__symbols_entry *entry = &table->entries[i];
        if (entry->found && (entry->sized || entry->start > symbol->st_value))
            return;
        offer(table, i, symbol, false);
    }
}

static void take_table(table *table, const Elf64_Shdr *section)
{
    Elf64_Sym *symbols = malloc(PIECE * sizeof(*symbols));
    size_t got;
    if (section->sh_entsize != sizeof(*symbols) || section->sh_link >= table->sections->n || !symbols ||
        section->sh_type == SHT_NOBITS || section->sh_offset > table->elf->bytes ||
        section->sh_size > table->elf->bytes - section->sh_offset || section->sh_size > table->bytes_left) {
        free(symbols);
        return;
    }
    table->strings = &table->sections->at[section->sh_link];
    table->bytes_left -= section->sh_size;
    for (uint64_t at = 0; at < section->sh_size; at += PIECE * sizeof(*symbols)) {
        uint64_t left = section->sh_size - at;
        size_t take = left < PIECE * sizeof(*symbols) ? (size_t)left : PIECE * sizeof(*symbols);
        if (tare__pread_all(table->elf->fd, symbols, take, section->sh_offset + at, &got) != 0 || got != take)
            break;
        for (size_t i = 0; i < take / sizeof(*symbols) && table->names_left && table->offers_left; i++)
            take_symbol(table, &symbols[i]);
    }
    free(symbols);
}

void tare__symbols_table(const tare__elf *elf, tare__arena *texts, const uint64_t *offsets, size_t n,
                         tare__symbols_entry *entries)
{
    tare__elf_sections sections;
    if (!tare__elf_sections_read(elf, &sections))
        return;
    table table = {.elf = elf, .sections = &sections, .texts = texts, .offsets = offsets, .n = n, .entries = entries,
                   .bytes_left = TABLES_BYTES_MAX, .names_left = NAMES_FEW + (uint64_t)NAMES_EACH * n,
                   .offers_left = OFFERS_MAX};
    for (size_t i = 0; i < sections.n; i++)
        if (sections.at[i].sh_type == SHT_SYMTAB || sections.at[i].sh_type == SHT_DYNSYM)
            take_table(&table, &sections.at[i]);
    uint64_t barrier = 0;
    for (size_t i = 0; i < n; i++) {
        barrier = entries[i].barrier > barrier ? entries[i].barrier : barrier;
        entries[i].found = entries[i].found && (entries[i].sized || entries[i].start > barrier);
    }
    tare__elf_sections_free(&sections);
}
