/* Tests of names of native functions (src/sample/symbols*.c) on this program: its own functions with their lines, the
 * order of answers, lack of memory. tests/e2e/test_symbols.py compares with other programs. One thread.
 * Must not need a compiler. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base_failing.h"
#include "sample/elf_image.h"
#include "sample/python_inner.h"
#include "sample/symbols.h"
#include "sample/symbols_inner.h"

static char own[4096], id[TARE__ELF_ID_BYTES];
static uint64_t bias;

static int __attribute__((noinline, used)) first_function(int x)
{
    return x + 1;
}

static int __attribute__((noinline, used)) second_function(int x)
{
    return x + 2;
}

static int find_bias(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes;
    (void)unused;
    bias = info->dlpi_addr; /* the first one is the program */
    return 1;
}

static int set_up(void **state)
{
    tare__elf elf;
    (void)state;
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    int fd = open(own, O_RDONLY | O_CLOEXEC);
    if (n <= 0 || fd < 0 || !tare__elf_file(&elf, fd))
        return -1;
    tare__elf_build_id(&elf, id);
    close(fd);
    dl_iterate_phdr(find_bias, NULL);
    return 0;
}

typedef struct answers {
    char names[4][128];
    unsigned lines[4], n;
    bool same_file;
} answers;

static void keep(void *context, size_t i, const tare__symbol *symbols, size_t n)
{
    answers *all = context;
    all->n++;
    if (!n)
        return;
    snprintf(all->names[i], sizeof(all->names[i]), "%s", symbols[n - 1].name);
    all->lines[i] = symbols[n - 1].line;
    all->same_file = strstr(symbols[n - 1].file, "sample_symbols.c") != NULL;
}

static void offsets_of_this_program(uint64_t offsets[4])
{
    offsets[0] = (uint64_t)(uintptr_t)second_function - bias; /* neither sorted nor different */
    offsets[1] = (uint64_t)(uintptr_t)first_function - bias;
    offsets[2] = offsets[0];
    offsets[3] = UINT64_MAX;
}

static void functions_of_this_program(void **unused)
{
    (void)unused;
    uint64_t offsets[4];
    answers found = {.n = 0};
    tare__error error;
    const char *version;
    tare__symbols *symbols = tare__symbols_new(true);
    offsets_of_this_program(offsets);
    assert_int_equal(tare__symbols_find(symbols, own, id, offsets, 4, keep, &found, &error), 0);
    assert_int_equal(found.n, 4);
    assert_string_equal(found.names[0], "second_function");
    assert_string_equal(found.names[1], "first_function");
    assert_string_equal(found.names[2], "second_function");
    assert_string_equal(found.names[3], "");
    if (tare__symbols_lines(symbols, &version, &error)) {
        assert_true(found.same_file);
        assert_int_equal(found.lines[0] - found.lines[1], 5);
    }
    tare__symbols_free(symbols);
}

static void foreign_objects_have_names_only(void **unused)
{
    (void)unused;
    uint64_t offsets[4];
    answers found = {.n = 0};
    tare__error error;
    tare__symbols *symbols = tare__symbols_new(false);
    offsets_of_this_program(offsets);
    assert_int_equal(tare__symbols_find(symbols, own, id, offsets, 4, keep, &found, &error), 0);
    assert_string_equal(found.names[1], "first_function");
    assert_int_equal(found.lines[1], 0);
    assert_true(tare__symbols_find(symbols, own, "00", offsets, 4, keep, &found, &error) < 0);
    assert_non_null(strstr(error.text, "was replaced"));
    assert_int_equal(found.n, 4); /* not called */
    assert_int_equal(tare__symbols_find(symbols, own, id, offsets, 0, keep, &found, &error), 0);
    tare__symbols_free(symbols);
}

/* libdw missing, or of another kind: names remain. */
static void without_libdw(void **unused)
{
    (void)unused;
    static const char *const libraries[] = {"/nonexistent/libdw.so.1", "libm.so.6"};
    for (size_t i = 0; i < TARE__COUNT_OF(libraries); i++) {
        uint64_t offsets[4];
        answers found = {.n = 0};
        tare__error error;
        const char *version;
        setenv("TARE_LIBDW", libraries[i], 1);
        tare__symbols *symbols = tare__symbols_new(true);
        offsets_of_this_program(offsets);
        assert_false(tare__symbols_lines(symbols, &version, &error));
        assert_true(error.text[0] != '\0');
        assert_int_equal(tare__symbols_find(symbols, own, id, offsets, 4, keep, &found, &error), 0);
        assert_string_equal(found.names[1], "first_function");
        assert_int_equal(found.lines[1], 0);
        tare__symbols_free(symbols);
    }
    unsetenv("TARE_LIBDW");
}

