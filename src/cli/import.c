/* import: `tare import`: converts a trace of another profiler to a .tare file, and reports what was dropped.
 * One thread.
 * Must not know the other formats. */
#define _GNU_SOURCE
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/trace.h"

#define ME "tare import"

typedef struct import_settings {
    const char *output;
    bool force, json, quiet;
} import_settings;

static const tare__cli_option import_options[] = {
    {"output", 'o', "FILE", "trace file to write (default: NAME.tare in the current directory; numbered if it exists)",
     TARE__CLI_TEXT(import_settings, output)},
    {"force", 0, NULL, "overwrite the output file", TARE__CLI_SETS(import_settings, force)},
    {"json", 0, NULL, "print a summary as JSON", TARE__CLI_SETS(import_settings, json)},
    {"quiet", 'q', NULL, "print errors only", TARE__CLI_SETS(import_settings, quiet)},
};

/* ---- names ----------------------------------------------------------------------------------------- */
/* logs/host_12.34.pt.trace.json.gz becomes host_12.34.tare */
static char *default_output(const char *input)
{
    static const char *const endings[] = {".gz", ".json", ".trace", ".pt"};
    const char *name = tare__base_name(input);
    size_t length = strlen(name);
    for (size_t i = 0; i < TARE__COUNT_OF(endings); i++) {
        size_t cut = strlen(endings[i]);
        if (length > cut && memcmp(name + length - cut, endings[i], cut) == 0)
            length -= cut;
    }
    char *output = NULL;
    return asprintf(&output, "%.*s.tare", (int)length, length ? name : "imported") < 0 ? NULL : output;
}

/* ---- the result -------------------------------------------------------------------------------------- */
static void put_count(tare__text *out, uint64_t n, const char *one, const char *many)
{
    char count[TARE__UNIT_BYTES];
    if (n)
        tare__text_format(out, "%s%s %s", out->length ? ", " : "", tare__unit_count(count, (double)n),
                          n == 1 ? one : many);
}

static void say_result(const tare__import_report *report)
{
    tare__text text = {0};
    put_count(&text, report->spans, "span", "spans");
    put_count(&text, report->steps, "step", "steps");
    put_count(&text, report->operators, "operator", "operators");
    put_count(&text, report->complete, "span on tracks", "spans on tracks");
    put_count(&text, report->marks, "mark", "marks");
    put_count(&text, report->counters, "counter value", "counter values");
    put_count(&text, report->threads, "thread", "threads");
    put_count(&text, report->tracks, "track", "tracks");
    tare__cli_say(ME, "wrote %s from %s JSON: %s", report->path, report->format, text.failed ? "" : text.data);
    tare__text_free(&text);
}

static void say_left_out(const tare__import_report *report)
{
    tare__text text = {0};
    put_count(&text, report->arrows, "arrow", "arrows");
    put_count(&text, report->own, "event of the profiler itself", "events of the profiler itself");
    put_count(&text, report->senseless, "event without a name or a time", "events without a name or a time");
    put_count(&text, report->unbegun, "end without a begin", "ends without a begin");
    put_count(&text, report->crowded, "event beyond the limit of threads or requests",
              "events beyond the limit of threads or requests");
    for (uint32_t i = 0; i < report->unknown_count; i++) {
        char what[64];
        bool last = i == TARE__IMPORT_UNKNOWN - 1;
        snprintf(what, sizeof what, "of unknown phase '%.8s'%s", report->unknown[i].phase, last ? " and others" : "");
        put_count(&text, report->unknown[i].events, what, what);
    }
    if (text.length)
        tare__cli_say(ME, "dropped: %s", text.data);
    tare__text_free(&text);
}

static void say_changed(const tare__import_report *report)
{
    char count[TARE__COUNTED_BYTES];
    if (report->cut)
        tare__cli_say(
            ME, "%s with other spans in part; truncated there",
            tare__unit_counted(count, (double)report->cut, "Python function overlaps", "Python functions overlap"));
    if (report->overlapping)
        tare__cli_say(ME, "%s with others of the thread in part; placed on a separate track",
                      tare__unit_counted(count, (double)report->overlapping, "span overlaps", "spans overlap"));
    if (report->unended)
        tare__cli_say(ME, "%s without an end", tare__unit_counted(count, (double)report->unended, "span", NULL));
    if (report->renamed)
        tare__cli_say(ME, "too many names: %s named (other names)",
                      tare__unit_counted(count, (double)report->renamed, "event is", "events are"));
}

static void say_broken(const char *input, const tare__import_report *report)
{
    char count[TARE__COUNTED_BYTES];
    if (!report->broken)
        return;
    tare__cli_say(ME, "warning: '%.200s' is damaged at byte %llu: %s", input,
                  (unsigned long long)report->broken_offset, report->broken_text);
    if (report->broken > 1 || !report->torn)
        tare__cli_say(ME, "%s could not be read; the others are in the trace",
                      tare__unit_counted(count, (double)report->broken, "event", NULL));
    else
        tare__cli_say(ME, "events before it are in the trace");
}

static void put_unknown(tare__json *json, const tare__import_report *report)
{
    tare__json_key(json, "unknown_phases");
    tare__json_object(json);
    for (uint32_t i = 0; i < report->unknown_count; i++) {
        tare__json_key(json, i == TARE__IMPORT_UNKNOWN - 1 ? "others" : report->unknown[i].phase);
        tare__json_unsigned(json, report->unknown[i].events);
    }
    tare__json_end_object(json);
}

