/* base: what every module may use. Status codes and their messages, arena, text building, JSON
 * writing, units for display. Owned by the calling thread; nothing here is shared.
 * Must not know that profiling exists. */
#ifndef TARE_BASE_H
#define TARE_BASE_H

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define TARE__LIKELY(x) __builtin_expect(!!(x), 1)
#define TARE__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TARE__COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

/* A comparison function for qsort, by keys in order of importance:
 * TARE__ORDER(by_total, tare__row, TARE__FALLING(total_ns) TARE__BY_TEXT(name)). Values that are not comparable (NaN)
 * are equal. `measure` is a function or a macro of a row. */
#define TARE__ORDER(function, row, ...)                                                                                \
    static int function(const void *left, const void *right)                                                           \
    {                                                                                                                  \
        const row *a = left, *b = right;                                                                               \
        __VA_ARGS__                                                                                                    \
        return 0;                                                                                                      \
    }
#define TARE__ORDER_OF_POINTERS(function, row, ...)                                                                    \
    static int function(const void *left, const void *right)                                                           \
    {                                                                                                                  \
        const row *a = *(const row *const *)left, *b = *(const row *const *)right;                                     \
        __VA_ARGS__                                                                                                    \
        return 0;                                                                                                      \
    }
#define TARE__RISING(key) if (a->key < b->key) return -1; if (a->key > b->key) return 1;
#define TARE__FALLING(key) if (a->key > b->key) return -1; if (a->key < b->key) return 1;
#define TARE__RISING_BY(measure) if (measure(a) < measure(b)) return -1; if (measure(a) > measure(b)) return 1;
#define TARE__FALLING_BY(measure) if (measure(a) > measure(b)) return -1; if (measure(a) < measure(b)) return 1;
#define TARE__RISING_VALUE if (*a < *b) return -1; if (*a > *b) return 1; /* rows are numbers */
#define TARE__FALLING_VALUE if (*a > *b) return -1; if (*a < *b) return 1;
#define TARE__BY_TEXT(key) { int order = strcmp(a->key, b->key); if (order) return order; }
#define TARE__BY_TEXT_IF_ANY(key) /* NULL as "" */ \
    { int order = strcmp(a->key ? a->key : "", b->key ? b->key : ""); if (order) return order; }
#define TARE__BY_ADDRESS if (a != b) return a < b ? -1 : 1;
#define TARE__PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))

/* ---- messages -------------------------------------------------------------------------------
 * The place that fails writes what was wrong, where, and what to do; the caller returns the status. */
typedef struct tare__error {
    char text[512];
} tare__error;

/* Writes the message and returns `status`, so that a failure is one line. `error` may be NULL. */
int tare__fail(tare__error *error, int status, const char *format, ...) TARE__PRINTF(3, 4);
int tare__no_memory(tare__error *error); /* TARE_E_MEMORY */

/* ---- arena: memory freed all at once ---------------------------------------------------------
 * Allocation returns NULL if out of memory; earlier allocations stay valid. */
typedef struct tare__arena tare__arena;
tare__arena *tare__arena_new(void);
void tare__arena_free(tare__arena *arena);                        /* NULL is allowed */
void *tare__arena_alloc(tare__arena *arena, size_t bytes);        /* zeroed, 16-byte aligned */
char *tare__arena_copy(tare__arena *arena, const char *text, size_t length); /* NUL added */
/* A new arena with one zeroed object in it, which starts the use of it. NULL: no memory, and *arena is NULL. */
void *tare__arena_start(size_t bytes, tare__arena **arena);
bool tare__arena_failed(const tare__arena *arena);                 /* memory was asked of it in vain */
size_t tare__arena_bytes(const tare__arena *arena);               /* taken from the system */

/* ---- arrays that grow: `array` is the address of the pointer. False: out of memory, and nothing changed. -- */
bool tare__array_fit(void *array, size_t *room, size_t needed, size_t element_bytes);
/* The same; the new elements are zeroed. */
bool tare__array_fit_zeroed(void *array, size_t *room, size_t needed, size_t element_bytes);

