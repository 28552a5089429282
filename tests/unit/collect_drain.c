/* collect_drain: scans that see only a part of a stream's chunks, slots that stay empty, threads and processes that end
 * in between: each slot that was reserved is in the trace or is counted as skipped. One thread records and collects.
 * Must not depend on time: what has to be old is made old. */
#include "session_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "record/record.h"

#define POOL (8u << 20)
#define NO_SUCH_ID 4194305 /* above the kernel's limit on process and thread IDs */
#define CELLS 50           /* more than one chunk has */

static tare_site span_site = TARE_SITE("span");

typedef struct scene {
    rig rig;
    tare__source *source;
    bool open;
    uint64_t slots; /* reserved so far: two for each span, and those that were left empty */
} scene;

static scene now;

/* ---- the stream ---------------------------------------------------------------------------------------------- */

static void record_span(void)
{
    tare_begin(&span_site);
    tare_end(&span_site);
    now.slots += 2;
}

static void scan(void)
{
    now.source->scanned_ns = 0;
    tare__source_drain(&now.rig.collector, now.source, false);
}

static void start(uint32_t pool_bytes)
{
    memset(&now, 0, sizeof now);
    rig_open(&now.rig, pool_bytes);
    record_span();
    tare__collector_tick(&now.rig.collector);
    assert_int_equal(now.rig.collector.source_count, 1);
    now.source = now.rig.collector.sources[0];
    now.open = true;
    for (int i = 0; i < 8; i++) /* the collector extends the pool step by step */
        tare__collector_tick(&now.rig.collector);
}

static rig_totals finish(void)
{
    now.open = false;
    return rig_close(&now.rig);
}

/* A test that failed leaves its session open. */
static int stop(void **state)
{
    (void)state;
    if (now.open)
        finish();
    return 0;
}

static tare__stream *stream(void)
{
    return now.source->streams[0];
}

static uint32_t sequence(void) /* of the chunk that is read next */
{
    return TARE__POSITION_SEQUENCE(stream()->position);
}

static void fill_chunks(uint32_t n)
{
    for (uint32_t until = tare__self->sequence + n; tare__self->sequence < until;)
        record_span();
}

/* What a handler leaves that siglongjmp ends between the reservation of a slot and the store. */
static uint64_t leave_slot_empty(void)
{
    now.slots++;
    return tare__reserve(tare__cursor, sizeof(tare__slot));
}

/* ---- chunks, as the collector sees them ------------------------------------------------------------------ */

static tare__chunk *chunk_at(uint32_t index)
{
    return (void *)((uint8_t *)now.source->ring + now.source->chunks_offset + (size_t)index * TARE__CHUNK_BYTES);
}

static uint32_t state_of(uint32_t index)
{
    return atomic_load(&now.source->ring->chunk_state[index]);
}

static void set_state(uint32_t index, tare__chunk_state state)
{
    atomic_store(&now.source->ring->chunk_state[index], state);
}

static bool holds(uint32_t index, bool cells)
{
    uint32_t state = state_of(index);
    return cells ? state == TARE__CHUNK_AGGREGATES || state == TARE__CHUNK_AGGREGATES_RETIRED
                 : state == TARE__CHUNK_EVENTS || state == TARE__CHUNK_RETIRED;
}

static uint32_t index_of(uint32_t wanted)
{
    uint32_t count = atomic_load(&now.source->ring->chunk_count), index = 0;
    while (index < count && !(holds(index, false) && chunk_at(index)->sequence == wanted))
        index++;
    assert_true(index < count);
    return index;
}

static uint32_t chunks_in_use(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < atomic_load(&now.source->ring->chunk_count); i++)
        n += state_of(i) != TARE__CHUNK_FREE;
    return n;
}

static void make_old(uint64_t ns)
{
    if (stream()->hole_since_ns)
        stream()->hole_since_ns -= ns;
    if (stream()->gap_since_ns)
        stream()->gap_since_ns -= ns;
}

/* The thread ended without a word: its chunks stay as they are. */
static void end_thread(void)
{
    for (uint32_t i = 0; i < atomic_load(&now.source->ring->chunk_count); i++)
        if (state_of(i) != TARE__CHUNK_FREE)
            chunk_at(i)->tid = NO_SUCH_ID;
    now.source->liveness_ns = 0; /* asked again with the next scan */
}

