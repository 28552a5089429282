/* codec: encodes records as the payload of a block, and decodes it. docs/FORMAT.md is the specification.
 * Each encoder and decoder belongs to one thread. Decoders trust nothing they read.
 * Must not know rings, the order of files, or what the records mean. */
#ifndef TARE_FORMAT_CODEC_H
#define TARE_FORMAT_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "file.h"

/* ---- varints: LEB128, at most ten bytes; zigzag for signed ones -------------------------------------- */
static inline uint64_t tare__zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}
/* The difference to the previous number. */
static inline uint64_t tare__zigzag_from(uint64_t value, uint64_t before)
{
    return tare__zigzag((int64_t)(value - before));
}
static inline int64_t tare__unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
#define TARE__VARINT_BYTES 10
static inline uint8_t *tare__varint_write(uint8_t *at, uint64_t value) /* returns the byte after it */
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}
void tare__varint_put(tare__text *out, uint64_t value);

/* Bytes being read. Reading past the end sets `failed` and yields zeros. */
typedef struct tare__reader {
    const uint8_t *at, *end;
    bool failed;
} tare__reader;
uint64_t tare__read_long_varint(tare__reader *reader);
static inline uint64_t tare__read_varint(tare__reader *reader)
{
    if (TARE__LIKELY(reader->at < reader->end && *reader->at < 0x80))
        return *reader->at++;
    return tare__read_long_varint(reader);
}
const uint8_t *tare__read_bytes(tare__reader *reader, uint64_t bytes); /* NULL if there are not enough */

/* ---- blocks: a header, then its payload, appended to a text ------------------------------------------ */
/* Reserves space for a header; returns its position. */
size_t tare__block_begin(tare__text *out);
/* Everything after that header is its payload: completes the header (the caller has set kind, stream, count, …). If
 * `status` is not 0 or the block is invalid, `out` is unchanged. 0, `status`, TARE_E_MEMORY, or TARE_E_USAGE for a
 * payload over TARE__BLOCK_PAYLOAD_MAX. */
int tare__block_end(tare__text *out, size_t at, tare__block_header *header, int status);

/* ---- columns: byte strings, each compressed separately if that helps --------------------------------------
 * A set of n columns is a directory (for each: varint raw bytes, then, unless 0, varint stored bytes * 2 + 1
 * if compressed), then the stored bytes of each in order. */
typedef struct tare__squeezer tare__squeezer; /* compression state, reused */
tare__squeezer *tare__squeezer_new(void);
void tare__squeezer_free(tare__squeezer *squeezer);
/* Higher is smaller and slower: 1 is the default; negative levels are for speed. */
void tare__squeezer_level(tare__squeezer *squeezer, int level);

typedef struct tare__column {
    const uint8_t *data;
    size_t bytes;
} tare__column;
/* Maximum total size of the columns of a set, before compression. */
#define TARE__COLUMNS_BYTES_MAX (8u << 20)
/* Appends the set to `out`. 0, TARE_E_MEMORY, or TARE_E_USAGE when it is too large. */
int tare__columns_put(tare__squeezer *squeezer, const tare__column *columns, size_t n, tare__text *out);
/* The same, with a bit (column 0 in bit 0) for each column whose values are unordered, such as times: searching for
 * repeats there gains nothing. */
int tare__columns_put_scattered(tare__squeezer *squeezer, const tare__column *columns, size_t n,
                                uint32_t scattered, tare__text *out);
/* Reads a set of n columns; each may have up to `limit` bytes. Column data stays in the squeezer or in the reader's
 * bytes until the next call. 0, TARE_E_INPUT or TARE_E_MEMORY. */
int tare__columns_get(tare__squeezer *squeezer, tare__reader *reader, tare__column *columns, size_t n,
                      size_t limit);
/* The same, with a reader on each column; and whether each was read to its end. */
int tare__columns_open(tare__squeezer *squeezer, tare__reader *reader, tare__reader *readers, size_t n, size_t limit);
bool tare__columns_done(const tare__reader *readers, size_t n);
/* Appends a block of columns only: column i is from starts[i] to ends[i]. */
int tare__columns_seal(tare__squeezer *squeezer, tare__block_header *header, uint8_t *const *starts,
                       uint8_t *const *ends, size_t n, tare__text *out);
/* Memory to build columns in, valid until the next call; NULL: out of memory. */
uint8_t *tare__squeezer_room(tare__squeezer *squeezer, size_t bytes);

