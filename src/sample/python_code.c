/* python_code: the cache of code objects of a Python process, by address, each with what tells a reuse of the address.
 * One thread owns the reader.
 * Must not know frames or threads. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "python_inner.h"

#define TEXT_MAX 4096u
#define LINES_MAX (4u << 20)
#define CODE_MAX (64u << 20)
#define FUNCTIONS_MAX (1u << 20)
#define PLACES_MAX (1u << 17)
#define BYTES_MAX (256u << 20) /* of all functions: a process can make as many as it likes */

void tare__python_codes_free(tare__python_codes *codes)
{
    free(codes->functions);
    free(codes->places);
    tare__index_free(&codes->by_content);
    tare__index_free(&codes->by_address);
    tare__arena_free(codes->memory);
}

/* ---- addresses ------------------------------------------------------------------------------- */
static uint32_t hash_address(uint64_t address)
{
    return (uint32_t)tare__hash_mix(0, address);
}

static bool place_has(const void *rows, uint32_t row, const void *key)
{
    return ((const tare__python_place *)rows)[row].address == *(const uint64_t *)key;
}

tare__python_place *tare__python_place_of(const tare__python *python, uint64_t address)
{
    const tare__python_codes *codes = &python->codes;
    uint32_t row = tare__index_find(&codes->by_address, hash_address(address), place_has, codes->places, &address);
    return row == TARE__INDEX_NONE ? NULL : &codes->places[row];
}

static uint64_t pointer_at(const unsigned char *bytes, uint32_t offset)
{
    return offset == TARE__PYTHON_NO ? 0 : tare__python_u64(bytes + offset);
}

static tare__python_mark mark_of(const tare__python_layout *layout, const unsigned char *bytes)
{
    return (tare__python_mark){
        .type = pointer_at(bytes, layout->object_type),
        .name = pointer_at(bytes, layout->code_name),
        .qualname = pointer_at(bytes, layout->code_qualname),
        .file = pointer_at(bytes, layout->code_file),
        .lines = pointer_at(bytes, layout->code_lines),
        .start = layout->object_size == TARE__PYTHON_NO ? pointer_at(bytes, layout->code_start) : 0,
        .size = pointer_at(bytes, layout->object_size),
        .first_line = tare__python_u32(bytes + layout->code_first_line),
    };
}

static bool mark_is(const tare__python_mark *a, const tare__python_mark *b)
{
    return a->type == b->type && a->name == b->name && a->qualname == b->qualname && a->file == b->file &&
           a->lines == b->lines && a->start == b->start && a->size == b->size && a->first_line == b->first_line;
}

bool tare__python_place_is(const tare__python *python, const tare__python_place *place, const unsigned char *bytes)
{
    tare__python_mark mark = mark_of(&python->layout, bytes);
    return mark_is(&mark, &place->mark);
}

/* Of an address that was used by another code object before, or of a new one. */
static bool put_place(tare__python *python, const tare__python_place *place)
{
    tare__python_codes *codes = &python->codes;
    tare__python_place *old = tare__python_place_of(python, place->address);
    if (old) {
        *old = *place;
        return true;
    }
    if (codes->n_places >= PLACES_MAX) { /* a program that creates code objects all the time */
        tare__index_clear(&codes->by_address);
        codes->n_places = 0;
    }
    if (!tare__array_fit(&codes->places, &codes->places_room, codes->n_places + 1, sizeof(*codes->places)) ||
        !tare__index_add(&codes->by_address, hash_address(place->address), (uint32_t)codes->n_places))
        return false;
    codes->places[codes->n_places++] = *place;
    return true;
}

/* ---- functions: equal code objects have the same number -------------------------------------- */
typedef struct content {
    const tare__python_function *function;
} content;

static bool function_has(const void *rows, uint32_t row, const void *key)
{
    const tare__python_function *a = ((tare__python_function *const *)rows)[row];
    const tare__python_function *b = ((const content *)key)->function;
    return a->hash == b->hash && a->shown.first_line == b->shown.first_line && a->n_lines == b->n_lines &&
           strcmp(a->shown.name, b->shown.name) == 0 && strcmp(a->shown.file, b->shown.file) == 0 &&
           (!a->n_lines || memcmp(a->lines, b->lines, a->n_lines * sizeof(*a->lines)) == 0);
}

