/* roofline_kernels: loops of multiply-adds, and loops that move bytes, in assembler, so that no
 * compiler spills an accumulator or removes a load. Any thread; at most 16 vector registers.
 * Must not know how they are timed. */
#define _GNU_SOURCE
#include "roofline.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

/* One pattern is a small number in each type: 0.0115 (f32, bf16), 1.5e-18 (f64), 1.06 (f16), 60 (int8). */
#define PATTERN 0x3c
#define EIGHT PATTERN, PATTERN, PATTERN, PATTERN, PATTERN, PATTERN, PATTERN, PATTERN
static const unsigned char factors[64] __attribute__((aligned(64))) = {EIGHT, EIGHT, EIGHT, EIGHT,
                                                                       EIGHT, EIGHT, EIGHT, EIGHT};
#define ALL_XMM                                                                                                \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15"
/* Twelve accumulators: two units with a latency of up to six cycles are kept busy. */
#define EACH12(X, w) \
    X("0", w)        \
    X("1", w) X("2", w) X("3", w) X("4", w) X("5", w) X("6", w) X("7", w) X("8", w) X("9", w) X("10", w) X("11", w)
#define CLEAR(i, w) "vxorps %%xmm" i ",%%xmm" i ",%%xmm" i "\n\t"

#define COMPUTE(name, features, w, STEP)                                                                     \
    __attribute__((target(features), noinline)) static void name(uint64_t loops)                             \
    {                                                                                                        \
        __asm__ volatile("vmovups (%1),%%" w "mm12\n\t"                                                      \
                         "vmovups (%1),%%" w "mm13\n\t" EACH12(CLEAR, w)                                     \
                         ".p2align 5\n"                                                                      \
                         "1:\n\t" EACH12(STEP, w) EACH12(STEP, w)                                            \
                         "dec %0\n\t"                                                                        \
                         "jnz 1b\n\t"                                                                        \
                         "vzeroupper"                                                                        \
                         : "+r"(loops)                                                                       \
                         : "r"(factors)                                                                         \
                         : ALL_XMM, "cc", "memory");                                                         \
    }

/* Without wide registers; also for virtual machines that hide them. */
#define CLEAR_SSE(i, w) "xorps %%xmm" i ",%%xmm" i "\n\t"
#define MUL_ADD_SSE_F32(i, w) "movaps %%xmm12,%%xmm14\n\tmulps %%xmm13,%%xmm14\n\taddps %%xmm14,%%xmm" i "\n\t"
#define MUL_ADD_SSE_F64(i, w) "movaps %%xmm12,%%xmm14\n\tmulpd %%xmm13,%%xmm14\n\taddpd %%xmm14,%%xmm" i "\n\t"
#define COMPUTE_SSE(name, STEP)                                                                              \
    __attribute__((noinline)) static void name(uint64_t loops)                                               \
    {                                                                                                        \
        __asm__ volatile("movaps (%1),%%xmm12\n\t"                                                           \
                         "movaps (%1),%%xmm13\n\t" EACH12(CLEAR_SSE, "x")                                    \
                         "1:\n\t" EACH12(STEP, "x") EACH12(STEP, "x")                                        \
                         "dec %0\n\t"                                                                        \
                         "jnz 1b"                                                                            \
                         : "+r"(loops)                                                                       \
                         : "r"(factors)                                                                      \
                         : ALL_XMM, "cc", "memory");                                                         \
    }
COMPUTE_SSE(f32_sse, MUL_ADD_SSE_F32)
COMPUTE_SSE(f64_sse, MUL_ADD_SSE_F64)

#define FMA_F32(i, w) "vfmadd231ps %%" w "mm12,%%" w "mm13,%%" w "mm" i "\n\t"
#define FMA_F64(i, w) "vfmadd231pd %%" w "mm12,%%" w "mm13,%%" w "mm" i "\n\t"
#define FMA_F16(i, w) "vfmadd231ph %%" w "mm12,%%" w "mm13,%%" w "mm" i "\n\t"
#define MUL_ADD_F32(i, w) \
    "vmulps %%" w "mm12,%%" w "mm13,%%" w "mm14\n\tvaddps %%" w "mm14,%%" w "mm" i ",%%" w "mm" i "\n\t"
#define MUL_ADD_F64(i, w) \
    "vmulpd %%" w "mm12,%%" w "mm13,%%" w "mm14\n\tvaddpd %%" w "mm14,%%" w "mm" i ",%%" w "mm" i "\n\t"