/* ---- index: finds rows of an array of the caller by hash ---------------------------------------- */
typedef struct tare__index_slot {
    uint32_t hash;
    uint32_t row_plus1; /* 0: empty */
} tare__index_slot;

typedef struct tare__index { /* zeroed: empty */
    tare__index_slot *slots;
    uint32_t mask, used;
} tare__index;

#define TARE__INDEX_NONE UINT32_MAX
/* Whether the row has this key; `rows` is what the caller of find passes. */
typedef bool tare__index_is(const void *rows, uint32_t row, const void *key);

/* Defines one for an array of rows, whose key is a row or (TARE__KEYED) of another type:
 * TARE__SAME(is_path, span_path, TARE__EQUAL(outer) && TARE__EQUAL(name)). */
#define TARE__KEYED(function, row, wanted, ...)                                                                        \
    static bool function(const void *rows, uint32_t at, const void *key)                                               \
    {                                                                                                                  \
        const row *a = (const row *)rows + at;                                                                         \
        const wanted *b = key;                                                                                         \
        return __VA_ARGS__;                                                                                            \
    }
#define TARE__SAME(function, row, ...) TARE__KEYED(function, row, row, __VA_ARGS__)
#define TARE__EQUAL(member)            a->member == b->member

/* Inline, so that `is` is inlined too. */
static inline uint32_t tare__index_find(const tare__index *index, uint32_t hash, tare__index_is *is, const void *rows,
                                        const void *key)
{
    for (uint32_t at = hash & index->mask; index->slots && index->slots[at].row_plus1; at = (at + 1) & index->mask)
        if (index->slots[at].hash == hash && is(rows, index->slots[at].row_plus1 - 1, key))
            return index->slots[at].row_plus1 - 1;
    return TARE__INDEX_NONE;
}

bool tare__index_add(tare__index *index, uint32_t hash, uint32_t row); /* a new row; false: out of memory */
void tare__index_move(tare__index *index, uint32_t hash, uint32_t from, uint32_t to); /* row `from` is now row `to` */
void tare__index_clear(tare__index *index);
void tare__index_free(tare__index *index);