/* ---- a scan that is interrupted ------------------------------------------------------------------------------
 * When it reaches chunk `at`, chunk `missed` appears, which it has passed: the thread took and filled both meanwhile.
 * The page of `at` cannot be read until then, and the handler of the fault is what happens in between. */
static struct {
    uint32_t missed, at;
    uint32_t state; /* of the missed one, when it appears */
    bool happened;
    struct sigaction before;
} interruption;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    uint8_t *page = (uint8_t *)chunk_at(interruption.at);
    if ((uint8_t *)info->si_addr < page || (uint8_t *)info->si_addr >= page + TARE__CHUNK_MAIN ||
        interruption.happened) {
        signal(number, SIG_DFL);
        return;
    }
    interruption.happened = true;
    set_state(interruption.missed, interruption.state);
    mprotect(page, TARE__CHUNK_MAIN, PROT_READ | PROT_WRITE);
}

static void interrupt_scan_at(uint32_t missed, uint32_t at)
{
    assert_true(missed < at); /* as chunks are scanned */
    interruption.missed = missed;
    interruption.at = at;
    interruption.state = state_of(missed);
    interruption.happened = false;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &interruption.before);
    set_state(interruption.missed, TARE__CHUNK_FREE);
    assert_int_equal(mprotect(chunk_at(interruption.at), TARE__CHUNK_MAIN, PROT_NONE), 0);
}

static void interrupt_next_scan(uint32_t missed_sequence)
{
    interrupt_scan_at(index_of(missed_sequence), index_of(missed_sequence + 1));
}

static void scan_was_interrupted(void)
{
    sigaction(SIGSEGV, &interruption.before, NULL);
    assert_true(interruption.happened);
}

static void scan_interrupted(uint32_t missed_sequence)
{
    interrupt_next_scan(missed_sequence);
    scan();
    scan_was_interrupted();
}

/* Ends the process and checks that everything that was recorded is in the trace or counted. */
static rig_totals account(uint64_t skipped)
{
    rig_totals totals = finish();
    assert_int_equal(totals.begins + totals.ends + totals.skipped_slots, now.slots);
    assert_int_equal(totals.skipped_slots, skipped);
    assert_int_equal(totals.dropped_spans + totals.unattributed_spans, 0);
    assert_int_equal(totals.unmatched + totals.left_open, 0);
    return totals;
}

/* ---- gaps and holes ------------------------------------------------------------------------------------------ */

static void gap_while_a_hole_is_given_up(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(3);
    scan();
    assert_true(stream()->hole_since_ns); /* it waits at the slot in chunk 0 */
    assert_int_equal(sequence(), 0);
    fill_chunks(3);
    make_old(TARE__HOLE_PASSED_NS);
    scan_interrupted(3);
    scan();
    assert_int_equal(sequence(), 6);
    assert_int_equal(chunks_in_use(), 1);
    account(1);
}

static void gap_without_a_hole(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(5);
    scan_interrupted(2);
    assert_int_equal(sequence(), 2);
    scan();
    assert_int_equal(sequence(), 5);
    assert_int_equal(chunks_in_use(), 1);
    account(0);
}

static void first_chunk_is_missed(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(2);
    scan_interrupted(0);
    scan();
    assert_int_equal(sequence(), 2);
    account(0);
}

/* A hole behind the gap, where the gap is waited for and the hole is given up later. */
static void hole_behind_a_gap(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(3);
    leave_slot_empty();
    fill_chunks(3);
    scan_interrupted(1);
    assert_int_equal(sequence(), 1);
    scan();
    assert_int_equal(sequence(), 3);
    assert_true(stream()->hole_since_ns);
    make_old(TARE__HOLE_PASSED_NS);
    scan();
    assert_int_equal(sequence(), 6);
    account(1);
}

static void hole_that_the_stream_has_passed(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(1);
    leave_slot_empty();
    fill_chunks(3);
    scan();
    assert_int_equal(sequence(), 0);
    make_old(TARE__HOLE_PASSED_NS);
    scan();
    assert_int_equal(sequence(), 4);
    assert_int_equal(chunks_in_use(), 1);
    account(2);
}

