/* writer: a trace file that grows by whole blocks and is readable at every moment. Only outside of the target.
 * One thread owns a writer.
 * Must not know what is in the blocks but for their headers, nor who makes them. */
#ifndef TARE_FORMAT_WRITER_H
#define TARE_FORMAT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "file.h"
#include "ring.h"

typedef struct tare__block_entry { /* kept when old blocks are to be taken out */
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
    uint64_t reserved;       /* the disk has room for the file up to here */
    bool last_words;         /* what is written now may use that room up */
    char trouble[512];
    char moved[512];         /* a sentence: its name was taken, and where it is now; "" */
    mode_t mode;
    /* rotation */
    uint64_t max_bytes;
    bool rotates;
    tare__block_entry *entries;
    size_t entry_count, entry_room;
    uint64_t rotated_spans, rotated_before;
} tare__writer;

/* Claims a name that is not taken and writes the file's header; to overwrite, what has the name stays until
 * tare__writer_settle. 0 or a status. */
int tare__writer_create(tare__writer *writer, const char *path, bool overwrite, bool readable, tare__error *error);
/* Puts the new file in the place of the old one. 0, or a status with the trouble noted. */
int tare__writer_settle(tare__writer *writer);
void tare__writer_abandon(tare__writer *writer); /* removes the new file, and nothing that is not ours */
/* Whether the open file still has this name. One that was renamed is found, one that was removed or replaced is saved
 * under a name that is not taken (*fd is the new file), and `note` is a sentence about it. False: it has no name. */
bool tare__file_keep(int *fd, char path[TARE__PATH_BYTES], mode_t mode, char *note, size_t room);
/* A file that is there, to be written on from its first `bytes` on. 0 or a status. */
int tare__writer_open(tare__writer *writer, const char *path, uint64_t bytes, tare__error *error);
/* What comes behind the first `bytes` goes. */
void tare__writer_cut(tare__writer *writer, uint64_t bytes);
/* Appends whole blocks; on failure the file is as before and the trouble is noted. 0 or a status. */
/* Takes the last block of events out again, and all after it; its spans are lost_spans now. */
void tare__writer_drop_last(tare__writer *writer);
int tare__writer_append(tare__writer *writer, const tare__text *blocks);
/* Takes out events and samples that end before `before_ticks`, and the oldest down to `keep_bytes` (0: any size). */
int tare__writer_compact(tare__writer *writer, uint64_t before_ticks, uint64_t keep_bytes);
void tare__writer_close(tare__writer *writer);

#endif
