/* collector: the loop over all rings, the clock syncs, and the first and last blocks.
 * One thread. Must not know how the program was launched. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "collector.h"

#define ACTIVE_FOR_NS 100000000u
#define MOVING_FOR_NS 1000000000u
#define START_UP_NS 20000000u /* most programs that record do so by then */
#define ACTIVE_CHUNKS 4u /* in one tick: a program that fills its buffer within about 100 ms */
#define FIRST_SYNC_GAP_NS 5000000u
#define SYNC_GAP_NS 1000000000u
#define ROTATE_CHECK_NS 250000000u

int tare__collector_open(tare__collector *collector, tare__error *error)
{
    collector->squeezer = tare__squeezer_new();
    collector->encoder = tare__events_encoder_new();
    collector->names = tare__intern_new();
    collector->name_arena = tare__arena_new();
    collector->complete = malloc(TARE__EVENTS_MAX * sizeof *collector->complete);
    if (!collector->squeezer || !collector->encoder || !collector->names || !collector->name_arena ||
        !collector->complete)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    return 0;
}

void tare__collector_free(tare__collector *collector)
{
    tare__bus_leave();
    for (uint32_t i = 0; i < collector->source_count; i++)
        tare__source_free(collector->sources[i]);
    free(collector->sources);
    free(collector->done);
    free(collector->processes);
    free(collector->entry_of);
    tare__sampling_free(collector);
    free(collector->all_names);
    free(collector->complete);
    tare__span_stack_free(&collector->before);
    tare__text_free(&collector->block);
    tare__text_free(&collector->fields);
    tare__text_free(&collector->run_fields);
    tare__text_free(&collector->notes);
    tare__text_free(&collector->ended);
    tare__squeezer_free(collector->squeezer);
    tare__events_encoder_free(collector->encoder);
    tare__intern_free(collector->names);
    tare__arena_free(collector->name_arena);
    tare__writer_close(&collector->writer);
}

/* ---- clock syncs ------------------------------------------------------------------------------------------- */

static void write_syncs(tare__collector *collector, const tare__clock_sync *syncs, uint32_t n)
{
    tare__text_clear(&collector->block);
    tare__clock_seal(syncs, n, &collector->block);
    tare__writer_append(&collector->writer, &collector->block);
}

void tare__collector_write_sync(tare__collector *collector, const tare__clock_sync *sync)
{
    write_syncs(collector, sync, 1);
}

/* Frequent at the start and then less often, so that even a run killed early has two. */
static void sync_clock(tare__collector *collector, bool now_in_any_case)
{
    uint64_t now = tare__monotonic_ns();
    if (!now_in_any_case && collector->sync_ns && now - collector->sync_ns < collector->sync_gap_ns)
        return;
    tare__clock_sync sync;
    tare__folder_sync(&collector->folder, &sync);
    write_syncs(collector, &sync, 1);
    collector->sync_ns = now;
    collector->sync_gap_ns = collector->sync_gap_ns ? collector->sync_gap_ns * 2 : FIRST_SYNC_GAP_NS;
    if (collector->sync_gap_ns > SYNC_GAP_NS)
        collector->sync_gap_ns = SYNC_GAP_NS;
}

/* ---- the first blocks -------------------------------------------------------------------------------------- */
static void tell_peaks(tare__text *fields, const tare__peaks *peaks)
{
    tare__text words = {0};
    tare__peaks_write(peaks, &words);
    if (words.length)
        tare__field_string(fields, TARE__FIELD_PEAKS, words.data);
    tare__text_free(&words);
}

