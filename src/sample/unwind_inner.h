/* unwind_inner: what the files unwind*.c share: rules, compiled rows, tables of objects, mappings.
 * One thread owns all of it.
 * Must not trust any object's file. */
#ifndef TARE_SAMPLE_UNWIND_INNER_H
#define TARE_SAMPLE_UNWIND_INNER_H

#include "base/base.h"
#include "elf_image.h"
#include "unwind.h"

/* ---- the processor ---------------------------------------------------------------------------------------- */
typedef struct tare__unwind_cpu {
    uint16_t machine;               /* e_machine */
    uint8_t ip, sp, fp;             /* DWARF numbers */
    uint64_t address_mask;          /* what a return address can have; the rest authenticates it */
} tare__unwind_cpu;
extern const tare__unwind_cpu tare__unwind_x86_64, tare__unwind_aarch64;

/* ---- rules (unwind_rules.c) ------------------------------------------------------------------------------- */
/* Where the caller's value of a register is. Registers without a place keep their value. */
typedef enum tare__unwind_kind {
    TARE__UNWIND_SAME,
    TARE__UNWIND_UNDEFINED,
    TARE__UNWIND_AT_CFA,        /* in memory at CFA + value */
    TARE__UNWIND_IS_CFA,        /* is CFA + value */
    TARE__UNWIND_REGISTER,      /* in register `value` */
    TARE__UNWIND_AT_EXPRESSION, /* in memory at the result of expression `value` */
    TARE__UNWIND_IS_EXPRESSION,
} tare__unwind_kind;

typedef struct tare__unwind_place {
    uint8_t reg, kind, zero[2];
    int32_t value;
} tare__unwind_place;

typedef enum tare__unwind_cfa { TARE__UNWIND_CFA_NONE, TARE__UNWIND_CFA_REGISTER, TARE__UNWIND_CFA_EXPRESSION
} tare__unwind_cfa;

/* All of a row but its address; without padding, since rules are compared as bytes. */
typedef struct tare__unwind_rule {
    uint8_t cfa, cfa_reg; /* CFA = reg + value, or the result of expression `value` */
    uint8_t ra;           /* the register with the return address */
    bool signal;          /* a signal frame: its caller was interrupted, it did not call */
    uint32_t n_places;
    int32_t cfa_value;
    tare__unwind_place places[];
} tare__unwind_rule;

#define TARE__UNWIND_NO_RULE UINT32_MAX
typedef struct tare__unwind_rules { /* each different one once: a program has a few thousand */
    tare__arena *memory;
    const tare__unwind_rule **at;
    size_t n, room;
    tare__index by_content;
    tare__intern *expressions;
} tare__unwind_rules;

bool tare__unwind_rules_new(tare__unwind_rules *rules);
void tare__unwind_rules_free(tare__unwind_rules *rules);
uint32_t tare__unwind_rule_add(tare__unwind_rules *rules, const tare__unwind_rule *rule); /* or NO_RULE */
int32_t tare__unwind_expression_add(tare__unwind_rules *rules, const unsigned char *code, size_t bytes); /* -1: no */
const tare__unwind_rule *tare__unwind_rule_at(const tare__unwind_rules *rules, uint32_t rule); /* NULL: none */

typedef struct tare__unwind_memory { /* the copy of the stack */
    const unsigned char *data;
    uint64_t address;
    size_t bytes;
    struct tare__unwind_beyond *beyond; /* memory outside of it; NULL: none */
} tare__unwind_memory;

bool tare__unwind_word(const tare__unwind_memory *memory, uint64_t address, uint64_t *out);
/* Registers of the caller: false if they cannot be known. *cfa is set, *outermost: there is no caller. */
bool tare__unwind_apply(const tare__unwind_rules *rules, const tare__unwind_rule *rule, const tare__unwind_cpu *cpu,
                        const tare__unwind_memory *memory, tare__unwind_regs *regs, uint64_t *cfa, bool *outermost);

/* ---- compiled tables (unwind_compile.c) ------------------------------------------------------------------- */
typedef struct tare__unwind_row {
    uint32_t start; /* bytes from the start of its function */
    uint32_t rule;  /* NO_RULE: unknown from here on */
} tare__unwind_row;

