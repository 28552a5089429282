/* stepped: runs recording calls one instruction at a time (the trap flag of x86-64) and lets a recording
 * signal handler come in between: before instruction k alone, for each k in turn, or before every one.
 * A thread for each trial, one at a time, so that each starts from the same state.
 * Must not know anything of Tare but tare.h, and that a chunk has room for SLOTS one-slot records. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "victim.h"

#if !defined(__x86_64__)
int main(void)
{
    tell("skipped", 1);
    return 0;
}
#else

#define SLOTS 3840
#define TRAP_FLAG 0x100
#define EVERY UINT64_MAX

static tare_site filler = TARE_SITE("filler"), handler_site = TARE_SITE("handler");
static tare_site mark = TARE_SITE_OF("mark", TARE_KIND_MARK, 1);
static tare_site aggregate_site = TARE_SITE_OF("aggregate", TARE_KIND_AGGREGATE, 1);
static tare_site outer = TARE_SITE("outer"), stepped = TARE_SITE("stepped"), second = TARE_SITE("second");
static tare_site counter_site = TARE_SITE_OF("value", TARE_KIND_COUNTER, 1);

static volatile uint64_t steps, fire_at, fired;
static volatile int in_call, in_handler, masked;

/* The library's own is this one, linked statically as it is. A trap cannot wait, and a real signal would:
 * it stays unblocked here, and the handler comes when the mask goes. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t others;
    if (set && in_handler) /* where traps are blocked anyway, and none comes */
        others = *set;
    else if (set) {
        others = *set;
        masked = how != SIG_UNBLOCK && sigismember(set, SIGTRAP);
        sigdelset(&others, SIGTRAP);
    }
    return sigprocmask(how, set ? &others : NULL, before);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    if (!in_call)
        return;
    if (!masked && ((steps >= fire_at && fired == 0) || fire_at == EVERY)) {
        in_handler = 1;
        tare_begin(&handler_site);
        tare_aggregate_end(&aggregate_site, tare_aggregate_begin());
        tare_end(&handler_site);
        in_handler = 0;
        fired++;
    }
    steps++;
    if (fire_at != EVERY && fired) /* seen enough: run on at full speed */
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static inline void step_from_here(void)
{
    steps = 0;
    in_call = 1;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static inline void step_no_more(void)
{
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    in_call = 0;
}

/* ---- what is stepped; the spans and others each records itself ----------------------------------------- */

typedef struct call {
    const char *name;
    void (*prepare)(void);
    void (*run)(void);
    void (*finish)(void);
    unsigned spans, slots_before; /* of prepare */
} call;

static void open_outer(void)
{
    tare_begin(&outer);
}
static void open_both(void)
{
    tare_begin(&outer);
    tare_begin(&stepped);
}
static void close_outer(void)
{
    tare_end(&outer);
}
static void close_both(void)
{
    tare_end(&stepped);
    tare_end(&outer);
}
static void close_second(void)
{
    tare_end(&second);
    tare_end(&outer);
}
static void run_begin(void)
{
    tare_begin(&stepped);
}
static void run_end(void)
{
    tare_end(&stepped);
}
static void run_next(void)
{
    tare_next(&second);
}
static void run_counter(void)
{
    tare_counter(&counter_site, 42);
}
static void run_aggregate(void)
{
    tare_aggregate_end(&aggregate_site, tare_aggregate_begin());
}
/* Once before, so that its cell is there: clearing memory for it is a loop of many instructions. */
static void open_counted(void)
{
    tare_begin(&outer);
    run_aggregate();
}
static void nothing(void)
{
}
static void run_pair(void)
{
    tare_begin(&outer);
    tare_end(&outer);
}

static const call calls[] = {
    {"begin", open_outer, run_begin, close_both, 2, 1},
    {"end", open_both, run_end, close_outer, 2, 2},
    {"next", open_both, run_next, close_second, 3, 2},
    {"counter", open_outer, run_counter, close_outer, 1, 1},
    {"aggregate", open_counted, run_aggregate, close_outer, 1, 1},
    {"first", nothing, run_pair, nothing, 1, 0}, /* the thread's very first event */
};

/* ---- trials -------------------------------------------------------------------------------------------- */

typedef struct trial {
    const call *call;
    uint64_t fire_at;
    unsigned room; /* slots left in the chunk when the call starts; SLOTS: as many as there are */
    int ended;     /* the call was over before instruction fire_at */
} trial;

/* Complete spans take five slots each; a chain of spans fills the rest to the last slot. Returns how many
 * complete spans that were. */
static uint64_t fill(unsigned slots)
{
    uint64_t now = tare_now();
    unsigned complete = (slots - 2) / 5;
    for (unsigned i = 0; i < complete; i++)
        tare_complete(&filler, &(tare_complete_span){0, now, now + 1, 0, 0, 0});
    tare_begin(&filler);
    for (unsigned i = 2; i < slots - 5 * complete; i++)
        tare_next(&filler);
    tare_end(&filler);
    return complete;
}

static void step_call(trial *it)
{
    fire_at = it->fire_at;
    fired = 0;
    step_from_here();
    it->call->run();
    step_no_more();
    it->ended = it->fire_at != EVERY && fired == 0;
}

/* thread TID CALL ROOM FIRED SPANS OTHERS AGGREGATES */
static void tell_trial(const trial *it, uint64_t fillers)
{
    const char *name = it->call->name;
    printf("thread %d %s %u %llu %llu %llu %llu\n", (int)syscall(SYS_gettid), name, it->room,
           (unsigned long long)fired, (unsigned long long)(it->call->spans + fired),
           (unsigned long long)(fillers + (it->call->run == run_counter)),
           (unsigned long long)(fired + 2 * (it->call->run == run_aggregate)));
}

static void *try_once(void *argument)
{
    trial *it = argument;
    uint64_t fillers = 0;
    it->call->prepare();
    if (it->room < SLOTS)
        fillers = fill(SLOTS - it->room - it->call->slots_before);
    step_call(it);
    it->call->finish();
    tell_trial(it, fillers);
    return NULL;
}

static int in_thread(void *(*body)(void *), trial *it)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, it) != 0)
        return 98;
    pthread_join(thread, NULL);
    return 0;
}

