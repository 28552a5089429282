/* html_boxes: the timeline of the page: lanes, and boxes packed row by row.
 * Owned by the calling thread.
 * Must not know how spans were merged into boxes. */
#include "html.h"

static void put_lane(tare__html *page, size_t index)
{
    const tare__lane *lane = &page->timeline->lanes[index];
    tare__json_string(&page->json, lane->name);
    tare__json_string(&page->json, lane->process);
    tare__html_known(page, lane->pid);
    tare__html_known(page, lane->tid);
    tare__json_unsigned(&page->json, lane->track_kind);
    tare__json_unsigned(&page->json, lane->depth);
    tare__json_unsigned(&page->json, lane->spans);
}

static void put_names(tare__html *page)
{
    tare__json_key(&page->json, "names");
    tare__json_array(&page->json);
    for (size_t i = 0; i < page->timeline->n_names; i++)
        tare__json_string(&page->json, page->timeline->names[i]);
    tare__json_end_array(&page->json);
}

/* An interval, the name, and calls: 0 for one span; 2 * calls + mixed for merged ones, followed by the share of the
 * interval that they took. */
static void pack_box(tare__text *bytes, const tare__box *box, double *end)
{
    tare__pack_stretch(bytes, box->at_ns, box->lasts_ns, end);
    tare__pack_varint(bytes, box->name);
    if (box->calls <= 1) {
        tare__pack_varint(bytes, 0);
        return;
    }
    tare__pack_varint(bytes, 2.0 * (double)box->calls + box->mixed);
    tare__pack_share(bytes, box->lasts_ns > 0 ? box->busy_ns / box->lasts_ns : 1);
}

/* Boxes of one lane and depth make a row: its lane, depth and number of boxes in "rows", the boxes in "packed". Of
 * sampled threads (`states` is not 0), boxes of depth 1 are functions, whose names follow those of the states; boxes of
 * depth 2 are stacks, with the number of the innermost frame. */
static void put_boxes(tare__html *page, const tare__box *boxes, size_t n, uint32_t states)
{
    tare__text bytes = {0};
    tare__json_key(&page->json, "rows");
    tare__json_array(&page->json);
    for (size_t at = 0, next; at < n; at = next) {
        const tare__box *first = &boxes[at];
        double end = 0;
        for (next = at; next < n && boxes[next].lane == first->lane && boxes[next].depth == first->depth; next++) {
            tare__box box = boxes[next];
            box.name += box.depth == 1 ? states : 0;
            pack_box(&bytes, &box, &end);
        }
        tare__json_unsigned(&page->json, first->lane);
        tare__json_unsigned(&page->json, first->depth);
        tare__json_unsigned(&page->json, next - at);
    }
    tare__json_end_array(&page->json);
    tare__json_key(&page->json, "packed");
    tare__html_packed(page, &bytes);
    tare__text_free(&bytes);
}

static void put_counters(tare__html *page)
{
    const tare__timeline *timeline = page->timeline;
    size_t most = timeline->n_counters ? page->limits->points / 4 / timeline->n_counters : 0;
    tare__json_key(&page->json, "counters");
    tare__json_array(&page->json);
    for (size_t i = 0; i < timeline->n_counters; i++) {
        const tare__counter_line *line = &timeline->counters[i];
        tare__json_object(&page->json);
        tare__json_put_string(&page->json, "name", line->name);
        tare__json_key(&page->json, "points");
        tare__html_points(page, line->points, line->n_points, most < 16 ? 16 : most > 1024 ? 1024 : most);
        tare__json_end_object(&page->json);
    }
    tare__json_end_array(&page->json);
}

/* ---- sampled threads ----------------------------------------------------------------------------- */
static void put_sampled_lane(tare__html *page, size_t index)
{
    const tare__lane *lane = &page->timeline->sampled_lanes[index];
    tare__json_string(&page->json, lane->name);
    tare__html_known(page, lane->pid);
    tare__html_known(page, lane->tid);
    tare__json_unsigned(&page->json, lane->depth);
    tare__json_unsigned(&page->json, lane->spans);
}

/* States, then functions: a box of a function has the number of its name after the states. */
static void put_sampled_names(tare__html *page)
{
    tare__json_key(&page->json, "names");
    tare__json_array(&page->json);
    for (uint32_t i = 0; i < TARE__STATE_COUNT; i++)
        tare__json_string(&page->json, tare__state_phrase(i));
    for (size_t i = 0; i < page->timeline->n_sampled_names; i++)
        tare__json_string(&page->json, page->timeline->sampled_names[i]);
    tare__json_end_array(&page->json);
    tare__json_put_unsigned(&page->json, "states", TARE__STATE_COUNT);
}

/* Frames as numbers: caller, line, index of the text of its function; and these texts, each once. */
static void put_frames(tare__html *page)
{
    const tare__timeline *timeline = page->timeline;
    tare__intern *texts = tare__intern_new();
    tare__text text = {0}, bytes = {0};
    for (size_t i = 0; texts && i < timeline->n_sampled_frames; i++) {
        const tare__sampled_frame *frame = &timeline->sampled_frames[i];
        tare__text_clear(&text);
        const char *file = frame->file ? frame->file : "";
        tare__text_format(&text, "%.200s%s%.300s", frame->name, *file ? " · " : "", file);
        uint32_t id = text.failed ? TARE__INTERN_NONE : tare__intern_add(texts, text.data, text.length);
        page->text.failed = page->text.failed || id == TARE__INTERN_NONE;
        tare__pack_varint(&bytes, frame->caller);
        tare__pack_varint(&bytes, frame->line);
        tare__pack_varint(&bytes, id);
    }
    tare__json_key(&page->json, "functions");
    tare__json_array(&page->json);
    for (uint32_t i = 0; texts && i < tare__intern_count(texts); i++)
        tare__json_string(&page->json, tare__intern_text(texts, i, NULL));
    tare__json_end_array(&page->json);
    tare__json_put_unsigned(&page->json, "frames", timeline->n_sampled_frames);
    tare__json_key(&page->json, "packed_frames");
    tare__html_packed(page, &bytes);
    page->text.failed = page->text.failed || !texts;
    tare__text_free(&bytes);
    tare__text_free(&text);
    tare__intern_free(texts);
}

static void put_sampled(tare__html *page)
{
    tare__json_key(&page->json, "sampled");
    tare__json_object(&page->json);
    tare__html_table(page, "lanes", "name pid tid depth spans", page->timeline->n_sampled_lanes, 0, put_sampled_lane);
    put_sampled_names(page);
    put_boxes(page, page->timeline->sampled_boxes, page->timeline->n_sampled_boxes, TARE__STATE_COUNT);
    put_frames(page);
    tare__json_end_object(&page->json);
}

void tare__html_timeline(tare__html *page)
{
    const tare__timeline *timeline = page->timeline;
    tare__json_key(&page->json, "timeline");
    tare__json_object(&page->json);
    tare__html_table(page, "lanes", "name process pid tid track_kind depth spans", timeline->n_lanes, 0, put_lane);
    put_names(page);
    put_boxes(page, timeline->boxes, timeline->n_boxes, 0);
    put_counters(page);
    if (timeline->n_sampled_lanes)
        put_sampled(page);
    tare__json_put_unsigned(&page->json, "spans", timeline->spans);
    tare__json_put_unsigned(&page->json, "merged", timeline->merged_spans);
    tare__json_put_unsigned(&page->json, "left_out", timeline->left_out_spans);
    tare__html_key_ns(page, "resolution", timeline->resolution_ns);
    tare__json_end_object(&page->json);
}
