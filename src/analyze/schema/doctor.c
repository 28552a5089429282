/* doctor: the tables of `tare doctor`: what can be measured on a machine.
 * Constant; any thread.
 * Must not know output formats. */
#include "define.h"
#include "sample/sample.h"

static const char *const states[] = {
    [TARE__SAMPLE_WORKS] = "works", [TARE__SAMPLE_PARTLY] = "partly", [TARE__SAMPLE_FAILS] = "fails"};

static tare__value count_in(const tare__doctor_view *view, tare__sample_state state)
{
    uint64_t n = 0;
    for (size_t i = 0; i < view->n; i++)
        n += view->checks[i].state == state;
    return tare__value_count(n, true);
}
MADE(doctor_writer, tare__doctor_view, tare__value_text(row ? "tare " TARE_VERSION : NULL))
MADE(doctor_works, tare__doctor_view, count_in(row, TARE__SAMPLE_WORKS))
MADE(doctor_partly, tare__doctor_view, count_in(row, TARE__SAMPLE_PARTLY))
MADE(doctor_fails, tare__doctor_view, count_in(row, TARE__SAMPLE_FAILS))

static const tare__schema_column doctor_columns[] = {
    M("writer", TEXT, NOTHING, doctor_writer, "version of Tare"),
    M("works", COUNT, COUNT, doctor_works, "sources that are available"),
    M("partly", COUNT, COUNT, doctor_partly, "sources of which a part is missing"),
    M("fails", COUNT, COUNT, doctor_fails, "sources that are not available"),
};
static const tare__table doctor = {.name = "doctor", .shape = TARE__SHAPE_TOP, .meaning = "the machine",
                                   .columns = doctor_columns, .n_columns = TARE__COUNT_OF(doctor_columns)};

MADE(check_state, tare__sample_check, tare__value_text(WORD(states, row->state)))
MADE(check_detail, tare__sample_check, tare__value_text(row->detail))
MADE(check_fix, tare__sample_check, tare__value_text(row->fix[0] ? row->fix : NULL))

#define R tare__sample_check
static const tare__schema_column check_columns[] = {
    C(sampler, TEXT, NOTHING, "what it is for: `process`, `system`, `nvml`, …", .key = true),
    C(source, TEXT, NOTHING, "the source: `/proc/pressure`, `NVML`", .key = true),
    M("state", TEXT, NOTHING, check_state, "`works`, `partly` or `fails`"),
    M("detail", TEXT, NOTHING, check_detail, "what was found, or why not"),
    M("fix", TEXT, NOTHING, check_fix, "a command that enables it; null: none is known"),
};
#undef R
static const tare__table checks =
    ROWS_IN("checks", check_columns, tare__sample_check, tare__doctor_view, checks, n, "a source of measurements");

static const tare__table *const tables[] = {&doctor, &checks};
DOCUMENT(doctor, "tare-doctor", 1, 1, tables);