static void hole_in_the_last_full_chunk(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(1);
    scan();
    make_old(TARE__HOLE_PASSED_NS); /* its thread may be stopped there */
    scan();
    assert_int_equal(sequence(), 0);
    make_old(TARE__HOLE_NS);
    scan();
    assert_int_equal(sequence(), 1);
    account(1);
}

static void hole_that_is_filled(void **state)
{
    (void)state;
    start(POOL);
    tare_begin(&span_site);
    now.slots++;
    uint64_t at = leave_slot_empty();
    fill_chunks(1);
    scan();
    assert_int_equal(sequence(), 0);
    tare__slot_write(at, tare__ticks(), span_site.word + TARE__WORD(TARE__RECORD_END - TARE__RECORD_BEGIN, 0));
    scan();
    assert_int_equal(sequence(), 1);
    assert_false(stream()->hole_since_ns);
    account(0);
}

/* The slot in the live chunk is reserved and about to be filled: another one that is given up does not concern it. */
static void slot_in_the_live_chunk_is_not_given_up(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(3);
    tare_begin(&span_site);
    now.slots++;
    uint64_t at = leave_slot_empty();
    record_span(); /* of a handler */
    scan();
    make_old(TARE__HOLE_PASSED_NS);
    stream()->sealed_ns = 0; /* the live chunk is due */
    scan();
    assert_int_equal(sequence(), 3);
    tare__slot_write(at, tare__ticks(), span_site.word + TARE__WORD(TARE__RECORD_END - TARE__RECORD_BEGIN, 0));
    account(1);
}

/* ---- chunks that never come ---------------------------------------------------------------------------------- */

/* A chunk that no scan sees: nobody knows what was in it, but how much there was space for. */
static uint64_t lose_chunk(uint32_t lost)
{
    set_state(index_of(lost), TARE__CHUNK_TAKEN);
    return TARE__CHUNK_SLOTS;
}

static rig_totals account_without(uint64_t lost)
{
    rig_totals totals = finish();
    assert_int_equal(totals.begins + totals.ends + totals.skipped_slots, now.slots);
    assert_int_equal(totals.skipped_slots, lost);
    return totals;
}

static void gap_that_never_fills(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(6);
    uint64_t lost = lose_chunk(1) + lose_chunk(3) + lose_chunk(4);
    scan();
    scan();
    assert_int_equal(sequence(), 1);
    make_old(TARE__HOLE_NS);
    scan();
    assert_int_equal(sequence(), 3); /* each is waited for */
    make_old(TARE__HOLE_NS);
    scan();
    assert_int_equal(sequence(), 6);
    account_without(lost);
}

static void process_killed_with_a_gap_that_never_fills(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(6);
    uint64_t lost = lose_chunk(1) + lose_chunk(3) + lose_chunk(4);
    scan();
    assert_int_equal(sequence(), 1);
    account_without(lost);
}

static void process_killed_after_an_interrupted_scan(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(6);
    scan_interrupted(3);
    account(1);
}

/* More gaps than there are last scans. */
static void process_killed_with_many_gaps(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(60);
    uint64_t lost = 0;
    for (uint32_t i = 1; i < 60; i += 2)
        lost += lose_chunk(i);
    account_without(lost);
}

/* The process runs on when its collector ends, and fills chunks during the last scan. */
static void last_scan_is_interrupted(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(6);
    interrupt_next_scan(3);
    rig_totals totals = finish();
    scan_was_interrupted();
    assert_int_equal(totals.begins + totals.ends + totals.skipped_slots, now.slots);
    assert_int_equal(totals.skipped_slots, 0);
}

/* ---- threads that ended without a word ------------------------------------------------------------------- */

static void thread_gone_in_an_interrupted_scan(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(6);
    end_thread();
    scan_interrupted(3);
    scan();
    scan();
    assert_int_equal(chunks_in_use(), 0);
    account(1);
}

static void thread_gone_with_a_gap_that_never_fills(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(6);
    end_thread();
    uint64_t lost = lose_chunk(2);
    scan();
    scan();
    scan();
    assert_int_equal(chunks_in_use(), 1); /* the lost one */
    account_without(lost);
}

static void thread_gone_with_a_hole_and_many_chunks(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(1);
    leave_slot_empty();
    fill_chunks(80);
    end_thread();
    scan();
    scan();
    assert_int_equal(chunks_in_use(), 0);
    account(1);
}

