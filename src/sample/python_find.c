/* python_find: the interpreter in a process: the object that has _PyRuntime, its version and its layout.
 * One thread owns a reader; the table of objects without an interpreter is shared by all threads, with a lock.
 * Must not know threads or frames. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "python_inner.h"

#define MAPS_MAX (64u << 20)
#define VARIABLES_MAX (32u << 20)

/* ---- objects known to have no interpreter: asked again and again for processes that are not Python  */
typedef struct object_id { /* an inode can be used again, for another file */
    uint64_t device, inode, bytes, name;
} object_id;
static object_id without[1024];
static size_t n_without;
static pthread_mutex_t without_lock = PTHREAD_MUTEX_INITIALIZER;

static object_id id_of(const tare__python_map *map)
{
    uint64_t name = 0;
    for (const char *at = map->path; *at; at++)
        name = tare__hash_mix(name, (unsigned char)*at);
    return (object_id){map->device, map->inode, map->end - map->start, name};
}

static bool is_without(const tare__python_map *map)
{
    bool found = false;
    object_id id = id_of(map);
    pthread_mutex_lock(&without_lock);
    size_t n = n_without < TARE__COUNT_OF(without) ? n_without : TARE__COUNT_OF(without);
    for (size_t i = 0; i < n && !found; i++)
        found = memcmp(&without[i], &id, sizeof(id)) == 0;
    pthread_mutex_unlock(&without_lock);
    return found;
}

static void add_without(const tare__python_map *map)
{
    pthread_mutex_lock(&without_lock);
    without[n_without++ % TARE__COUNT_OF(without)] = id_of(map);
    pthread_mutex_unlock(&without_lock);
}

/* ---- /proc/PID/maps -------------------------------------------------------------------------- */
static char *read_maps(pid_t pid, int *failure)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t n = 0, room = 0;
    *failure = fd < 0 ? errno : 0;
    while (fd >= 0) {
        if (!tare__array_fit(&text, &room, n + 65536, 1)) {
            *failure = ENOMEM;
            break;
        }
        ssize_t got = read(fd, text + n, room - n - 1);
        if (got < 0)
            *failure = errno;
        if (got <= 0 || (n += (size_t)got) > MAPS_MAX)
            break;
    }
    if (fd >= 0)
        close(fd);
    if (*failure) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

/* "55f0-55f1 r-xp 00000000 08:01 123    /usr/bin/python3.11". False: another line. */
static bool parse_map(char *line, tare__python_map *map)
{
    unsigned long long start, end, offset, inode;
    unsigned major, minor;
    char flags[5];
    int path = 0;
    if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, flags, &offset, &major, &minor, &inode,
               &path) < 7)
        return false;
    *map = (tare__python_map){.start = start, .end = end, .offset = offset, .device = makedev(major, minor),
                              .inode = inode, .readable = flags[0] == 'r', .writable = flags[1] == 'w',
                              .executable = flags[2] == 'x', .path = line + path};
    return start < end;
}

/* ---- symbols of an object -------------------------------------------------------------------- */
static int open_object(pid_t pid, const tare__python_map *map)
{
    static const char *const ways[] = {"map_files", "root", "exe"};
    char path[PATH_MAX + 64];
    for (size_t i = 0; i < TARE__COUNT_OF(ways); i++) {
        if (i == 0)
            snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)map->start,
                     (unsigned long long)map->end);
        else
            snprintf(path, sizeof(path), "/proc/%d/%s%s", (int)pid, ways[i], i == 1 ? map->path : "");
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat about;
        /* Where file systems are stacked, maps has another device than the file: the inode has to do. */
        if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && (i == 0 || about.st_ino == map->inode))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

/* *without: it certainly has no interpreter. */
static bool find_symbols(pid_t pid, const tare__python_map *map, bool named, tare__python_symbols *symbols,
                         bool *without)
{
    if (tare__python_elf_memory(pid, map->start, symbols, without))
        return true;
    int fd = named ? open_object(pid, map) : -1;
    bool found = fd >= 0 && tare__python_elf_file(fd, map->start, symbols);
    if (named)
        *without = fd >= 0; /* its file has all symbols */
    if (fd >= 0)
        close(fd);
    return found;
}

/* A file's first mapping; without a file name, an image that was loaded from memory is not looked for. */
static bool is_object(const tare__python_map *map)
{
    return map->inode && map->offset == 0 && map->readable && map->path[0] == '/';
}

