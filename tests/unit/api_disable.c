/* Tests of TARE_DISABLE: a function full of tare.h compiles to the very code of one without it.
 * One thread; runs the compilers, objdump and nm in a folder of its own.
 * Must not know what tare.h does when it is not disabled. */
#define TARE_DISABLE
#include <tare.h>

#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* T(…) is there only for the profiler; V(with, without) is a value that the disabled header makes constant.
 * Every macro and function of the header must occur: the_snippet_uses_all_there_is checks. */
static const char snippet[] =
    "#ifdef BARE\n"
    "#define T(...)\n"
    "#define V(with, without) (without)\n"
    "#else\n"
    "#include <tare.h>\n"
    "#define T(...) __VA_ARGS__\n"
    "#define V(with, without) (with)\n"
    "#endif\n"
    "#ifdef __cplusplus\n"
    "extern \"C\"\n"
    "#endif\n"
    "int work(int);\n"
    "int macros(int n);\n"
    "int macros(int n)\n"
    "{\n"
    "    int sum = 0;\n"
    "    T(TARE_EPOCH(n);)\n"
    "    for (int i = 0; i < n; i++) {\n"
    "        T(TARE_STEP(i);)\n"
    "        T(TARE_SPAN(\"a\"); TARE_SPAN_NAME(i ? \"b\" : \"c\");)\n"
    "        T(TARE_AGGREGATE(\"d\"); TARE_SAMPLED(\"e\", 64);)\n"
    "        T(TARE_BEGIN(\"load\");)\n"
    "        sum += work(i);\n"
    "        T(TARE_NEXT(\"forward\");)\n"
    "        sum ^= work(sum);\n"
    "        T(TARE_END();)\n"
    "        T(TARE_MARK(\"f\"); TARE_COUNTER(\"g\", work(7)); TARE_NUMBER(\"h\", sum++);)\n"
    "        T(TARE_SAMPLES(i++); TARE_TOKENS(2); TARE_BYTES(3); TARE_FLOPS(4.5);)\n"
    "        if (sum == 99)\n"
    "            return work(1);\n"
    "        if (sum == 98)\n"
    "            break;\n"
    "    }\n"
    "    return sum;\n"
    "}\n"
    "#ifdef FUNCTIONS\n"
    "int functions(int n);\n"
    "int functions(int n)\n"
    "{\n"
    "    T(static tare_site site = TARE_SITE(\"s\"), hot = TARE_SITE_OF(\"t\", TARE_KIND_AGGREGATE, 8);)\n"
    "    T(tare_complete_span span = {0, 1, 2, 3, 4, 5};)\n"
    "    T(tare_thread_name(\"main\"); tare_begin(&site); tare_begin_name(\"x\");)\n"
    "    int sum = work(n);\n"
    "    T(tare_next(&site); tare_next_name(\"y\"); tare_end(&site); tare_end(0);)\n"
    "    T(uint64_t start = tare_aggregate_begin(); tare_aggregate_end(&hot, start);)\n"
    "    T(start = tare_sampled_begin(&hot); tare_sampled_end(&hot, start);)\n"
    "    T(tare_mark(&site); tare_mark_name(\"m\"); tare_counter(&site, n); tare_counter_name(\"c\", n);)\n"
    "    T(tare_number(&site, n); tare_complete(&site, &span); tare_complete_name(\"z\", &span);)\n"
    "    T(tare_step_begin(1); tare_step_next(2); tare_step_end();)\n"
    "    T(tare_epoch_begin(1); tare_epoch_next(2); tare_epoch_end(); tare_pause(); tare_resume();)\n"
    "    sum += work(V(tare_start(0), -11)) + work(V(tare_stop(), -11)) + work(V(tare_recording(), 0));\n"
    "    sum += work((int)V(tare_now(), 0)) + work((int)V(tare_track(\"r\", TARE_TRACK_REQUEST), 0));\n"
    "    return sum + V(*tare_output(), 0) + V(*tare_start_error(), 0) + V(*tare_status_text(0), 'd');\n"
    "}\n"
    "#endif\n";

