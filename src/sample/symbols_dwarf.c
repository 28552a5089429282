/* symbols_dwarf: functions, inlined functions and lines by debug information, through libdw of elfutils (dlopen).
 * One thread owns a file; libdw has no locks.
 * Must not use the network: of libdw only what reads an open file is used, not its search for debug information. */
#include "symbols_inner.h"

#include <stdlib.h>
#include <string.h>

#define LIBRARY "libdw.so.1"
#define DEPTH_MAX 128u
#define FUNCTIONS_MAX (1u << 22)

#define SLOT(member) offsetof(tare__dw_api, member)
static const tare__dl_symbol symbols[] = {
    {"dwarf_begin", SLOT(begin), true},
    {"dwarf_end", SLOT(end), true},
    {"dwarf_get_units", SLOT(get_units), true},
    {"dwarf_ranges", SLOT(ranges), true},
    {"dwarf_haspc", SLOT(has_pc), true},
    {"dwarf_child", SLOT(child), true},
    {"dwarf_siblingof", SLOT(sibling), true},
    {"dwarf_tag", SLOT(tag), true},
    {"dwarf_attr", SLOT(attribute), true},
    {"dwarf_attr_integrate", SLOT(integrate), true},
    {"dwarf_formstring", SLOT(string), true},
    {"dwarf_formudata", SLOT(number), true},
    {"dwarf_getsrc_die", SLOT(line_at), true},
    {"dwarf_linesrc", SLOT(line_file), true},
    {"dwarf_lineno", SLOT(line_number), true},
    {"dwarf_getsrcfiles", SLOT(files), true},
    {"dwarf_filesrc", SLOT(file), true},
    {"dwfl_version", SLOT(version), false},
};

enum { TAG_CLASS = 0x02, TAG_BLOCK = 0x0b, TAG_STRUCTURE = 0x13, TAG_UNION = 0x17, TAG_INLINED = 0x1d,
       TAG_MODULE = 0x1e, TAG_CATCH = 0x25, TAG_FUNCTION = 0x2e, TAG_TRY = 0x32, TAG_NAMESPACE = 0x39 };
enum { AT_NAME = 0x03, AT_CALL_FILE = 0x58, AT_CALL_LINE = 0x59, AT_LINKAGE_NAME = 0x6e,
       AT_LINKAGE_NAME_OLD = 0x2007 };

bool tare__dw_open(tare__dw *dw)
{
    const char *given = getenv("TARE_LIBDW"), *name = given && *given ? given : LIBRARY;
    if (!dw->opened && tare__dl_open(&dw->library, name, symbols, TARE__COUNT_OF(symbols), &dw->api, &dw->error) != 0)
        dw->library.handle = NULL;
    dw->opened = true;
    return dw->library.handle != NULL;
}

void tare__dw_close(tare__dw *dw)
{
    tare__dl_close(&dw->library);
}

/* ---- ranges of addresses ---------------------------------------------------------------------------------- */
static bool add_ranges(const tare__dw_api *api, tare__dw_ranges *ranges, tare__dw_die *of, const tare__dw_die *die)
{
    uint64_t base, start, end;
    for (ptrdiff_t at = 0; (at = api->ranges(of, at, &base, &start, &end)) > 0;) {
        if (start >= end || !start) /* 0: discarded by the linker */
            continue;
        if (ranges->n >= FUNCTIONS_MAX ||
            !tare__array_fit(&ranges->at, &ranges->room, ranges->n + 1, sizeof(*ranges->at)))
            return false;
        ranges->at[ranges->n++] = (tare__dw_range){.start = start, .end = end, .die = *die};
    }
    return true;
}

TARE__ORDER(by_start, tare__dw_range, TARE__RISING(start) TARE__FALLING(end))

static void sort_ranges(tare__dw_ranges *ranges)
{
    uint64_t widest = 0;
    if (ranges->n)
        qsort(ranges->at, ranges->n, sizeof(*ranges->at), by_start);
    for (size_t i = 0; i < ranges->n; i++) {
        widest = ranges->at[i].end > widest ? ranges->at[i].end : widest;
        ranges->at[i].widest_end = widest;
    }
}

/* The last one that starts at the address or before and includes it: of nested ones the inner. */
static tare__dw_range *find_range(const tare__dw_ranges *ranges, uint64_t address)
{
    size_t low = 0, high = ranges->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->at[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && ranges->at[low - 1].widest_end > address)
        if (ranges->at[--low].end > address)
            return &ranges->at[low];
    return NULL;
}

/* ---- units and functions ---------------------------------------------------------------------------------- */
bool tare__dw_file_open(tare__dw_file *file, const tare__dw *dw, int fd)
{
    void *unit = NULL;
    tare__dw_die die, split;
    *file = (tare__dw_file){.api = &dw->api, .dwarf = dw->api.begin(fd, 0)};
    if (!file->dwarf)
        return false;
    while (dw->api.get_units(file->dwarf, unit, &unit, NULL, NULL, &die, &split) == 0) {
        /* With -gsplit-dwarf the ranges are here, and the functions in another file, if that is found. */
        if (!add_ranges(file->api, &file->units, &die, split.address ? &split : &die))
            break;
    }
    sort_ranges(&file->units);
    if (file->units.n)
        return true;
    tare__dw_file_close(file);
    return false;
}

