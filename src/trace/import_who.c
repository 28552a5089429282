/* import_who: assigns numbers to names, processes, threads and tracks of a foreign trace as they appear.
 * One thread.
 * Must not know what happened on them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import_inner.h"

/* Limits that a reader of the file accepts. */
#define NAMES_MAX      (1u << 19)
#define NAME_TEXTS_MAX ((size_t)16 << 20)
#define PLACES_MAX     (1u << 16)
#define PROCESSES_MAX  (1u << 14)

static const char others[] = "(other names)";

uint32_t tare__import_name(tare__importer *importer, uint32_t kind, const char *text, size_t length)
{
    char key[TARE__NAME_TEXT_MAX + 1];
    if (length > TARE__NAME_TEXT_MAX)
        length = TARE__NAME_TEXT_MAX;
    key[0] = (char)kind;
    memcpy(key + 1, text, length);
    uint32_t id = tare__intern_find(importer->names, key, length + 1);
    if (id != TARE__INTERN_NONE)
        return importer->names_before + id + 1;
    if (tare__intern_count(importer->names) >= NAMES_MAX || importer->name_bytes + length > NAME_TEXTS_MAX) {
        importer->report->renamed++;
        length = sizeof others - 1;
        memcpy(key + 1, others, length);
    }
    importer->name_bytes += length;
    id = tare__intern_add(importer->names, key, length + 1);
    return id == TARE__INTERN_NONE ? 0 : importer->names_before + id + 1;
}

static int64_t number_of(const char *text)
{
    int64_t value;
    return tare__json_scaled(text, strlen(text), 1, &value) ? value : 0;
}

/* The index of a key; *fresh: it is new. TARE__INTERN_NONE: too many, or out of memory. */
static uint32_t find_key(tare__importer *importer, tare__intern *keys, const char *key, size_t length,
                         uint32_t limit, bool *fresh)
{
    uint32_t id = tare__intern_find(keys, key, length);
    *fresh = id == TARE__INTERN_NONE;
    if (!*fresh)
        return id;
    if (tare__intern_count(keys) >= limit)
        return TARE__INTERN_NONE;
    id = tare__intern_add(keys, key, length);
    importer->no_memory |= id == TARE__INTERN_NONE;
    return id;
}

tare__import_process *tare__import_process_of(tare__importer *importer, const char *pid)
{
    bool fresh;
    size_t needed = (size_t)tare__intern_count(importer->process_keys) + 1;
    if (!tare__array_fit(&importer->processes, &importer->process_room, needed,
                         sizeof *importer->processes)) {
        importer->no_memory = true;
        return NULL;
    }
    uint32_t id = find_key(importer, importer->process_keys, pid, strlen(pid), PROCESSES_MAX, &fresh);
    if (id == TARE__INTERN_NONE)
        return NULL;
    if (fresh)
        importer->processes[id] = (tare__import_process){.pid = number_of(pid)};
    return &importer->processes[id];
}

static uint32_t find_place(tare__importer *importer, const char *key, size_t length, const char *pid,
                           bool *fresh)
{
    size_t needed = (size_t)tare__intern_count(importer->place_keys) + 1;
    if (!tare__array_fit(&importer->places, &importer->place_room, needed, sizeof *importer->places)) {
        importer->no_memory = true;
        return TARE__NO_PLACE;
    }
    uint32_t id = find_key(importer, importer->place_keys, key, length, PLACES_MAX, fresh);
    if (id == TARE__INTERN_NONE)
        return TARE__NO_PLACE;
    if (!*fresh)
        return id;
    tare__import_process *process = tare__import_process_of(importer, pid);
    importer->places[id] = (tare__import_place){
        .process = process ? (uint32_t)(process - importer->processes) : TARE__NO_PLACE,
    };
    return id;
}

uint32_t tare__import_thread(tare__importer *importer, const char *pid, const char *tid)
{
    char key[160];
    bool fresh;
    size_t pid_bytes = strlen(pid), tid_bytes = strlen(tid);
    memcpy(key, pid, pid_bytes);
    key[pid_bytes] = '\n';
    memcpy(key + pid_bytes + 1, tid, tid_bytes);
    uint32_t id = find_place(importer, key, pid_bytes + 1 + tid_bytes, pid, &fresh);
    if (id != TARE__NO_PLACE && fresh) {
        importer->places[id].tid = number_of(tid);
        if (importer->places[id].tid == 0)
            snprintf(importer->places[id].label, sizeof importer->places[id].label, "%s", tid);
    }
    return id == TARE__NO_PLACE || importer->places[id].process == TARE__NO_PLACE ? TARE__NO_PLACE : id;
}

uint32_t tare__import_track(tare__importer *importer, const char *pid, uint32_t kind, const char *label)
{
    char key[256];
    bool fresh;
    int length = snprintf(key, sizeof key, "%s\n\n%u\n%.128s", pid, kind, label);
    uint32_t id = find_place(importer, key, (size_t)length, pid, &fresh);
    if (id == TARE__NO_PLACE)
        return id;
    if (fresh)
        importer->places[id].track =
            tare__import_name(importer, TARE__NAME_TRACK + kind, label, strlen(label));
    importer->no_memory |= importer->places[id].track == 0;
    return importer->places[id].track ? id : TARE__NO_PLACE;
}

void tare__import_free_who(tare__importer *importer)
{
    for (uint32_t i = 0; importer->places && i < tare__intern_count(importer->place_keys); i++)
        free(importer->places[i].open);
    free(importer->places);
    free(importer->processes);
    tare__intern_free(importer->names);
    tare__intern_free(importer->place_keys);
    tare__intern_free(importer->process_keys);
}
