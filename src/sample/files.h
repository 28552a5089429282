/* files: files of /proc and /sys as samplers read them, and the Python package for its blocks.
 * Any thread: no state.
 * Must not know series, nor who asks. */
#ifndef TARE_SAMPLE_FILES_H
#define TARE_SAMPLE_FILES_H

#include "scan.h"

/* Reads root + path into out, NUL terminated. Bytes, or a negative errno. */
int tare__sample_read(const char *root, const char *path, char *out, size_t room);
/* The same on a kept descriptor, from its start; opens it when *fd is -1. What cannot be opened is not tried
 * again: *fd is then below -1, and each call gives the same errno. */
int tare__sample_pread(const char *root, const char *path, int *fd, char *out, size_t room);
const char *tare__sample_why(int failure, const char *path, char out[256]); /* the reason as words */

#define TARE__PATH_BYTES 1024
/* Number in a file; NONE with errno's negative in *failure (0: no number stands there). `fd` may be NULL. */
int64_t tare__machine_number(const char *root, const char *path, int *fd, int *failure);
/* First line of a file without its end; "" when it cannot be had. */
void tare__machine_line(const char *root, const char *path, char *out, size_t room);
/* The reason: the failure's words, or that the file does not hold what it should (failure 0). */
const char *tare__machine_why(int failure, const char *path, char out[256]);
void tare__machine_close(int *fd);
/* Names in a folder that begin with `prefix`, in order of the numbers in them. How many (at most `room`), or a
 * negative errno. */
typedef struct tare__entry {
    char name[64];
} tare__entry;
int tare__machine_list(const char *root, const char *folder, const char *prefix, tare__entry *out, size_t room);
bool tare__machine_exists(const char *root, const char *path);
bool tare__machine_virtual(const char *root); /* no sensors are to be expected */

/* ---- lines of /proc, for the samplers and for the Python package, which reads them for blocks ----------- */
/* Numbers up to the first that is none; how many. */
size_t tare__line_numbers(tare__scan *line, int64_t *numbers, size_t room);
/* After "cpu" in /proc/stat: ticks; guests are in user and nice already. Kernels have at least the first four. */
enum { TARE__CPU_USER, TARE__CPU_NICE, TARE__CPU_SYSTEM, TARE__CPU_IDLE, TARE__CPU_IOWAIT, TARE__CPU_IRQ,
       TARE__CPU_SOFTIRQ, TARE__CPU_STEAL, TARE__CPU_COLUMNS };
#define TARE__CPU_COLUMNS_MIN 4u
/* "254 0 vda 318255 …" of /proc/diskstats: its name, and the line after it: reads, merged, sectors, ms, writes, merged,
 * sectors, ms, under way, busy ms, queue ms. */
tare__scan tare__line_disk(tare__scan *line);
enum { TARE__DISK_READS = 0, TARE__DISK_READ_SECTORS = 2, TARE__DISK_WRITES = 4, TARE__DISK_WRITTEN_SECTORS = 6,
       TARE__DISK_BUSY_MS = 9, TARE__DISK_QUEUE_MS = 10, TARE__DISK_COLUMNS };
/* Partitions are not in /sys/block. What lies on other disks (LVM, RAID, encryption) is no whole disk either: its bytes
 * are those disks' bytes, and would count twice. */
bool tare__disk_is_whole(const char *root, const char *name);
bool tare__disk_is_spare(const char *name); /* of a kind that a kernel makes dozens of that nobody uses */
/* "  eth0: 123 4 …" of /proc/net/dev: its name, and the line after it: received bytes, packets, errors, dropped, …;
 * sent bytes, …. False: another line. */
bool tare__line_network(tare__scan *line, tare__scan *name);
enum { TARE__NET_RECEIVED = 0, TARE__NET_SENT = 8, TARE__NET_COLUMNS = 16 };

/* ---- where heat and energy of the CPU are told, for the samplers and for the Python package --------------- */
bool tare__sensor_is_cpu(const char *chip); /* a chip of hwmon by its name */
typedef struct tare__power_file {
    char path[128]; /* below root */
    char label[64];
    int64_t lap;    /* of energy: the counter starts again from 0 here */
} tare__power_file;
/* Temperatures of the CPU in millidegrees: of its chips, or of thermal zones where it has none. How many. */
size_t tare__power_temperatures(const char *root, tare__power_file *files, size_t room);
/* Energy counters in microjoules, of packages and memory only: cores and graphics are inside of a package, and psys has
 * the package in it. The same counters seen another way (intel-rapl-mmio) are left out by the name's colon. AMD's are
 * called so, too. How many, or a negative errno. */
#define TARE__POWER_ENERGY "/sys/class/powercap"
#define TARE__POWER_FIX    "sudo chmod a+r " TARE__POWER_ENERGY "/intel-rapl:*/energy_uj"
int tare__power_energies(const char *root, tare__power_file *files, size_t room);
const char *tare__power_why(int failure, const char *path, char out[256]); /* a counter could not be read */

#endif
