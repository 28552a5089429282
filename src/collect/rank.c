/* rank: the rank of a process in a distributed job, as set by its launcher in the environment.
 * One thread. Must not know rings, nor what ranks do. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"

/* Variables that launchers set: the rank, and the number of ranks. torchrun and compatible ones; Open MPI; MPICH and
 * Intel MPI; Slurm, which sets them for a single task too. */
static const struct {
    const char *rank, *size;
} launchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

/* The number in a variable; -1: not set, or not a number. */
static int64_t variable(const char *environment, size_t bytes, const char *name)
{
    size_t length = strlen(name);
    for (size_t at = 0; at < bytes; at += strnlen(environment + at, bytes - at) + 1) {
        const char *text = environment + at;
        if (bytes - at <= length || strncmp(text, name, length) != 0 || text[length] != '=')
            continue;
        char *end;
        long value = strtol(text + length + 1, &end, 10);
        return end > text + length + 1 && *end == '\0' && value >= 0 ? value : -1;
    }
    return -1;
}

int64_t tare__rank_in(const char *environment, size_t bytes)
{
    for (size_t i = 0; i < TARE__COUNT_OF(launchers); i++) {
        int64_t rank = variable(environment, bytes, launchers[i].rank);
        if (rank >= 0 && variable(environment, bytes, launchers[i].size) > 1)
            return rank;
    }
    return -1;
}

int64_t tare__rank_of(pid_t pid)
{
    static char environment[1 << 17]; /* variables are terminated by NUL */
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    int got = tare__sample_read("", path, environment, sizeof environment);
    return got > 0 ? tare__rank_in(environment, (size_t)got) : -1;
}
