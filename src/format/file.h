/* file: the blocks of a .tare file. The specification is docs/FORMAT.md; all integers little-endian.
 * Must not know who writes and who reads. */
#ifndef TARE_FORMAT_FILE_H
#define TARE_FORMAT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define TARE__FILE_MAGIC "\x89TARE\r\n\x1a" /* like PNG's: detects text-mode damage */
#define TARE__FILE_MAJOR 1                  /* a reader refuses another major version */
#define TARE__FILE_MINOR 4                  /* and reads any minor one, skipping unknown parts */

typedef struct tare__file_header {
    uint8_t magic[8];
    uint16_t major;
    uint16_t minor;
    uint32_t crc; /* CRC32C of the 12 bytes before */
} tare__file_header;

typedef enum tare__block_kind {
    TARE__BLOCK_RUN = 1,        /* fields: what ran, where, when (first block of a file); a later one replaces it */
    TARE__BLOCK_NAMES = 2,      /* names as they are first used; all repeated at the end */
    TARE__BLOCK_PROCESS = 3,    /* fields: one process; a later one replaces an earlier one */
    TARE__BLOCK_STREAM = 4,     /* fields: one stream (thread); a later one replaces an earlier one */
    TARE__BLOCK_CLOCK = 5,      /* syncs */
    TARE__BLOCK_EVENTS = 6,     /* nested spans, marks, counters, numbers of one stream */
    TARE__BLOCK_COMPLETE = 7,   /* complete spans recorded by one stream */
    TARE__BLOCK_AGGREGATES = 8, /* one stream's aggregate spans; a later one replaces an earlier one */
    TARE__BLOCK_END = 9,        /* fields: how it ended (last block of a complete file) */
    TARE__BLOCK_SERIES = 10,    /* sampled series as they appear; all repeated at the end */
    TARE__BLOCK_SAMPLES = 11,   /* values of series at some ticks */
    TARE__BLOCK_FACTS = 12,     /* what hooks into libraries know about the program, recorded by one stream */
    TARE__BLOCK_STACKS = 13,    /* functions, call stacks and sampled threads as they are first used */
    TARE__BLOCK_STACK_SAMPLES = 14, /* threads at some times: state, and stack by number */
    TARE__BLOCK_SYMBOLS = 15    /* the functions at offsets of objects that native stacks have */
} tare__block_kind;

#define TARE__BLOCK_MAGIC 0x4B4C4254u /* "TBLK" */

typedef struct tare__block_header {
    uint32_t magic;
    uint16_t kind;
    uint16_t flags;          /* 0 */
    uint32_t payload_bytes;  /* after this header */
    uint32_t stream;         /* file-wide stream id; 0 for none */
    uint32_t count;          /* records */
    uint32_t spans;          /* EVENTS: spans begun in it; COMPLETE: all; else 0 */
    uint64_t first_ticks;    /* time range; 0, 0 for none */
    uint64_t last_ticks;
    uint64_t position;       /* EVENTS, COMPLETE, FACTS: read position in the stream's ring after this block */
    uint32_t ordinal;        /* EVENTS: 0, 1, 2, … in its stream, so that a lost block is detected */
    uint32_t payload_crc;    /* CRC32C */
    uint32_t reserved;
    uint32_t header_crc;     /* CRC32C of the bytes before */
} tare__block_header;

_Static_assert(sizeof(tare__block_header) == 64, "no padding");

/* A payload larger than this is damage (writers stay far below). */
#define TARE__BLOCK_PAYLOAD_MAX (4u << 20)

/* Position in a stream's ring: chunk sequence, and slots of that chunk read (main, then reserve). */
#define TARE__POSITION(sequence, slots) ((uint64_t)(sequence) << 16 | (uint64_t)(slots))
#define TARE__POSITION_SEQUENCE(position) ((uint32_t)((position) >> 16))
#define TARE__POSITION_SLOTS(position) ((uint32_t)((position)&0xFFFFu))

/* ---- fields: (varint tag, varint length, bytes) in RUN, PROCESS, STREAM, END ---------------------------
 * Numbers are varints, signed ones zigzag. A reader skips unknown tags. */
