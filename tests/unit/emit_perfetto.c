/* Tests of Perfetto's packets, read back by a reader of their own: counts equal to the span table's, begins and
 * ends in pairs, names, tracks, counters, flows, damage, failing sinks and memory. One thread.
 * Must not know how the emitter works. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base_failing.h"
#include "emit_export.h"

/* ---- a reader of protocol buffers -------------------------------------------------------------------------- */
typedef struct field {
    unsigned number, wire;
    uint64_t value; /* of a varint or a fixed64 */
    tare__reader bytes;
} field;

static bool next_field(tare__reader *reader, field *field)
{
    if (reader->at == reader->end)
        return false;
    uint64_t key = tare__read_varint(reader);
    *field = (struct field){.number = (unsigned)(key >> 3), .wire = key & 7};
    if (field->wire == 0)
        field->value = tare__read_varint(reader);
    const uint8_t *bytes = NULL;
    uint64_t length = field->wire == 1 ? 8 : field->wire == 2 ? tare__read_varint(reader) : 0;
    if (field->wire)
        bytes = tare__read_bytes(reader, length);
    assert_false(reader->failed);
    assert_true(field->wire <= 2);
    if (field->wire == 1)
        memcpy(&field->value, bytes, 8);
    if (field->wire == 2)
        field->bytes = (tare__reader){bytes, bytes + length, false};
    return true;
}

/* The last field of that number; a zeroed one when there is none. */
static field find(tare__reader message, unsigned number)
{
    field one, found = {0};
    while (next_field(&message, &one))
        if (one.number == number)
            found = one;
    return found;
}

static uint64_t value_of(tare__reader message, unsigned number)
{
    return find(message, number).value;
}

static const char *text_of(tare__reader message, unsigned number, char out[256])
{
    field found = find(message, number);
    snprintf(out, 256, "%.*s", (int)(found.bytes.end - found.bytes.at),
             found.bytes.at ? (char *)found.bytes.at : "");
    return out;
}

/* ---- a trace, as far as tests ask for it -------------------------------------------------------------------- */
typedef struct event {
    uint64_t time, type, track, category, order;
    char name[64];
    char annotations[256];
    uint64_t flow;
    double value;
} event;

typedef struct track {
    uint64_t uuid, parent;
    char name[200];
    int64_t pid, tid;
    bool counter;
    char unit[32];
} track;

typedef struct whole {
    event events[12000];
    size_t n_events;
    track tracks[2000];
    size_t n_tracks;
    char names[3][200][64]; /* categories, events, annotations: by iid */
    uint64_t clock_ns;
} whole;

static void take_interned(whole *to, tare__reader data)
{
    field one;
    while (next_field(&data, &one)) {
        assert_true(one.number >= 1 && one.number <= 3);
        uint64_t iid = value_of(one.bytes, 1);
        char text[256];
        assert_in_range(iid, 1, 199);
        snprintf(to->names[one.number - 1][iid], 64, "%.63s", text_of(one.bytes, 2, text));
    }
}

static void take_annotation(const whole *from, tare__reader annotation, event *to)
{
    char name[256], value[256] = "", line[600];
    uint64_t iid = value_of(annotation, 1);
    text_of(annotation, 10, name);
    field number = find(annotation, 5);
    if (find(annotation, 6).bytes.at)
        text_of(annotation, 6, value);
    else if (number.wire == 1) {
        double real;
        memcpy(&real, &number.value, 8);
        snprintf(value, sizeof value, "%g", real);
    } else
        snprintf(value, sizeof value, "%lld", (long long)(value_of(annotation, 3) | value_of(annotation, 4)));
    snprintf(line, sizeof line, "%s%s=%.200s;", to->annotations, iid ? from->names[2][iid] : name, value);
    snprintf(to->annotations, sizeof to->annotations, "%.255s", line);
}

static void take_event(whole *to, uint64_t time, tare__reader message)
{
    assert_true(to->n_events < TARE__COUNT_OF(to->events));
    event *event = &to->events[to->n_events];
    *event = (struct event){.time = time, .order = to->n_events++};
    event->type = value_of(message, 9);
    event->track = value_of(message, 11);
    event->category = value_of(message, 3);
    event->flow = value_of(message, 47);
    uint64_t iid = value_of(message, 10);
    char text[256];
    snprintf(event->name, sizeof event->name, "%.63s", iid ? to->names[1][iid] : text_of(message, 23, text));
    event->value = (double)(int64_t)value_of(message, 30);
    field real = find(message, 44);
    if (real.wire == 1)
        memcpy(&event->value, &real.value, 8);
    field one;
    while (next_field(&message, &one))
        if (one.number == 4)
            take_annotation(to, one.bytes, event);
}

