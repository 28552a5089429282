/* Tests of unwind tables (src/sample/unwind*.c): rules and expressions written by hand, damaged and hostile files,
 * files that were replaced while they are mapped, lack of memory. One thread.
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

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base_failing.h"
#include "sample/unwind_inner.h"

/* ---- tables by hand -------------------------------------------------------------------------- */
typedef struct bytes {
    unsigned char at[4096];
    size_t n;
} bytes;

static void put(bytes *to, const void *data, size_t n)
{
    memcpy(to->at + to->n, data, n);
    to->n += n;
}

static void put32(bytes *to, uint32_t value)
{
    put(to, &value, 4);
}

/* Length, identity, content. Returns where it is. */
static size_t put_entry(bytes *to, uint32_t id, const void *content, size_t n)
{
    size_t at = to->n;
    put32(to, (uint32_t)(4 + n));
    put32(to, id);
    put(to, content, n);
    return at;
}

#define CODE 0x10000u /* where the function is */
/* CIE: version 1, "zR", code 1, data -8, return address 16, pointers absolute 8 bytes (0), CFA = r7 + 8, ra at -8. */
static const unsigned char common[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1};

static size_t put_fde(bytes *to, size_t cie, uint64_t length, const void *program, size_t n)
{
    unsigned char content[2048] = {0};
    uint64_t start = CODE;
    memcpy(content, &start, 8);
    memcpy(content + 8, &length, 8);
    content[16] = 0; /* bytes of augmentation */
    memcpy(content + 17, program, n);
    return put_entry(to, (uint32_t)(to->n + 4 - cie), content, 17 + n);
}

static size_t source(void *context, uint64_t address, void *out, size_t n)
{
    const bytes *from = context;
    if (address >= from->n)
        return 0;
    n = n < from->n - address ? n : from->n - address;
    memcpy(out, from->at + address, n);
    return n;
}

typedef struct compiled {
    bytes bytes;
    tare__unwind_rules rules;
    tare__unwind_rows rows;
    tare__unwind_function function;
    bool done;
} compiled;

static void compile_program(compiled *to, const void *program, size_t n)
{
    memset(to, 0, sizeof(*to));
    assert_true(tare__unwind_rules_new(&to->rules));
    put_entry(&to->bytes, 0xffffffff, "", 0); /* so that no CIE is at 0 */
    size_t cie = put_entry(&to->bytes, 0, common, sizeof(common));
    size_t fde = put_fde(&to->bytes, cie, 64, program, n);
    to->done = tare__unwind_compile(source, &to->bytes, fde, &to->rules, &to->rows, &to->function);
}

static const tare__unwind_rule *row(const compiled *of, uint32_t i)
{
    return i < of->function.n_rows ? tare__unwind_rule_at(&of->rules, of->rows.at[i].rule) : NULL;
}

static void end(compiled *of)
{
    tare__unwind_rules_free(&of->rules);
    free(of->rows.at);
}

static void rows_of_a_prologue(void **unused)
{
    (void)unused;
    /* +1: CFA 16, rbp at -16; +3: CFA is rbp; remember; +4: CFA rsp+8, rbp restored; restore; nop */
    static const unsigned char program[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x44, 0x0c, 7, 8, 0xc6,
                                            0x41, 0x0b, 0};
    compiled made;
    compile_program(&made, program, sizeof(program));
    assert_true(made.done);
    assert_int_equal(made.function.start, CODE);
    assert_int_equal(made.function.n_rows, 5);
    static const uint32_t starts[] = {0, 1, 4, 8, 9};
    static const uint8_t regs[] = {7, 7, 6, 7, 6};
    static const int32_t offsets[] = {8, 16, 16, 8, 16};
    static const uint32_t places[] = {1, 2, 2, 1, 2};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(made.rows.at[i].start, starts[i]);
        assert_int_equal(row(&made, i)->cfa_reg, regs[i]);
        assert_int_equal(row(&made, i)->cfa_value, offsets[i]);
        assert_int_equal(row(&made, i)->n_places, places[i]);
    }
    assert_int_equal(made.rules.n, 3); /* equal ones once */
    end(&made);
}

