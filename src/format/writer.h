/* writer: a trace file that grows by whole blocks and is readable at any time. Only outside of the target.
 * One thread owns a writer.
 * Must not know the content of blocks beyond their headers, nor who makes them. */
#ifndef TARE_FORMAT_WRITER_H
#define TARE_FORMAT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "file.h"
#include "ring.h"

typedef struct tare__block_entry { /* kept if old blocks are to be dropped */
    uint64_t offset;
    uint64_t last_ticks;
    uint32_t bytes;
    uint32_t spans;
    uint32_t key; /* stream or process */
    uint16_t kind;
} tare__block_entry;

typedef struct tare__writer {
    int fd;
    char path[TARE__PATH_BYTES];
    char *temporary;         /* its name until tare__writer_settle; NULL: it has its own */
    uint64_t bytes;          /* written; the file ends here */
    uint64_t last_block;     /* where the last event block starts */
    uint64_t spans;
    uint64_t lost_spans;     /* that could not be written */
    uint64_t reserved;       /* disk space is reserved up to here */
    bool last_words;         /* the current write may use the reserved space */
    char problem[512];
    char moved[512];         /* message: its name was taken, and its new name; "" */
    mode_t mode;
    /* rotation */
    uint64_t max_bytes;
    bool rotates;
    tare__block_entry *entries;
    size_t entry_count, entry_room;
    uint64_t rotated_spans, rotated_before;
} tare__writer;

/* Creates a file with an unused name and writes its header; to overwrite, the existing file is kept until
 * tare__writer_settle. 0 or a status. */
int tare__writer_create(tare__writer *writer, const char *path, bool overwrite, bool readable, tare__error *error);
/* Replaces the old file by the new one. 0, or a status with the error recorded. */
int tare__writer_settle(tare__writer *writer);
void tare__writer_abandon(tare__writer *writer); /* removes the new file, and no other */
/* Whether the open file still has this name. A renamed file is found, a removed or replaced one is saved under an
 * unused name (*fd is the new file), and `note` has a message. False: it has no name. */
bool tare__file_keep(int *fd, char path[TARE__PATH_BYTES], mode_t mode, char *note, size_t room);
/* Opens an existing file to continue after its first `bytes`. 0 or a status. */
int tare__writer_open(tare__writer *writer, const char *path, uint64_t bytes, tare__error *error);
/* Removes everything after the first `bytes`. */
void tare__writer_cut(tare__writer *writer, uint64_t bytes);
/* Appends whole blocks; on failure the file is unchanged and the error is recorded. 0 or a status. */
/* Removes the last block of events, and everything after it; its spans are added to lost_spans. */
void tare__writer_drop_last(tare__writer *writer);
int tare__writer_append(tare__writer *writer, const tare__text *blocks);
/* Whether blocks of this kind are dropped when they are old; all others are needed to read the rest. */
bool tare__writer_drops(uint16_t kind);
/* Drops events and samples that end before `before_ticks`, and the oldest down to `keep_bytes` (0: any size). */
int tare__writer_compact(tare__writer *writer, uint64_t before_ticks, uint64_t keep_bytes);
void tare__writer_close(tare__writer *writer);

#endif
