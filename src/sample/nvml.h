/* nvml: shared by the files of the NVML sampler in addition to the library: processes on a GPU, and the doctor.
 * The set's thread.
 * Must not know other samplers. */
#ifndef TARE_SAMPLE_NVML_H
#define TARE_SAMPLE_NVML_H

#include "nvml_api.h"
#include "sample.h"

#define TARE__NVML_USERS_MAX 64u

typedef struct tare__nvml_user {
    unsigned pid;
    uint32_t series;
    bool there; /* in the newest list */
} tare__nvml_user;

/* Processes of the tree on one GPU. */
typedef struct tare__nvml_users {
    bool gone; /* unavailable permanently */
    unsigned count;
    tare__nvml_user users[TARE__NVML_USERS_MAX];
} tare__nvml_users;

/* Puts the memory of each process of the tree on this GPU, of which `used` bytes are in use (-1: unknown). 0, or
 * NVML's result, set as the reason. */
int tare__nvml_read_users(tare__sample_set *set, const tare__nvml *nvml, const tare__nvml_gpu *gpu, int64_t used,
                          tare__nvml_users *users);
void tare__nvml_users_absent(tare__sample_set *set, const tare__nvml_users *users, const char *reason);

void tare__nvml_doctor(const char *root, tare__sample_check_sink *sink, void *context);

#endif