static void take_track(whole *to, tare__reader message)
{
    assert_true(to->n_tracks < TARE__COUNT_OF(to->tracks));
    track *track = &to->tracks[to->n_tracks++];
    tare__reader process = find(message, 3).bytes, thread = find(message, 4).bytes,
                 counter = find(message, 8).bytes;
    *track = (struct track){.uuid = value_of(message, 1), .parent = value_of(message, 5)};
    char text[256];
    snprintf(track->name, sizeof track->name, "%.199s", text_of(message, 2, text));
    track->counter = find(message, 8).number != 0;
    if (counter.at)
        snprintf(track->unit, sizeof track->unit, "%.31s", text_of(counter, 6, text));
    if (process.at) {
        track->pid = (int64_t)value_of(process, 1);
        snprintf(track->name, sizeof track->name, "%.199s", text_of(process, 6, text));
    }
    if (thread.at) {
        track->pid = (int64_t)value_of(thread, 1);
        track->tid = (int64_t)value_of(thread, 2);
        snprintf(track->name, sizeof track->name, "%.199s", text_of(thread, 5, text));
    }
}

static const track *find_track(const whole *from, uint64_t uuid)
{
    for (size_t i = 0; i < from->n_tracks; i++)
        if (from->tracks[i].uuid == uuid)
            return &from->tracks[i];
    fail_msg("no descriptor of track %llx", (unsigned long long)uuid);
    return NULL;
}

static whole *read_back(const tare__text *text)
{
    static whole *to;
    to = to ? memset(to, 0, sizeof *to) : calloc(1, sizeof *to);
    tare__reader trace = {(const uint8_t *)text->data, (const uint8_t *)text->data + text->length, false};
    field packet;
    while (next_field(&trace, &packet)) {
        assert_int_equal(packet.number, 1);
        assert_int_equal(value_of(packet.bytes, 10), 1);
        field interned = find(packet.bytes, 12), event = find(packet.bytes, 11),
              track = find(packet.bytes, 60);
        field clock = find(packet.bytes, 6);
        if (clock.number)
            to->clock_ns = value_of(find(clock.bytes, 1).bytes, 2);
        if (interned.number)
            take_interned(to, interned.bytes);
        if (event.number) {
            assert_int_equal(value_of(packet.bytes, 13) & 2, 2);
            take_event(to, value_of(packet.bytes, 8), event.bytes);
        }
        if (track.number)
            take_track(to, track.bytes);
    }
    return to;
}

static uint64_t count_spans(const whole *from, bool restored)
{
    uint64_t n = 0;
    for (size_t i = 0; i < from->n_events; i++)
        n += from->events[i].type == 1 &&
             (strcmp(from->names[0][from->events[i].category], "restored") == 0) == restored;
    return n;
}

static uint64_t spans_of(const tare__text *text)
{
    return count_spans(read_back(text), false);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */
static void counts_are_equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(export_cases); i++) {
        const export_case *one = &export_cases[i];
        tare__text text = export_case_of(&tare__emit_perfetto, one);
        const whole *read = read_back(&text);
        if (count_spans(read, false) != one->spans || count_spans(read, true) != one->restored)
            fail_msg("%s: %llu spans, %llu restored", one->name, (unsigned long long)count_spans(read, false),
                     (unsigned long long)count_spans(read, true));
        tare__text_free(&text);
    }
}

static int by_time(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->track != b->track)
        return a->track < b->track ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* As a viewer reads it: sorted by time, what came first first, each track has its begins and ends in pairs. */
static void begins_and_ends_are_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i < TARE__COUNT_OF(export_cases); i++) {
        tare__text text = export_case_of(&tare__emit_perfetto, &export_cases[i]);
        whole *read = read_back(&text);
        qsort(read->events, read->n_events, sizeof *read->events, by_time);
        int64_t open = 0;
        for (size_t k = 0; k < read->n_events; k++) {
            const event *event = &read->events[k];
            const track *track = find_track(read, event->track);
            assert_int_equal(track->counter, event->type == 4);
            bool lane = !track->tid && !track->counter;
            open += event->type == 1 ? 1 : event->type == 2 ? -1 : 0;
            if (open < 0 || (lane && open > 1))
                fail_msg("%s: %lld open on a track", export_cases[i].name, (long long)open);
            bool last = k + 1 == read->n_events || read->events[k + 1].track != event->track;
            if (last && open)
                fail_msg("%s: a track ends with %lld open", export_cases[i].name, (long long)open);
        }
        tare__text_free(&text);
    }
}

static const event *event_named(const whole *from, const char *name, uint64_t type)
{
    for (size_t i = 0; i < from->n_events; i++)
        if (strcmp(from->events[i].name, name) == 0 && from->events[i].type == type)
            return &from->events[i];
    fail_msg("no event %s", name);
    return NULL;
}

