// Tests of the unwinder (src/sample/unwind*.c) on this process: calls in C and C++, a callback of libc and one of the
// C++ library, exceptions, frames of variable size, signal frames, a blocked thread, and every single instruction of some
// of these, against backtrace() of the C library. One thread besides main at a time.
// Must not know how rules are stored.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
#include <cmocka.h>

#include "sample/unwind.h"
}

#include <alloca.h>
#include <execinfo.h>
#include <poll.h>
#include <pthread.h>
#include <csignal>
#include <ctime>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define NOINLINE __attribute__((noinline))
#pragma GCC diagnostic ignored "-Wunused-function" // under a sanitizer
constexpr int kFrames = 128;

static tare__unwind *unwind;
static tare__unwind_process *process;
static volatile int sink; // keeps calls from becoming tail calls

// ---- registers and stacks ----------------------------------------------------------------------
static void registers(const ucontext_t *context, tare__unwind_regs *out)
{
    memset(out, 0, sizeof(*out));
#ifdef __x86_64__
    static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (unsigned i = 0; i < sizeof(order) / sizeof(*order); i++)
        out->value[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
    out->known = (UINT64_C(1) << 17) - 1;
#else
    for (unsigned i = 0; i < 31; i++)
        out->value[i] = context->uc_mcontext.regs[i];
    out->value[31] = context->uc_mcontext.sp;
    out->value[32] = context->uc_mcontext.pc;
    out->known = (UINT64_C(1) << 33) - 1;
#endif
}

#ifdef __x86_64__
enum { SP = 7, IP = 16 };
#else
enum { SP = 31, IP = 32 };
#endif

// Not memcpy: the sanitizers would object to what lies between variables.
static size_t copy_stack(uint64_t sp, unsigned char *out, size_t room)
{
    for (size_t bytes = room; bytes >= 64; bytes /= 2) {
        struct iovec local = {out, bytes}, remote = {(void *)(uintptr_t)sp, bytes};
        if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) > 0)
            return bytes;
    }
    return 0;
}

// What is to be compared: both views of one moment.
struct Moment {
    tare__unwind_regs regs;
    std::vector<unsigned char> stack;
    void *expected[kFrames];
    int n_expected;
};
static Moment moment;

static size_t unwound(const Moment &of, tare__unwind_frame *frames, bool *whole)
{
    return tare__unwind_stack(process, &of.regs, of.stack.data(), of.regs.value[SP], of.stack.size(), frames, kFrames,
                              whole);
}

// The caller's stack. backtrace() begins in `capture`, so the first frame differs by its address in it only.
static NOINLINE void capture()
{
    static unsigned char copy[64 << 10];
    ucontext_t context;
    getcontext(&context);
    moment.n_expected = backtrace(moment.expected, kFrames);
    registers(&context, &moment.regs);
    size_t bytes = copy_stack(moment.regs.value[SP], copy, sizeof(copy));
    moment.stack.assign(copy, copy + bytes);
    sink = sink + 1;
}

// `skip` frames at the start are not compared.
static void check(int skip)
{
    tare__unwind_frame frames[kFrames];
    bool whole = false;
    size_t n = unwound(moment, frames, &whole);
    assert_int_equal(n, moment.n_expected);
    assert_true(whole);
    for (size_t i = (size_t)skip; i < n; i++) {
        assert_int_equal(frames[i].ip, (uint64_t)(uintptr_t)moment.expected[i]);
        if (i + 1 < n)
            assert_true(frames[i].cfa > (i ? frames[i - 1].cfa : 0));
    }
}

// ---- programs ----------------------------------------------------------------------------------
static NOINLINE void plain(int depth)
{
    if (depth)
        plain(depth - 1);
    else
        capture();
    sink = sink + depth;
}

static void test_calls(void **)
{
    plain(0);
    check(1);
    plain(20);
    assert_true(moment.n_expected > 22);
    check(1);
}

static NOINLINE void sized(size_t n)
{
    volatile char *space = (volatile char *)alloca(n);
    space[0] = space[n - 1] = 1;
    capture();
    sink = sink + space[n - 1];
}