int tare__collector_head(tare__collector *collector, const tare__run_about *about)
{
    tare__text *fields = &collector->run_fields;
    tare__session_page *page = collector->folder.page;
    char directory[4096];
    tare__text words = {0};
    for (char *const *word = about->command; word && *word; word++)
        tare__text_append(&words, *word, strlen(*word) + 1);
    tare__clock_sync sync;
    tare__folder_sync(&collector->folder, &sync);
    collector->started_ticks = sync.ticks;
    collector->started_ns = sync.monotonic_ns;
    collector->active_ns = collector->moving_ns = sync.monotonic_ns; /* programs are often busy at the start */
    tare__text_clear(fields);
    tare__field_bytes(fields, TARE__FIELD_SESSION_ID, page->id, TARE__ID_BYTES);
    tare__field_bytes(fields, TARE__FIELD_COMMAND, words.data ? words.data : "", words.length);
    tare__field_number(fields, TARE__FIELD_START_REALTIME, sync.realtime_ns);
    tare__field_number(fields, TARE__FIELD_START_TICKS, sync.ticks);
    tare__field_number(fields, TARE__FIELD_CLOCK_KIND, page->clock);
    tare__field_string(fields, TARE__FIELD_WRITER, "tare " TARE_VERSION);
    tare__field_string(fields, TARE__FIELD_FOLDER, collector->folder.path);
    tare__tell_environment(fields);
    tare__field_some(fields, TARE__FIELD_INTERVAL, about->interval_ns);
    tare__field_some(fields, TARE__FIELD_ATTACHED, (uint64_t)about->attached);
    if (about->carbon_g_per_kwh > 0)
        tare__field_number(fields, TARE__FIELD_CARBON, (uint64_t)(about->carbon_g_per_kwh * 1000 + 0.5));
    tell_peaks(fields, &about->peaks);
    tare__text_free(&words);
    tare__text_clear(&collector->block);
    tare__fields_seal(TARE__BLOCK_RUN, 0, fields, &collector->block);
    int status = tare__writer_append(&collector->writer, &collector->block);
    if (status)
        return status;
    write_syncs(collector, &sync, 1);
    collector->sync_ns = sync.monotonic_ns;
    collector->sync_gap_ns = FIRST_SYNC_GAP_NS;
    /* The absolute path: a later salvage may run in any directory. */
    const char *temporary = collector->writer.temporary, *trace = collector->writer.path;
    char ending[TARE__ENDING_BYTES] = ""; /* the final name is shorter by ".XXXXXX" */
    if (realpath(temporary ? temporary : trace, directory)) {
        trace = directory;
        if (temporary) {
            char *end = directory + strlen(directory) - (strlen(temporary) - strlen(collector->writer.path));
            snprintf(ending, sizeof ending, "%s", end);
            *end = '\0';
        }
    }
    size_t length = strlen(trace);
    if (length < sizeof page->trace)
        strcpy(page->trace, trace);
    if (length + 1 + sizeof ending <= sizeof page->trace)
        strcpy(page->trace + length + 1, ending);
    atomic_store(&page->state, TARE__SESSION_OPEN);
    tare__bus_watch(collector);
    return 0;
}

/* ---- rounds ------------------------------------------------------------------------------------------------ */

/* When salvaging, the end of the process was not observed. Its last event is used. */
static void note_last_event(tare__collector *collector, tare__source *source)
{
    uint64_t last = source->ring->joined;
    for (size_t i = 0; i < source->stream_room; i++)
        if (source->streams[i] && source->streams[i]->last_ticks > last)
            last = source->streams[i]->last_ticks;
    if (!source->lives)
        source->left_ticks = last;
    if (last > collector->last_ticks)
        collector->last_ticks = last;
}

static void end_source(tare__collector *collector, uint32_t index)
{
    tare__source *source = collector->sources[index];
    source->gone = true; /* up to the end of this file */
    if (!source->broken)
        tare__source_drain(collector, source, true);
    collector->broken_rings += source->broken;
    if (collector->salvaging)
        note_last_event(collector, source);
    else if (!source->left_ticks)
        source->left_ticks = tare__clock_ticks(collector->folder.page->clock);
    collector->unattributed_spans += atomic_load(&source->ring->unattributed_spans);
    tare__tell_process(collector, source, -1);
    if (!collector->salvaging) {
        tare__source_done(collector, source);
        uint64_t chunks = source->bytes - source->chunks_offset;
        atomic_fetch_add(&collector->folder.page->bytes_left, (int64_t)chunks);
    }
    tare__source_free(source);
    collector->sources[index] = collector->sources[--collector->source_count];
}

static uint64_t newest_of(const tare__writer *writer, bool events_only)
{
    uint64_t newest = 0;
    for (size_t i = 0; i < writer->entry_count; i++)
        if ((!events_only || writer->entries[i].kind == TARE__BLOCK_EVENTS) && writer->entries[i].last_ticks > newest)
            newest = writer->entries[i].last_ticks;
    return newest;
}

/* For --last: removes events older than the window, exactly at the end, before that when it is worthwhile. The
 * window ends with the newest block, not now, so that a late collector does not treat everything as old. At the end
 * the window ends with the last event, since the last samples are late too, unless that is more than a window ago. */