/* ---- stack of open spans ----------------------------------------------------------------------------- */
typedef struct tare__open_span {
    uint64_t begin; /* ticks */
    uint32_t name;  /* file name id */
    uint32_t spare;
} tare__open_span;

typedef struct tare__span_stack {
    tare__open_span *spans;
    uint32_t depth;
    size_t room;
} tare__span_stack;
int tare__span_stack_push(tare__span_stack *stack, uint32_t name, uint64_t begin); /* 0 or TARE_E_MEMORY */
/* Number of spans that an end of `name` closes: 1 if it is the innermost, more if others were left open inside, 0 if
 * no such span is open. */
uint32_t tare__span_stack_find(const tare__span_stack *stack, uint32_t name);
void tare__span_stack_free(tare__span_stack *stack);

/* A block lists at most this many open spans, the outermost ones. */
#define TARE__STACK_LISTED 4096u

/* ---- events ---------------------------------------------------------------------------------------------
 * One byte per event: operation (bits 0..2), bytes of its time (3..5), bytes of its name (6..7); the bytes
 * themselves go to planes, byte k of every value into plane k, since separate planes of low and of high bytes
 * compress far better. Times are ticks since the previous event. */
typedef enum tare__op {
    TARE__OP_END = 0,       /* the innermost open span */
    TARE__OP_BEGIN = 1,     /* name */
    TARE__OP_NEXT = 2,      /* name: ends the innermost, begins this */
    TARE__OP_END_OF = 3,    /* name: not the innermost; closes the spans inside it too, or nothing */
    TARE__OP_MARK = 4,      /* name */
    TARE__OP_COUNTER = 5,   /* name, value */
    TARE__OP_NUMBER = 6,    /* name, value; no time */
    TARE__OP_LOST_ENDS = 7  /* value: number of lost ends of innermost spans; no time */
} tare__op;

#define TARE__EVENTS_MAX 32768u

/* What encoders write for the name 0: an event whose name was lost is still recorded. */
#define TARE__NAME_LOST UINT32_MAX
static inline uint32_t tare__name_or_lost(uint32_t name)
{
    return name - !name;
}

enum {
    TARE__COLUMN_OPS = 0,
    TARE__COLUMN_NAME = 1,   /* 4 planes */
    TARE__COLUMN_BEGIN = 5,  /* 8 planes: times of BEGIN, MARK, COUNTER */
    TARE__COLUMN_END = 13,   /* 8 planes: times of END, NEXT, END_OF */
    TARE__COLUMN_VALUE = 21, /* varints: integers as zigzag * 2, else 1 and the double's eight bytes */
    TARE__COLUMNS_EVENTS = 22
};

typedef struct tare__event {
    uint32_t op;
    uint32_t name;
    uint64_t ticks;
    double value;
} tare__event;

/* Position of the next event. A loop that adds many keeps a copy, so that it stays in registers. */
typedef struct tare__events_tail {
    uint8_t *op;
    uint32_t *name, *begin, *end;
    uint64_t ticks; /* of the previous event: none is earlier */
} tare__events_tail;

/* Events in order of arrival: one operation each, names and times in separate lists. The encoding is chosen when the
 * block is sealed. */
typedef struct tare__events_encoder {
    tare__events_tail tail;
    uint64_t from;
    uint8_t *values_end;
    uint32_t far_count[2];
    uint8_t ops[TARE__EVENTS_MAX];
    uint32_t names[TARE__EVENTS_MAX];
    uint32_t times[2][TARE__EVENTS_MAX]; /* of begins, of ends; TARE__TIME_FAR: see below */
    uint64_t far[2][TARE__EVENTS_MAX];   /* times that do not fit there, in order */
    uint8_t values[TARE__EVENTS_MAX * TARE__VARINT_BYTES];
} tare__events_encoder;
#define TARE__TIME_FAR UINT32_MAX

tare__events_encoder *tare__events_encoder_new(void);
void tare__events_encoder_free(tare__events_encoder *encoder);
void tare__events_reset(tare__events_encoder *encoder, uint64_t from); /* no event is earlier than `from` */
uint32_t tare__events_add_far(tare__events_encoder *encoder, unsigned ends, uint64_t time); /* TARE__TIME_FAR */

static inline uint32_t tare__events_count(const tare__events_encoder *encoder)
{
    return (uint32_t)(encoder->tail.op - encoder->ops);
}