#define DOT_BF16(i, w) "vdpbf16ps %%" w "mm12,%%" w "mm13,%%" w "mm" i "\n\t"
#define DOT_INT8(i, w) "vpdpbusd %%" w "mm12,%%" w "mm13,%%" w "mm" i "\n\t"
#define DOT_INT8_VEX(i, w) "%{vex%} vpdpbusd %%" w "mm12,%%" w "mm13,%%" w "mm" i "\n\t"
#define MADD_INT8(i, w) \
    "vpmaddubsw %%" w "mm12,%%" w "mm13,%%" w "mm14\n\tvpaddsw %%" w "mm14,%%" w "mm" i ",%%" w "mm" i "\n\t"

COMPUTE(f32_avx, "avx", "y", MUL_ADD_F32)
COMPUTE(f64_avx, "avx", "y", MUL_ADD_F64)
COMPUTE(f32_fma, "avx2,fma", "y", FMA_F32)
COMPUTE(f64_fma, "avx2,fma", "y", FMA_F64)
COMPUTE(int8_avx2, "avx2", "y", MADD_INT8)
COMPUTE(f32_512, "avx512f", "z", FMA_F32)
COMPUTE(f64_512, "avx512f", "z", FMA_F64)
COMPUTE(int8_512, "avx512f,avx512bw", "z", MADD_INT8)
COMPUTE(int8_vnni_512, "avx512f,avx512vnni", "z", DOT_INT8)
#if (defined(__clang__) && __clang_major__ >= 14) || (!defined(__clang__) && __GNUC__ >= 12)
#define NEWER_INSTRUCTIONS 1
COMPUTE(int8_vnni, "avx2,avxvnni", "y", DOT_INT8_VEX)
COMPUTE(bf16_512, "avx512f,avx512bf16", "z", DOT_BF16)
COMPUTE(f16_512, "avx512f,avx512fp16", "z", FMA_F16)

/* Eight tiles of 16 rows of 64 bytes: six accumulate, two are multiplied. */
#define EACH6(X) X("0") X("1") X("2") X("3") X("4") X("5")
#define TILE_CLEAR(i) "tilezero %%tmm" i "\n\t"
#define TILE_INT8(i) "tdpbssd %%tmm6,%%tmm7,%%tmm" i "\n\t"
#define TILE_BF16(i) "tdpbf16ps %%tmm6,%%tmm7,%%tmm" i "\n\t"
#define TILES(name, features, STEP)                                                                    \
    __attribute__((target(features), noinline)) static void name(uint64_t loops)                       \
    {                                                                                                  \
        unsigned char shape[64] = {1}, rows[1024];                                                     \
        for (unsigned i = 0; i < 8; i++) {                                                             \
            shape[16 + 2 * i] = 64;                                                                    \
            shape[48 + i] = 16;                                                                        \
        }                                                                                              \
        memset(rows, PATTERN, sizeof rows);                                                            \
        uint64_t stride = 64;                                                                          \
        __asm__ volatile("ldtilecfg (%1)\n\t"                                                          \
                         "tileloadd (%2,%3,1),%%tmm6\n\t"                                              \
                         "tileloadd (%2,%3,1),%%tmm7\n\t" EACH6(TILE_CLEAR)                            \
                         "1:\n\t" EACH6(STEP)                                                          \
                         "dec %0\n\t"                                                                  \
                         "jnz 1b\n\t"                                                                  \
                         "tilerelease"                                                                 \
                         : "+r"(loops)                                                                 \
                         : "r"(shape), "r"(rows), "r"(stride)                                          \
                         : "cc", "memory");                                                            \
    }
TILES(int8_tiles, "amx-tile,amx-int8", TILE_INT8)
TILES(bf16_tiles, "amx-tile,amx-bf16", TILE_BF16)
#endif

#define HAS(name) \
    static bool has_##name(void)

HAS(sse) { return !__builtin_cpu_supports("avx"); }
HAS(avx) { return __builtin_cpu_supports("avx") && !tare__cpu_has_fma_256(); }
HAS(avx2) { return __builtin_cpu_supports("avx2"); }
HAS(fma) { return tare__cpu_has_fma_256(); }
HAS(avx512) { return tare__cpu_has_fma_512(); }
HAS(avx512bw) { return __builtin_cpu_supports("avx512bw"); }
HAS(avx512vnni) { return __builtin_cpu_supports("avx512vnni"); }
#ifdef NEWER_INSTRUCTIONS
#include <cpuid.h>
/* Leaf 7: not every compiler's runtime knows these names. Registers wider than 128 bits require support by the
 * operating system, which the names above check. */
static unsigned leaf_7(unsigned subleaf, unsigned index)
{
    unsigned r[4];
    return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) ? r[index] : 0;
}
HAS(avxvnni) { return has_avx2() && leaf_7(1, 0) & 1u << 4; }
HAS(avx512bf16) { return has_avx512() && leaf_7(1, 0) & 1u << 5; }
HAS(avx512fp16) { return has_avx512() && leaf_7(0, 3) & 1u << 23; }
/* The kernel grants tiles to a process only on request: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA. */
static bool tiles_allowed(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }
HAS(amx_int8) { return leaf_7(0, 3) & 1u << 24 && leaf_7(0, 3) & 1u << 25 && tiles_allowed(); }
HAS(amx_bf16) { return leaf_7(0, 3) & 1u << 24 && leaf_7(0, 3) & 1u << 22 && tiles_allowed(); }
#endif