void tare__dw_file_close(tare__dw_file *file)
{
    if (file->dwarf)
        file->api->end(file->dwarf);
    free(file->units.at);
    free(file->functions.at);
    *file = (tare__dw_file){0};
}

static bool may_have_functions(int tag)
{
    return tag == TAG_FUNCTION || tag == TAG_NAMESPACE || tag == TAG_MODULE || tag == TAG_CLASS ||
           tag == TAG_STRUCTURE || tag == TAG_UNION || tag == TAG_BLOCK;
}

static void add_functions(tare__dw_file *file, tare__dw_die *parent, unsigned depth)
{
    tare__dw_die die;
    if (depth == DEPTH_MAX || file->api->child(parent, &die) != 0)
        return;
    do {
        int tag = file->api->tag(&die);
        if (tag == TAG_FUNCTION && !add_ranges(file->api, &file->functions, &die, &die))
            return;
        if (may_have_functions(tag))
            add_functions(file, &die, depth + 1);
    } while (file->api->sibling(&die, &die) == 0);
}

static void load_functions(tare__dw_file *file, tare__dw_range *unit)
{
    if (file->functions_of == unit->die.address)
        return;
    file->functions.n = 0;
    file->functions_of = unit->die.address;
    add_functions(file, &unit->die, 0);
    sort_ranges(&file->functions);
}

/* ---- names and places ------------------------------------------------------------------------------------- */
static const char *name_of(const tare__dw_api *api, tare__dw_die *die)
{
    static const unsigned attributes[] = {AT_LINKAGE_NAME, AT_LINKAGE_NAME_OLD, AT_NAME};
    tare__dw_attribute attribute;
    for (size_t i = 0; i < TARE__COUNT_OF(attributes); i++) {
        const char *name =
            api->integrate(die, attributes[i], &attribute) ? api->string(&attribute) : NULL;
        if (name && *name)
            return name;
    }
    return "";
}

static uint64_t number_of(const tare__dw_api *api, tare__dw_die *die, unsigned name)
{
    tare__dw_attribute attribute;
    uint64_t value;
    return api->attribute(die, name, &attribute) && api->number(&attribute, &value) == 0 ? value : 0;
}

/* Where an inlined function is called. */
static void call_place(const tare__dw_api *api, tare__dw_die *unit, tare__dw_die *inlined, tare__symbol *out)
{
    void *files;
    size_t n;
    uint64_t file = number_of(api, inlined, AT_CALL_FILE), line = number_of(api, inlined, AT_CALL_LINE);
    out->file = "";
    out->line = line <= UINT32_MAX ? (uint32_t)line : 0;
    if (api->files(unit, &files, &n) == 0 && file < n) {
        const char *name = api->file(files, (size_t)file, NULL, NULL);
        out->file = name ? name : "";
    }
}

static void line_place(const tare__dw_api *api, tare__dw_die *unit, uint64_t address, tare__symbol *out)
{
    void *line = api->line_at(unit, address);
    int number = 0;
    const char *name = line ? api->line_file(line, NULL, NULL) : NULL;
    out->file = name ? name : "";
    out->line = line && api->line_number(line, &number) == 0 && number > 0 ? (uint32_t)number : 0;
}

/* The inlined function or block in `die` with this address. */
static bool descend(const tare__dw_api *api, tare__dw_die *die, uint64_t address, tare__dw_die *out)
{
    if (api->child(die, out) != 0)
        return false;
    do {
        int tag = api->tag(out);
        if ((tag == TAG_INLINED || tag == TAG_BLOCK || tag == TAG_TRY || tag == TAG_CATCH) &&
            api->has_pc(out, address) > 0)
            return true;
    } while (api->sibling(out, out) == 0);
    return false;
}

size_t tare__dw_find(tare__dw_file *file, uint64_t address, tare__symbol chain[TARE__DW_CHAIN], tare__symbol *line)
{
    const tare__dw_api *api = file->api;
    tare__dw_range *unit = find_range(&file->units, address);
    tare__dw_die dies[TARE__DW_CHAIN];
    size_t n = 0;
    *line = (tare__symbol){"", "", 0, false};
    if (!unit)
        return 0;
    line_place(api, &unit->die, address, line);
    load_functions(file, unit);
    const tare__dw_range *function = find_range(&file->functions, address);
    if (!function)
        return 0;
    tare__dw_die at = function->die, inner;
    dies[n++] = at;
    for (unsigned depth = 0; depth < DEPTH_MAX && n < TARE__DW_CHAIN && descend(api, &at, address, &inner); depth++) {
        if (api->tag(&inner) == TAG_INLINED)
            dies[n++] = inner;
        at = inner;
    }
    for (size_t i = 0; i < n; i++) { /* dies: outermost first; chain: innermost first */
        tare__symbol *symbol = &chain[n - 1 - i];
        *symbol = *line;
        symbol->name = name_of(api, &dies[i]);
        symbol->inlined = i > 0;
        if (i + 1 < n)
            call_place(api, &unit->die, &dies[i + 1], symbol);
    }
    return n;
}