struct alignas(64) Aligned {
    volatile int value[16];
};

static NOINLINE void aligned()
{
    Aligned object = {};
    object.value[0] = 1;
    sized(1000);
    sink = sink + object.value[0];
}

static void test_frames_of_variable_size(void **)
{
    for (size_t n : {1, 100, 5000}) {
        sized(n);
        check(1);
    }
    aligned();
    check(1);
}

static int by_value(const void *a, const void *b)
{
    capture();
    return *(const int *)a - *(const int *)b;
}

static void test_callback_of_libc(void **)
{
    int values[] = {3, 1, 2, 5, 4};
    qsort(values, 5, sizeof(*values), by_value);
    assert_int_equal(values[4], 5);
    assert_true(moment.n_expected > 4);
    check(1);
}

static void test_callback_of_cpp(void **)
{
    std::vector<std::string> words = {"one", "two", "three", "four", "five"};
    std::sort(words.begin(), words.end(), [](const std::string &a, const std::string &b) {
        capture();
        return a < b;
    });
    check(1);
}

struct Base {
    virtual ~Base() = default;
    virtual NOINLINE void call() = 0;
};
struct Derived : Base {
    std::string text = "x";
    ~Derived() override
    {
        if (text == "x") // not while it is stepped through
            capture();
    }
    NOINLINE void call() override { throw std::runtime_error("thrown"); }
};

static NOINLINE void through(Base *object)
{
    object->call();
    sink = sink + 1;
}

// In the handler of an exception, and in a destructor that runs while one is on its way.
static void test_exceptions(void **)
{
    bool caught = false;
    try {
        Derived object;
        through(&object);
    } catch (const std::exception &) {
        check(1); // of the destructor, called by the unwinder of C++
        caught = true;
        capture();
    }
    assert_true(caught);
    check(1);
}

// ---- signals -----------------------------------------------------------------------------------
static Moment interrupted;

static void on_signal(int, siginfo_t *, void *data)
{
    static unsigned char copy[64 << 10];
    capture();
    registers((const ucontext_t *)data, &interrupted.regs);
    size_t bytes = copy_stack(interrupted.regs.value[SP], copy, sizeof(copy));
    interrupted.stack.assign(copy, copy + bytes);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(number, &action, nullptr);
}

static NOINLINE void raises(int depth)
{
    if (depth)
        raises(depth - 1);
    else
        raise(SIGUSR1);
    sink = sink + depth;
}

// Both through the signal frame, and from the registers at the signal.
static void test_signal_frames(void **)
{
    handle(SIGUSR1, on_signal, 0);
    raises(3);
    check(1);
    tare__unwind_frame frames[kFrames];
    bool whole = false;
    size_t n = unwound(interrupted, frames, &whole);
    assert_true(whole);
    assert_true(n > 5 && n < (size_t)moment.n_expected);
    size_t skip = (size_t)moment.n_expected - n;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(frames[i].ip, (uint64_t)(uintptr_t)moment.expected[skip + i]);
}

// The copy of a handler's own stack ends there: the frames that it interrupted are read from memory.
static unsigned char other_stack[128 << 10];
static tare__unwind_frame other_frames[kFrames];
static size_t n_other;
static bool other_whole;

static void on_other_stack(int, siginfo_t *, void *)
{
    capture();
    moment.stack.resize((size_t)(other_stack + sizeof(other_stack) -
                                 (unsigned char *)(uintptr_t)moment.regs.value[SP]));
    n_other = unwound(moment, other_frames, &other_whole);
}

static void test_alternate_stack(void **)
{
    stack_t other = {}, before = {};
    other.ss_sp = other_stack;
    other.ss_size = sizeof(other_stack);
    sigaltstack(&other, &before);
    handle(SIGUSR1, on_other_stack, SA_ONSTACK);
    raises(1);
    sigaltstack(&before, nullptr);
    assert_int_equal(n_other, moment.n_expected);
    assert_true(other_whole);
    for (size_t i = 1; i < n_other; i++)
        assert_int_equal(other_frames[i].ip, (uint64_t)(uintptr_t)moment.expected[i]);
}