static void rotate(tare__collector *collector, bool final)
{
    tare__writer *writer = &collector->writer;
    uint64_t now = tare__monotonic_ns();
    if (!collector->last_ns || (!final && now - collector->rotate_check_ns < ROTATE_CHECK_NS))
        return;
    collector->rotate_check_ns = now;
    tare__clock_sync sync;
    tare__folder_sync(&collector->folder, &sync);
    double ticks = (double)(sync.ticks - collector->started_ticks);
    double window = (double)collector->last_ns * ticks / (double)(sync.monotonic_ns - collector->started_ns + 1);
    if (ticks <= window)
        return;
    uint64_t newest = newest_of(writer, false), event = newest_of(writer, true), stale = 0, fresh = 0;
    if (final && newest - event <= (uint64_t)window)
        newest = event;
    uint64_t before = newest > (uint64_t)window ? newest - (uint64_t)window : 0;
    for (size_t i = 0; i < writer->entry_count; i++)
        if (tare__writer_drops(writer->entries[i].kind))
            *(writer->entries[i].last_ticks < before ? &stale : &fresh) += writer->entries[i].bytes;
    if (final || (stale > fresh && stale > (1u << 20)))
        tare__writer_compact(writer, before, 0);
}

void tare__collector_tick(tare__collector *collector)
{
    uint64_t given_back = collector->given_back;
    uint32_t joined = collector->joined;
    collector->block.failed = collector->fields.failed = false;
    tare__sources_find(collector);
    for (uint32_t i = 0; i < collector->source_count;) {
        tare__source *source = collector->sources[i];
        tare__source_check_alive(collector, source);
        if (source->gone || source->broken) {
            end_source(collector, i);
            continue;
        }
        tare__source_grow(collector, source);
        tare__source_drain(collector, source, false);
        i++;
    }
    sync_clock(collector, false);
    rotate(collector, false);
    tare__move_aside(collector);
    if (collector->given_back != given_back)
        collector->moving_ns = tare__monotonic_ns();
    if (collector->given_back - given_back >= ACTIVE_CHUNKS || collector->joined != joined)
        collector->active_ns = tare__monotonic_ns();
}

static uint64_t pause_ns(const tare__collector *collector, bool *heed_hello)
{
    uint64_t now = tare__monotonic_ns(), due = tare__sampling_due_ns(collector);
    uint64_t pause = TARE__TICK_IDLE_NS;
    if (now - collector->active_ns < (collector->joined ? ACTIVE_FOR_NS : START_UP_NS)) {
        pause = TARE__TICK_ACTIVE_NS;
    } else if (collector->source_count == 0 && collector->folder.socket >= 0) {
        pause = TARE__TICK_ALONE_NS;
        *heed_hello = true;
    } else if (now - collector->moving_ns < MOVING_FOR_NS) {
        pause = TARE__TICK_CALM_NS;
    }
    if (due < now + pause)
        return due > now ? due - now : 0;
    return pause;
}

/* Woken by a hello only after a long sleep: a process woken by a message runs on the CPU of its sender, and would
 * preempt the program just when it starts. */
void tare__collector_pause(const tare__collector *collector, struct pollfd *fds, nfds_t n)
{
    struct pollfd all[TARE__PAUSE_FDS + 1];
    bool heed_hello = false;
    uint64_t ns = pause_ns(collector, &heed_hello);
    struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    memcpy(all, fds, n * sizeof *fds);
    all[n] = (struct pollfd){.fd = collector->folder.socket, .events = POLLIN};
    if (ppoll(all, n + heed_hello, &pause, NULL) <= 0)
        memset(all, 0, sizeof all);
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = all[i].revents;
}

uint32_t tare__collector_recording(const tare__collector *collector)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < collector->source_count; i++)
        n += !collector->sources[i]->gone;
    return n;
}

/* ---- the last blocks --------------------------------------------------------------------------------------- */

/* Three reasons have their own fields; the others are failed system calls, each with a message. */
static void refusals(tare__collector *collector, tare__text *fields)
{
    static const char *const why[TARE__REFUSALS] = {
        [TARE__REFUSED_SYSTEM] = "a system call failed",
        [TARE__REFUSED_LIMIT] = "its limit on file sizes (ulimit -f) is below the size of its buffer",
        [TARE__REFUSED_GONE] = "the session folder no longer exists",
        [TARE__REFUSED_DENIED] = "it has no permission to write into the session folder",
        [TARE__REFUSED_FILES] = "it has no file descriptor left (ulimit -n)",
        [TARE__REFUSED_MEMORY] = "it has no memory or address space left (ulimit -v)",
    };
    uint32_t numbers[TARE__REFUSED_COPY + 1] = {0};
    for (uint32_t i = 0; i < TARE__REFUSALS; i++) {
        uint32_t n = atomic_load(&collector->folder.page->refused[i]);
        numbers[why[i] ? TARE__REFUSED_SYSTEM : i] += n;
        if (n && why[i])
            tare__text_format(&collector->notes, "%u %s could not join: %s\n", n, n == 1 ? "process" : "processes",
                              why[i]);
    }
    for (uint32_t i = 0; i < TARE__COUNT_OF(numbers); i++)
        tare__field_some(fields, (tare__field)(TARE__FIELD_REFUSED_SPACE + i), numbers[i]);
}

