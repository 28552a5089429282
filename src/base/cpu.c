/* cpu: processor features. The C library has queried them already; in a virtual machine each query
 * would trap into the host and take ten microseconds. Any thread.
 * Must not know what it is asked for. */
#include "base.h"

#if defined(__x86_64__)
#if __has_include(<sys/platform/x86.h>) /* glibc since 2.33 */
#include <sys/platform/x86.h>
#else
#include <cpuid.h>
#define CPU_FEATURE_ACTIVE(name) HAS_##name
#define CPU_FEATURE_PRESENT(name) HAS_##name
#define HAS_SSE4_2 __builtin_cpu_supports("sse4.2")
#define HAS_AVX2 __builtin_cpu_supports("avx2")
#define HAS_FMA __builtin_cpu_supports("fma")
#define HAS_AVX512F __builtin_cpu_supports("avx512f")
#define HAS_INVARIANT_TSC invariant_tsc()
static bool invariant_tsc(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}
#endif
#else
#define CPU_FEATURE_ACTIVE(name) false
#if defined(__aarch64__)
#define CPU_FEATURE_PRESENT(name) true /* the counter of the architecture has a constant rate by definition */
#else
#define CPU_FEATURE_PRESENT(name) false
#endif
#endif

bool tare__cpu_has_crc32(void)
{
    return CPU_FEATURE_ACTIVE(SSE4_2);
}

bool tare__cpu_has_fma_256(void)
{
    return CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA);
}

bool tare__cpu_has_fma_512(void)
{
    return CPU_FEATURE_ACTIVE(AVX512F);
}

bool tare__cpu_has_steady_counter(void)
{
    return CPU_FEATURE_PRESENT(INVARIANT_TSC);
}