// Memory beyond the copy counts if the last return address in the copy is still there.
static NOINLINE void cut(int depth, size_t bytes, bool damage)
{
    char big[5000];
    asm volatile("" : : "r"(big) : "memory"); // all of it is needed
    big[0] = big[4999] = 1;
    if (depth) {
        cut(depth - 1, bytes, damage);
    } else {
        capture();
        moment.stack.resize(bytes);
        for (size_t i = 0; damage && i + 8 <= bytes; i += 8) {
            uint64_t word;
            memcpy(&word, &moment.stack[i], 8);
            word += word == (uint64_t)(uintptr_t)moment.expected[2]; // still in the same function
            memcpy(&moment.stack[i], &word, 8);
        }
        n_other = unwound(moment, other_frames, &other_whole);
    }
    sink = sink + big[0];
}

static void test_beyond_the_copy(void **)
{
    for (size_t bytes : {8000u, 16000u}) {
        cut(12, bytes, false);
        assert_int_equal(n_other, moment.n_expected);
        assert_true(other_whole);
        for (size_t i = 1; i < n_other; i++)
            assert_int_equal(other_frames[i].ip, (uint64_t)(uintptr_t)moment.expected[i]);
    }
    cut(12, 8000, true); // another moment
    assert_false(other_whole);
    assert_true(n_other < 4);
}

// ---- every instruction -------------------------------------------------------------------------
#ifdef __x86_64__
constexpr size_t kSteps = 8000, kCopy = 8192;
struct Step {
    tare__unwind_regs regs;
    size_t bytes;
    int n;
    void *expected[24];
    unsigned char stack[kCopy];
};
static Step *steps;
static size_t n_steps;
static volatile bool stop_steps;
static uint64_t stack_top;

static void on_step(int, siginfo_t *, void *data)
{
    ucontext_t *context = (ucontext_t *)data;
    context->uc_mcontext.gregs[REG_EFL] |= 0x100; // the trap flag
    if (n_steps == kSteps || stop_steps) {
        context->uc_mcontext.gregs[REG_EFL] &= ~0x100;
        return;
    }
    Step *step = &steps[n_steps];
    registers(context, &step->regs);
    uint64_t sp = step->regs.value[SP];
    if (stack_top - sp > kCopy)
        return;
    step->bytes = stack_top - sp;
    memcpy(step->stack, (const void *)(uintptr_t)sp, step->bytes);
    step->n = backtrace(step->expected, 24);
    n_steps++;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void *stepped(void *)
{
    pthread_attr_t attributes;
    void *start;
    size_t bytes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &start, &bytes);
    pthread_attr_destroy(&attributes);
    stack_top = (uint64_t)(uintptr_t)start + bytes;
    int values[] = {9, 4, 7, 1};
    char text[64];
    timespec time;
    raise(SIGTRAP);
    clock_gettime(CLOCK_MONOTONIC, &time); // in the vdso
    qsort(values, 4, sizeof(*values), compare);
    snprintf(text, sizeof(text), "%d %s", values[0], "text");
    std::vector<std::string> words = {"delta", "alpha", "charlie"};
    std::sort(words.begin(), words.end());
    getppid();
    try {
        Derived object;
        object.text = "stepped";
        through(&object);
    } catch (const std::exception &) {
        sink = sink + 1;
    }
    sized(200);
    stop_steps = true;
    sink = sink + text[0] + (int)words.size();
    return nullptr;
}

