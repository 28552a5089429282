/* Tests of include/tare.h as C, with the library and without a session: nothing happens, wherever from.
 * The main thread, others, a signal handler, children by fork and exec.
 * Must not know the library's insides. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <tare.h>

enum { STRANGE_ERRNO = 4711, CHILD_STATUS = 42 };
static const char *const self_path = "/proc/self/exe";
static int wrong_before_main = -1;

static int check_sites(tare_site *const *sites, size_t count)
{
    int wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += sites[i]->word != 0 || sites[i]->slot != 0; /* private, but 0 until first use */
    return wrong;
}

static int use_functions(void)
{
    static tare_site span = TARE_SITE("span"), aggregate = TARE_SITE_OF("hot", TARE_KIND_AGGREGATE, 1),
                     sampled = TARE_SITE_OF("hotter", TARE_KIND_AGGREGATE, 16),
                     mark = TARE_SITE_OF("mark", TARE_KIND_MARK, 1),
                     counter = TARE_SITE_OF("counter", TARE_KIND_COUNTER, 1),
                     number = TARE_SITE_OF("number", TARE_KIND_NUMBER, 1), whole = TARE_SITE("whole");
    tare_site *const sites[] = {&span, &aggregate, &sampled, &mark, &counter, &number, &whole};
    tare_complete_span complete = {.start = 1, .end = 2, .id = 3, .parent = 4, .flow = 5};
    int wrong = 0;
    tare_begin(&span);
    tare_next(&span);
    tare_end(&span);
    tare_end(&span); /* without its begin */
    tare_end(NULL);
    tare_begin_name("dynamic");
    tare_next_name(NULL);
    tare_end(NULL);
    uint64_t start = tare_aggregate_begin();
    wrong += start != 0;
    tare_aggregate_end(&aggregate, start);
    start = tare_sampled_begin(&sampled);
    wrong += start != 0;
    tare_sampled_end(&sampled, start);
    tare_mark(&mark);
    tare_mark_name("");
    tare_counter(&counter, 1);
    tare_counter_name("counter", 2);
    tare_number(&number, 3);
    tare_complete(&whole, &complete);
    tare_complete_name("named", &complete);
    return wrong + check_sites(sites, sizeof(sites) / sizeof(*sites));
}

static int use_library(void)
{
    char long_name[10000] = "";
    int wrong = 0;
    memset(long_name, 'x', sizeof(long_name) - 1);
    tare_step_begin(1);
    tare_step_next(2);
    tare_step_end();
    tare_step_end();
    tare_epoch_begin(1);
    tare_epoch_next(UINT64_MAX);
    tare_epoch_end();
    (void)tare_now();
    wrong += tare_track("requests", TARE_TRACK_REQUEST) != 0;
    wrong += tare_track(NULL, TARE_TRACK_OTHER) != 0;
    wrong += tare_track(long_name, TARE_TRACK_GPU) != 0;
    tare_thread_name("api");
    tare_thread_name(long_name);
    tare_thread_name(NULL);
    tare_pause();
    tare_resume();
    wrong += tare_recording() != 0;
    wrong += strcmp(tare_output(), "") != 0;
    wrong += tare_stop() != TARE_E_NO_SESSION;
    return wrong;
}

static int use_macros(void)
{
    TARE_EPOCH(0);
    TARE_STEP(1);
    TARE_SPAN("span");
    TARE_SPAN_NAME("dynamic");
    TARE_AGGREGATE("aggregate");
    TARE_SAMPLED("sampled", 64);
    TARE_BEGIN("load");
    TARE_NEXT("forward");
    TARE_END();
    TARE_MARK("mark");
    TARE_COUNTER("loss", 0.5);
    TARE_NUMBER("images", 1);
    TARE_SAMPLES(1);
    TARE_TOKENS(2);
    TARE_BYTES(3);
    TARE_FLOPS(4);
    return 0;
}

/* Everything there is; returns how much was not as it should be. */
static int use_everything(void)
{
    errno = STRANGE_ERRNO;
    int wrong = use_functions() + use_library() + use_macros();
    return wrong + (errno != STRANGE_ERRNO);
}

