/* check junit: a check as JUnit XML: a test case for each figure that could fail.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include "emit/escape.h"

static bool is_case(const tare__check_row *row)
{
    return (row->gated || row->has_limit) && row->outcome != TARE__OUTCOME_ABSENT;
}

/* Why a check failed although no figure did: nothing was compared, or the rerun failed. */
static bool is_error(const tare__check *check)
{
    return !tare__check_passed(check) && check->count[TARE__OUTCOME_FAILED] == 0;
}

static void put_attribute(tare__text *out, const char *name, const char *value)
{
    tare__text_format(out, " %s=\"", name);
    tare__escape_xml(out, value);
    tare__text_string(out, "\"");
}

/* Some readers show the message and some the text; others interpret a case without a time as NaN. */
static void put_result(tare__text *out, const char *element, const char *type, const char *sentence)
{
    tare__text_format(out, ">\n      <%s", element);
    if (type)
        put_attribute(out, "type", type);
    put_attribute(out, "message", sentence);
    tare__text_string(out, ">");
    tare__escape_xml(out, sentence);
    tare__text_format(out, "</%s>\n    </testcase>\n", element);
}

static void put_error(const tare__check *check, tare__text *out)
{
    tare__text sentence = {0};
    tare__check_summary(check, &sentence);
    tare__text_string(out, "    <testcase name=\"tare check\" classname=\"tare.check\" time=\"0\"");
    put_result(out, "error", check->unconfirmed ? "rerun" : "nothing", sentence.data ? sentence.data : "");
    tare__text_end(&sentence, out);
}

/* An inconclusive figure has neither failed nor been shown to pass, which readers of JUnit XML know as "skipped". */
static void put_case(const tare__check_row *row, tare__text *out)
{
    tare__text sentence = {0};
    tare__check_sentence(row, &sentence);
    const char *text = sentence.data ? sentence.data : "";
    tare__text_string(out, "    <testcase");
    put_attribute(out, "name", row->name);
    put_attribute(out, "classname", "tare.check");
    put_attribute(out, "time", "0");
    if (row->outcome == TARE__OUTCOME_FAILED) {
        put_result(out, "failure", row->broken ? "limit" : !row->head ? "missing" : "regression", text);
    } else if (row->outcome == TARE__OUTCOME_INCONCLUSIVE) {
        put_result(out, "skipped", NULL, text);
    } else {
        tare__text_string(out, ">\n      <system-out>");
        tare__escape_xml(out, text);
        tare__text_string(out, "</system-out>\n    </testcase>\n");
    }
    tare__text_end(&sentence, out);
}

void tare__emit_check_junit(const tare__check *check, const tare__check_names *names, tare__text *out)
{
    size_t cases = 0;
    for (size_t i = 0; i < check->n; i++)
        cases += is_case(&check->rows[i]);
    size_t failed = check->count[TARE__OUTCOME_FAILED], inconclusive = check->count[TARE__OUTCOME_INCONCLUSIVE];
    size_t errors = is_error(check);
    tare__text_string(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    tare__text_format(
        out, "<testsuites name=\"tare check\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" time=\"0\">\n",
        cases + errors, failed, errors);
    tare__text_string(out, "  <testsuite");
    put_attribute(out, "name", names->head);
    tare__text_format(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
                      cases + errors, failed, errors, inconclusive);
    if (errors)
        put_error(check, out);
    for (size_t i = 0; i < check->n; i++)
        if (is_case(&check->rows[i]))
            put_case(&check->rows[i], out);
    for (size_t i = 0; i < check->n_warnings; i++) {
        tare__text_string(out, i ? "" : "    <system-err>");
        tare__escape_xml(out, check->warnings[i]);
        tare__text_string(out, i + 1 < check->n_warnings ? "\n" : "</system-err>\n");
    }
    tare__text_string(out, "  </testsuite>\n</testsuites>\n");
}