static void names_times_and_numbers_are_right(void **state)
{
    (void)state;
    tare__text text = export_case_of(&tare__emit_perfetto, case_named("over blocks"));
    const whole *read = read_back(&text);
    const event *epoch = event_named(read, "epoch", 1), *step = event_named(read, "step", 1);
    const uint64_t start = UINT64_C(1700000000000000000);
    assert_int_equal(read->clock_ns, start);
    assert_int_equal(epoch->time, start + 500);
    assert_int_equal(step->time, start + 550);
    assert_string_equal(read->names[0][step->category], "step");
    assert_int_equal(read->n_events, 4);
    assert_int_equal(read->events[2].time, start + 600);
    assert_string_equal(read->events[2].annotations, "samples=15;");
    const track *track = find_track(read, step->track);
    assert_string_equal(track->name, "main");
    assert_int_equal(track->tid, 77);
    assert_int_equal(find_track(read, track->parent)->pid, 77);
    tare__text_free(&text);
}

static void how_spans_ended_is_said(void **state)
{
    (void)state;
    tare__text text = export_case_of(&tare__emit_perfetto, case_named("left open"));
    const whole *read = read_back(&text);
    unsigned with_outer = 0, still_open = 0;
    for (size_t i = 0; i < read->n_events; i++) {
        with_outer += strstr(read->events[i].annotations, "(end)=left open") != NULL;
        still_open += strstr(read->events[i].annotations, "(end)=open at the end") != NULL;
    }
    assert_int_equal(with_outer, 2);
    assert_int_equal(still_open, 2);
    tare__text_free(&text);
}

static void unknown_people_have_tracks(void **state)
{
    (void)state;
    tare__text text = export_case_of(&tare__emit_perfetto, case_named("unknown people"));
    const whole *read = read_back(&text);
    const track *track = find_track(read, event_named(read, "(name 99)", 1)->track);
    assert_string_equal(find_track(read, track->parent)->name, "unknown process");
    assert_int_equal(event_named(read, "(name 97)", 3)->type, 3);
    tare__text_free(&text);
}

static void flows_and_lanes(void **state)
{
    (void)state;
    tare__text text = export_case_of(&tare__emit_perfetto, case_named("overlapping"));
    const whole *read = read_back(&text);
    unsigned flows = 0, gpu = 0;
    for (size_t i = 0; i < read->n_events; i++) {
        flows += read->events[i].flow != 0;
        gpu += read->events[i].type == 1 &&
               strncmp(find_track(read, read->events[i].track)->name, "stream 7", 8) == 0;
    }
    assert_int_equal(flows, 266);
    assert_int_equal(gpu, 300);
    tare__text_free(&text);
}

static void samples_are_counters(void **state)
{
    (void)state;
    tare__text text = export_case_of(&tare__emit_perfetto, case_named("sampled"));
    const whole *read = read_back(&text);
    unsigned rss = 0, cpu = 0;
    for (size_t i = 0; i < read->n_events; i++) {
        const event *event = &read->events[i];
        const track *track = find_track(read, event->track);
        if (event->type != 4)
            continue;
        if (strcmp(track->name, "memory.rss") == 0 && find_track(read, track->parent)->pid == 77) {
            static const double wanted[] = {1 << 20, 3 << 20, 2 << 20};
            assert_string_equal(track->unit, "bytes");
            assert_true(event->value == wanted[rss++]);
        }
        if (strcmp(track->name, "cpu.user cpu 3") == 0) {
            static const double wanted[] = {0.5, 1};
            assert_string_equal(track->unit, "cores");
            assert_string_equal(find_track(read, track->parent)->name, "host");
            assert_true(fabs(event->value - wanted[cpu++]) < 1e-9);
        }
    }
    assert_int_equal(rss, 3);
    assert_int_equal(cpu, 2);
    tare__text_free(&text);
}

static void flipped_bits_keep_the_counts(void **state)
{
    (void)state;
    flip_bits(&tare__emit_perfetto, spans_of);
}

static void limit_memory(long allocations)
{
    allocations_left = allocations;
}

static void refusals_are_passed_on(void **state)
{
    (void)state;
    refuse_and_fail(&tare__emit_perfetto, limit_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_equal),
        cmocka_unit_test(begins_and_ends_are_pairs),
        cmocka_unit_test(names_times_and_numbers_are_right),
        cmocka_unit_test(how_spans_ended_is_said),
        cmocka_unit_test(unknown_people_have_tracks),
        cmocka_unit_test(flows_and_lanes),
        cmocka_unit_test(samples_are_counters),
        cmocka_unit_test(flipped_bits_keep_the_counts),
        cmocka_unit_test(refusals_are_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