// At each instruction of a thread: prologues, epilogues, jumps through the PLT, system calls.
static void test_every_instruction(void **)
{
    steps = new Step[kSteps];
    handle(SIGTRAP, on_step, 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, nullptr, stepped, nullptr), 0);
    pthread_join(thread, nullptr);
    assert_true(n_steps > 3000);
    size_t equal = 0, wrong = 0, in_vdso = 0;
    for (size_t i = 0; i < n_steps; i++) {
        const Step *step = &steps[i];
        tare__unwind_frame frames[24];
        bool whole = false;
        size_t n = tare__unwind_stack(process, &step->regs, step->stack, step->regs.value[SP], step->bytes, frames, 24,
                                      &whole);
        int skip = 0; // the handler and the signal frame
        while (skip < step->n && (uint64_t)(uintptr_t)step->expected[skip] != step->regs.value[IP])
            skip++;
        bool same = whole && (int)n == step->n - skip;
        for (size_t k = 0; same && k < n; k++)
            same = frames[k].ip == (uint64_t)(uintptr_t)step->expected[skip + (int)k];
        equal += same;
        const tare__unwind_object *in = tare__unwind_object_at(unwind, frames[0].object);
        in_vdso += same && in && strcmp(in->path, TARE__UNWIND_VDSO) == 0;
        if (!same && wrong++ < 3) {
            print_message("step %zu: whole %d, %d expected:", i, whole, step->n - skip);
            for (size_t k = 0; k < n; k++) {
                const tare__unwind_object *object = tare__unwind_object_at(unwind, frames[k].object);
                print_message(" %s+0x%llx", object ? object->path : "?", (unsigned long long)frames[k].offset);
            }
            print_message("\n");
        }
    }
    print_message("%zu of %zu instructions\n", equal, n_steps);
    assert_int_equal(equal, n_steps);
    assert_true(in_vdso > 5);
    delete[] steps;
}
#endif

// ---- a blocked thread --------------------------------------------------------------------------
static volatile pid_t blocked_tid;
static Moment before_block;
static int wakes[2];

// Its frame has a frame pointer, whose value the file does not have: stale addresses are below its return address.
static NOINLINE void blocks_in_sized(int n)
{
    struct pollfd wait = {wakes[0], POLLIN, 0};
    volatile char *space = (volatile char *)alloca((size_t)n);
    space[0] = space[n - 1] = 1;
    capture();
    before_block = moment;
    blocked_tid = (pid_t)syscall(SYS_gettid);
    poll(&wait, 1, -1);
    sink = sink + space[0];
}

static NOINLINE void *blocks(void *)
{
    plain(40);
    blocks_in_sized(3000);
    sink = sink + 1;
    return nullptr;
}

// Only ip and sp, as in /proc/PID/task/TID/syscall. Its frames are those before the call, as far as they go.
static void test_blocked_thread(void **)
{
    pthread_t thread;
    char path[64], line[256] = "";
    unsigned long long sp = 0, ip = 0;
    assert_int_equal(pipe(wakes), 0);
    assert_int_equal(pthread_create(&thread, nullptr, blocks, nullptr), 0);
    for (int tries = 0; tries < 20000 && !ip; tries++) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)blocked_tid);
        FILE *file = blocked_tid ? fopen(path, "r") : nullptr;
        if (file && fgets(line, sizeof(line), file) && strncmp(line, "running", 7) != 0 &&
            strtol(line, nullptr, 10) == SYS_poll)
            sscanf(strstr(strstr(line, " 0x"), " 0x"), " %*s %*s %*s %*s %*s %*s %llx %llx", &sp, &ip);
        if (file)
            fclose(file);
        usleep(1000);
    }
    if (!ip)
        skip(); // a kernel without this file
    Moment now;
    unsigned char copy[2048];
    size_t bytes = copy_stack(sp, copy, sizeof(copy));
    memset(&now.regs, 0, sizeof(now.regs));
    now.stack.assign(copy, copy + bytes);
    now.regs.value[IP] = ip;
    now.regs.value[SP] = sp;
    now.regs.known = UINT64_C(1) << IP | UINT64_C(1) << SP;
    tare__unwind_frame frames[kFrames];
    bool whole;
    size_t n = unwound(now, frames, &whole);
    assert_int_equal(write(wakes[1], "x", 1), 1);
    pthread_join(thread, nullptr);
#ifdef __x86_64__
    assert_int_equal(n, before_block.n_expected);
    assert_true(whole);
#endif
    assert_true(n >= 2); // poll, blocks_in_sized
    // Behind the frame of blocks_in_sized, which is the second in both (the first is capture, or poll).
    for (size_t i = 2; i < n && i < (size_t)before_block.n_expected; i++)
        assert_int_equal(frames[i].ip, (uint64_t)(uintptr_t)before_block.expected[i]);
}