static inline bool tare__op_ends(tare__op op) /* its time is in the list of ends */
{
    return op == TARE__OP_END || op == TARE__OP_NEXT || op == TARE__OP_END_OF;
}
static inline bool tare__op_has_name(tare__op op)
{
    return op != TARE__OP_END && op != TARE__OP_LOST_ENDS;
}

/* Appends one event without a value, to a copy of the encoder's tail; at most TARE__EVENTS_MAX events between
 * resets. A time before the last one is replaced by it. */
static inline void tare__events_put(tare__events_encoder *encoder, tare__events_tail *tail, tare__op op,
                                    uint32_t name, uint64_t ticks)
{
    *tail->op++ = (uint8_t)op;
    if (tare__op_has_name(op))
        *tail->name++ = tare__name_or_lost(name);
    if (op >= TARE__OP_NUMBER)
        return;
    uint64_t now = ticks < tail->ticks ? tail->ticks : ticks, time = now - tail->ticks;
    tail->ticks = now;
    unsigned ends = tare__op_ends(op);
    *(ends ? tail->end++ : tail->begin++) =
        __builtin_expect(time < TARE__TIME_FAR, 1) ? (uint32_t)time : tare__events_add_far(encoder, ends, time);
}

static inline void tare__events_add(tare__events_encoder *encoder, tare__op op, uint32_t name, uint64_t ticks)
{
    tare__events_put(encoder, &encoder->tail, op, name, ticks);
}

/* Appends COUNTER, NUMBER or LOST_ENDS; the latter two have no time, LOST_ENDS no name. */
void tare__events_add_value(tare__events_encoder *encoder, tare__op op, uint32_t name, uint64_t ticks,
                            double value);
/* Appends header and payload to `out`. `open` are the spans open before the first event. The caller has set
 * header->stream, position and ordinal; the rest is set here. 0 or TARE_E_MEMORY. */
int tare__events_seal(tare__events_encoder *encoder, tare__squeezer *squeezer, const tare__span_stack *open,
                      tare__block_header *header, tare__text *out);

typedef struct tare__events_decoder {
    const uint8_t *ops, *ops_end;
    const uint8_t *planes[TARE__COLUMNS_EVENTS];
    tare__reader values;
    uint64_t ticks;
    tare__span_stack open; /* spans open before the first event: used if preceding blocks are missing */
    uint32_t unlisted;     /* number of open spans inside of those that are not listed */
} tare__events_decoder;

/* Checks the whole block, so that `next` need not. Its results are in squeezer and payload. 0, TARE_E_INPUT or
 * TARE_E_MEMORY. `decoder` starts zeroed and is freed once at the end. */
int tare__events_open(tare__events_decoder *decoder, tare__squeezer *squeezer,
                      const tare__block_header *header, const uint8_t *payload);
void tare__events_close(tare__events_decoder *decoder);
double tare__events_value(tare__events_decoder *decoder);

/* Time classes: 0..5 are 1..6 bytes, 6 is 8 bytes, 7 is none (a difference of 0). */
static inline uint64_t tare__planes_take(const uint8_t **planes, unsigned time_class)
{
    uint64_t value = *planes[0]++;
    if (__builtin_expect(time_class == 0, 1))
        return value;
    value |= (uint64_t)*planes[1]++ << 8;
    if (time_class == 1)
        return value;
    value |= (uint64_t)*planes[2]++ << 16;
    if (time_class == 2)
        return value;
    value |= (uint64_t)*planes[3]++ << 24;
    if (time_class == 3)
        return value;
    value |= (uint64_t)*planes[4]++ << 32;
    if (time_class == 4)
        return value;
    value |= (uint64_t)*planes[5]++ << 40;
    if (time_class == 5)
        return value;
    value |= (uint64_t)*planes[6]++ << 48;
    return value | (uint64_t)*planes[7]++ << 56;
}