/* The collector was stopped after a scan that missed chunk 2. When it sees that chunk, there is a hole in it, and many
 * chunks follow. */
static void hole_in_a_chunk_that_was_missed(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(2);
    leave_slot_empty();
    fill_chunks(80);
    scan_interrupted(2);
    make_old(TARE__HOLE_NS);
    scan();
    make_old(TARE__HOLE_PASSED_NS);
    scan();
    assert_int_equal(sequence(), 82);
    account(1);
}

static void hole_before_many_chunks(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(62);
    leave_slot_empty();
    fill_chunks(1);
    leave_slot_empty();
    fill_chunks(20);
    scan_interrupted(10);
    scan();
    assert_int_equal(sequence(), 62);
    make_old(TARE__HOLE_PASSED_NS);
    scan();
    assert_int_equal(sequence(), 83);
    account(2);
}

/* Where /proc does not show the process, nothing is known about its threads. */
static void threads_of_a_process_that_proc_does_not_show(void **state)
{
    (void)state;
    start(POOL);
    fill_chunks(2);
    pid_t pid = now.source->pid;
    now.source->pid = now.source->ring->pid = NO_SUCH_ID;
    for (int i = 0; i < 3; i++) {
        now.source->liveness_ns = 0;
        scan();
    }
    assert_int_equal(chunks_in_use(), 1);
    assert_int_equal(state_of(index_of(2)), TARE__CHUNK_EVENTS);
    record_span();
    now.source->pid = now.source->ring->pid = pid;
    account(0);
}

#define FIRST_THREAD_ENDS "first-thread-ends" /* the argument that makes this program end so */

static void *wait_for_input_to_end(void *argument)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    _exit(0);
    return argument;
}

static void end_first_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_input_to_end, NULL) == 0)
        syscall(SYS_exit, 0);
    _exit(1);
}

/* Without a descriptor for the process, /proc says whether it runs: its first thread may end before the others. */
static void first_thread_of_a_process_has_ended(void **state)
{
    (void)state;
    int ends[2];
    start(POOL);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[0], 0);
        close(ends[1]);
        execl("/proc/self/exe", "collect_drain", FIRST_THREAD_ENDS, NULL);
        _exit(1);
    }
    close(ends[0]);
    siginfo_t ended;
    tare__source source = *now.source;
    source.pid = pid;
    source.pidfd = -1;
    source.start_time = 0;
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    do { /* until its first thread is a zombie */
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof text, file));
        fclose(file);
        usleep(1000);
    } while (!strstr(text, ") Z "));
    source.asked_ns = 0;
    tare__source_check_alive(&now.rig.collector, &source);
    assert_false(source.gone);
    close(ends[1]);
    assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
    source.asked_ns = 0;
    tare__source_check_alive(&now.rig.collector, &source);
    assert_true(source.gone);
    waitpid(pid, NULL, 0);
    account(0);
}

/* ---- the reserve --------------------------------------------------------------------------------------------- */

static bool any_free(void)
{
    for (uint32_t i = 0; i < atomic_load(&now.source->ring->chunk_count); i++)
        if (state_of(i) == TARE__CHUNK_FREE)
            return true;
    return false;
}

/* The last slots of the last chunk stay empty, and the ends of open spans are in its reserve. */
static void hole_before_the_reserve(void **state)
{
    (void)state;
    start(1u << 20);
    tare_begin(&span_site);
    tare_begin(&span_site);
    now.slots += 4;
    while (any_free())
        record_span();
    while ((tare__self->cursor & 0xFFFF) < TARE__CHUNK_BYTES - 3 * sizeof(tare__slot))
        record_span();
    while (tare__self->cursor & TARE__CHUNK_MAIN_BITS)
        leave_slot_empty();
    tare_end(&span_site);
    tare_end(&span_site);
    assert_int_equal(tare__self->reserve_used, 2);
    rig_totals totals = finish();
    assert_int_equal(totals.begins, totals.ends);
    assert_int_equal(totals.begins + totals.ends + totals.skipped_slots, now.slots);
    assert_int_equal(totals.left_open, 0);
}

/* ---- aggregates ---------------------------------------------------------------------------------------------- */

#define KERNELS 10