__attribute__((constructor)) static void before_main(void)
{
    wrong_before_main = use_everything();
}

static void nothing_happens(void **state)
{
    (void)state;
    assert_int_equal(use_functions(), 0);
    assert_int_equal(use_library(), 0);
    assert_int_equal(use_macros(), 0);
    assert_int_equal(use_everything(), 0);
}

static void nothing_happens_before_main(void **state)
{
    (void)state;
    assert_int_equal(wrong_before_main, 0);
}

static void arguments_are_evaluated_once(void **state)
{
    (void)state;
    int n = 0;
    {
        TARE_STEP(n++);
        TARE_EPOCH(n++);
        TARE_SPAN_NAME((n++, "name"));
        TARE_COUNTER("c", n++);
        TARE_NUMBER("n", n++);
        TARE_SAMPLES(n++);
    }
    assert_int_equal(n, 6);
}

static int leave_early(int way)
{
    for (;;) {
        TARE_SPAN("loop");
        TARE_STEP(way);
        TARE_AGGREGATE("a");
        TARE_SAMPLED("s", 2);
        if (way == 0)
            return 0;
        if (way == 1)
            break;
        goto out;
    }
    return 1;
out:
    return 2;
}

static void scopes_may_be_left_anyhow(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++)
        assert_int_equal(leave_early(way), way);
}

static void *thread_main(void *wrong)
{
    *(int *)wrong = use_everything();
    return NULL;
}

static void threads_that_come_and_go(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        pthread_t thread[4];
        int wrong[4] = {-1, -1, -1, -1};
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &wrong[i]), 0);
        for (int i = 0; i < 4; i++) {
            pthread_join(thread[i], NULL);
            assert_int_equal(wrong[i], 0);
        }
    }
}

static volatile sig_atomic_t wrong_in_handler = -1;

static void on_signal(int signal)
{
    (void)signal;
    int kept = errno;
    wrong_in_handler = use_everything();
    errno = kept;
}

static void a_signal_handler(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_signal}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    TARE_SPAN("interrupted");
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(wrong_in_handler, 0);
    sigaction(SIGUSR1, &before, NULL);
}

static void use_at_exit(void)
{
    if (use_everything() == 0)
        _exit(CHILD_STATUS);
}

static void a_forked_child_and_its_exit(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (use_everything() != 0)
            _exit(1);
        atexit(use_at_exit);
        fclose(stdout); /* what the parent has not flushed is not ours to print */
        exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_STATUS);
}