/* What follows an instruction that is not understood is unknown; what is before it is not. */
static void unknown_instructions_end_the_rows(void **unused)
{
    (void)unused;
    static const unsigned char program[] = {0x44, 0x0e, 16, 0x44, 0x3f, 0x0e, 24};
    compiled made;
    compile_program(&made, program, sizeof(program));
    assert_true(made.done);
    assert_int_equal(made.function.n_rows, 3);
    assert_int_equal(row(&made, 1)->cfa_value, 16);
    assert_null(row(&made, 2));
    assert_int_equal(made.rows.at[2].start, 8);
    end(&made);
}

static void hostile_programs(void **unused)
{
    (void)unused;
    static const struct {
        unsigned char program[24];
        size_t n;
    } programs[] = {
        {{0x04, 0xff, 0xff, 0xff, 0xff}, 5},                         /* far behind the end */
        {{0x0b}, 1},                                                 /* nothing is remembered */
        {{0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 10}, /* a CFA that does not fit */
        {{0x0f, 0xff, 0xff, 0x03, 0x77}, 5},                         /* an expression longer than the rest */
        {{0x86, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 13}, /* an endless number */
        {{0x0c, 0xff, 0x01, 8}, 4},                                  /* no such register */
        {{0x0d}, 1},                                                 /* without its operand */
        {{0x01, 0, 0, 0, 0, 0, 0, 0, 0}, 9},                         /* backwards */
        {{0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a}, 17},
    };
    for (size_t i = 0; i < TARE__COUNT_OF(programs); i++) {
        compiled made;
        compile_program(&made, programs[i].program, programs[i].n);
        assert_null(row(&made, made.function.n_rows - 1));
        end(&made);
    }
}

/* An FDE that is its own CIE, a CIE that is an FDE, one outside, and lengths without end. */
static void hostile_entries(void **unused)
{
    (void)unused;
    tare__unwind_rules rules;
    tare__unwind_rows rows = {0};
    tare__unwind_function function;
    assert_true(tare__unwind_rules_new(&rules));
    for (uint32_t id = 1; id < 200; id++) {
        bytes all = {.n = 0};
        uint64_t start, length, next;
        put_entry(&all, 0xffffffff, "", 0);
        size_t cie = put_entry(&all, 0, common, sizeof(common));
        size_t fde = put_fde(&all, cie, 64, "", 0);
        memcpy(all.at + fde + 4, &id, 4);
        bool right = id == fde + 4 - cie;
        assert_int_equal(tare__unwind_compile(source, &all, fde, &rules, &rows, &function), right);
        assert_int_equal(tare__unwind_range(source, &all, fde, &start, &length, &next), right);
    }
    for (uint32_t length = 0; length < 0x120; length++) { /* also larger than what there is */
        bytes all = {.n = 0};
        put_entry(&all, 0xffffffff, "", 0);
        size_t fde = put_fde(&all, put_entry(&all, 0, common, sizeof(common)), 64, "", 0);
        uint32_t claimed = length < 0x100 ? length : UINT32_MAX - (length - 0x100);
        memcpy(all.at + fde, &claimed, 4);
        bool made = tare__unwind_compile(source, &all, fde, &rules, &rows, &function);
        assert_int_equal(made, length == 21);
    }
    free(rows.at);
    tare__unwind_rules_free(&rules);
}

/* ---- rules on registers ---------------------------------------------------------------------- */
static const uint64_t words[8] = {11, 22, 33, 44, 55, 66, 77, 88};
#define STACK UINT64_C(0x7000)

static bool apply(const tare__unwind_rule *rule, const tare__unwind_rules *rules, tare__unwind_regs *regs,
                  uint64_t *cfa, bool *outermost)
{
    const tare__unwind_memory memory = {(const unsigned char *)words, STACK, sizeof(words), NULL};
    return tare__unwind_apply(rules, rule, &tare__unwind_x86_64, &memory, regs, cfa, outermost);
}

static tare__unwind_regs first_regs(void)
{
    tare__unwind_regs regs = {.known = (1u << 7) | (1u << 16) | (1u << 3)};
    regs.value[7] = STACK;
    regs.value[16] = CODE;
    regs.value[3] = STACK + 16;
    return regs;
}

static void registers_of_a_caller(void **unused)
{
    (void)unused;
    /* CFA rsp+32; rbx at -16, rbp undefined, r12 = rbx, r13 = CFA-8 */
    static const unsigned char program[] = {0x0e, 32, 0x83, 2, 0x07, 6, 0x09, 12, 3, 0x14, 13, 1};
    compiled made;
    uint64_t cfa;
    bool outermost;
    compile_program(&made, program, sizeof(program));
    tare__unwind_regs regs = first_regs();
    regs.known |= 1u << 6;
    assert_true(apply(row(&made, 0), &made.rules, &regs, &cfa, &outermost));
    assert_false(outermost);
    assert_int_equal(cfa, STACK + 32);
    assert_int_equal(regs.value[7], STACK + 32);
    assert_int_equal(regs.value[16], 44);
    assert_int_equal(regs.value[3], 33);
    assert_int_equal(regs.value[12], STACK + 16);
    assert_int_equal(regs.value[13], STACK + 24);
    assert_false(regs.known >> 6 & 1);
    end(&made);
    /* Without a return address: the outermost frame. */
    static const unsigned char last[] = {0x07, 16};
    compile_program(&made, last, sizeof(last));
    regs = first_regs();
    assert_false(apply(row(&made, 0), &made.rules, &regs, &cfa, &outermost));
    assert_true(outermost);
    end(&made);
    /* The CFA needs a register that is not known. */
    static const unsigned char framed[] = {0x0c, 6, 16};
    compile_program(&made, framed, sizeof(framed));
    regs = first_regs();
    assert_false(apply(row(&made, 0), &made.rules, &regs, &cfa, &outermost));
    assert_false(outermost);
    end(&made);
}

static void expressions(void **unused)
{
    (void)unused;
    static const struct {
        unsigned char code[24];
        size_t n;
        bool valid;
        uint64_t value;
    } cases[] = {
        {{0x77, 8}, 2, true, STACK + 8},                                   /* breg7 8 */
        {{0x77, 0x78}, 2, true, STACK - 8},
        {{0x92, 3, 4}, 3, true, STACK + 20},                               /* bregx */
        {{0x76, 0}, 2, false, 0},                                          /* not known */
        {{0x77, 8, 0x06}, 3, true, 22},                                    /* deref */
        {{0x77, 0xc0, 0, 0x06}, 4, false, 0},                              /* behind the copy */
        {{0x77, 0, 0x94, 1}, 4, true, 11},                                 /* deref_size */
        /* The PLT: breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus; ip ends with 0. */
        {{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 11, true, STACK + 8},
        {{0x77, 8, 0x80, 12, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 11, true, STACK + 16},
        {{0x09, 0xff, 0x08, 200, 0x22}, 5, true, 199},                     /* const1s, const1u, plus */
        {{0x0b, 0xfe, 0xff, 0x0a, 1, 1, 0x1e}, 7, true, (uint64_t)-514},   /* const2s, const2u, mul */
        {{0x0c, 0, 0, 0, 0x80, 0x0d, 0, 0, 0, 0x80, 0x22}, 11, true, 0},   /* const4u, const4s */
        {{0x10, 0xe5, 0x8e, 0x26}, 4, true, 624485},                       /* constu */
        {{0x11, 0x80, 0x7f}, 3, true, (uint64_t)-128},                     /* consts */
        {{0x31, 0x32, 0x33, 0x17, 0x1c, 0x1c}, 6, true, 4},                /* rot: 3 1 2; 1 - 2 = -1; 3 - -1 */
        {{0x31, 0x32, 0x16, 0x1c}, 4, true, 1},                            /* swap */
        {{0x31, 0x32, 0x14, 0x1c, 0x1c}, 5, true, 0},                      /* over: 1 2 1; 2 - 1; 1 - 1 */
        {{0x31, 0x32, 0x15, 1, 0x22, 0x22}, 6, true, 4},                   /* pick */
        {{0x35, 0x1f, 0x19, 0x20}, 4, true, ~UINT64_C(5)},                 /* neg, abs, not */
        {{0x3a, 0x33, 0x1d, 0x23, 100}, 5, true, 101},                     /* mod, plus_uconst */
        {{0x3a, 0x30, 0x1d}, 3, false, 0},                                 /* by 0 */
        {{0x3a, 0x30, 0x1b}, 3, false, 0},
        {{0x11, 0x78, 0x33, 0x1b}, 4, true, (uint64_t)-2},                 /* div is signed */
        {{0x11, 0x78, 0x31, 0x26}, 4, true, (uint64_t)-4},                 /* shra */
        {{0x31, 0x08, 64, 0x24}, 4, true, 0},                              /* shl by the width */
        {{0x32, 0x31, 0x2b, 0x28, 2, 0, 0x35, 0x35, 0x36}, 9, true, 6},    /* gt, bra over two */
        {{0x2f, 1, 0, 0x30, 0x37}, 5, true, 7},                            /* skip */
        {{0x2f, 0xfd, 0xff}, 3, false, 0},                                 /* skip to itself: ends */
        {{0x2f, 0x00, 0x10}, 3, false, 0},                                 /* out of the expression */
        {{0x22}, 1, false, 0},                                             /* of nothing */
        {{0x03, 0, 0, 0, 0, 0, 0, 0, 0}, 9, false, 0},                     /* addr: not relocated */
        {{0x0e, 1}, 2, false, 0},                                          /* truncated */
    };
    for (size_t i = 0; i < TARE__COUNT_OF(cases); i++) {
        unsigned char program[32] = {0x0f, (unsigned char)cases[i].n};
        compiled made;
        uint64_t cfa = 0;
        bool outermost;
        memcpy(program + 2, cases[i].code, cases[i].n);
        compile_program(&made, program, 2 + cases[i].n);
        tare__unwind_regs regs = first_regs();
        regs.value[7] = STACK;
        bool done = apply(row(&made, 0), &made.rules, &regs, &cfa, &outermost);
        if (cases[i].valid)
            assert_int_equal(cfa, cases[i].value);
        else
            assert_false(done);
        end(&made);
    }
}

/* ---- hostile files --------------------------------------------------------------------------- */
static int memory_file(const void *data, size_t n)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, n, 0), (ssize_t)n);
    return fd;
}

/* Everything that may be done with a file, at some of its addresses. */
static void use_file(int fd)
{
    tare__elf elf;
    tare__unwind *unwind = tare__unwind_new();
    assert_non_null(unwind);
    if (tare__elf_file(&elf, fd)) {
        uint32_t object = tare__unwind_object_of(unwind, &elf, "/x");
        tare__unwind_file *file = tare__unwind_file_at(unwind, object);
        bool has;
        for (uint64_t at = 0; file && file->usable && at < 64; at++)
            tare__unwind_table_find(unwind, &file->table, file->table.base + at * 997 - 20000, &has);
        for (size_t i = 0; file && file->usable && i < file->table.n_entries; i += 1 + file->table.n_entries / 64)
            tare__unwind_table_compile(unwind, &file->table, i);
    }
    tare__unwind_free(unwind);
}

static unsigned char *read_library(const char *pattern, size_t *n)
{
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    FILE *file = fopen(found.gl_pathv[0], "rb");
    unsigned char *data = malloc(4 << 20);
    *n = fread(data, 1, 4 << 20, file);
    fclose(file);
    globfree(&found);
    return data;
}

static uint64_t seed = 1;
static uint32_t random_number(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(seed >> 33);
}

#define LIBRARY "/usr/lib*/*/libcmocka.so.0"

static void truncated_and_damaged_files(void **unused)
{
    (void)unused;
    size_t n;
    unsigned char *data = read_library(LIBRARY, &n);
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof(header));
    for (size_t bytes = 0; bytes < n; bytes += bytes < 2048 ? 7 : 1009) {
        int fd = memory_file(data, bytes);
        use_file(fd);
        close(fd);
    }
    for (int i = 0; i < 1500; i++) { /* in the headers, the search table, .eh_frame */
        unsigned char *copy = malloc(n);
        memcpy(copy, data, n);
        tare__elf elf;
        int fd = memory_file(data, n);
        assert_true(tare__elf_file(&elf, fd));
        close(fd);
        const Elf64_Phdr *part = tare__elf_part(&elf, PT_GNU_EH_FRAME);
        size_t places[] = {0, 64, part->p_offset, part->p_offset + part->p_filesz};
        size_t sizes[] = {64, 64 + 56 * elf.n_parts, part->p_filesz, 4096};
        size_t at = (size_t)i % 4;
        for (unsigned k = 0; k < 1 + random_number() % 4; k++)
            copy[places[at] + random_number() % sizes[at]] = (unsigned char)random_number();
        fd = memory_file(copy, n);
        use_file(fd);
        close(fd);
        free(copy);
    }
    free(data);
}

