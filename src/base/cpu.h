/* cpu: what the processor can do. The C library has asked it already; in a virtual machine each question of our own
 * would be a trap into the host of ten microseconds. */
#ifndef TARE_BASE_CPU_H
#define TARE_BASE_CPU_H

#include <stdbool.h>

#if defined(__x86_64__)
#if __has_include(<sys/platform/x86.h>) /* glibc since 2.33 */
#include <sys/platform/x86.h>
static inline bool tare__cpu_has_crc32(void) { return CPU_FEATURE_ACTIVE(SSE4_2); }
static inline bool tare__cpu_has_fma_256(void) { return CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA); }
static inline bool tare__cpu_has_fma_512(void) { return CPU_FEATURE_ACTIVE(AVX512F); }
static inline bool tare__cpu_has_steady_counter(void) { return CPU_FEATURE_PRESENT(INVARIANT_TSC); }
#else
#include <cpuid.h>
static inline bool tare__cpu_has_crc32(void) { return __builtin_cpu_supports("sse4.2"); }
static inline bool tare__cpu_has_fma_256(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static inline bool tare__cpu_has_fma_512(void) { return __builtin_cpu_supports("avx512f"); }
static inline bool tare__cpu_has_steady_counter(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}
#endif
#endif

#endif