/* Objects with such a name, and the program itself, whose file is the first one; then all others. */
static bool is_named(const tare__python_map *map, bool first)
{
    return first || strstr(tare__base_name(map->path), "python") != NULL;
}

static bool search(tare__python *python, const tare__python_map *maps, size_t n, bool named, tare__python_map *found)
{
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        if (!is_object(&maps[i]))
            continue;
        bool skipped = is_named(&maps[i], first) != named || is_without(&maps[i]);
        first = false; /* below it may be memory without a file, as that of AddressSanitizer */
        if (skipped)
            continue;
        bool without;
        if (find_symbols(python->pid, &maps[i], named, &python->symbols, &without)) {
            *found = maps[i];
            return true;
        }
        if (without)
            add_without(&maps[i]);
    }
    return false;
}

/* ---- version --------------------------------------------------------------------------------- */
/* "3.9.18 (main, …", the text of Py_GetVersion, which is among the variables of the object. */
static bool find_text(const char *data, size_t n, uint32_t minor, char *out, size_t room)
{
    char start[8];
    size_t length = (size_t)snprintf(start, sizeof(start), "3.%u.", (unsigned)minor);
    for (const char *at = data; (at = memmem(at, n - (size_t)(at - data), start, length)); at++) {
        size_t left = n - (size_t)(at - data), size = length;
        while (size < left && size < 16 && strchr("0123456789abrc+", at[size]) && at[size])
            size++;
        if ((at == data || at[-1] == '\0') && left - size > 2 && at[size] == ' ' && at[size + 1] == '(' &&
            size > length) {
            snprintf(out, room, "%.*s", (int)size, at);
            return true;
        }
    }
    return false;
}

/* Whether the mapping has variables of the object: those of the file, or the anonymous ones right after them. */
static bool has_variables(const tare__python_map *maps, size_t i, const tare__python_map *object)
{
    const tare__python_map *map = &maps[i];
    if (!map->inode && i && map->start == maps[i - 1].end)
        map--;
    return map->inode == object->inode && map->device == object->device && maps[i].writable && maps[i].readable;
}

static bool version_from_variables(tare__python *python, const tare__python_map *maps, size_t n,
                                   const tare__python_map *object, uint32_t minor)
{
    bool found = false;
    for (size_t i = 0; i < n && !found; i++) {
        if (!has_variables(maps, i, object))
            continue;
        uint64_t most = maps[i].end - maps[i].start;
        size_t bytes = most < VARIABLES_MAX ? (size_t)most : VARIABLES_MAX;
        char *data = malloc(bytes);
        if (data && tare__python_get(python->pid, maps[i].start, data, bytes))
            found = find_text(data, bytes, minor, python->version, sizeof(python->version));
        free(data);
    }
    return found;
}

/* "libpython3.9.so.1.0", "python3.9": the minor version; 0: none in the name. */
static uint32_t version_from_name(const char *path)
{
    const char *at = strstr(tare__base_name(path), "python3.");
    return at ? (uint32_t)strtoul(at + 8, NULL, 10) : 0;
}

static void version_text(tare__python *python, uint32_t hex)
{
    static const char *const levels[16] = {[10] = "a", [11] = "b", [12] = "rc"};
    const char *level = levels[hex >> 4 & 15];
    int n = snprintf(python->version, sizeof(python->version), "%u.%u.%u", hex >> 24, hex >> 16 & 0xff,
                     hex >> 8 & 0xff);
    if (level && n > 0)
        snprintf(python->version + n, sizeof(python->version) - (size_t)n, "%s%u", level, hex & 15);
}

static int old_layout(tare__python *python, uint32_t minor, tare__error *error)
{
    const tare__python_layout *layout = tare__python_layout_of(minor);
    if (!layout)
        return tare__fail(error, TARE_E_VERSION, "process %d: stacks of Python %s are not supported (3.9 to 3.14 are)",
                          (int)python->pid, python->version[0] ? python->version : "of an unknown version");
    python->layout = *layout;
    return 0;
}

