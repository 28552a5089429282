/* Shows the unwind rules that Tare compiles from a file, for comparison with readelf, and how much that takes.
 * usage: unwind rows FILE     a line for each function "START END", then a line for each row: "START CFA REG=PLACE…"
 *        unwind compile FILE  compiles all functions: their number, rows, rules, bytes, and the time
 * One thread. Must not correct anything. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sample/unwind_inner.h"

static void show_place(const tare__unwind_place *place)
{
    static const char *const kinds[] = {"s", "u", "c%+d", "v%+d", "r%d", "exp", "vexp"};
    printf(" %u=", place->reg);
    if (place->kind == TARE__UNWIND_AT_CFA || place->kind == TARE__UNWIND_IS_CFA)
        printf("%c%+d", kinds[place->kind][0], place->value);
    else if (place->kind == TARE__UNWIND_REGISTER)
        printf("r%d", place->value);
    else
        printf("%s", kinds[place->kind]);
}

static void show_rows(const tare__unwind *unwind, const tare__unwind_function *function)
{
    printf("%" PRIx64 " %" PRIx64 "\n", function->start, function->start + function->length);
    for (uint32_t i = 0; i < function->n_rows; i++) {
        const tare__unwind_row *row = &unwind->rows.at[function->first_row + i];
        const tare__unwind_rule *rule = tare__unwind_rule_at(&unwind->rules, row->rule);
        printf(" %" PRIx64, function->start + row->start);
        if (!rule)
            printf(" none");
        else if (rule->cfa == TARE__UNWIND_CFA_EXPRESSION)
            printf(" exp");
        else
            printf(" %u%+d", rule->cfa_reg, rule->cfa_value);
        for (uint32_t k = 0; rule && k < rule->n_places; k++)
            show_place(&rule->places[k]);
        printf("\n");
    }
}

int main(int count, char **words)
{
    tare__elf elf;
    int fd = count == 3 ? open(words[2], O_RDONLY | O_CLOEXEC) : -1;
    tare__unwind *unwind = tare__unwind_new();
    if (fd < 0 || !unwind || !tare__elf_file(&elf, fd)) {
        fprintf(stderr, "usage: unwind rows|compile ELF-FILE\n");
        if (fd >= 0)
            close(fd);
        tare__unwind_free(unwind);
        return 2;
    }
    unwind->cpu = elf.header.e_machine == EM_AARCH64 ? &tare__unwind_aarch64 : &tare__unwind_x86_64;
    uint64_t start = tare__monotonic_ns();
    uint32_t object = tare__unwind_object_of(unwind, &elf, words[2]);
    uint64_t opened = tare__monotonic_ns();
    tare__unwind_file *file = tare__unwind_file_at(unwind, object);
    size_t damaged = 0;
    if (!file || !file->usable) {
        fprintf(stderr, "%s: no unwind tables\n", words[2]);
        close(fd);
        tare__unwind_free(unwind);
        return 1;
    }
    for (size_t i = 0; i < file->table.n_entries; i++) {
        const tare__unwind_function *function = tare__unwind_table_compile(unwind, &file->table, i);
        damaged += !function;
        if (function && strcmp(words[1], "rows") == 0)
            show_rows(unwind, function);
    }
    uint64_t done = tare__monotonic_ns();
    if (strcmp(words[1], "compile") == 0) {
        size_t bytes = file->table.n_entries * sizeof(tare__unwind_entry) +
                       file->table.functions_room * sizeof(tare__unwind_function) +
                       unwind->rows.room * sizeof(tare__unwind_row) + tare__arena_bytes(unwind->rules.memory);
        printf("functions %zu\ndamaged %zu\nrows %zu\nrules %zu\nopen_us %" PRIu64 "\nopen_bytes %zu\ncompile_us %"
               PRIu64 "\nbytes %zu\nfile_kept %d\n", file->table.n_entries, damaged, unwind->rows.n,
               unwind->rules.n, (opened - start) / 1000,
               file->table.n_entries * sizeof(tare__unwind_entry) + (size_t)file->table.frames_bytes,
               (done - opened) / 1000, bytes, file->table.fd >= 0);
    }
    close(fd);
    tare__unwind_free(unwind);
    return 0;
}