#define STEPS 24.0 /* of a loop */
static const tare__compute_kernel compute_kernels[] = {
    {TARE__PEAK_F32, "SSE2", has_sse, f32_sse, STEPS * 8, 100000},
    {TARE__PEAK_F64, "SSE2", has_sse, f64_sse, STEPS * 4, 100000},
    {TARE__PEAK_F32, "AVX", has_avx, f32_avx, STEPS * 16, 100000},
    {TARE__PEAK_F64, "AVX", has_avx, f64_avx, STEPS * 8, 100000},
    {TARE__PEAK_F32, "AVX2, FMA", has_fma, f32_fma, STEPS * 16, 200000},
    {TARE__PEAK_F64, "AVX2, FMA", has_fma, f64_fma, STEPS * 8, 200000},
    {TARE__PEAK_INT8, "AVX2", has_avx2, int8_avx2, STEPS * 64, 200000},
    {TARE__PEAK_F32, "AVX-512", has_avx512, f32_512, STEPS * 32, 200000},
    {TARE__PEAK_F64, "AVX-512", has_avx512, f64_512, STEPS * 16, 200000},
    {TARE__PEAK_INT8, "AVX-512", has_avx512bw, int8_512, STEPS * 128, 200000},
    {TARE__PEAK_INT8, "AVX-512 VNNI", has_avx512vnni, int8_vnni_512, STEPS * 128, 200000},
#ifdef NEWER_INSTRUCTIONS
    {TARE__PEAK_INT8, "AVX-VNNI", has_avxvnni, int8_vnni, STEPS * 64, 200000},
    {TARE__PEAK_BF16, "AVX-512 BF16", has_avx512bf16, bf16_512, STEPS * 64, 200000},
    {TARE__PEAK_F16, "AVX-512 FP16", has_avx512fp16, f16_512, STEPS * 64, 200000},
    /* Last: if a virtual machine advertises but forbids them, the process is killed here, and earlier results are
     * kept. */
    {TARE__PEAK_BF16, "AMX", has_amx_bf16, bf16_tiles, 6.0 * 16384, 30000},
    {TARE__PEAK_INT8, "AMX", has_amx_int8, int8_tiles, 6.0 * 32768, 30000},
#endif
};

/* ---- bytes ---------------------------------------------------------------------------------------------------- */
/* Each passes over `bytes` of `at` (and of the area `bytes` further on), a multiple of 512. Streaming stores do not
 * read what they overwrite; they are for data that no cache holds. */
#define LOAD(n, size, w) "vmovups " #n "*" size "(%0),%%" w "mm" #n "\n\t"
#define STORE(n, size, w) "vmovups %%" w "mm" #n "," #n "*" size "(%0,%2)\n\t"
#define STREAM(n, size, w) "vmovntps %%" w "mm" #n "," #n "*" size "(%0,%2)\n\t"
#define STREAM_HERE(n, size, w) "vmovntps %%" w "mm" #n "," #n "*" size "(%0)\n\t"
#define ADD(n, size, w) "vorps " #n "*" size "(%0,%2),%%" w "mm" #n ",%%" w "mm" #n "\n\t"
#define STORE_HERE(n, size, w) "vmovups %%" w "mm" #n "," #n "*" size "(%0)\n\t"
#define EACH8(X, size, w) \
    X(0, size, w) X(1, size, w) X(2, size, w) X(3, size, w) X(4, size, w) X(5, size, w) X(6, size, w) X(7, size, w)

#define MOVE(name, features, size, w, BODY, ends)                                                       \
    __attribute__((target(features), noinline)) static void name(char *at, size_t bytes, size_t further) \
    {                                                                                                   \
        char *end = at + bytes;                                                                         \
        __asm__ volatile(".p2align 5\n"                                                                 \
                         "1:\n\t" BODY(size, w)                                                         \
                         "add $8*" size ",%0\n\t"                                                       \
                         "cmp %1,%0\n\t"                                                                \
                         "jb 1b\n\t" ends                                                               \
                         "vzeroupper"                                                                   \
                         : "+r"(at)                                                                     \
                         : "r"(end), "r"(further)                                                       \
                         : ALL_XMM, "cc", "memory");                                                    \
    }
