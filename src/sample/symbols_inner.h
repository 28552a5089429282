/* symbols_inner: what the files symbols*.c share: symbol tables, and libdw with its declarations, so that its headers
 * are not needed.
 * One thread owns a handle; libdw has no locks.
 * Must not trust a symbol table. */
#ifndef TARE_SAMPLE_SYMBOLS_INNER_H
#define TARE_SAMPLE_SYMBOLS_INNER_H

#include "elf_image.h"
#include "symbols.h"

/* ---- symbol tables (symbols_table.c) ---------------------------------------------------------------------- */
typedef struct tare__symbols_entry { /* the best symbol so far for an offset */
    uint64_t start;
    uint64_t barrier;  /* a symbol without a size up to here is of other addresses */
    bool found, sized; /* sized: its size includes the offset; else it is the one before it in the section */
    const char *name;  /* in the arena */
} tare__symbols_entry;

/* Improves entries[i] for offsets[i], which are sorted, by the tables .symtab and .dynsym of a file. */
void tare__symbols_table(const tare__elf *elf, tare__arena *texts, const uint64_t *offsets, size_t n,
                         tare__symbols_entry *entries);

/* ---- names (symbols_demangle.c) --------------------------------------------------------------------------- */
typedef char *tare__demangle_function(const char *name, char *buffer, size_t *bytes, int *status);
typedef struct tare__demangler {
    tare__dl library;
    bool opened;
    struct {
        tare__demangle_function *demangle; /* __cxa_demangle */
    } api;
} tare__demangler;
/* The name of a function for one of its parts and copies that a compiler makes (`main.cold`, `find.constprop.0`). */
const char *tare__symbols_whole(tare__arena *texts, const char *name);
/* The name as in the source, in the arena; `name` itself if it is not mangled or cannot be demangled. */
const char *tare__symbols_demangle(tare__demangler *demangler, tare__arena *texts, const char *name);
void tare__demangler_close(tare__demangler *demangler);

/* ---- libdw (symbols_dwarf.c): declarations as in elfutils/libdw.h ------------------------------------------ */
typedef struct tare__dw_die {
    void *address, *unit, *abbreviation;
    long padding;
} tare__dw_die;

typedef struct tare__dw_attribute {
    unsigned code, form;
    unsigned char *value;
    void *unit;
} tare__dw_attribute;

typedef struct tare__dw_api {
    void *(*begin)(int fd, int command);
    int (*end)(void *dwarf);
    int (*get_units)(void *dwarf, void *unit, void **next, uint16_t *version, uint8_t *type, tare__dw_die *die,
                     tare__dw_die *split);
    ptrdiff_t (*ranges)(tare__dw_die *die, ptrdiff_t offset, uint64_t *base, uint64_t *start, uint64_t *end);
    int (*has_pc)(tare__dw_die *die, uint64_t address);
    int (*child)(tare__dw_die *die, tare__dw_die *out);
    int (*sibling)(tare__dw_die *die, tare__dw_die *out);
    int (*tag)(tare__dw_die *die);
    tare__dw_attribute *(*attribute)(tare__dw_die *die, unsigned name, tare__dw_attribute *out);
    tare__dw_attribute *(*integrate)(tare__dw_die *die, unsigned name, tare__dw_attribute *out);
    const char *(*string)(tare__dw_attribute *attribute);
    int (*number)(tare__dw_attribute *attribute, uint64_t *out);
    void *(*line_at)(tare__dw_die *unit, uint64_t address);
    const char *(*line_file)(void *line, uint64_t *time, uint64_t *bytes);
    int (*line_number)(void *line, int *out);
    int (*files)(tare__dw_die *unit, void **files, size_t *n);
    const char *(*file)(void *files, size_t i, uint64_t *time, uint64_t *bytes);
    const char *(*version)(const void *dwfl);
} tare__dw_api;

typedef struct tare__dw {
    tare__dl library;
    tare__dw_api api;
    bool opened; /* it was tried */
    tare__error error;
} tare__dw;

bool tare__dw_open(tare__dw *dw);
void tare__dw_close(tare__dw *dw);

typedef struct tare__dw_range { /* of a unit or of a function */
    uint64_t start, end;
    uint64_t widest_end; /* of this and all before it */
    tare__dw_die die;
} tare__dw_range;

typedef struct tare__dw_ranges {
    tare__dw_range *at; /* by start */
    size_t n, room;
} tare__dw_ranges;

typedef struct tare__dw_file { /* debug information of a file */
    const tare__dw_api *api;
    void *dwarf;
    tare__dw_ranges units, functions; /* functions of the unit that was used last */
    void *functions_of;               /* its address; NULL: none */
} tare__dw_file;

#define TARE__DW_CHAIN 64u
/* False: it has no debug information, or no memory. */
bool tare__dw_file_open(tare__dw_file *file, const tare__dw *dw, int fd);
void tare__dw_file_close(tare__dw_file *file);
/* Functions at an address as in tare__symbols_sink, names not demangled, valid until the file is closed. How many; 0
 * with `line` set if only file and line are known. */
size_t tare__dw_find(tare__dw_file *file, uint64_t address, tare__symbol chain[TARE__DW_CHAIN], tare__symbol *line);

#endif