static void tell_unread(tare__collector *collector)
{
    if (!collector->salvaging)
        collector->unread_rings = tare__sources_unread(collector);
    if (collector->page_cut)
        tare__text_format(&collector->notes, "the session file in %.300s was truncated during the run: processes that "
                          "started after that are not recorded\n", collector->folder.path);
    if (collector->folder_gone && access(collector->folder.path, F_OK) == 0) /* otherwise the END block says so */
        tare__text_format(&collector->notes, "the session folder %.300s was removed during the run: processes that "
                          "recorded there and were not read yet are missing\n", collector->folder.fallback);
}

/* Adds the number of lost spans to the message about the failed write. */
static void put_problem(tare__writer *writer, tare__text *fields)
{
    char detail[sizeof writer->problem + 64];
    if (!writer->problem[0] && writer->lost_spans)
        snprintf(writer->problem, sizeof writer->problem, "%.400s: out of memory", writer->path);
    if (!writer->problem[0])
        return;
    snprintf(detail, sizeof detail, "%s", writer->problem);
    if (writer->lost_spans)
        snprintf(detail, sizeof detail, "%s; %llu spans could not be written", writer->problem,
                 (unsigned long long)writer->lost_spans);
    tare__field_string(fields, TARE__FIELD_WRITE_ERROR, detail);
}

static void tell_sampling(tare__collector *collector, tare__text *fields)
{
    if (collector->sampling.samples && collector->sampling.set) {
        tare__sample_cost cost = tare__sample_cost_of(collector->sampling.set);
        tare__field_number(fields, TARE__FIELD_SAMPLER_CPU, cost.cpu_ns + collector->stack_cpu_ns);
        if (cost.longest_ns > collector->sampling.interval_ns)
            tare__field_number(fields, TARE__FIELD_STRETCHED, cost.longest_ns);
    }
    if (collector->child.known) {
        tare__field_number(fields, TARE__FIELD_CHILD_USER, collector->child.user_ns);
        tare__field_number(fields, TARE__FIELD_CHILD_SYSTEM, collector->child.system_ns);
        tare__field_some(fields, TARE__FIELD_CHILD_PEAK, collector->child.peak_bytes);
    }
    tare__field_some(fields, TARE__FIELD_OOM_KILLED, collector->oom_killed);
}

/* The RUN block once more, now that the GPUs are known: detecting them takes too long for the first block. */
static void tell_run_again(tare__collector *collector)
{
    char gpus[256];
    if (!collector->sampling.samples || collector->run_fields.length == 0)
        return;
    tare__field_string(&collector->run_fields, TARE__FIELD_GPUS, tare__nvml_describe(gpus));
    tare__fields_seal(TARE__BLOCK_RUN, 0, &collector->run_fields, &collector->block);
}

/* The current time; when salvaging, the last known time, from the syncs. */
static void tell_when(const tare__collector *collector, tare__text *fields)
{
    const tare__clock_sync *first = &collector->first_sync, *last = &collector->last_sync;
    uint64_t realtime = tare__clock_ns(CLOCK_REALTIME), ticks = tare__clock_ticks(collector->folder.page->clock);
    if (collector->salvaging) {
        double rate = collector->folder.page->clock == TARE__CLOCK_MONOTONIC ? 1
                      : last->ticks > first->ticks
                          ? (double)(last->monotonic_ns - first->monotonic_ns) / (double)(last->ticks - first->ticks)
                          : 0;
        ticks = collector->last_ticks;
        double since = ((double)ticks - (double)last->ticks) * rate;
        if (!last->ticks || rate <= 0 || !(since > -(double)last->realtime_ns && since < 1e18)) {
            tare__field_number(fields, TARE__FIELD_END_TICKS, ticks);
            return;
        }
        realtime = (uint64_t)((double)last->realtime_ns + since);
    }
    tare__field_number(fields, TARE__FIELD_END_REALTIME, realtime);
    tare__field_number(fields, TARE__FIELD_END_TICKS, ticks);
}