/* A file of 4 TiB without content but headers that claim as much. */
static void sparse_file(void **unused)
{
    (void)unused;
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr parts[3];
        unsigned char search[12];
    } file = {.header = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_phoff = 64, .e_phnum = 3,
                         .e_phentsize = sizeof(Elf64_Phdr), .e_shoff = 1 << 20, .e_shnum = 60000,
                         .e_shentsize = sizeof(Elf64_Shdr)}};
    memcpy(file.header.e_ident, ELFMAG, SELFMAG);
    file.header.e_ident[EI_CLASS] = ELFCLASS64;
    file.header.e_ident[EI_DATA] = ELFDATA2LSB;
    uint64_t huge = UINT64_C(4) << 40;
    file.parts[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = huge, .p_memsz = UINT64_MAX};
    file.parts[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 64, .p_filesz = UINT64_MAX,
                                 .p_offset = UINT64_MAX - 10}; /* overlaps, and wraps around */
    file.parts[2] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME, .p_vaddr = offsetof(__typeof__(file), search)};
    static const unsigned char search[12] = {1, 0x1b, 3, 0x3b, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff};
    memcpy(file.search, search, sizeof(search));
    int fd = memory_file(&file, sizeof(file));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ftruncate(fd, i == 0 ? 0 : i == 1 ? (off_t)sizeof(file) : (off_t)huge), 0);
        assert_int_equal(pwrite(fd, &file, i ? sizeof(file) : 0, 0), i ? (ssize_t)sizeof(file) : 0);
        use_file(fd);
    }
    close(fd);
}