static int find_layout(tare__python *python, const tare__python_map *maps, size_t n, const tare__python_map *object,
                       tare__error *error)
{
    unsigned char offsets[TARE__PYTHON_OFFSETS_BYTES];
    uint32_t hex = 0;
    if (tare__python_get(python->pid, python->symbols.runtime, offsets, sizeof(offsets)) &&
        memcmp(offsets, "xdebugpy", 8) == 0) {
        int status = tare__python_layout_read(offsets, &python->layout, &hex, error);
        if (status == 0)
            version_text(python, hex);
        return status;
    }
    if (python->symbols.version && tare__python_get(python->pid, python->symbols.version, &hex, sizeof(hex)) &&
        hex >> 24 == 3) {
        version_text(python, hex);
        return old_layout(python, hex >> 16 & 0xff, error);
    }
    uint32_t minor = version_from_name(object->path);
    if (minor) {
        if (!version_from_variables(python, maps, n, object, minor))
            snprintf(python->version, sizeof(python->version), "3.%u", minor);
        return old_layout(python, minor, error);
    }
    for (minor = 9; minor <= 10; minor++)
        if (version_from_variables(python, maps, n, object, minor))
            return old_layout(python, minor, error);
    return old_layout(python, 0, error);
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* Whether the C library is there: what the executable needs is then mapped too. */
static bool is_loaded(const tare__python_map *maps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = tare__base_name(maps[i].path);
        if (strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 || strncmp(name, "ld-musl", 7) == 0)
            return true;
    }
    return false;
}

static int fail_to_read(pid_t pid, int failure, tare__error *error)
{
    if (failure == EACCES || failure == EPERM)
        return tare__fail(error, TARE_E_PERMISSION,
                          "cannot read the memory of process %d: permission denied; run as its user (with "
                          "kernel.yama.ptrace_scope=0), or as root (in a container with CAP_SYS_PTRACE)", (int)pid);
    if (failure == ENOMEM)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    if (failure == EFAULT || failure == EIO) /* exec since its maps were read */
        return tare__fail(error, TARE_E_BUSY, "process %d is starting another program", (int)pid);
    return tare__fail(error, TARE_E_SYSTEM, "process %d has ended", (int)pid);
}

/* Interpreters without _PyRuntime: PyPy, and CPython before 3.7. */
static bool is_other_python(const char *name, char *what, size_t room)
{
    unsigned major, minor;
    name += strncmp(name, "lib", 3) == 0 ? 3 : 0;
    if (strncmp(name, "pypy", 4) == 0) {
        snprintf(what, room, "PyPy");
        return true;
    }
    if (sscanf(name, "python%1u.%2u", &major, &minor) != 2 || major > 3 || (major == 3 && minor >= 7))
        return false;
    snprintf(what, room, "Python %u.%u", major, minor);
    return true;
}

static int fail_without(pid_t pid, const tare__python_map *maps, size_t n, tare__error *error)
{
    char what[32];
    for (size_t i = 0; i < n; i++)
        if (is_object(&maps[i]) && is_other_python(tare__base_name(maps[i].path), what, sizeof(what)))
            return tare__fail(error, TARE_E_VERSION,
                              "process %d: stacks of %s are not supported (those of CPython 3.9 to 3.14 are)", (int)pid,
                              what);
    return tare__fail(error, TARE_E_INPUT, "process %d is not a Python process: no object in it has _PyRuntime",
                      (int)pid);
}

static int search_maps(tare__python *python, const tare__python_map *maps, size_t n, tare__error *error)
{
    tare__python_map object;
    char byte;
    if (!n)
        return tare__fail(error, TARE_E_SYSTEM, "process %d has ended, or is a kernel thread", (int)python->pid);
    if (search(python, maps, n, true, &object) || search(python, maps, n, false, &object)) {
        snprintf(python->object, sizeof(python->object), "%s", object.path);
        return find_layout(python, maps, n, &object, error);
    }
    if (!is_without(&maps[0]) && !tare__python_get(python->pid, maps[0].start, &byte, 1))
        return fail_to_read(python->pid, errno, error);
    if (!is_loaded(maps, n) && strncmp(tare__base_name(maps[0].path), "python", 6) == 0)
        return tare__fail(error, TARE_E_BUSY, "process %d has not loaded Python yet", (int)python->pid);
    return fail_without(python->pid, maps, n, error);
}

int tare__python_find(tare__python *python, tare__error *error)
{
    int failure;
    char *text = read_maps(python->pid, &failure);
    tare__python_map *maps = NULL;
    size_t n = 0, room = 0;
    if (!text)
        return fail_to_read(python->pid, failure, error);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!tare__array_fit(&maps, &room, n + 1, sizeof(*maps))) {
            failure = ENOMEM;
            break;
        }
        if (parse_map(line, &maps[n]))
            n++;
    }
    int status = failure ? fail_to_read(python->pid, failure, error) : search_maps(python, maps, n, error);
    free(maps);
    free(text);
    return status;
}