static void put_broken(tare__json *json, const tare__import_report *report)
{
    tare__json_key(json, "damaged");
    if (!report->broken) {
        tare__json_null(json);
        return;
    }
    tare__json_object(json);
    tare__json_put_unsigned(json, "places", report->broken);
    tare__json_put_unsigned(json, "first_byte", report->broken_offset);
    tare__json_put_string(json, "reason", report->broken_text);
    tare__json_put_bool(json, "truncated", report->torn);
    tare__json_end_object(json);
}

static int print_json(const tare__import_report *report)
{
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"json_bytes", report->json_bytes},
        {"events", report->events},
        {"spans", report->spans},
        {"operators", report->operators},
        {"steps", report->steps},
        {"complete_spans", report->complete},
        {"marks", report->marks},
        {"counter_values", report->counters},
        {"processes", report->processes},
        {"threads", report->threads},
        {"tracks", report->tracks},
        {"dropped_flows", report->arrows},
        {"dropped_profiler_events", report->own},
        {"dropped_invalid", report->senseless},
        {"dropped_unmatched_ends", report->unbegun},
        {"dropped_over_limit", report->crowded},
        {"truncated_spans", report->cut},
        {"overlapping", report->overlapping},
        {"unfinished", report->unended},
        {"renamed", report->renamed},
    };
    tare__text text = {0};
    tare__json json;
    tare__json_begin(&json, &text, isatty(STDOUT_FILENO));
    tare__json_object(&json);
    tare__json_put_string(&json, "trace", report->path);
    tare__json_put_string(&json, "format", report->format);
    for (size_t i = 0; i < TARE__COUNT_OF(counts); i++) {
        tare__json_key(&json, counts[i].key);
        tare__json_unsigned(&json, counts[i].value);
    }
    put_unknown(&json, report);
    put_broken(&json, report);
    tare__json_end_object(&json);
    tare__text_string(&text, "\n");
    int exit_status = tare__cli_print(&text);
    tare__text_free(&text);
    return exit_status;
}

/* ---- the work ------------------------------------------------------------------------------------------ */
static void show_progress(void *context, uint64_t read_bytes)
{
    uint64_t of, done = tare__import_done(context, &of);
    char bytes[TARE__UNIT_BYTES];
    if (of)
        fprintf(stderr, "\r%s: %3u %%", ME, (unsigned)(done * 100 / of));
    else
        fprintf(stderr, "\r%s: %s", ME, tare__unit_bytes(bytes, (double)read_bytes));
}

static int exit_status_of(int status)
{
    if (status == TARE_E_USAGE)
        return TARE__EXIT_USAGE;
    return status == TARE_E_INPUT || status == TARE_E_VERSION ? TARE__EXIT_INPUT : TARE__EXIT_FAILED;
}

static int import_file(const char *input, const char *output, const import_settings *settings)
{
    tare__error error = {""};
    tare__import_file *file = NULL;
    static tare__import_report report;
    bool shows = !settings->quiet && isatty(STDERR_FILENO);
    int status = tare__import_open(input, &file, &error);
    if (status) {
        tare__cli_say(ME, "%s", error.text);
        return TARE__EXIT_INPUT;
    }
    tare__import_options options = {.output = output,
                                    .overwrite = settings->force,
                                    .input_name = input,
                                    .progress = shows ? show_progress : NULL,
                                    .context = file};
    status = tare__import(tare__import_read, file, &options, &report, &error);
    tare__import_close(file);
    if (shows)
        fputs("\r                    \r", stderr);
    if (status) {
        tare__cli_say(ME, "%s", error.text[0] ? error.text : tare_status_text(status));
        return exit_status_of(status);
    }
    say_broken(input, &report);
    if (!settings->quiet) {
        say_left_out(&report);
        say_changed(&report);
        if (!settings->json)
            say_result(&report);
    }
    return settings->json ? print_json(&report) : TARE__EXIT_OK;
}

static int find_input(const tare__cli_words *words, const import_settings *settings, const char **input,
                      tare__error *error)
{
    int status = tare__cli_one_word(words, "trace", "tare import FILE.json", input, error);
    if (status)
        return status;
    if (settings->force && !settings->output)
        return tare__fail(error, TARE_E_USAGE, "--force requires --output");
    if (settings->output && strcmp(settings->output, *input) == 0)
        return tare__fail(error, TARE_E_USAGE, "--output is the input itself; choose another file");
    return 0;
}

static int import_main(int argc, char **argv)
{
    tare__error error = {""};
    tare__cli_words words;
    import_settings settings = {0};
    const char *input = NULL;
    int status = tare__cli_read(&tare__cli_import, argc, argv, &settings, &words, &error);
    if (!status && words.help)
        return tare__cli_print_help(&tare__cli_import);
    if (!status)
        status = find_input(&words, &settings, &input, &error);
    if (status)
        return tare__cli_usage(ME, &error);
    char *made = settings.output ? NULL : default_output(input);
    if (!settings.output && !made) {
        tare__cli_say(ME, "out of memory");
        return TARE__EXIT_FAILED;
    }
    int exit_status = import_file(input, settings.output ? settings.output : made, &settings);
    free(made);
    return exit_status;
}

const tare__cli_command tare__cli_import = {
    .name = "import",
    .summary = "Import a trace of torch.profiler, Chrome or ONNX Runtime",
    .usage = "[options] FILE.json[.gz]",
    .details = "Damaged JSON is reported with its position; all readable events are imported. Exit\n"
               "status: 0 success, also with damaged JSON; 1 the trace could not be written;\n"
               "2 invalid command line; 3 nothing in the file is readable.\n",
    .examples = "  tare import logs/host_4711.1700000000.pt.trace.json.gz -o train.tare\n"
                "  tare report --html train.tare\n",
    .options = import_options,
    .option_count = TARE__COUNT_OF(import_options),
    .main = import_main,
};