/* A file that stays open since its .eh_frame is large; then it is changed, and then truncated. */
static void changed_file(void **unused)
{
    (void)unused;
    enum { SEARCH = 0x200, FRAMES = 0x300, CODE_AT = 0x1000, BYTES = 2 << 20 };
    static unsigned char image[BYTES];
    Elf64_Ehdr header = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_phoff = 64, .e_phnum = 2,
                         .e_phentsize = sizeof(Elf64_Phdr)};
    Elf64_Phdr parts[2] = {{.p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = BYTES, .p_memsz = BYTES},
                           {.p_type = PT_GNU_EH_FRAME, .p_vaddr = SEARCH, .p_filesz = 64}};
    static const unsigned char search[8] = {1, 3, 3, 0x3b, FRAMES & 0xff, FRAMES >> 8};
    bytes frames = {.n = 0};
    uint32_t n = 3;
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    memcpy(image, &header, sizeof(header));
    memcpy(image + 64, parts, sizeof(parts));
    memcpy(image + SEARCH, search, 8);
    memcpy(image + SEARCH + 8, &n, 4);
    size_t cie = put_entry(&frames, 0, common, sizeof(common));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t start = CODE_AT + 64 * i;
        size_t fde = put_fde(&frames, cie, 64, "", 0);
        memcpy(frames.at + fde + 8, &start, 8);
        tare__unwind_entry entry = {(int32_t)start - SEARCH, (int32_t)(FRAMES + fde) - SEARCH};
        memcpy(image + SEARCH + 12 + i * sizeof(entry), &entry, sizeof(entry));
    }
    memcpy(image + FRAMES, frames.at, frames.n);
    int fd = memory_file(image, sizeof(image));
    tare__elf elf;
    bool has;
    tare__unwind *unwind = tare__unwind_new();
    unwind->cpu = &tare__unwind_x86_64;
    assert_true(tare__elf_file(&elf, fd));
    tare__unwind_file *file = tare__unwind_file_at(unwind, tare__unwind_object_of(unwind, &elf, "/x"));
    assert_true(file && file->usable && file->table.fd >= 0);
    assert_non_null(tare__unwind_table_find(unwind, &file->table, CODE_AT + 10, &has));
    struct timespec times[2] = {{1, 0}, {1, 0}};
    assert_int_equal(futimens(fd, times), 0);
    assert_null(tare__unwind_table_find(unwind, &file->table, CODE_AT + 70, &has)); /* may be another program by now */
    assert_true(has);
    assert_int_equal(ftruncate(fd, 100), 0);
    assert_null(tare__unwind_table_find(unwind, &file->table, CODE_AT + 140, &has));
    assert_non_null(tare__unwind_table_find(unwind, &file->table, CODE_AT + 20, &has)); /* compiled before */
    close(fd);
    tare__unwind_free(unwind);
}