/* The next event; false at the end of the block. */
static inline bool tare__events_next(tare__events_decoder *decoder, tare__event *event)
{
    if (decoder->ops == decoder->ops_end)
        return false;
    unsigned code = *decoder->ops++;
    unsigned op = code & 7;
    unsigned name_class = code >> 6;
    unsigned time_class = code >> 3 & 7;
    event->op = op;
    uint32_t name = 0;
    if (name_class) {
        name = *decoder->planes[TARE__COLUMN_NAME]++;
        if (name_class > 1) {
            name |= (uint32_t)*decoder->planes[TARE__COLUMN_NAME + 1]++ << 8;
            if (name_class > 2) {
                name |= (uint32_t)*decoder->planes[TARE__COLUMN_NAME + 2]++ << 16;
                name |= (uint32_t)*decoder->planes[TARE__COLUMN_NAME + 3]++ << 24;
            }
        }
    }
    event->name = name;
    if (time_class != 7) {
        unsigned first = tare__op_ends((tare__op)op) ? TARE__COLUMN_END : TARE__COLUMN_BEGIN;
        decoder->ticks += tare__planes_take(&decoder->planes[first], time_class);
    }
    event->ticks = decoder->ticks;
    if (__builtin_expect(op >= TARE__OP_COUNTER, 0))
        event->value = tare__events_value(decoder);
    return true;
}

/* ---- complete spans ---------------------------------------------------------------------------------- */
typedef struct tare__complete_span {
    uint32_t name;
    uint32_t track; /* file name id of the track; 0: the recording thread */
    uint64_t start, end; /* ticks */
    uint64_t id, parent, flow;
} tare__complete_span;

/* Appends header and payload of `n` spans (at most TARE__EVENTS_MAX). The caller has set header->stream and
 * position. 0 or TARE_E_MEMORY. */
int tare__complete_seal(const tare__complete_span *spans, uint32_t n, tare__squeezer *squeezer,
                        tare__block_header *header, tare__text *out);
/* Reads a whole block into `spans` (space for header->count, which is checked to be at most TARE__EVENTS_MAX). 0,
 * TARE_E_INPUT or TARE_E_MEMORY. */
int tare__complete_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                        tare__complete_span *spans);

/* ---- facts ------------------------------------------------------------------------------------------- */
/* What a hook into a library knows about the program: a setting, a place in its source. Key, file and text are names
 * of kind TARE__NAME_FACT, each of at most TARE__NAME_TEXT_MAX bytes. */
typedef struct tare__fact {
    uint32_t key;
    uint32_t file, text; /* 0: none */
    uint32_t line;       /* 0: none */
    uint64_t ticks;
    double value; /* NaN: none */
} tare__fact;

#define TARE__FACTS_MAX 1024u /* per block */

/* Appends header and payload. The caller has set header->stream and position. 0, TARE_E_MEMORY, TARE_E_USAGE. */
int tare__facts_seal(const tare__fact *facts, uint32_t n, tare__squeezer *squeezer, tare__block_header *header,
                     tare__text *out);
/* Reads a whole block into `facts` (space for TARE__FACTS_MAX). 0, TARE_E_INPUT or TARE_E_MEMORY. */
int tare__facts_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                     tare__fact *facts);

/* The program's own profiler wrote a file, with its absolute path; and that file was added to this trace. */
#define TARE__FACT_PROFILER_WROTE "torch.profiler.wrote"
#define TARE__FACT_PROFILER_READ  "torch.profiler.read"

/* The flow of a nested span: a number of this name, which is not added up. */
#define TARE__NAME_FLOW "(flow)"
#define TARE__NAME_OUTER_INDEX "(index)"
#define TARE__NAME_PARTIAL     "(partial)"
/* A call recorded in parts: at the end of a part, and at the begin of the next; and one that is swapped. */
#define TARE__NAME_CONTINUES "(continues)"
#define TARE__NAME_CONTINUED "(continued)"
#define TARE__NAME_SWAP      "(swap)"

/* ---- names ------------------------------------------------------------------------------------------- */
typedef struct tare__file_name {
    uint32_t id;   /* 1, 2, … */
    uint32_t kind; /* tare_kind, or TARE__NAME_TRACK + tare_track_kind */
    uint32_t line;
    const char *text, *file; /* not NUL terminated */
    uint32_t text_bytes, file_bytes;
} tare__file_name;

typedef void tare__name_sink(void *context, const tare__file_name *name);
/* Appends as many blocks as needed. 0, TARE_E_MEMORY, or TARE_E_USAGE for a name over 1 MiB. */
/* The word for a span of that kind of name: "span", "step", … */
const char *tare__span_kind_word(uint32_t kind);
int tare__names_seal(const tare__file_name *names, uint32_t n, tare__squeezer *squeezer, tare__text *out);
int tare__names_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                     tare__name_sink *sink, void *context);

/* ---- aggregates: the current cells of one stream ------------------------------------------------------ */
typedef struct tare__aggregate {
    uint32_t name;
    uint32_t every;
    uint64_t count, timed, total, min, max;
    const uint32_t *buckets; /* TARE__CELL_BUCKETS */
} tare__aggregate;