/* Its number; 0: no memory. `memory` has the function's texts and lines; they are copied where it is new. */
static uint32_t put_function(tare__python_codes *codes, tare__python_function *function)
{
    size_t name = strlen(function->shown.name), file = strlen(function->shown.file);
    size_t lines = function->n_lines * sizeof(*function->lines);
    function->hash = tare__hash_bytes(TARE__HASH_START, function->shown.name, name + 1);
    function->hash = tare__hash_bytes(function->hash, function->shown.file, file);
    function->hash = tare__hash_bytes(function->hash, function->lines, lines);
    content key = {function};
    uint32_t row = tare__index_find(&codes->by_content, (uint32_t)function->hash, function_has, codes->functions, &key);
    if (row != TARE__INDEX_NONE)
        return row + 1;
    size_t bytes = sizeof(*function) + name + file + lines;
    if (codes->n_functions >= FUNCTIONS_MAX || bytes > BYTES_MAX - codes->bytes ||
        !tare__array_fit(&codes->functions, &codes->functions_room, codes->n_functions + 1, sizeof(function)))
        return 0;
    tare__python_function *copy = tare__arena_alloc(codes->memory, sizeof(*copy));
    function->shown.name = tare__arena_copy(codes->memory, function->shown.name, name);
    function->shown.file = tare__arena_copy(codes->memory, function->shown.file, file);
    tare__python_line *kept = tare__arena_alloc(codes->memory, lines ? lines : 1);
    if (!copy || !function->shown.name || !function->shown.file || !kept ||
        !tare__index_add(&codes->by_content, (uint32_t)function->hash, (uint32_t)codes->n_functions))
        return 0;
    memcpy(kept, function->lines, lines);
    function->lines = kept;
    *copy = *function;
    codes->functions[codes->n_functions++] = copy;
    codes->bytes += bytes;
    return (uint32_t)codes->n_functions;
}

/* ---- reading one ----------------------------------------------------------------------------- */
enum { FILE_TEXT, NAME_TEXT, TEXTS, LINES = TEXTS, CODE, PARTS };

typedef struct part { /* a string or bytes object */
    uint64_t address, data;
    size_t bytes, characters;
    unsigned kind;
    bool ascii;
    uint32_t at; /* in the planned read */
} part;

static bool text_part(const tare__python_layout *layout, const unsigned char *bytes, part *part)
{
    uint32_t state = tare__python_u32(bytes + layout->text_state) >> layout->text_kind_shift;
    uint64_t length = tare__python_u64(bytes + layout->text_length);
    part->kind = state & 7;
    part->ascii = state >> 4 & 1;
    bool compact = state >> 3 & 1;
    if (!compact || (part->kind != 1 && part->kind != 2 && part->kind != 4) || (part->ascii && part->kind != 1))
        return false;
    part->characters = length < TEXT_MAX ? (size_t)length : TEXT_MAX;
    part->bytes = part->characters * part->kind;
    part->data = part->address + (part->ascii ? layout->text_ascii : layout->text_compact);
    return length <= 1u << 24;
}

static bool bytes_part(const tare__python_layout *layout, const unsigned char *bytes, size_t most, part *part)
{
    uint64_t length = tare__python_u64(bytes + layout->bytes_size);
    part->bytes = (size_t)length;
    part->data = part->address + layout->bytes_data;
    return length <= most;
}

static uint32_t header_bytes(const tare__python_layout *layout, size_t part)
{
    return part < TEXTS ? layout->text_ascii : layout->bytes_data;
}

/* The sizes of all parts, in one read. */
static bool measure(tare__python *python, part parts[PARTS])
{
    const tare__python_layout *layout = &python->layout;
    tare__python_plan_clear(python);
    for (size_t i = 0; i < PARTS; i++)
        if (parts[i].address)
            parts[i].at = tare__python_plan(python, parts[i].address, header_bytes(layout, i));
    if (!tare__python_plan_read(python))
        return false;
    for (size_t i = 0; i < PARTS; i++) {
        if (!parts[i].address && i == CODE)
            continue;
        const unsigned char *bytes =
            parts[i].address ? tare__python_planned(python, parts[i].at, header_bytes(layout, i)) : NULL;
        if (!bytes || !(i < TEXTS ? text_part(layout, bytes, &parts[i])
                                  : bytes_part(layout, bytes, i == LINES ? LINES_MAX : CODE_MAX, &parts[i])))
            return false;
    }
    return true;
}