static void no_process(void **unused)
{
    (void)unused;
    tare__unwind *unwind = tare__unwind_new();
    tare__unwind_process *process = tare__unwind_process_new(unwind, 0x7ffffff0);
    tare__unwind_regs regs = {.known = UINT64_MAX};
    tare__unwind_frame frames[4];
    bool whole = true;
    regs.value[16] = regs.value[32] = (uint64_t)(uintptr_t)no_process;
    for (int i = 0; i < 3; i++) {
        tare__unwind_process_changed(process);
        assert_int_equal(tare__unwind_stack(process, &regs, (const unsigned char *)words, 0, sizeof(words), frames, 4,
                                            &whole), 1);
        assert_false(whole);
        assert_int_equal(frames[0].object, 0);
    }
    tare__unwind_process_free(process);
    tare__unwind_free(unwind);
}

/* ---- replaced files -------------------------------------------------------------------------- */
static void copy_file(const char *from, const char *to)
{
    char data[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, data, sizeof(data))) > 0;)
        assert_int_equal(write(out, data, (size_t)n), n);
    close(in);
    close(out);
}

static uint32_t object_in(tare__unwind_process *process, uint64_t address, uint64_t *offset)
{
    tare__unwind_regs regs = {.known = (1u << 7) | (1u << 16)};
    tare__unwind_frame frame;
    bool whole;
#ifdef __aarch64__
    regs.known = UINT64_C(1) << 31 | UINT64_C(1) << 32;
    regs.value[32] = address;
#endif
    regs.value[16] = address;
    assert_int_equal(tare__unwind_stack(process, &regs, (const unsigned char *)words, 0, sizeof(words), &frame, 1,
                                        &whole), 1);
    *offset = frame.offset;
    return frame.object;
}