/* The hash of a number, or of several: each with the hash of the previous ones. */
static inline uint64_t tare__hash_mix(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

/* FNV-1a, of several texts in turn. */
#define TARE__HASH_START UINT64_C(0xCBF29CE484222325)
static inline uint64_t tare__hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *text = data;
    for (size_t i = 0; i < bytes; i++) /* no end pointer: the data of an empty text may be NULL */
        hash = (hash ^ text[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/* ---- intern: text to a dense id, 0, 1, 2, … in order of first use ------------------------------ */
typedef struct tare__intern tare__intern;
#define TARE__INTERN_NONE UINT32_MAX
tare__intern *tare__intern_new(void);
void tare__intern_free(tare__intern *table);
uint32_t tare__intern_add(tare__intern *table, const char *text, size_t length);  /* NONE: no memory */
uint32_t tare__intern_find(const tare__intern *table, const char *text, size_t length);
const char *tare__intern_text(const tare__intern *table, uint32_t id, size_t *length); /* NULL: unknown id */
uint32_t tare__intern_count(const tare__intern *table);

/* ---- text: a growing string. After an allocation failure, `failed` stays set and appends do nothing. - */
typedef struct tare__text {
    char *data; /* always NUL terminated once anything was appended; else NULL */
    size_t length;
    size_t room;
    bool failed;
} tare__text;
void tare__text_append(tare__text *text, const char *bytes, size_t length);
void tare__text_string(tare__text *text, const char *string);
void tare__text_format(tare__text *text, const char *format, ...) TARE__PRINTF(2, 3);
void tare__text_pad_to(tare__text *text, size_t column); /* spaces up to this display column of the line */
void tare__text_clear(tare__text *text);                 /* keeps the memory, and `failed` */
void tare__text_free(tare__text *text);
/* Frees a text that was made for `whole`, which fails if that did. */
void tare__text_end(tare__text *text, tare__text *whole);

/* Display columns of UTF-8 text (wide and combining characters counted as a terminal would). Color sequences (ESC [
 * … m) take none; any other control character and any invalid byte takes one. */
size_t tare__text_columns(const char *bytes, size_t length);
/* Copies `string` into `out` shortened to `columns` display columns, with "…" in the middle if it was cut; control
 * characters and invalid bytes become '?'. Never cuts inside a character. Always NUL terminated if out_bytes is not
 * 0. Returns bytes written without the NUL. */
size_t tare__text_fit(char *out, size_t out_bytes, const char *string, size_t columns);

/* One double as snprintf's %.*f or %.*g (`style` 'f' or 'g'), but always with '.' regardless of LC_NUMERIC; the
 * formats of tare__text_format follow the locale. `out` of 32 bytes holds any 'g'. */
void tare__text_double(char *out, size_t out_bytes, char style, int digits, double value);

/* ---- UTF-8 ------------------------------------------------------------------------------------- */
/* Length in bytes (1..4) of the character at `bytes`, its code point in *code; 0 if this is not UTF-8 (overlong,
 * surrogate, truncated, too large). `length` must not be 0. */
size_t tare__utf8_decode(const char *bytes, size_t length, uint32_t *code);
unsigned tare__utf8_columns(uint32_t code); /* 0, 1 or 2; control characters 1 */
bool tare__utf8_control(uint32_t code);     /* moves the cursor or changes the writing direction */

/* ---- JSON writer: strict JSON into a tare__text -------------------------------------------------
 * It adds commas and indentation itself; nothing is put between top-level values. Each byte
 * that is not UTF-8 becomes U+FFFD; control characters are escaped; NaN and infinities become null. */
typedef struct tare__json {
    tare__text *out;
    uint32_t depth;
    bool pretty;       /* two-space indentation, else one line */
    bool need_comma;   /* private */
    bool after_key;    /* private */
} tare__json;
void tare__json_begin(tare__json *json, tare__text *out, bool pretty);
void tare__json_object(tare__json *json);
void tare__json_end_object(tare__json *json);
void tare__json_array(tare__json *json);
void tare__json_end_array(tare__json *json);
void tare__json_key(tare__json *json, const char *key);
void tare__json_string(tare__json *json, const char *string);  /* NULL becomes null */
void tare__json_text(tare__json *json, const char *bytes, size_t length);
void tare__json_unsigned(tare__json *json, uint64_t value);
void tare__json_signed(tare__json *json, int64_t value);
void tare__json_double(tare__json *json, double value);        /* shortest text that reads back as the same value */
void tare__json_bool(tare__json *json, bool value);
void tare__json_null(tare__json *json);
/* Members: a key and its value. */
void tare__json_put_string(tare__json *json, const char *key, const char *value);
void tare__json_put_unsigned(tare__json *json, const char *key, uint64_t value);
void tare__json_put_bool(tare__json *json, const char *key, bool value);

#include "json_reader.h"

/* ---- units for display: at most 3-4 significant digits, suitable for columns --------------------
 * NaN and infinities are "n/a". The decimal point is '.' in every locale. */
#define TARE__UNIT_BYTES 32
/* 0 ns, 812 ns, 1.24 µs, 31.0 ms, 2.41 s, 12m 04s, 3h 07m, 2d 05h; negative with a sign. */
const char *tare__unit_time(char out[TARE__UNIT_BYTES], double ns);
/* 0 B, 512 B, 1.50 KiB, 31.0 MiB, 2.41 GiB */
const char *tare__unit_bytes(char out[TARE__UNIT_BYTES], double bytes);
/* 0, 812, 12,345 up to 99,999, then 123k, 1.24M, 31.0G; fractions as 0.25, 1.50, 12.3 */
const char *tare__unit_count(char out[TARE__UNIT_BYTES], double count);
/* The count with its noun: "1 step", "12,345 steps"; `many` NULL: the noun takes an s. The noun may include a verb:
 * "process was", "processes were". */
#define TARE__COUNTED_BYTES 96
const char *tare__unit_counted(char out[TARE__COUNTED_BYTES], double count, const char *one, const char *many);
/* 0.0 %, <0.1 %, 12.3 %, 100 % for a share in 0..1 */
const char *tare__unit_percent(char out[TARE__UNIT_BYTES], double share);

/* Values of figures with their unit: "ns", "s", "bytes", "bytes/s" and "share" are written as above; any other unit
 * follows the count: "31.0 ms", "2.41 GiB", "12.1 MiB/s", "43.0 %", "812 samples/s". */
#define TARE__VALUE_BYTES 64
const char *tare__unit_value(char out[TARE__VALUE_BYTES], const char *unit, double value);
/* The same without that unit, for tables that show it elsewhere: "31.0 ms", "12.1 MiB", "812". */
const char *tare__unit_number(char out[TARE__UNIT_BYTES], const char *unit, double value);
bool tare__unit_is_said(const char *unit); /* by the number alone; of "" as well */
/* +12.3 %, -0.4 %, x14.2 for a relative change; "from 0" if it was 0; n/a for NaN */
const char *tare__unit_change(char out[TARE__UNIT_BYTES], double share);
/* The same as one end of an interval, without unit: +12.3 */
const char *tare__unit_points(char out[TARE__UNIT_BYTES], double share);

/* Reads "512", "64K", "64KiB", "100MB", "2G" (K, M, G, T and KiB.. are powers of 1024; KB, MB, GB powers of 1000;
 * case-insensitive, fractions are rounded down). Returns 0, or TARE_E_USAGE with a message naming `what`; *bytes is
 * then unchanged. */
int tare__parse_bytes(const char *string, const char *what, uint64_t *bytes, tare__error *error);
/* Reads "500ms", "60s", "60", "5m", "2h", "1d", "1.5s": seconds if there is no unit. */
int tare__parse_duration(const char *string, const char *what, uint64_t *ns, tare__error *error);

/* ---- untrusted text (harmless.c; not in libtare) --------------------------------------------------------------- */
/* Removes passwords from a message: in URLs of any scheme, and after password=. Prefers removing too much to too
 * little. */
void tare__redact(char *text);
/* Lines of a text report: control characters become '?' (colors may be kept), and no line is a command to GitHub
 * Actions or Azure Pipelines, whatever a span is named. Whole lines. */
void tare__harmless_lines(const char *text, size_t bytes, bool colours, tare__text *out);
/* Machine-readable data (CSV, JSON) shown on a terminal: control characters as \u001b, bytes that are not text as
 * \xff. The second returns how many of these bytes do not end inside a character. */
void tare__harmless_data(const char *text, size_t bytes, bool colours, tare__text *out);
size_t tare__harmless_whole(const char *text, size_t bytes);

/* ---- files ---------------------------------------------------------------------------------- */
/* Writes or reads all of it, despite short counts and EINTR. 0 or -errno; pread_all returns in *got how much was
 * read, also on failure; the end of the file is not a failure. */
int tare__write_all(int fd, const void *data, size_t bytes);
int tare__pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset);
int tare__pread_all(int fd, void *data, size_t bytes, uint64_t offset, size_t *got);
/* Where the next bytes of a file are that is not all written: behind a hole, which reads as zeros. UINT64_MAX: none. */
uint64_t tare__file_data(int fd, uint64_t offset);
const char *tare__temporary_folder(void); /* TMPDIR, else /tmp */
/* The only function that opens user-named files for reading (input.c; not in libtare). Only regular files: a FIFO
 * would block, and opening a device may have effects. With `streams` also descriptors that are already open, by
 * name: /dev/stdin, or a shell's process substitution. A descriptor or -errno; *is: what a file that is not regular
 * is ("a pipe"), else NULL. */
int tare__input_open(const char *path, bool streams, const char **is);
/* The same with a message: 0, TARE_E_INPUT or TARE_E_PERMISSION. */
int tare__input_file(const char *path, int *fd, tare__error *error);
int tare__input_stream(const char *path, int *fd, tare__error *error);
/* What a file of this mode is ("a folder"); NULL: a regular file. */
const char *tare__not_a_file(unsigned mode);
/* The descriptor that a path names (/dev/stdin, /dev/fd/N, /proc/self/fd/N), open or not; -1: none. */
int tare__descriptor_named(const char *path);
/* The only function that creates output files: a new one next to `path`, with a random name, mode & ~umask. Its
 * descriptor, with *name to be freed by the caller; or -errno. */
int tare__file_make(const char *path, unsigned mode, char **name);
/* Replaces `path`: a link is replaced, not followed; owner and mode of an existing file are not kept. `whole`: it is
 * synced to disk first. 0 or -errno; then it is removed. */
int tare__file_put(int fd, const char *name, const char *path, bool whole);
/* The same in an open directory, even if its name changes in the meantime. */
int tare__file_make_at(int folder, const char *path, unsigned mode, char **name);
int tare__file_put_at(int folder, int fd, const char *name, const char *path, bool whole);

/* ---- which files are trusted (trust.c; not in libtare) ------------------------------------------------------ */
/* NULL if an open file is owned by root or this user and no other user can write to it; else what is wrong, as "it
 * …". */
const char *tare__trust_file(int fd);
/* The same for a file and every directory above it. False: with a message. */
bool tare__trust_path(const char *path, tare__error *error);
/* The same; `real` is the path that was checked, with links resolved. Use that one. */
bool tare__trust_real(const char *path, char real[PATH_MAX], tare__error *error);
/* Whether it is one of a list of words. */
bool tare__is_one_of(const char *word, const char *const *list, size_t n);
#define TARE__IS_ONE_OF(word, list) tare__is_one_of(word, list, TARE__COUNT_OF(list))
/* Without directories. */
static inline const char *tare__base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
/* The same, but a path that ends with a slash as it is. */
static inline const char *tare__last_part(const char *path)
{
    const char *part = tare__base_name(path);
    return *part ? part : path;
}
/* Whether it is one of the upper half of the descriptors that this process may have, which is left for other uses. */
bool tare__is_scarce(int fd);
/* On PATH, ignoring relative entries, since programs in the current directory are not trusted. */
bool tare__find_program(const char *name, char *out, size_t room);
/* What to pass to dlopen for the name of a library: the file that LD_LIBRARY_PATH leads to, if it and every
 * directory above it are absolute and owned by root or this user; without one, the name, for the loader's default
 * directories. A path is passed on unchecked. TARE_E_PERMISSION: it leads to a library of another user. */
int tare__library_find(const char *name, char out[PATH_MAX], tare__error *error);

/* ---- settings in TOML (toml.c, toml_file.c; not in libtare) -------------------------------------------------- */
typedef enum tare__toml_kind { TARE__TOML_STRING, TARE__TOML_NUMBER, TARE__TOML_SWITCH } tare__toml_kind;

typedef struct tare__toml_pair {
    const char *key, *value; /* NUL terminated, valid during the call; for a switch "true" or "false" */
    tare__toml_kind kind;
    unsigned line;
} tare__toml_pair;

/* 0, or a status with a message. */
typedef int tare__toml_sink(void *context, const tare__toml_pair *pair, tare__error *error);

/* Passes the pairs of `table` ("tool.tare", "check"; "": those before all tables, where only those of commands are
 * allowed) to the sink. Other tables are ignored; of those below `table` only a command's are allowed. `file` is for
 * messages. 0; TARE_E_USAGE with file, line and what is invalid; the sink's status. */
int tare__toml_read(const char *text, size_t bytes, const char *file, const char *table, tare__toml_sink *sink,
                    void *context, tare__error *error);

/* The content of a settings file, for free(). 0, with text NULL if there is no file, or if it is not used since it
 * `refused` (a verb: "belongs to another user"); else a status with a message. */
int tare__toml_file(const char *file, char **text, size_t *bytes, const char **refused, tare__error *error);
/* What is wrong with a setting, in the same words from the command and Python. `where` is file:line or a variable. */
typedef enum tare__setting_fault {
    TARE__SETTING_IGNORED,  /* a file (where) is not read: "it" and the reason (other) */
    TARE__SETTING_TWICE,
    TARE__SETTING_UNKNOWN,  /* other: what was meant, or NULL */
    TARE__SETTING_MISSPELT, /* a variable (name) that is nearly one of ours (other) */
    TARE__SETTING_TYPE,     /* other: what it must be */
    TARE__SETTING_SWITCH,   /* other: a text that is not 1 or 0 */
    TARE__SETTING_OUTSIDE,  /* other: a path that a project's settings must not write to */
} tare__setting_fault;
int tare__setting_fail(tare__error *error, tare__setting_fault fault, const char *where, const char *name,
                       const char *other); /* TARE_E_USAGE */

/* ---- optional libraries -----------------------------------------------------------------------------------
 * A table defines which symbols fill which slots of a struct of function pointers. A slot may have several lines:
 * the first name that the library has is used. Only outside of the target: dl.c is not part of libtare. */
typedef struct tare__dl_symbol {
    const char *name;
    size_t slot;   /* offsetof the pointer */
    bool required; /* the library is unusable without it; the same on each line of a slot */
} tare__dl_symbol;

typedef struct tare__dl {
    void *handle;    /* NULL: not open */
    char path[4096]; /* where the loader found it; else the requested name */
} tare__dl;

/* Opens `name` (a path, or a name for the loader to search) and fills `slots`, NULL for missing ones. 0;
 * TARE_E_SYSTEM: it could not be loaded, with the loader's message; TARE_E_VERSION: it lacks a required symbol,
 * which the message names. On a failure nothing stays open. */
int tare__dl_open(tare__dl *dl, const char *name, const tare__dl_symbol *symbols, size_t n, void *slots,
                  tare__error *error);
/* The names, separated by ", ", of optional slots that stayed empty: the first name of each. */
void tare__dl_missing(const tare__dl_symbol *symbols, size_t n, const void *slots, tare__text *out);
void tare__dl_close(tare__dl *dl); /* a zeroed dl that was never opened is allowed */

/* ---- time ------------------------------------------------------------------------------------------- */
uint64_t tare__monotonic_ns(void);
uint64_t tare__clock_ns(clockid_t clock); /* 0: it cannot be read */
extern bool tare__time_by_system_call; /* clock_gettime may not read the counter in user space here */

/* ---- processor features --------------------------------------------------------------------------- */
bool tare__cpu_has_crc32(void);          /* the instruction for CRC-32C */
bool tare__cpu_has_fma_256(void);        /* fused multiply-adds of 256 bits */
bool tare__cpu_has_fma_512(void);
bool tare__cpu_has_steady_counter(void); /* a time-stamp counter with a constant rate that never stops */

/* ---- the roofline: peak performance of a machine ---------------------------------------------------- */
typedef enum tare__peak { TARE__PEAK_F32, TARE__PEAK_F64, TARE__PEAK_F16, TARE__PEAK_BF16, TARE__PEAK_INT8,
                          TARE__PEAK_TYPES } tare__peak;
enum { TARE__PEAK_LEVELS = 4 }; /* caches of level 1 to 3, of all cores together; then memory */

typedef struct tare__peaks {
    double flops[TARE__PEAK_TYPES];        /* operations per second; NaN: not measured */
    double level_bytes[TARE__PEAK_LEVELS]; /* its size; 0: none. Of memory: unlimited */
    double level_per_s[TARE__PEAK_LEVELS]; /* bytes per second; NaN: not measured */
} tare__peaks;

void tare__peaks_clear(tare__peaks *peaks); /* nothing is known */
/* "f32", "f64", "f16", "bf16", "int8", also "float32" and "i8", to a peak. -1: unknown. */
int tare__peak_find(const char *type, size_t length);
const char *tare__peak_level_name(size_t level); /* "L1", "L2", "L3", "memory" */
/* As text, for a file: "f32 1.38e+11 … L1 65536 4.1e+11 … memory 1.9e+10". Unknown values are omitted. */
void tare__peaks_write(const tare__peaks *peaks, tare__text *to);
void tare__peaks_read(tare__peaks *peaks, const char *text);
/* The minimum time in seconds to move these bytes, if the caches are used as far as they reach. NaN: unknown. */
double tare__peaks_move_s(const tare__peaks *peaks, double bytes);

#endif