/* Their contents, and the code object again: it holds them, so they were valid if it is unchanged. */
static bool fetch(tare__python *python, part parts[PARTS], uint64_t address, const tare__python_mark *mark)
{
    tare__python_plan_clear(python);
    for (size_t i = 0; i < CODE; i++)
        parts[i].at = parts[i].bytes ? tare__python_plan(python, parts[i].data, parts[i].bytes) : 0;
    uint32_t again = tare__python_plan(python, address, python->layout.code_bytes);
    if (!tare__python_plan_read(python))
        return false;
    const unsigned char *bytes = tare__python_planned(python, again, python->layout.code_bytes);
    if (!bytes)
        return false;
    tare__python_mark now = mark_of(&python->layout, bytes);
    return mark_is(&now, mark);
}

static uint32_t decode(tare__python *python, const part parts[PARTS], uint32_t first_line, uint32_t code_bytes)
{
    tare__python_function function = {.shown.first_line = first_line};
    tare__arena *memory = tare__arena_new(); /* what is new is copied out of it */
    uint32_t number = 0;
    if (memory) {
        const unsigned char *data = python->buffer;
        function.shown.name = tare__python_utf8(memory, data + parts[NAME_TEXT].at, parts[NAME_TEXT].characters,
                                                parts[NAME_TEXT].kind, parts[NAME_TEXT].ascii);
        function.shown.file = tare__python_utf8(memory, data + parts[FILE_TEXT].at, parts[FILE_TEXT].characters,
                                                parts[FILE_TEXT].kind, parts[FILE_TEXT].ascii);
        function.lines = tare__python_lines(memory, python->layout.table, data + parts[LINES].at, parts[LINES].bytes,
                                            first_line, code_bytes, &function.n_lines);
        if (function.shown.name && function.shown.file && function.lines)
            number = put_function(&python->codes, &function);
    }
    tare__arena_free(memory);
    return number;
}

bool tare__python_place_load(tare__python *python, uint64_t address)
{
    const tare__python_layout *layout = &python->layout;
    unsigned char bytes[TARE__PYTHON_CODE_BYTES];
    if (!python->codes.memory && !(python->codes.memory = tare__arena_new()))
        return false;
    if (!tare__python_read(python, address, bytes, layout->code_bytes))
        return false;
    tare__python_place place = {.address = address, .mark = mark_of(layout, bytes)};
    if (python->symbols.code_type && place.mark.type != python->symbols.code_type)
        return false;
    part parts[PARTS] = {
        [FILE_TEXT] = {.address = place.mark.file},
        [NAME_TEXT] = {.address = place.mark.qualname ? place.mark.qualname : place.mark.name},
        [LINES] = {.address = place.mark.lines},
        [CODE] = {.address = place.mark.start},
    };
    if (!measure(python, parts) || !fetch(python, parts, address, &place.mark))
        return false;
    uint64_t code_bytes = layout->object_size == TARE__PYTHON_NO ? parts[CODE].bytes : 2 * place.mark.size;
    if (code_bytes > CODE_MAX || place.mark.first_line > INT32_MAX)
        return false;
    place.code_bytes = (uint32_t)code_bytes;
    if (layout->code_traceable != TARE__PYTHON_NO) {
        /* One after the end: a frame of the interpreter itself (the call of __init__ in 3.12 and 3.13). */
        uint32_t units = tare__python_u32(bytes + layout->code_traceable);
        place.traceable = units <= code_bytes / 2 + 1 ? (int32_t)(2 * units) : 0;
    }
    place.code = decode(python, parts, place.mark.first_line, place.code_bytes);
    return place.code && put_place(python, &place);
}

const tare__python_code *tare__python_code_at(const tare__python *python, uint32_t code)
{
    return code && code <= python->codes.n_functions ? &python->codes.functions[code - 1]->shown : NULL;
}

uint32_t tare__python_code_count(const tare__python *python)
{
    return (uint32_t)python->codes.n_functions;
}