static uint32_t object_at(tare__unwind *unwind, uint64_t address, uint64_t *offset)
{
    tare__unwind_process *process = tare__unwind_process_new(unwind, getpid());
    assert_non_null(process);
    uint32_t object = object_in(process, address, offset);
    tare__unwind_process_free(process);
    return object;
}

/* Libraries that are loaded while the process is known; one in the place of another. */
static void loaded_libraries(void **unused)
{
    (void)unused;
    tare__unwind *unwind = tare__unwind_new();
    tare__unwind_process *process = tare__unwind_process_new(unwind, getpid());
    uint64_t offset;
    uint32_t own = object_in(process, (uint64_t)(uintptr_t)loaded_libraries, &offset);
    assert_true(own != 0);
    char path[] = "/tmp/tare-unwind-XXXXXX", copy[64]; /* one that is not loaded yet */
    glob_t found;
    assert_int_equal(glob(LIBRARY, 0, NULL, &found), 0);
    assert_non_null(mkdtemp(path));
    snprintf(copy, sizeof(copy), "%s/lib.so", path);
    copy_file(found.gl_pathv[0], copy);
    globfree(&found);
    void *library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    struct link_map *map;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    uint64_t address = (uint64_t)(uintptr_t)dlsym(library, "_fail");
    uint32_t object = 0;
    for (int tries = 0; tries < 10000 && !object; tries++, usleep(1000)) /* mappings are not read at every miss */
        object = object_in(process, address, &offset);
    assert_true(object != 0 && object != own);
    assert_int_equal(offset, address - map->l_addr);
    tare__unwind_process_changed(process);
    assert_int_equal(object_in(process, address, &offset), object);
    dlclose(library);
    for (int tries = 0; tries < 10000 && object; tries++, usleep(1000)) /* without being told */
        object = object_in(process, address, &offset);
    assert_int_equal(object, 0);
    unlink(copy);
    rmdir(path);
    tare__unwind_process_free(process);
    tare__unwind_free(unwind);
}

