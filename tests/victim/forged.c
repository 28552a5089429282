/* forged: a program with the memory of an interpreter of Python 3.13 that never ran, to be read by the stack sampler:
 * `forged stack NAME`, `forged offset NUMBER` (that offset reaches before its struct),
 * `forged scattered THREADS FRAMES` (frames far from each other), `forged native` (no Python). Prints its process id,
 * then works until it is killed. One thread.
 * Must not need Python. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define INTERPRETERS 2048u
#define APART (131072u + 72u)
#define FRAME_BYTES 80u

extern uint64_t _PyRuntime[512]; // NOLINT: the name that is looked for
__attribute__((visibility("default"))) uint64_t _PyRuntime[512];

static const struct {
    unsigned at;
    uint64_t value;
} offsets[] = {
    {1, 0x030d00f0}, {3, 4096}, {5, INTERPRETERS},                        /* _PyRuntimeState */
    {6, 8192}, {9, 8}, {10, 16}, {14, 64}, {15, 128}, {17, 144}, {18, 136}, /* PyInterpreterState */
    {19, 512}, {22, 8}, {23, 16}, {24, 24}, {25, 32}, {26, 40},           /* PyThreadState */
    {28, 72}, {29, 8}, {31, 56}, {32, 64}, {33, 70},                      /* _PyInterpreterFrame */
    {34, 256}, {35, 112}, {36, 120}, {37, 128}, {38, 136}, {39, 68}, {43, 192}, /* PyCodeObject */
    {44, 16}, {45, 8}, {64, 40}, {65, 16}, {66, 32},                      /* PyObject, PyBytesObject */
    {67, 40}, {68, 32}, {69, 16}, {70, 40}, {71, 64},                     /* PyASCIIObject, GC */
};

static void *make(size_t bytes)
{
    void *made = calloc(1, bytes);
    if (!made)
        exit(2);
    return made;
}

static void put(void *at, size_t offset, uint64_t value)
{
    memcpy((char *)at + offset, &value, sizeof value);
}

static void point(void *at, size_t offset, const void *to)
{
    put(at, offset, (uint64_t)(uintptr_t)to);
}

static void *make_text(const char *text)
{
    size_t bytes = strlen(text);
    char *made = make(40 + bytes + 1);
    put(made, 16, bytes);
    put(made, 32, 1u << 2 | 1u << 5 | 1u << 6); /* kind 1, compact, ASCII */
    memcpy(made + 40, text, bytes);
    return made;
}

static char *make_code(const char *name)
{
    char *code = make(512), *lines = make(64);
    put(lines, 16, 1);
    memcpy(lines + 32, "\xb8", 1); /* one unit, no line */
    put(code, 16, 50);
    put(code, 68, 7);
    point(code, 112, make_text("/forged/file.py"));
    point(code, 120, make_text(name));
    point(code, 128, make_text(name));
    point(code, 136, lines);
    return code;
}

static void fill_frames(char *at, size_t apart, size_t n, const char *code)
{
    for (size_t i = 0; i < n; i++, at += apart) {
        point(at, 0, code);
        put(at, 8, i + 1 < n ? (uint64_t)(uintptr_t)(at + apart) : 0);
        point(at, 56, code + 196);
    }
}

/* Its stack is in its only chunk, or (apart != 0) at `frames`. */
static char *make_thread(char *interpreter, char *frames, const char *code)
{
    char *thread = make(512), *chunk = make(16384);
    point(thread, 8, interpreter);
    put(thread, 24, 1234);
    put(thread, 32, (uint64_t)getpid());
    if (!frames) {
        put(chunk, 8, 16384);
        frames = chunk + 24;
        fill_frames(frames, FRAME_BYTES, 3, code);
        point(thread, 40, chunk);
        point(thread, 48, frames + 3 * (size_t)FRAME_BYTES);
    }
    point(thread, 16, frames);
    return thread;
}

static char *scatter(size_t n, const char *code)
{
    char *at = mmap(NULL, n * APART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        exit(2);
    fill_frames(at, APART, n, code);
    return at;
}

/* The name of a C++ function whose parameters have 2^34 times `p<int, int>`. */
static __attribute__((noinline)) void work(void) __asm__(
    "_Z1f1pIiiES_IS0_S0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_ES_IS7_S7_ES_IS8_S8_E"
    "S_IS9_S9_ES_ISA_SA_ES_ISB_SB_ES_ISC_SC_ES_ISD_SD_ES_ISE_SE_ES_ISF_SF_ES_ISG_SG_ES_ISH_SH_ES_ISI_SI_E"
    "S_ISJ_SJ_ES_ISK_SK_ES_ISL_SL_ES_ISM_SM_ES_ISN_SN_ES_ISO_SO_ES_ISP_SP_ES_ISQ_SQ_ES_ISR_SR_ES_ISS_SS_E"
    "S_IST_ST_ES_ISU_SU_ES_ISV_SV_ES_ISW_SW_ES_ISX_SX_E");
static void work(void)
{
    for (volatile unsigned long i = 0;; i++)
        ;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "", *what = argc > 2 ? argv[2] : "";
    char *interpreter = make(8192), *lock = make(256), *frames = NULL, *last = NULL;
    char *code = make_code(strcmp(how, "stack") == 0 ? what : "function");
    long threads = 1;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (strcmp(how, "native") != 0)
        memcpy(_PyRuntime, "xdebugpy", 8);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        _PyRuntime[offsets[i].at] = offsets[i].value;
    point(_PyRuntime, INTERPRETERS, interpreter);
    point(interpreter, 64, lock);
    if (strcmp(how, "offset") == 0)
        _PyRuntime[strtoul(what, NULL, 10) % 128] = (uint64_t)-8;
    if (strcmp(how, "scattered") == 0 && argc > 3) {
        threads = strtol(what, NULL, 10);
        frames = scatter(strtoul(argv[3], NULL, 10), code);
    }
    for (long i = 0; i < threads; i++) {
        char *thread = make_thread(interpreter, frames, code);
        point(last ? last : interpreter + 8, 0, thread);
        last = thread;
    }
    printf("%d\n", (int)getpid());
    fflush(stdout);
    work();
}