static void seal_end(tare__collector *collector)
{
    tare__text_clear(&collector->block);
    tare__names_seal(collector->all_names, tare__intern_count(collector->names), collector->squeezer,
                     &collector->block);
    tell_run_again(collector);
    tare__series_seal(collector->sampling.series, (uint32_t)collector->sampling.series_count, collector->squeezer,
                      &collector->block);
    tare__fields_seal(TARE__BLOCK_END, 0, &collector->fields, &collector->block);
}

static void make_end(tare__collector *collector, int exit_status, int signal, uint32_t left_running)
{
    tare__text *fields = &collector->fields;
    tare__writer *writer = &collector->writer;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    collector->block.failed = fields->failed = false; /* memory may be available again */
    tare__text_clear(fields);
    if (collector->ended.length) { /* rings are added to a run that ended normally */
        tare__text_append(fields, collector->ended.data, collector->ended.length);
        if (collector->last_ticks > collector->ended_ticks) { /* a process that was still running recorded on */
            tell_when(collector, fields);
        } else {
            tare__field_number(fields, TARE__FIELD_END_REALTIME, collector->ended_realtime);
            tare__field_number(fields, TARE__FIELD_END_TICKS, collector->ended_ticks);
        }
        tare__field_some(fields, TARE__FIELD_UNREAD_RINGS, collector->unread_rings + collector->broken_rings);
        seal_end(collector);
        return;
    }
    tell_when(collector, fields);
    if (exit_status >= 0)
        tare__field_number(fields, TARE__FIELD_STATUS, (uint64_t)exit_status);
    if (signal > 0)
        tare__field_number(fields, TARE__FIELD_SIGNAL, (uint64_t)signal);
    if (!collector->salvaging)
        tare__field_number(fields, TARE__FIELD_COLLECTOR_CPU,
                           (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
                               (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u);
    else
        tare__field_number(fields, TARE__FIELD_SALVAGED, 1);
    size_t notes = collector->notes.length;
    tell_unread(collector);
    if (!collector->salvaging && access(collector->folder.path, F_OK) != 0)
        tare__field_number(fields, TARE__FIELD_FOLDER_GONE, 1);
    tare__field_some(fields, TARE__FIELD_UNREAD_RINGS, collector->unread_rings + collector->broken_rings);
    if (writer->rotated_spans || writer->rotated_before) {
        tare__field_number(fields, TARE__FIELD_ROTATED_SPANS, writer->rotated_spans);
        tare__field_number(fields, TARE__FIELD_ROTATED_BEFORE, writer->rotated_before);
    }
    refusals(collector, fields);
    put_problem(writer, fields);
    if (collector->notes.length && !collector->notes.failed)
        tare__field_string(fields, TARE__FIELD_NOTES, collector->notes.data);
    collector->notes.length = notes; /* this may be repeated */
    tare__field_some(fields, TARE__FIELD_LEFT_RUNNING, left_running);
    tell_sampling(collector, fields);
    seal_end(collector);
}

static void write_end(tare__collector *collector, int exit_status, int signal, uint32_t left_running)
{
    tare__writer *writer = &collector->writer;
    make_end(collector, exit_status, signal, left_running);
    writer->last_words = true;
    if (tare__writer_append(writer, &collector->block) != 0 && writer->last_block) {
        /* The disk is full. Drop the last block of events: an END block that says so is more useful. */
        tare__writer_drop_last(writer);
        make_end(collector, exit_status, signal, left_running);
        tare__writer_append(writer, &collector->block);
    }
}

void tare__collector_finish(tare__collector *collector, int exit_status, int signal, uint32_t left_running)
{
    tare__reserve_give_up(collector);
    if (!collector->salvaging) { /* otherwise all readable rings were found and resumed where the file ended */
        tare__sources_find(collector);
        collector->folder_scan_ns = 0;
        tare__sources_find(collector);
    }
    for (int round = 0; round < 2; round++) {
        while (collector->source_count)
            end_source(collector, collector->source_count - 1);
        if (!collector->unread_error || collector->salvaging)
            break;
        collector->folder_scan_ns = 0; /* descriptors and memory are available again */
        tare__sources_find(collector);
    }
    if (!collector->salvaging)
        sync_clock(collector, true);
    tare__sampling_flush(collector);
    tare__stacks_finish(collector);
    tare__tree_tell(collector);
    rotate(collector, true);
    write_end(collector, exit_status, signal, left_running);
    if (collector->writer.problem[0] && collector->writer.lost_spans) { /* as the END block has it */
        char detail[512];
        snprintf(detail, sizeof detail, "%.300s; %llu spans could not be written", collector->writer.problem,
                 (unsigned long long)collector->writer.lost_spans);
        strcpy(collector->writer.problem, detail);
    }
}