typedef struct tare__unwind_function { /* the range of an FDE */
    uint64_t fde, start, length; /* virtual addresses of the image */
    uint32_t first_row, n_rows;  /* 0 rows: it is damaged */
} tare__unwind_function;

/* Bytes of .eh_frame at a virtual address: how many there are, at most `bytes`. */
typedef size_t tare__unwind_source(void *context, uint64_t address, void *out, size_t bytes);

typedef struct tare__unwind_rows {
    tare__unwind_row *at;
    size_t n, room;
} tare__unwind_rows;

/* The FDE at this address. False: it is damaged, or no memory. */
bool tare__unwind_compile(tare__unwind_source *source, void *context, uint64_t fde, tare__unwind_rules *rules,
                          tare__unwind_rows *rows, tare__unwind_function *out);
/* Start and length of the function of the FDE at this address, without its rows. *next: of the next one. False: it is
 * no FDE (but a CIE, or damaged); *next 0: there is no next one. */
bool tare__unwind_range(tare__unwind_source *source, void *context, uint64_t fde, uint64_t *start, uint64_t *length,
                        uint64_t *next);
/* A pointer of this encoding. False: it does not fit, or the encoding is not supported. */
typedef struct tare__unwind_bytes {
    const unsigned char *at, *end;
    uint64_t address; /* of `at` */
} tare__unwind_bytes;
bool tare__unwind_pointer(tare__unwind_bytes *bytes, uint8_t encoding, uint64_t data, uint64_t *out);
bool tare__unwind_unsigned(tare__unwind_bytes *bytes, uint64_t *out); /* LEB128 */
bool tare__unwind_signed(tare__unwind_bytes *bytes, int64_t *out);
#define TARE__UNWIND_ENCODING_NONE 0xffu /* DW_EH_PE_omit */

/* ---- objects (unwind_object.c) ---------------------------------------------------------------------------- */
typedef struct tare__unwind_entry { /* of the search table, relative to `base` */
    int32_t start, fde;
} tare__unwind_entry;

typedef struct tare__unwind_table tare__unwind_table;
struct tare__unwind_table { /* of an object */
    tare__elf *elf;             /* NULL: everything that is needed is in `frames` */
    int fd;                     /* stays open for large ones; -1 */
    int64_t changed_s, changed_ns; /* time of change of that file */
    unsigned char *frames;      /* a copy of .eh_frame; NULL: read when needed */
    uint64_t frames_at, frames_bytes;
    uint64_t base;
    tare__unwind_entry *entries;
    size_t n_entries;
    tare__unwind_function *functions; /* compiled so far */
    size_t n_functions, functions_room;
    tare__index by_fde;
};

/* Reads the search table of an image, or makes it. `keep`: its file may stay open (a copy of the descriptor).
 * False: it has no unwind tables, or they are damaged, or no memory. */
bool tare__unwind_table_open(tare__unwind_table *table, const tare__elf *elf, bool keep);
void tare__unwind_table_close(tare__unwind_table *table);
/* The rule at a virtual address of the image. *has: a function with this address has a rule or is damaged. */
const tare__unwind_rule *tare__unwind_table_find(tare__unwind *unwind, tare__unwind_table *table, uint64_t address,
                                                 bool *has);
/* The start of the function with this address. False: no function has it; *start: the end of the one before it. */
bool tare__unwind_table_begin(tare__unwind *unwind, tare__unwind_table *table, uint64_t address, uint64_t *start);
/* Compiles the function of an entry. NULL: damaged. For tests and measurements, and for the function above. */
const tare__unwind_function *tare__unwind_table_compile(tare__unwind *unwind, tare__unwind_table *table,
                                                        size_t entry);

typedef struct tare__unwind_file { /* an object that is known */
    tare__unwind_object shown;
    tare__unwind_table table;
    bool usable;      /* it has a table */
    uint16_t machine;
    size_t n_parts;   /* its executable parts */
    Elf64_Phdr *parts;
} tare__unwind_file;

typedef struct tare__unwind_alias { /* a file that was opened */
    uint64_t device, inode, bytes;
    int64_t changed_s, changed_ns;
    uint32_t object; /* 0: no ELF image */
} tare__unwind_alias;

struct tare__unwind {
    const tare__unwind_cpu *cpu;
    tare__arena *texts;
    tare__unwind_rules rules;
    tare__unwind_rows rows;
    tare__unwind_file **files;
    size_t n_files, files_room;
    tare__unwind_alias *aliases;
    size_t n_aliases, aliases_room;
    tare__index by_file, by_id;
    unsigned open_files; /* descriptors kept */
};