static tare_site cell_sites[CELLS];
static char cell_names[CELLS][16];

static void *count_calls(void *argument)
{
    (void)argument;
    for (int i = 0; i < CELLS; i++) {
        snprintf(cell_names[i], sizeof cell_names[i], "cell %d", i);
        cell_sites[i] = (tare_site)TARE_SITE_OF(cell_names[i], TARE_KIND_AGGREGATE, 1);
        tare_aggregate_end(&cell_sites[i], tare_aggregate_begin());
    }
    return NULL;
}

/* A thread that counted in two chunks and ended; their indexes. */
static void count_in_two_chunks(uint32_t index[2])
{
    pthread_t thread;
    uint32_t n = 0;
    start(POOL);
    assert_int_equal(pthread_create(&thread, NULL, count_calls, NULL), 0);
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < atomic_load(&now.source->ring->chunk_count); i++)
        if (holds(i, true)) {
            assert_true(n < 2);
            chunk_at(i)->tid = tare__self->tid; /* what the chunks say counts, not /proc */
            index[n++] = i;
        }
    assert_int_equal(n, 2);
}

/* The thread ends during the scan, which saw one chunk before that and the other one after it. The thread may be about
 * to write that the first one has ended, too. */
static void thread_ends_between_its_cells(void **state)
{
    (void)state;
    for (int live = 0; live < 2; live++) {
        uint32_t index[2];
        count_in_two_chunks(index);
        set_state(index[live], TARE__CHUNK_AGGREGATES);
        scan();
        assert_int_equal(state_of(index[live]), TARE__CHUNK_AGGREGATES);
        assert_int_equal(state_of(index[!live]), TARE__CHUNK_AGGREGATES_RETIRED);
        set_state(index[live], TARE__CHUNK_AGGREGATES_RETIRED);
        scan();
        assert_int_equal(chunks_in_use(), 1); /* of the main thread */
        assert_int_equal(finish().aggregate_calls, CELLS);
    }
}

/* A scan that misses one chunk must not give the other one back: the last block replaces those before it. */
static void scan_misses_cells(void **state)
{
    (void)state;
    uint32_t index[2];
    count_in_two_chunks(index);
    interrupt_scan_at(index[0], index[1]);
    scan();
    scan_was_interrupted();
    assert_int_equal(chunks_in_use(), 3);
    scan();
    assert_int_equal(chunks_in_use(), 1);
    assert_int_equal(finish().aggregate_calls, CELLS);
}

static void cells_that_the_disk_does_not_take(void **state)
{
    (void)state;
    uint32_t index[2];
    count_in_two_chunks(index);
    tare__writer *writer = &now.rig.collector.writer;
    int trace = dup(writer->fd), full = open("/dev/full", O_RDWR);
    assert_true(trace >= 0 && full >= 0);
    dup2(full, writer->fd);
    scan();
    assert_int_equal(chunks_in_use(), 1);
    assert_int_equal(writer->lost_spans, CELLS);
    dup2(trace, writer->fd);
    close(trace);
    close(full);
    assert_int_equal(finish().aggregate_calls, 0);
}

/* ---- a collector that is killed ------------------------------------------------------------------------------ */

/* `cut`: bytes of its last write that are not in the file. */
static rig_totals salvage(off_t cut)
{
    char folder[TARE__PATH_BYTES];
    struct stat about;
    tare__salvaged result;
    tare__error error = {""};
    now.open = false;
    tare__session_detach();
    strcpy(folder, now.rig.collector.folder.path);
    tare__folder_close(&now.rig.collector.folder);
    tare__collector_free(&now.rig.collector);
    assert_int_equal(stat(now.rig.path, &about), 0);
    assert_int_equal(truncate(now.rig.path, about.st_size - cut), 0);
    assert_int_equal(tare__salvage(folder, NULL, &result, &error), 0);
    assert_true(result.killed);
    rig_totals totals = rig_read(now.rig.path);
    assert_true(tare__folder_delete(folder));
    unlink(now.rig.path);
    return totals;
}