#define READ(size, w) EACH8(LOAD, size, w)
#define COPY(size, w) EACH8(LOAD, size, w) EACH8(STORE, size, w)
#define UPDATE(size, w) EACH8(LOAD, size, w) EACH8(ADD, size, w) EACH8(STORE_HERE, size, w)
#define UPDATE_ONE(n, size, w) LOAD(n, size, w) ADD(n, size, w) STORE_HERE(n, size, w)
#define UPDATE_EACH(size, w) EACH8(UPDATE_ONE, size, w)
#define COPY_STREAM(size, w) EACH8(LOAD, size, w) EACH8(STREAM, size, w)
#define FILL_STREAM(size, w) EACH8(STREAM_HERE, size, w)

MOVE(read_256, "avx", "32", "y", READ, "")
MOVE(copy_256, "avx", "32", "y", COPY, "")
MOVE(update_256, "avx", "32", "y", UPDATE, "")
MOVE(update_each_256, "avx", "32", "y", UPDATE_EACH, "")
MOVE(copy_stream_256, "avx", "32", "y", COPY_STREAM, "sfence\n\t")
MOVE(fill_stream_256, "avx", "32", "y", FILL_STREAM, "sfence\n\t")
MOVE(read_512, "avx512f", "64", "z", READ, "")
MOVE(copy_512, "avx512f", "64", "z", COPY, "")
MOVE(update_512, "avx512f", "64", "z", UPDATE, "")

HAS(avx1) { return __builtin_cpu_supports("avx"); }

#elif defined(__aarch64__)

#define EACH12(X, t)                                                                                                  \
    X("0", t)                                                                                                         \
    X("1", t) X("2", t) X("3", t) X("4", t) X("5", t) X("6", t) X("7", t) X("16", t) X("17", t) X("18", t) X("19", t) \
        X("20", t) X("21", t) X("22", t) X("23", t)
#define CLEAR(i, t) "movi v" i ".2d,#0\n\t"
#define FMLA(i, t) "fmla v" i "." t ",v24." t ",v25." t "\n\t"
#define COMPUTE(name, t)                                                                                          \
    __attribute__((noinline)) static void name(uint64_t loops)                                                    \
    {                                                                                                             \
        __asm__ volatile("movi v24.16b,#0x3c\n\tmovi v25.16b,#0x3c\n\t" EACH12(CLEAR, t)                          \
                         "1:\n\t" EACH12(FMLA, t) "subs %0,%0,#1\n\t"                                             \
                         "b.ne 1b"                                                                                \
                         : "+r"(loops)::"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", \
                           "v20", "v21", "v22", "v23", "v24", "v25", "cc");                                       \
    }
COMPUTE(f32_neon, "4s")
COMPUTE(f64_neon, "2d")
static bool always(void) { return true; }
static const tare__compute_kernel compute_kernels[] = {
    {TARE__PEAK_F32, "NEON", always, f32_neon, 16.0 * 8, 300000},
    {TARE__PEAK_F64, "NEON", always, f64_neon, 16.0 * 4, 300000},
};
#else
static const tare__compute_kernel compute_kernels[] = {{0}};
#endif

/* ---- bytes, portable ------------------------------------------------------------------------------------------ */
static bool anywhere(void)
{
    return true;
}

static void copy_plain(char *at, size_t bytes, size_t further)
{
    memcpy(at + further, at, bytes);
    __asm__ volatile("" ::"r"(at) : "memory");
}

static void read_plain(char *at, size_t bytes, size_t further)
{
    uint64_t sums[4] = {0};
    (void)further;
    for (size_t i = 0; i < bytes; i += 32)
        for (unsigned k = 0; k < 4; k++) {
            uint64_t word;
            memcpy(&word, at + i + 8 * k, sizeof word);
            sums[k] += word;
        }
    __asm__ volatile("" ::"r"(sums[0] + sums[1] + sums[2] + sums[3]));
}

/* Bytes moved and areas passed over, in multiples of the length; whether it is suitable for data in caches. */
static const tare__move_kernel move_kernels[] = {
#if defined(__x86_64__)
    {has_avx1, read_256, 1, 1, true},
    {has_avx1, copy_256, 2, 2, true},
    {has_avx1, update_256, 3, 2, true},
    {has_avx1, update_each_256, 3, 2, true},
    {has_avx1, copy_stream_256, 2, 2, false},
    {has_avx1, fill_stream_256, 1, 1, false},
    {has_avx512, read_512, 1, 1, true},
    {has_avx512, copy_512, 2, 2, true},
    {has_avx512, update_512, 3, 2, true},
#endif
    {anywhere, copy_plain, 2, 2, true},
    {anywhere, read_plain, 1, 1, true},
};

const tare__compute_kernel *tare__compute_kernels(size_t *n)
{
    *n = compute_kernels[0].run ? TARE__COUNT_OF(compute_kernels) : 0;
    return compute_kernels;
}

const tare__move_kernel *tare__move_kernels(size_t *n)
{
    *n = TARE__COUNT_OF(move_kernels);
    return move_kernels;
}