static void each_allocation_fails(void **unused)
{
    (void)unused;
    for (int mode = 0; mode < 2; mode++) {
        bool done = false;
        for (long allowed = 0; !done; allowed++) {
            uint64_t offsets[4];
            answers found = {.n = 0};
            tare__error error;
            offsets_of_this_program(offsets);
            allocations_left = allowed;
            tare__symbols *symbols = tare__symbols_new(mode);
            int status = symbols ? tare__symbols_find(symbols, own, id, offsets, 4, keep, &found, &error) : -1;
            done = allocations_left > 0;
            allocations_left = -1;
            assert_true(status == 0 ? found.n == 4 : found.n == 0);
            assert_true(!done || strcmp(found.names[1], "first_function") == 0);
            tare__symbols_free(symbols);
        }
    }
}

/* 65,000 symbol tables in the same 256 MiB, as a hole in a file: read one after another they take hours. */
#define HOLE (UINT64_C(256) << 20)
#define TABLES 65000u
static int overlapping_tables(uint64_t hole, const Elf64_Sym *symbol)
{
    Elf64_Shdr *sections = calloc(TABLES, sizeof(*sections));
    Elf64_Ehdr header = {.e_ident = ELFMAG, .e_type = ET_DYN, .e_phoff = sizeof(header), .e_phnum = 1,
                         .e_phentsize = sizeof(Elf64_Phdr), .e_shoff = hole, .e_shnum = TABLES, .e_shstrndx = 1,
                         .e_shentsize = sizeof(*sections)};
    Elf64_Phdr part = {.p_type = PT_LOAD, .p_flags = PF_X | PF_R, .p_filesz = 4096, .p_memsz = 4096};
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    assert_non_null(sections);
    for (size_t i = 2; i < TABLES; i++)
        sections[i] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = 8192, .sh_size = hole - 8192, .sh_link = 1,
                                   .sh_entsize = sizeof(Elf64_Sym), .sh_flags = SHF_EXECINSTR};
    sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = 4096, .sh_size = 64};
    int fd = memfd_create("tables", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, sections, TABLES * sizeof(*sections), (off_t)hole), TABLES * sizeof(*sections));
    assert_int_equal(pwrite(fd, &part, sizeof(part), sizeof(header)), sizeof(part));
    assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    for (uint64_t at = 8192; symbol && at + sizeof(*symbol) <= hole; at += sizeof(*symbol))
        assert_int_equal(pwrite(fd, symbol, sizeof(*symbol), (off_t)at), sizeof(*symbol));
    assert_int_equal(pwrite(fd, "\0name", 6, 4096), 6);
    free(sections);
    return fd;
}

static void tables_that_overlap_are_not_read_for_hours(void **unused)
{
    (void)unused;
    tare__python_symbols python;
    int fd = overlapping_tables(HOLE, NULL);
    assert_false(tare__python_elf_file(fd, 0x10000, &python));
    close(fd);
    /* In the second one each symbol is of all offsets. */
    Elf64_Sym symbol = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 2, .st_size = 4096};
    for (int k = 0; k < 2; k++) {
        static uint64_t offsets[1024];
        static tare__symbols_entry entries[1024];
        tare__elf elf;
        tare__arena *texts = tare__arena_new();
        fd = overlapping_tables(k ? UINT64_C(1) << 20 : HOLE, k ? &symbol : NULL);
        assert_non_null(texts);
        assert_true(tare__elf_file(&elf, fd));
        for (size_t i = 0; i < TARE__COUNT_OF(offsets); i++)
            offsets[i] = i;
        memset(entries, 0, sizeof(entries));
        tare__symbols_table(&elf, texts, offsets, TARE__COUNT_OF(offsets), entries);
        assert_int_equal(entries[7].found, k);
        tare__arena_free(texts);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_this_program),
        cmocka_unit_test(foreign_objects_have_names_only),
        cmocka_unit_test(without_libdw),
        cmocka_unit_test(each_allocation_fails),
        cmocka_unit_test(tables_that_overlap_are_not_read_for_hours),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