/* Runs this program anew as `child`; its status, and in *printed how many bytes it wrote to 1 and 2. */
static int run_child(const char *session, size_t *printed)
{
    int ends[2], status = 0;
    char bytes[512];
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (session)
            setenv("TARE_SESSION", session, 1);
        execl(self_path, "api_c", "child", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    *printed = 0;
    while ((got = read(ends[0], bytes, sizeof(bytes))) > 0)
        *printed += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void nothing_is_printed(void **state)
{
    (void)state;
    size_t printed = 1;
    assert_int_equal(run_child(NULL, &printed), CHILD_STATUS);
    assert_int_equal(printed, 0);
}

/* A session that is gone, or never was one, is no session; the program runs on and hears nothing. */
static void a_session_that_is_not_there(void **state)
{
    (void)state;
    static char endless[6000];
    memset(endless, '/', sizeof(endless) - 1);
    const char *const sessions[] = {"", "/nonexistent/tare", "/", "/dev/null", "here", "\xff\n", endless};
    for (size_t i = 0; i < sizeof(sessions) / sizeof(*sessions); i++) {
        size_t printed = 1;
        assert_int_equal(run_child(sessions[i], &printed), CHILD_STATUS);
        assert_int_equal(printed, 0);
    }
}

static void a_start_that_finds_no_helper(void **state)
{
    (void)state;
    tare_options options = {.size = sizeof(options), .helper = "/nonexistent/tare"};
    errno = STRANGE_ERRNO;
    assert_int_equal(tare_start(&options), TARE_E_NO_HELPER);
    assert_int_equal(errno, STRANGE_ERRNO);
    assert_int_equal(use_everything(), 0);
}

/* A struct that is shorter, as long, or longer than this version's. */
typedef struct longer_options {
    tare_options known;
    uint64_t more[2];
} longer_options;

static int start_with(longer_options *options, size_t size)
{
    options->known.size = (uint32_t)size;
    return tare_start(&options->known);
}

static void options_may_be_of_another_version(void **state)
{
    (void)state;
    char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    longer_options options = {.known.helper = "/nonexistent/tare"};
    assert_int_equal(start_with(&options, offsetof(tare_options, max_bytes)), TARE_E_NO_HELPER); /* it was read */
    assert_int_equal(start_with(&options, sizeof(tare_options)), TARE_E_NO_HELPER);
    assert_int_equal(start_with(&options, sizeof options), TARE_E_NO_HELPER);

    options.more[1] = 1;
    assert_int_equal(start_with(&options, sizeof options), TARE_E_USAGE);
    char place[32];
    snprintf(place, sizeof place, "at byte %zu", sizeof options - sizeof(uint64_t));
    assert_non_null(strstr(tare_start_error(), place));
    assert_int_equal(start_with(&options, sizeof(tare_options)), TARE_E_NO_HELPER); /* it is not looked at */
    assert_string_equal(tare_start_error(), "");

    /* Of fields beyond the size the defaults hold: no output, and the helper of the environment. */
    options.known.output = endless;
    options.known.helper = "/bin/true";
    setenv("TARE_HELPER", "/nonexistent/tare", 1);
    assert_int_equal(start_with(&options, offsetof(tare_options, output)), TARE_E_NO_HELPER);
    unsetenv("TARE_HELPER");

    const size_t wrong[] = {0, 4, sizeof(tare_options) - 1, 12, UINT32_MAX - 7};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(start_with(&options, wrong[i]), TARE_E_USAGE);
        assert_non_null(strstr(tare_start_error(), "set it to sizeof(tare_options)"));
    }
}

static void statuses_have_sentences(void **state)
{
    (void)state;
    assert_string_equal(tare_status_text(TARE_OK), "done");
    for (int a = -1; a >= TARE_E_DISABLED; a--) {
        assert_string_not_equal(tare_status_text(a), "unknown status");
        for (int b = a + 1; b <= 0; b++)
            assert_string_not_equal(tare_status_text(a), tare_status_text(b));
    }
    assert_string_equal(tare_status_text(TARE_E_DISABLED - 1), "unknown status");
    assert_string_equal(tare_status_text(1), "unknown status");
}

static void the_version_is_one(void **state)
{
    (void)state;
    char text[64];
    snprintf(text, sizeof(text), "%d.%d.%d", TARE_VERSION_MAJOR, TARE_VERSION_MINOR, TARE_VERSION_PATCH);
    assert_string_equal(text, TARE_VERSION);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "child"))
        return wrong_before_main == 0 && use_everything() == 0 ? CHILD_STATUS : 1;
    if (getenv("TARE_SESSION")) { /* these tests are about having none */
        unsetenv("TARE_SESSION");
        execv(self_path, argv);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens),
        cmocka_unit_test(nothing_happens_before_main),
        cmocka_unit_test(arguments_are_evaluated_once),
        cmocka_unit_test(scopes_may_be_left_anyhow),
        cmocka_unit_test(threads_that_come_and_go),
        cmocka_unit_test(a_signal_handler),
        cmocka_unit_test(a_forked_child_and_its_exit),
        cmocka_unit_test(nothing_is_printed),
        cmocka_unit_test(a_session_that_is_not_there),
        cmocka_unit_test(a_start_that_finds_no_helper),
        cmocka_unit_test(options_may_be_of_another_version),
        cmocka_unit_test(statuses_have_sentences),
        cmocka_unit_test(the_version_is_one),
    };
    return cmocka_run_group_tests_name("api_c", tests, NULL, NULL);
}
