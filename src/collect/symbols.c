/* symbols: names of the native functions of a recording, once it has ended.
 * The collector's thread.
 * Must not know how stacks were sampled. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "sample/sample.h"
#include "tare.h"

#define PATIENCE_NS 20000000000u /* the program has ended: its user waits */

typedef struct naming {
    tare__stacks *stacks;
    tare__symbols *symbols;
    tare__arena *memory;
    tare__stack_symbol *rows; /* by object and offset */
    size_t n, room;
    const char *path; /* of the object that is being symbolized */
    size_t first;     /* its first row */
    uint64_t until_ns; /* then the rest stays without names */
    size_t late;       /* objects */
    int status;
} naming;

static uint32_t function_of(naming *naming, uint32_t kind, const char *name)
{
    tare__stack_function function = {.kind = kind, .name = name, .file = naming->path,
                                     .name_bytes = (uint32_t)strlen(name),
                                     .file_bytes = (uint32_t)strlen(naming->path)};
    return tare__stacks_function(naming->stacks, &function);
}

static tare__stack_symbol_frame *give_frames(naming *naming, tare__stack_symbol *row, size_t n)
{
    tare__stack_symbol_frame *frames = tare__arena_alloc(naming->memory, n * sizeof *frames);
    if (!frames) {
        naming->status = TARE_E_MEMORY;
        return NULL;
    }
    row->frames = frames;
    return frames;
}

/* They come innermost first. */
static void take_symbols(void *context, size_t i, const tare__symbol *symbols, size_t n)
{
    naming *naming = context;
    tare__stack_symbol *row = &naming->rows[naming->first + i];
    n = n < TARE__SYMBOL_DEPTH_MAX ? n : TARE__SYMBOL_DEPTH_MAX;
    tare__stack_symbol_frame *frames = n && symbols[n - 1].name[0] ? give_frames(naming, row, n) : NULL;
    for (size_t k = n; frames && k > 0; k--) {
        uint32_t function = symbols[k - 1].name[0] ? function_of(naming, TARE__FRAME_NATIVE, symbols[k - 1].name) : 0;
        if (function)
            frames[row->n++] = (tare__stack_symbol_frame){function, symbols[k - 1].line};
    }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------- */
typedef struct kernel_symbol {
    uint64_t address;
    char name[120];
} kernel_symbol;

/* "ffffffff81000000 T name [module]"; without permission, all addresses are 0. */
static bool parse_kernel(const char *line, kernel_symbol *out)
{
    unsigned long long address;
    char type;
    bool read = sscanf(line, "%llx %c %119s", &address, &type, out->name) == 3;
    out->address = address;
    return read && address && strchr("tTwW", type);
}

/* Offsets are sorted; symbols are not: the last one at or below each offset. */
static void name_kernel(naming *naming, const uint64_t *offsets, uint32_t n)
{
    FILE *file = fopen("/proc/kallsyms", "re");
    kernel_symbol *best = file ? calloc(n, sizeof *best) : NULL, now;
    char line[512];
    while (best && fgets(line, sizeof line, file)) {
        if (!parse_kernel(line, &now))
            continue;
        uint32_t low = 0, high = n;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (offsets[middle] < now.address)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < n && best[low].address < now.address)
            best[low] = now;
    }
    for (uint32_t i = 0; best && i < n; i++) {
        if (i && best[i].address < best[i - 1].address)
            best[i] = best[i - 1];
        tare__stack_symbol *row = &naming->rows[naming->first + i];
        uint32_t function = best[i].address ? function_of(naming, TARE__FRAME_KERNEL, best[i].name) : 0;
        tare__stack_symbol_frame *frame = function ? give_frames(naming, row, 1) : NULL;
        if (frame) {
            *frame = (tare__stack_symbol_frame){function, 0};
            row->n = 1;
        }
    }
    free(best);
    if (file)
        fclose(file);
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */
static void name_object(void *context, uint32_t object, const uint64_t *offsets, uint32_t n)
{
    naming *naming = context;
    const tare__stack_function *found = tare__stacks_function_at(naming->stacks, object);
    if (naming->status || !found ||
        !tare__array_fit(&naming->rows, &naming->room, naming->n + n, sizeof *naming->rows)) {
        naming->status = TARE_E_MEMORY;
        return;
    }
    if (tare__monotonic_ns() > naming->until_ns) {
        naming->late++;
        return;
    }
    naming->first = naming->n;
    for (uint32_t i = 0; i < n; i++)
        naming->rows[naming->n++] = (tare__stack_symbol){.object = object, .offset = offsets[i]};
    tare__error error;
    const char *id = tare__arena_copy(naming->memory, found->name, found->name_bytes);
    naming->path = tare__arena_copy(naming->memory, found->file, found->file_bytes);
    if (!id || !naming->path)
        naming->status = TARE_E_MEMORY;
    else if (found->kind == TARE__FRAME_KERNEL)
        name_kernel(naming, offsets, n);
    else
        tare__symbols_find(naming->symbols, naming->path, id, offsets, n, take_symbols, naming, &error);
}

static int seal_symbols(naming *naming, tare__squeezer *squeezer, tare__text *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < naming->n; i++)
        if (naming->rows[i].n)
            naming->rows[kept++] = naming->rows[i];
    int status = tare__stacks_seal(naming->stacks, squeezer, out);
    for (size_t i = 0; i < kept && !status; i += TARE__SYMBOL_ROWS_MAX) {
        size_t n = kept - i < TARE__SYMBOL_ROWS_MAX ? kept - i : TARE__SYMBOL_ROWS_MAX;
        status = tare__stack_symbols_seal(naming->rows + i, (uint32_t)n, squeezer, out);
    }
    return status;
}

int tare__symbolize(tare__stacks *stacks, bool own, tare__squeezer *squeezer, tare__text *out, tare__text *notes)
{
    naming naming = {.stacks = stacks, .memory = tare__arena_new(),
                     .until_ns = tare__monotonic_ns() + PATIENCE_NS};
    naming.symbols = naming.memory ? tare__symbols_new(own) : NULL;
    naming.status = naming.symbols ? tare__stacks_each_native(stacks, name_object, &naming) : TARE_E_MEMORY;
    int status = naming.status;
    if (!status && naming.n)
        status = seal_symbols(&naming, squeezer, out);
    if (naming.late)
        tare__text_format(notes, "native functions of %zu libraries have no names: finding names took too long\n",
                          naming.late);
    tare__symbols_free(naming.symbols);
    tare__arena_free(naming.memory);
    free(naming.rows);
    return status;
}