typedef enum tare__field {
    /* RUN */
    TARE__FIELD_SESSION_ID = 1,
    TARE__FIELD_COMMAND = 2,      /* arguments, each ended by NUL */
    TARE__FIELD_HOST = 3,
    TARE__FIELD_START_REALTIME = 4, /* ns since 1970 */
    TARE__FIELD_CLOCK_KIND = 5,
    TARE__FIELD_WRITER = 6,       /* "tare 0.1.0" */
    TARE__FIELD_FOLDER = 7,       /* the session folder, to salvage from if the END block is missing */
    TARE__FIELD_CPUS = 8,
    TARE__FIELD_CPU_MODEL = 9,
    TARE__FIELD_START_TICKS = 10,
    TARE__FIELD_DIRECTORY = 11,   /* working directory */
    TARE__FIELD_KERNEL = 12,      /* "Linux 6.1.0-13-amd64" */
    TARE__FIELD_SYSTEM = 13,      /* "Debian GNU/Linux 12 (bookworm)" */
    TARE__FIELD_REVISION = 14,    /* of the working directory: "4f2a9c1 on main, with changes" */
    TARE__FIELD_INTERVAL = 15,    /* requested sampling interval in ns; absent: no sampling */
    TARE__FIELD_ATTACHED = 16,    /* pid of the process attached to */
    TARE__FIELD_MEMORY = 17,      /* bytes of the machine */
    TARE__FIELD_GPUS = 18,        /* "2 x NVIDIA H200, driver 580.65.06"; or "n/a: " and why */
    TARE__FIELD_CARBON = 19,      /* grams of CO2 per kilowatt-hour, times 1000, as configured */
    TARE__FIELD_PEAKS = 92,       /* of the machine, measured at the start of the run, as written by
                                   * tare__peaks_write */
    /* PROCESS */
    TARE__FIELD_PROCESS = 20,     /* file-wide process number: 1, 2, … */
    TARE__FIELD_PROCESS_ID = 21,  /* 16 random bytes; absent: seen but not joined */
    TARE__FIELD_PID = 22,         /* outer pid */
    TARE__FIELD_PARENT_PID = 23,
    TARE__FIELD_PARENT_ID = 24,   /* 16 bytes: of the process it was forked from */
    TARE__FIELD_PROCESS_COMMAND = 25,
    TARE__FIELD_JOINED_TICKS = 26,
    TARE__FIELD_LEFT_TICKS = 27,
    TARE__FIELD_NOT_JOINED = 28,  /* message: why it was only seen */
    TARE__FIELD_COST_PAIR = 29,   /* 1/256 ticks */
    TARE__FIELD_COST_INNER = 30,
    TARE__FIELD_COST_NEXT = 31,
    TARE__FIELD_COST_AGGREGATE = 32,
    TARE__FIELD_UNATTRIBUTED_SPANS = 33,
    TARE__FIELD_UNATTRIBUTED_OTHERS = 34,
    TARE__FIELD_NAMES_REFUSED = 35,
    TARE__FIELD_INNER_PID = 36,   /* in its own namespace, if different */
    TARE__FIELD_UNREADABLE = 37,  /* message: why its ring could not be read, or not to the end */
    TARE__FIELD_EXIT_STATUS = 38, /* as returned by wait(); known for the direct child only */
    TARE__FIELD_RANK = 39,        /* of a process of a distributed job, as set by its launcher */
    TARE__FIELD_IMPORTS = 92,     /* lines: "python 31000" when a Python interpreter was ready, "import 40000 1810000
                                   * torch" for an import, "inside …" for one inside another, "exit 9100000" when the
                                   * program ended; µs since START_TICKS */
    /* STREAM */
    TARE__FIELD_STREAM = 40,      /* file-wide stream id: 1, 2, … */
    TARE__FIELD_STREAM_PROCESS = 41,
    TARE__FIELD_TID = 42,
    TARE__FIELD_THREAD_NAME = 43,
    TARE__FIELD_DROPPED_SPANS = 44,
    TARE__FIELD_DROPPED_OTHERS = 45,
    TARE__FIELD_STREAM_NUMBER = 46, /* in its process: tare__chunk.stream */
    TARE__FIELD_SKIPPED_SLOTS = 47, /* reserved and never filled */
    /* END */
    TARE__FIELD_END_REALTIME = 60,
    TARE__FIELD_END_TICKS = 61,
    TARE__FIELD_STATUS = 62,      /* exit status as returned by tare run; absent: unknown */
    TARE__FIELD_SIGNAL = 63,      /* that killed the program; absent: none */
    TARE__FIELD_COLLECTOR_CPU = 64, /* ns of CPU time the collector used, user + system */
    TARE__FIELD_ROTATED_SPANS = 65, /* spans in blocks removed by --max-size or --last */
    TARE__FIELD_ROTATED_BEFORE = 66, /* ticks: events before this are incomplete */
    TARE__FIELD_SALVAGED = 67,    /* 1: completed by a later command after the collector was killed */
    TARE__FIELD_REFUSED_SPACE = 68, /* processes that could not join, by reason */
    TARE__FIELD_REFUSED_ABI = 69,
    TARE__FIELD_REFUSED_SYSTEM = 70,
    TARE__FIELD_REFUSED_COPY = 71,
    TARE__FIELD_WRITE_ERROR = 72, /* message: disk full, … and what is missing */
    TARE__FIELD_LEFT_RUNNING = 73, /* recorded processes still running when it ended */
    TARE__FIELD_SAMPLER_CPU = 74,  /* of COLLECTOR_CPU: ns spent sampling */
    TARE__FIELD_STRETCHED = 75,    /* longest sampling interval in ns, if it was increased to limit overhead */
    TARE__FIELD_CHILD_USER = 76,   /* the direct child and the children it waited for, as reported by the kernel: ns
                                    * of CPU */
    TARE__FIELD_CHILD_SYSTEM = 77,
    TARE__FIELD_CHILD_PEAK = 78,   /* bytes: largest resident set of one of these, exact */
    TARE__FIELD_OOM_KILLED = 79,   /* 1: the kernel killed a process of the run: out of memory */
    TARE__FIELD_UNREAD_RINGS = 80, /* of processes, in the session folder, that could not be read */
    TARE__FIELD_NOTES = 81,        /* one sentence per line: what was not recorded, and why */
    TARE__FIELD_FOLDER_GONE = 82   /* 1: the session folder was removed during the recording */
} tare__field;

/* ---- checksums ------------------------------------------------------------------------------------------------ */
/* CRC32C (Castagnoli), as in iSCSI and ext4. Start with 0; pass the result to continue. */
uint32_t tare__crc32c(uint32_t crc, const void *data, size_t bytes);

void tare__file_header_make(tare__file_header *header);
void tare__block_header_seal(tare__block_header *header, const void *payload); /* fills magic and both CRCs */
/* NULL if magic and CRC of the header are correct and the lengths are valid, else what is wrong. */
const char *tare__block_header_check(const tare__block_header *header);

#endif