// ---- limits ------------------------------------------------------------------------------------
static void test_limits(void **)
{
    tare__unwind_frame frames[kFrames];
    bool whole = true;
    plain(10);
    Moment part = moment;
    part.stack.clear();
    assert_int_equal(unwound(part, frames, &whole), 1);
    assert_false(whole);
    unwound(moment, frames, &whole);
    // A short copy: a part, not whole. From the first return address on: capture() has returned, and what it had in its
    // frame may still be there.
    for (size_t bytes = frames[0].cfa - moment.regs.value[SP]; bytes < moment.stack.size(); bytes = bytes * 3 / 2 + 8) {
        part.stack.assign(moment.stack.begin(), moment.stack.begin() + (long)bytes);
        size_t n = unwound(part, frames, &whole);
        assert_true(n >= 1 && n <= (size_t)moment.n_expected);
        assert_true(whole == (n == (size_t)moment.n_expected));
        for (size_t i = 1; i < n; i++)
            assert_int_equal(frames[i].ip, (uint64_t)(uintptr_t)moment.expected[i]);
    }
    assert_int_equal(tare__unwind_stack(process, &moment.regs, moment.stack.data(), moment.regs.value[SP],
                                        moment.stack.size(), frames, 3, &whole), 3);
    assert_false(whole);
    part = moment;
    part.regs.known = 0;
    assert_int_equal(unwound(part, frames, &whole), 0);
    part.regs.known = UINT64_MAX;
    part.regs.value[IP] = 0x10; // in nothing
    assert_int_equal(unwound(part, frames, &whole), 1);
    assert_false(whole);
    assert_int_equal(frames[0].object, 0);
    for (uint64_t sp : {UINT64_C(0), UINT64_MAX, UINT64_MAX - 7}) { // sums that wrap around
        part = moment;
        part.regs.value[SP] = sp;
        assert_true(tare__unwind_stack(process, &part.regs, part.stack.data(), UINT64_MAX - 15, 16, frames, kFrames,
                                       &whole) >= 1);
    }
}

// The object and the place in it, by what the loader says.
static void test_objects(void **)
{
    tare__unwind_frame frames[kFrames];
    bool whole;
    int values[] = {2, 1};
    qsort(values, 2, sizeof(*values), by_value);
    size_t n = unwound(moment, frames, &whole);
    char own[4096];
    own[readlink("/proc/self/exe", own, sizeof(own) - 1)] = '\0';
    bool in_libc = false;
    for (size_t i = 0; i < n; i++) {
        const tare__unwind_object *object = tare__unwind_object_at(unwind, frames[i].object);
        assert_non_null(object);
        in_libc |= strstr(object->path, "libc.so") != nullptr && strlen(object->build_id) == 40;
    }
    assert_true(in_libc);
    assert_string_equal(tare__unwind_object_at(unwind, frames[0].object)->path, own);
    assert_null(tare__unwind_object_at(unwind, 0));
    assert_null(tare__unwind_object_at(unwind, 100000));
}

int main()
{
    unwind = tare__unwind_new();
    process = tare__unwind_process_new(unwind, getpid());
    void *warm[4];
    backtrace(warm, 4); // loads libgcc_s
    const struct CMUnitTest tests[] = {
#if !SANITIZED // which put frames of their own on the stack, and others into backtrace()
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_frames_of_variable_size),
        cmocka_unit_test(test_callback_of_libc),
        cmocka_unit_test(test_callback_of_cpp),
        cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_signal_frames),
        cmocka_unit_test(test_alternate_stack),
        cmocka_unit_test(test_beyond_the_copy),
#ifdef __x86_64__
        cmocka_unit_test(test_every_instruction),
#endif
        cmocka_unit_test(test_blocked_thread),
        cmocka_unit_test(test_limits),
#endif
        cmocka_unit_test(test_objects),
    };
    int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
    tare__unwind_process_free(process);
    tare__unwind_free(unwind);
    return failed;
}
