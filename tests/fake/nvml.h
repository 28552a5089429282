/* fake nvml: what a test can set and read in the look-alike of NVIDIA's management library. It is one exported
 * object, found with dlsym("fake_nvml"); FAKE_NVML="gpus=2 busy=80" in the environment sets it, too, at nvmlInit.
 * Must not know Tare. */
#ifndef TARE_TEST_FAKE_NVML_H
#define TARE_TEST_FAKE_NVML_H

#define FAKE_GPUS_MAX 16
#define FAKE_PROCESSES_MAX 300

typedef struct fake_process {
    unsigned gpu, pid;
    unsigned long long used;
    int draws; /* graphics, not compute */
} fake_process;

typedef struct fake_nvml {
    /* results of calls: 0, or an error */
    int init, count, handle, lost, field, utilization, ecc, power, memory_v2, processes_result;
    unsigned gpus;
    unsigned lost_gpu;   /* which one `lost` is for */
    unsigned lost_after; /* so many looks at its memory, from then on; 0: at once */
    unsigned mig;        /* bits of GPUs that are divided into instances 0 and 2 */
    unsigned slow_ms;    /* how long nvmlInit takes */
    unsigned busy, memory_busy, power_mw, instant_mw, celsius, clock, memory_clock;
    unsigned long long total, used, reserved, reasons, errors;
    unsigned period_us;  /* between samples of utilization; 0: no samples */
    unsigned children;   /* the calling process's children are on GPU 0 */
    char driver[32];
    fake_process processes[FAKE_PROCESSES_MAX];
    unsigned process_count;
    struct {
        unsigned init, shutdown, memory, utilization, fields, power, temperature, clock, reasons, ecc, processes,
            energy, pcie;
    } calls;
} fake_nvml_state;

#endif
