/* files: reads files of /proc and /sys for samplers and for the Python package.
 * Any thread: no state.
 * Must not know series, nor the caller. */
#ifndef TARE_SAMPLE_FILES_H
#define TARE_SAMPLE_FILES_H

#include "scan.h"

/* Reads root + path into out, NUL terminated. Bytes, or a negative errno. */
int tare__sample_read(const char *root, const char *path, char *out, size_t room);
/* The same with a cached descriptor, from its start; opens it if *fd is -1, and keeps none of the last few below the
 * process's limit. A failed open is not retried: *fd is then below -1, and each call returns the same errno. */
int tare__sample_pread(const char *root, const char *path, int *fd, char *out, size_t room);
bool tare__sample_failed_here(int got); /* for lack of descriptors or memory: it says nothing about the file */
const char *tare__sample_why(int failure, const char *path, char out[256]); /* the reason as text */

#define TARE__PATH_BYTES 1024
/* Number in a file; NONE with the negative errno in *failure (0: not a number). `fd` may be NULL. */
int64_t tare__machine_number(const char *root, const char *path, int *fd, int *failure);
/* First line of a file without its newline; "" if unavailable. */
void tare__machine_line(const char *root, const char *path, char *out, size_t room);
/* The reason: the text of the failure, or that the file has unexpected content (failure 0). */
const char *tare__machine_why(int failure, const char *path, char out[256]);
void tare__machine_close(int *fd);
/* Names in a folder that begin with `prefix`, sorted by the numbers in them. Their number (at most `room`), or a
 * negative errno. */
typedef struct tare__entry {
    char name[64];
} tare__entry;
int tare__machine_list(const char *root, const char *folder, const char *prefix, tare__entry *out, size_t room);
bool tare__machine_exists(const char *root, const char *path);
bool tare__machine_virtual(const char *root); /* sensors are not expected */

/* ---- lines of /proc, for the samplers and for blocks of the Python package ------------------------------- */
/* Numbers up to the first that is invalid; returns how many. */
size_t tare__line_numbers(tare__scan *line, int64_t *numbers, size_t room);
/* After "cpu" in /proc/stat: ticks; guests are included in user and nice. Kernels have at least the first four. */
enum { TARE__CPU_USER, TARE__CPU_NICE, TARE__CPU_SYSTEM, TARE__CPU_IDLE, TARE__CPU_IOWAIT, TARE__CPU_IRQ,
       TARE__CPU_SOFTIRQ, TARE__CPU_STEAL, TARE__CPU_COLUMNS };
#define TARE__CPU_COLUMNS_MIN 4u
/* "254 0 vda 318255 …" of /proc/diskstats: its name, and the rest of the line: reads, merged, sectors, ms, writes,
 * merged, sectors, ms, in progress, busy ms, queue ms. */
tare__scan tare__line_disk(tare__scan *line);
enum { TARE__DISK_READS = 0, TARE__DISK_READ_SECTORS = 2, TARE__DISK_WRITES = 4, TARE__DISK_WRITTEN_SECTORS = 6,
       TARE__DISK_BUSY_MS = 9, TARE__DISK_QUEUE_MS = 10, TARE__DISK_COLUMNS };
/* Partitions are not in /sys/block. Devices on top of other disks (LVM, RAID, encryption) are excluded too: their
 * bytes are those disks' bytes, and would count twice. */
bool tare__disk_is_whole(const char *root, const char *name);
bool tare__disk_is_spare(const char *name); /* of a kind that a kernel creates in large numbers without use */
/* "  eth0: 123 4 …" of /proc/net/dev: its name, and the rest of the line: received bytes, packets, errors, dropped,
 * …; sent bytes, …. False: another line. */
bool tare__line_network(tare__scan *line, tare__scan *name);
enum { TARE__NET_RECEIVED = 0, TARE__NET_SENT = 8, TARE__NET_COLUMNS = 16 };

/* ---- sources of CPU temperature and energy, for the samplers and for the Python package -------------------- */
bool tare__sensor_is_cpu(const char *chip); /* a hwmon chip by name */
typedef struct tare__power_file {
    char path[128]; /* below root */
    char label[64];
    int64_t lap;    /* for energy: the counter wraps to 0 here */
} tare__power_file;
/* CPU temperatures in millidegrees: of its chips, or of thermal zones if there are none. Returns their number. */
size_t tare__power_temperatures(const char *root, tare__power_file *files, size_t room);
/* Energy counters in microjoules, of packages and memory only: cores and graphics are part of a package, and psys
 * includes the package. Alternative interfaces to the same counters (intel-rapl-mmio) are excluded by the colon in
 * the name. AMD uses the same names. Returns their number, or a negative errno. */
#define TARE__POWER_ENERGY "/sys/class/powercap"
#define TARE__POWER_FIX    "sudo chmod a+r " TARE__POWER_ENERGY "/intel-rapl:*/energy_uj"
int tare__power_energies(const char *root, tare__power_file *files, size_t room);
const char *tare__power_why(int failure, const char *path, char out[256]); /* a counter could not be read */

#endif
