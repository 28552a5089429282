/* symbols: names of native functions, with file and line where there is debug information, of addresses in objects.
 * One thread owns a handle.
 * Must not use a file that is not the recorded one, nor the network (debuginfod). */
#ifndef TARE_SAMPLE_SYMBOLS_H
#define TARE_SAMPLE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef struct tare__symbol {
    const char *name; /* demangled; "": unknown */
    const char *file; /* "": unknown */
    uint32_t line;    /* 0: unknown */
    bool inlined;     /* into the next one */
} tare__symbol;

/* The functions at offsets[i]: inlined ones, innermost first, then the one that they are inlined into. n is 0 if
 * nothing is known. Valid during the call. */
typedef void tare__symbols_sink(void *context, size_t i, const tare__symbol *symbols, size_t n);

typedef struct tare__symbols tare__symbols;

/* `own`: the objects are of a recording of this user. Else only symbol tables are read, and names are not demangled:
 * libdw and the demangler of the C++ library are not made for hostile files, and a trace may name any file. libdw reads
 * only files of root and of this user, since root may record programs of others. NULL: no memory. */
tare__symbols *tare__symbols_new(bool own);
void tare__symbols_free(tare__symbols *symbols); /* NULL is allowed */

/* Finds the functions at `offsets` (virtual addresses of the image, as of tare__unwind_frame) in the file `path`,
 * which must have this build id. With "" it must have none, and be own. The sink is called once per offset, in any
 * order. 0, or a status with a message: the file cannot be opened, is another one, or is no ELF image. Then the sink
 * was not called. */
int tare__symbols_find(tare__symbols *symbols, const char *path, const char *build_id, const uint64_t *offsets,
                       size_t n, tare__symbols_sink *sink, void *context, tare__error *error);

/* Whether lines and inlined functions can be had: *version is that of libdw ("0.188"), valid while `symbols` is.
 * False: with the reason. */
bool tare__symbols_lines(tare__symbols *symbols, const char **version, tare__error *error);

#endif