typedef void tare__aggregate_sink(void *context, const tare__aggregate *aggregate);
/* All of a stream in one block: a later block replaces it. The caller has set header->stream. 0, TARE_E_MEMORY, or
 * TARE_E_USAGE if they do not fit. */
int tare__aggregates_seal(const tare__aggregate *aggregates, uint32_t n, tare__squeezer *squeezer,
                          tare__block_header *header, tare__text *out);
int tare__aggregates_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                          tare__aggregate_sink *sink, void *context);

/* ---- series and samples: values over time ---------------------------------------------------------------
 * A series is one metric of one subject. SERIES blocks describe new series, and all of them again at
 * the end; a later record of the same id replaces an earlier one (a label becomes known, values end). */
typedef struct tare__series {
    uint32_t id;         /* 1, 2, … */
    uint32_t unit;       /* tare__unit_kind */
    uint32_t kind;       /* tare__metric_kind */
    uint32_t subject;    /* tare__subject_kind */
    uint64_t key, owner; /* as defined for the kind of subject; else 0 */
    const char *metric, *label; /* not NUL terminated; the label may be empty */
    const char *absent;  /* why there are no values, or no further ones: a sentence without full stop; empty: none */
    uint32_t metric_bytes, label_bytes, absent_bytes;
} tare__series;

typedef void tare__series_sink(void *context, const tare__series *series);
/* Appends as many blocks as needed. 0, TARE_E_MEMORY, or TARE_E_USAGE for texts over 1 MiB. */
int tare__series_seal(const tare__series *series, uint32_t n, tare__squeezer *squeezer, tare__text *out);
int tare__series_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                      tare__series_sink *sink, void *context);

/* Collects samples tick by tick; belongs to one thread. */
typedef struct tare__samples tare__samples;
#define TARE__SAMPLES_TICKS_MAX 4096u   /* per block */
#define TARE__SAMPLES_VALUES_MAX 65536u /* per block */
tare__samples *tare__samples_new(void); /* NULL: no memory */
void tare__samples_free(tare__samples *samples);
/* Starts a tick; ticks increase. False: seal first (full), or out of memory. */
bool tare__samples_tick(tare__samples *samples, uint64_t ticks);
/* A value of the current tick; a series at most once per tick. False: full or out of memory; it is then absent. */
bool tare__samples_put(tare__samples *samples, uint32_t series, int64_t value);
uint32_t tare__samples_values(const tare__samples *samples); /* so far */
/* Appends one SAMPLES block and starts over; appends nothing if there are no values. 0 or TARE_E_MEMORY. */
int tare__samples_seal(tare__samples *samples, tare__squeezer *squeezer, tare__text *out);

/* Values of a series at consecutive ticks of the block: ticks[i] has values[i]. */
typedef void tare__samples_sink(void *context, uint32_t series, const uint64_t *ticks, const int64_t *values,
                                uint32_t n);
/* Checks the whole block first. 0, TARE_E_INPUT or TARE_E_MEMORY. */
int tare__samples_read(const tare__block_header *header, const uint8_t *payload, tare__squeezer *squeezer,
                       tare__samples_sink *sink, void *context);

/* ---- clock syncs, fields ----------------------------------------------------------------------------- */
struct tare__clock_sync;
int tare__clock_seal(const struct tare__clock_sync *syncs, uint32_t n, tare__text *out);
/* Reads up to `room` syncs; 0 or TARE_E_INPUT. */
int tare__clock_read(const tare__block_header *header, const uint8_t *payload, struct tare__clock_sync *syncs,
                     uint32_t room, uint32_t *n);

void tare__field_number(tare__text *fields, tare__field tag, uint64_t value);
void tare__field_some(tare__text *fields, tare__field tag, uint64_t value); /* a number, unless it is 0 */
void tare__field_bytes(tare__text *fields, tare__field tag, const void *data, size_t bytes);
void tare__field_string(tare__text *fields, tare__field tag, const char *string);
/* Wraps fields into a block of this kind. */
int tare__fields_seal(tare__block_kind kind, uint32_t stream, const tare__text *fields, tare__text *out);
/* The next field; false at the end or if the rest is invalid (reader->failed). */
bool tare__field_next(tare__reader *reader, uint32_t *tag, const uint8_t **data, size_t *bytes);
uint64_t tare__field_value(const uint8_t *data, size_t bytes);

#endif