static char folder[] = "/tmp/tare-api-XXXXXX";
static char header[2 * PATH_MAX]; /* of tare.h */

/* ---- helpers ------------------------------------------------------------------------------------------ */
/* Runs a shell command in the folder; what it printed, to be freed. Fails the test when it fails. */
static char *output_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *output_of(const char *format, ...)
{
    char command[4 * PATH_MAX];
    va_list arguments;
    int at = snprintf(command, sizeof(command), "cd %s && ", folder);
    va_start(arguments, format);
    vsnprintf(command + at, sizeof(command) - (size_t)at, format, arguments);
    va_end(arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *text = NULL;
    size_t room = 0;
    if (getdelim(&text, &room, 0, pipe) < 0) { /* nothing was printed */
        text = realloc(text, 1);
        text[0] = 0;
    }
    if (pclose(pipe) != 0)
        fail_msg("failed: %s\n%s", command, text);
    return text;
}

static bool is_there(const char *program)
{
    char command[256];
    snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
    return system(command) == 0;
}

/* The compiler got a path that may be relative to where the build ran: one of this program's folders. */
static bool find_header(void)
{
    char source[PATH_MAX], place[PATH_MAX];
    snprintf(source, sizeof(source), "%s", __FILE__);
    const char *here = dirname(source);
    ssize_t length = readlink("/proc/self/exe", place, sizeof(place) - 1);
    if (length < 0)
        return false;
    place[length] = 0;
    if (here[0] == '/') {
        snprintf(header, sizeof(header), "%s/../../include/tare.h", here);
        return access(header, R_OK) == 0;
    }
    for (char *slash; (slash = strrchr(place, '/'));) {
        *slash = 0;
        snprintf(header, sizeof(header), "%s/%s/../../include/tare.h", place, here);
        if (access(header, R_OK) == 0)
            return true;
    }
    snprintf(header, sizeof(header), "%s/../../include/tare.h", here); /* from the current folder */
    char whole[PATH_MAX];
    if (!realpath(header, whole))
        return false;
    snprintf(header, sizeof(header), "%s", whole);
    return true;
}

static int open_folder(void **state)
{
    (void)state;
    char path[PATH_MAX];
    if (!mkdtemp(folder) || !find_header()) {
        fprintf(stderr, "api_disable: no folder in /tmp, or no include/tare.h seen from %s\n", __FILE__);
        return -1;
    }
    snprintf(path, sizeof(path), "%s/snippet.c", folder);
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    fputs(snippet, file);
    return fclose(file);
}

static int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void compile(const char *compiler, const char *flags)
{
    char include[sizeof(header)];
    snprintf(include, sizeof(include), "%s", header);
    const char *options = "-Wall -Wextra -Werror";
    const char *place = dirname(include);
    free(output_of("%s %s %s -DTARE_DISABLE -I'%s' -c snippet.c -o with.o 2>&1", compiler, flags, options,
                   place));
    free(output_of("%s %s %s -DBARE -c snippet.c -o bare.o 2>&1", compiler, flags, options));
}

/* The same view of both objects, which must agree; that of with.o, to be freed. */
static char *same_view(const char *tool)
{
    char *with = output_of("%s with.o | grep -v 'file format'", tool);
    char *bare = output_of("%s bare.o | grep -v 'file format'", tool);
    assert_string_equal(with, bare);
    free(bare);
    return with;
}

static void compare(const char *compiler, const char *flags)
{
    compile(compiler, flags);
    char *code = same_view("objdump -dr");
    assert_non_null(strstr(code, "macros")); /* there is something to compare */
    free(code);
    char *symbols = same_view("nm");
    assert_non_null(strstr(symbols, "U work"));
    assert_null(strstr(symbols, "tare"));
    free(symbols);
    char *data = output_of("objdump -h with.o | awk '$2 ~ /^\\.(data|bss|rodata|tdata|tbss|init_array)/ "
                           "&& $3 !~ /^0+$/ { print $2, $3 }'");
    assert_string_equal(data, "");
    free(data);
}

static const char *c_compiler(void)
{
    const char *compiler = getenv("CC");
    return compiler && *compiler ? compiler : "cc";
}

/* ---- tests -------------------------------------------------------------------------------------------- */
static void the_code_is_that_of_nothing(void **state)
{
    (void)state;
    compare(c_compiler(), "-std=c11 -O2 -DFUNCTIONS");
    compare(c_compiler(), "-std=c11 -O0"); /* the macros leave nothing even there */
}

static void the_code_is_that_of_nothing_with_clang(void **state)
{
    (void)state;
    if (!is_there("clang"))
        skip();
    compare("clang", "-std=c11 -O2 -DFUNCTIONS");
}

static void the_code_is_that_of_nothing_in_cpp(void **state)
{
    (void)state;
    const char *compiler = getenv("CXX");
    if (!compiler || !*compiler)
        compiler = "c++";
    if (!is_there(compiler))
        skip();
    compare(compiler, "-x c++ -std=c++17 -O2 -DFUNCTIONS");
}

/* The comparison is worth something only if it tells: enabled, all of it differs. */
static void enabled_code_differs(void **state)
{
    (void)state;
    compile(c_compiler(), "-std=c11 -O2");
    char include[sizeof(header)];
    snprintf(include, sizeof(include), "%s", header);
    free(output_of("%s -std=c11 -O2 -I'%s' -c snippet.c -o with.o 2>&1", c_compiler(), dirname(include)));
    char *with = output_of("objdump -dr with.o | grep -v 'file format'");
    char *bare = output_of("objdump -dr bare.o | grep -v 'file format'");
    char *symbols = output_of("nm with.o");
    assert_string_not_equal(with, bare);
    assert_non_null(strstr(symbols, "U tare__begin"));
    free(with);
    free(bare);
    free(symbols);
}

static void the_snippet_uses_all_there_is(void **state)
{
    (void)state;
    /* What is defined for the disabled build, and the shorthands below it; private names have "__". */
    char *names = output_of("sed -n '/^#else .*TARE_DISABLE/,$p' '%s' | grep -oE "
                            "'^#define TARE_[A-Z]+(_[A-Z]+)*\\(|^static inline .* \\*?tare_[a-z_]+\\(' | "
                            "grep -oE '(TARE|tare)_[A-Za-z_]+\\($' | grep -vE '__|TARE_STATUS_'", header);
    int count = 0;
    for (char *name = strtok(names, "\n"); name; name = strtok(NULL, "\n"), count++)
        if (!strstr(snippet, name))
            fail_msg("the snippet does not use %s…)", name);
    assert_true(count > 40);
    free(names);
}

static const char *counted_name(int *n)
{
    ++*n;
    return "name";
}

static void arguments_are_not_evaluated(void **state)
{
    (void)state;
    int n = 0;
    assert_string_equal(counted_name(&n), "name");
    TARE_STEP(n++);
    TARE_EPOCH(n++);
    TARE_SPAN_NAME(counted_name(&n));
    TARE_COUNTER("c", n++);
    TARE_NUMBER("n", n++);
    TARE_SAMPLES(n++);
    assert_int_equal(n, 1);
}

static void calls_say_that_they_are_disabled(void **state)
{
    (void)state;
    assert_int_equal(tare_start(NULL), TARE_E_DISABLED);
    assert_int_equal(tare_stop(), TARE_E_DISABLED);
    assert_int_equal(tare_recording(), 0);
    assert_int_equal(tare_track("r", TARE_TRACK_TASK), 0);
    assert_string_equal(tare_output(), "");
    assert_string_equal(tare_start_error(), "");
    assert_string_equal(tare_status_text(TARE_E_DISABLED), "compiled with TARE_DISABLE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_is_that_of_nothing),
        cmocka_unit_test(the_code_is_that_of_nothing_with_clang),
        cmocka_unit_test(the_code_is_that_of_nothing_in_cpp),
        cmocka_unit_test(enabled_code_differs),
        cmocka_unit_test(the_snippet_uses_all_there_is),
        cmocka_unit_test(arguments_are_not_evaluated),
        cmocka_unit_test(calls_say_that_they_are_disabled),
    };
    return cmocka_run_group_tests_name("api_disable", tests, open_folder, remove_folder);
}