/* A library that was deleted, and replaced by another one, while it is mapped: its own tables are used. */
static void replaced_library(void **unused)
{
    (void)unused;
    char path[] = "/tmp/tare-unwind-XXXXXX", other[64], id[TARE__ELF_ID_BYTES];
    glob_t found;
    uint64_t offset;
    assert_int_equal(glob(LIBRARY, 0, NULL, &found), 0);
    assert_non_null(mkdtemp(path));
    snprintf(other, sizeof(other), "%s/lib.so", path);
    copy_file(found.gl_pathv[0], other);
    void *library = dlopen(other, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    struct link_map *map;
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    uint64_t address = (uint64_t)(uintptr_t)dlsym(library, "_fail");
    tare__elf elf;
    int fd = open(other, O_RDONLY);
    assert_true(tare__elf_file(&elf, fd));
    tare__elf_build_id(&elf, id);
    close(fd);
    for (int step = 0; step < 3; step++) { /* there, deleted, another one of this name */
        if (step == 1)
            unlink(other);
        if (step == 2)
            copy_file("/proc/self/exe", other);
        tare__unwind *unwind = tare__unwind_new();
        uint32_t object = object_at(unwind, address, &offset);
        assert_true(object != 0);
        assert_int_equal(offset, address - map->l_addr);
        assert_string_equal(tare__unwind_object_at(unwind, object)->build_id, id);
        assert_string_equal(tare__unwind_object_at(unwind, object)->path, other); /* without " (deleted)" */
        assert_true(tare__unwind_file_at(unwind, object)->usable);
        tare__unwind_free(unwind);
    }
    /* Without the right to open files by their mapping: from memory, which has the tables too. */
    tare__unwind *unwind = tare__unwind_new();
    tare__unwind_maps maps = {0};
    assert_int_equal(tare__unwind_maps_read(getpid(), &maps), 1);
    tare__unwind_mapping mapping = *tare__unwind_maps_find(&maps, address);
    mapping.end += 1 << 20; /* no such mapping, so no such file in map_files */
    tare__unwind_mapping_open(unwind, getpid(), &mapping);
    assert_true(mapping.object != 0);
    assert_string_equal(tare__unwind_object_at(unwind, mapping.object)->build_id, id);
    bool has;
    assert_non_null(tare__unwind_table_find(unwind, &tare__unwind_file_at(unwind, mapping.object)->table,
                                            address - map->l_addr, &has));
    /* The one that has the name now is the object of its own mappings only. */
    tare__unwind_mapping wrong = mapping;
    wrong.start += 1 << 30;
    wrong.end += 1 << 30;
    tare__unwind_mapping_open(unwind, getpid(), &wrong);
    assert_int_equal(wrong.object, 0);
    tare__unwind_maps_free(&maps);
    tare__unwind_free(unwind);
    dlclose(library);
    unlink(other);
    rmdir(path);
    globfree(&found);
}

/* One object for all its names and processes. */
static void objects_are_shared(void **unused)
{
    (void)unused;
    tare__unwind *unwind = tare__unwind_new();
    uint64_t offset;
    uint32_t first = object_at(unwind, (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "_fail"), &offset);
    char path[] = "/tmp/tare-unwind-XXXXXX";
    int fd = mkstemp(path);
    tare__elf elf;
    assert_true(first != 0);
    assert_int_equal(object_at(unwind, (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, "_fail"), &offset), first);
    unlink(path);
    copy_file(tare__unwind_object_at(unwind, first)->path, path);
    close(fd);
    fd = open(path, O_RDONLY);
    assert_true(tare__elf_file(&elf, fd));
    assert_int_equal(tare__unwind_object_of(unwind, &elf, path), first); /* the same build id */
    close(fd);
    unlink(path);
    tare__unwind_free(unwind);
}

/* ---- lack of memory -------------------------------------------------------------------------- */
static void each_allocation_fails(void **unused)
{
    (void)unused;
    size_t n;
    unsigned char *data = read_library(LIBRARY, &n);
    int fd = memory_file(data, n);
    free(data);
    bool done = false;
    for (long allowed = 0; !done; allowed++) {
        allocations_left = allowed;
        tare__elf elf;
        tare__unwind *unwind = tare__unwind_new();
        tare__unwind_process *process = unwind ? tare__unwind_process_new(unwind, getpid()) : NULL;
        uint32_t object = process && tare__elf_file(&elf, fd) ? tare__unwind_object_of(unwind, &elf, "/x") : 0;
        tare__unwind_file *file = object ? tare__unwind_file_at(unwind, object) : NULL;
        bool has;
        if (file && file->usable)
            for (size_t i = 0; i < file->table.n_entries; i += 50)
                tare__unwind_table_find(unwind, &file->table,
                                        file->table.base + (uint64_t)(int64_t)file->table.entries[i].start, &has);
        if (process) {
            tare__unwind_regs regs = {.known = UINT64_MAX};
            tare__unwind_frame frames[4];
            bool whole;
            for (unsigned i = 0; i < TARE__UNWIND_REGS; i++)
                regs.value[i] = (uint64_t)(uintptr_t)each_allocation_fails;
            tare__unwind_stack(process, &regs, (const unsigned char *)words, (uint64_t)(uintptr_t)words,
                               sizeof(words), frames, 4, &whole);
        }
        tare__unwind_process_free(process);
        tare__unwind_free(unwind);
        done = allocations_left > 0;
        allocations_left = -1;
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_prologue),
        cmocka_unit_test(unknown_instructions_end_the_rows),
        cmocka_unit_test(hostile_programs),
        cmocka_unit_test(hostile_entries),
        cmocka_unit_test(registers_of_a_caller),
        cmocka_unit_test(expressions),
        cmocka_unit_test(truncated_and_damaged_files),
        cmocka_unit_test(sparse_file),
        cmocka_unit_test(changed_file),
        cmocka_unit_test(no_process),
        cmocka_unit_test(loaded_libraries),
        cmocka_unit_test(replaced_library),
        cmocka_unit_test(objects_are_shared),
        cmocka_unit_test(each_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