/* Every instruction in turn, or every `stride`th; then one trial with the handler at all of them. */
static void step_through(const call *which, unsigned room, uint64_t stride, uint64_t most)
{
    trial it = {.call = which, .room = room};
    for (uint64_t k = 0; !it.ended && k < most; k += stride) {
        it.fire_at = k;
        in_thread(try_once, &it);
    }
    it.fire_at = EVERY;
    in_thread(try_once, &it);
}

static const call *call_named(const char *name)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

/* ---- with no chunk to be had ---------------------------------------------------------------------------
 * One thread, whose chunk is full, while the collector is halted and every other chunk is taken. */

#define OPEN 120

static void *try_without_room(void *argument)
{
    trial *it = argument;
    const char *name = it->call->name;
    uint64_t spans = 0, others = 0, aggregates = 0, all = 0;
    for (int i = 0; i < OPEN; i++)
        tare_begin(&stepped);
    spans += OPEN;
    while (all < 40 * SLOTS) { /* more than the pool holds */
        tare_mark(&mark);
        all++;
    }
    others += all;
    int ending = strcmp(name, "end") == 0, open = OPEN;
    for (uint64_t k = 0; !it->ended && k < (ending ? OPEN : 400); k++) {
        open -= ending;
        it->fire_at = k;
        step_call(it);
        spans += fired + (strcmp(name, "begin") == 0);
        others += it->call->run == run_counter;
        aggregates += fired + (it->call->run == run_aggregate);
        if (strcmp(name, "begin") == 0)
            tare_end(&stepped);
        if (it->call->run == run_next) {
            spans++;
            tare_next(&stepped);
            spans++;
        }
    }
    for (int i = 0; i < open; i++)
        tare_end(&stepped);
    printf("thread %d %s empty 0 %llu %llu %llu\n", (int)syscall(SYS_gettid), name, (unsigned long long)spans,
           (unsigned long long)others, (unsigned long long)aggregates);
    return NULL;
}

static int without_room(const call *which)
{
    trial it = {.call = which};
    kill(getppid(), SIGSTOP);
    int status = in_thread(try_without_room, &it);
    kill(getppid(), SIGCONT);
    return status;
}

/* ---- the process's very first event -------------------------------------------------------------------- */

static int first_of_process(uint64_t trials, uint64_t stride)
{
    for (uint64_t i = 0; i <= trials; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            trial it = {.call = call_named("first"), .room = SLOTS};
            it.fire_at = i == trials ? EVERY : i * stride;
            try_once(&it);
            fflush(stdout);
            _exit(0);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status != 0) {
            tell("child_status", (uint64_t)status);
            tell("child_trial", i);
            return 97;
        }
    }
    return 0;
}

/* Opens the ring and leaves the collector time to give it all of its pool: a thread that finds no chunk drops what
 * it has, and trials are about what handlers do. */
static void settle(void)
{
    tare_begin(&filler);
    tare_end(&filler);
    usleep(500000);
}

int main(int argc, char **argv)
{
    const char *mode = mode_of(argc, argv);
    const call *which = argc > 2 ? call_named(argv[2]) : NULL;
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    if (strcmp(mode, "process") == 0)
        return first_of_process(number_of(argc, argv, 2, 20), number_of(argc, argv, 3, 97));
    if (!which)
        return unknown_mode(mode);
    if (strcmp(mode, "empty") != 0)
        settle();
    if (strcmp(mode, "warm") == 0)
        step_through(which, SLOTS, 1, EVERY);
    else if (strcmp(mode, "full") == 0)
        step_through(which, (unsigned)number_of(argc, argv, 3, 0), number_of(argc, argv, 4, 1), EVERY);
    else if (strcmp(mode, "empty") == 0)
        return without_room(which);
    else
        return unknown_mode(mode);
    return 0;
}
#endif