/* The object of an open file, or of an image in the memory of a process. 0: it is none, or no memory. */
uint32_t tare__unwind_object_of(tare__unwind *unwind, const tare__elf *elf, const char *path);
tare__unwind_file *tare__unwind_file_at(const tare__unwind *unwind, uint32_t object); /* NULL: none */

/* ---- mappings (unwind_maps.c) ----------------------------------------------------------------------------- */
typedef struct tare__unwind_mapping { /* executable */
    uint64_t start, end, offset;
    uint64_t inode;
    uint32_t major, minor;
    uint32_t object;  /* 0: none */
    bool opened;      /* `object` was looked for */
    bool vdso;
    const char *path; /* "": none */
} tare__unwind_mapping;

typedef struct tare__unwind_maps {
    tare__unwind_mapping *at; /* by address */
    size_t n;
    char *text;               /* of /proc/PID/maps, with the paths */
    uint64_t hash;
} tare__unwind_maps;

/* Reads /proc/PID/maps. 1: the mappings are others now, 0: the same, -1: it cannot be read. */
int tare__unwind_maps_read(pid_t pid, tare__unwind_maps *maps);
void tare__unwind_maps_free(tare__unwind_maps *maps);
tare__unwind_mapping *tare__unwind_maps_find(const tare__unwind_maps *maps, uint64_t address); /* NULL: none */
/* Finds the object of a mapping. */
void tare__unwind_mapping_open(tare__unwind *unwind, pid_t pid, tare__unwind_mapping *mapping);

/* ---- memory and frames that are not in the copy (unwind_scan.c) -------------------------------------------- */
typedef struct tare__unwind_beyond {
    pid_t pid;
    tare__unwind_memory copy;
    uint64_t floor;   /* the stack pointer of the frame */
    uint64_t slot;    /* of the last return address in the copy; 0: none */
    unsigned reads;   /* for this stack */
    uint64_t address; /* of `data` */
    size_t bytes;
    unsigned char data[16384];
} tare__unwind_beyond;

void tare__unwind_beyond_start(tare__unwind_beyond *beyond, pid_t pid, const tare__unwind_memory *copy);
void tare__unwind_beyond_frame(tare__unwind_beyond *beyond, uint64_t cfa, uint64_t sp); /* of the next one */
bool tare__unwind_beyond_word(tare__unwind_beyond *beyond, uint64_t address, uint64_t *out);

typedef struct tare__unwind_call {
    uint64_t ip, target; /* return address, and what was called; 0: not known */
} tare__unwind_call;
#define TARE__UNWIND_CALLS 256u /* a power of two */

struct tare__unwind_known;
/* The caller's registers where `known` has no rule, or one that needs the frame pointer, which is not known. */
bool tare__unwind_by_call(tare__unwind_process *process, const tare__unwind_memory *memory,
                          const struct tare__unwind_known *known, tare__unwind_regs *regs, uint64_t *cfa,
                          bool *outermost);

/* ---- processes (unwind.c) --------------------------------------------------------------------------------- */
typedef struct tare__unwind_known { /* about an address */
    uint64_t address, offset;
    const tare__unwind_rule *rule; /* NULL: none */
    uint32_t object;
    bool mapped;   /* in code of a file or the vdso, else generated code or nothing */
    bool damaged;  /* there are tables, but they cannot be used here */
    bool sigreturn; /* aarch64: the kernel's return from a signal handler, which has no tables */
} tare__unwind_known;
#define TARE__UNWIND_CACHE 1024u /* a power of two */

struct tare__unwind_process {
    tare__unwind *unwind;
    pid_t pid;
    tare__unwind_maps maps;
    uint64_t read_ns, cost_ns; /* when the mappings were read, and how long it took */
    bool changed;                /* the mappings have to be read again */
    bool vdso_opened;
    uint32_t vdso; /* object; 0: none */
    uint64_t vdso_bias;
    tare__unwind_known cache[TARE__UNWIND_CACHE]; /* address 0: empty */
    tare__unwind_call calls[TARE__UNWIND_CALLS];  /* ip 0: empty */
    tare__unwind_beyond beyond;
};

#endif