static void counts_of_a_collector_that_was_killed(void **state)
{
    (void)state;
    start(POOL);
    leave_slot_empty();
    fill_chunks(3);
    scan();
    make_old(TARE__HOLE_PASSED_NS);
    scan();
    assert_int_equal(stream()->skipped, 1);
    atomic_store(&chunk_at(index_of(3))->dropped_spans, 7); /* told, and then there is a chunk that does not say so */
    scan();
    atomic_store(&chunk_at(index_of(3))->dropped_spans, 0);
    rig_totals totals = salvage(0);
    assert_int_equal(totals.begins + totals.ends + totals.skipped_slots, now.slots);
    assert_int_equal(totals.dropped_spans, 7);
}

/* Facts, complete spans and events of one write: the file ends before, in and after each of their blocks. */
static void collector_killed_while_it_writes(void **state)
{
    (void)state;
    off_t bytes = 0, step = 1;
    for (off_t cut = 0; cut <= bytes; cut += step) {
        start(1u << 20);
        uint64_t before = now.rig.collector.writer.bytes;
        for (int i = 0; i < KERNELS; i++) {
            tare_complete_span span = {.start = tare_now(), .end = tare_now()};
            tare_complete_name("kernel", &span);
            record_span();
        }
        tare__fact_tell("key", NULL, 0, 1, "text");
        stream()->sealed_ns = 0;
        scan();
        bytes = (off_t)(now.rig.collector.writer.bytes - before);
        assert_true(bytes > 3 * (off_t)sizeof(tare__block_header));
        step = bytes / 40;
        rig_totals totals = salvage(cut);
        assert_int_equal(totals.begins + totals.ends, now.slots);
        assert_int_equal(totals.complete, KERNELS);
        assert_int_equal(totals.facts, 1);
        assert_int_equal(totals.unmatched, 0);
    }
}

/* It is not taken for one that has ended, whose events would be declared complete. */
static void running_process_without_a_descriptor_to_ask_with(void **state)
{
    (void)state;
    assert_true(tare__process_runs(getpid()));
    struct rlimit before, none = {0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool runs = tare__process_runs(getpid()), ended = !tare__process_runs(NO_SUCH_ID);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(runs);
    assert_true(ended);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], FIRST_THREAD_ENDS) == 0)
        end_first_thread();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(gap_while_a_hole_is_given_up, stop),
        cmocka_unit_test_teardown(gap_without_a_hole, stop),
        cmocka_unit_test_teardown(first_chunk_is_missed, stop),
        cmocka_unit_test_teardown(hole_behind_a_gap, stop),
        cmocka_unit_test_teardown(hole_that_the_stream_has_passed, stop),
        cmocka_unit_test_teardown(hole_in_the_last_full_chunk, stop),
        cmocka_unit_test_teardown(hole_that_is_filled, stop),
        cmocka_unit_test_teardown(slot_in_the_live_chunk_is_not_given_up, stop),
        cmocka_unit_test_teardown(gap_that_never_fills, stop),
        cmocka_unit_test_teardown(process_killed_with_a_gap_that_never_fills, stop),
        cmocka_unit_test_teardown(process_killed_after_an_interrupted_scan, stop),
        cmocka_unit_test_teardown(process_killed_with_many_gaps, stop),
        cmocka_unit_test_teardown(last_scan_is_interrupted, stop),
        cmocka_unit_test_teardown(thread_gone_in_an_interrupted_scan, stop),
        cmocka_unit_test_teardown(thread_gone_with_a_gap_that_never_fills, stop),
        cmocka_unit_test_teardown(thread_gone_with_a_hole_and_many_chunks, stop),
        cmocka_unit_test_teardown(hole_in_a_chunk_that_was_missed, stop),
        cmocka_unit_test_teardown(hole_before_many_chunks, stop),
        cmocka_unit_test_teardown(threads_of_a_process_that_proc_does_not_show, stop),
        cmocka_unit_test_teardown(first_thread_of_a_process_has_ended, stop),
        cmocka_unit_test_teardown(hole_before_the_reserve, stop),
        cmocka_unit_test_teardown(thread_ends_between_its_cells, stop),
        cmocka_unit_test_teardown(scan_misses_cells, stop),
        cmocka_unit_test_teardown(cells_that_the_disk_does_not_take, stop),
        cmocka_unit_test_teardown(counts_of_a_collector_that_was_killed, stop),
        cmocka_unit_test_teardown(collector_killed_while_it_writes, stop),
        cmocka_unit_test(running_process_without_a_descriptor_to_ask_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
