/* python_image: memory of a Python process that was recorded by record_python, with the stacks that the program itself
 * reported; reads of it in place of those of a live process.
 * One thread. Must not know what is in the memory. */
#ifndef TARE_TESTS_PYTHON_IMAGE_H
#define TARE_TESTS_PYTHON_IMAGE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/codec.h"
#include "sample/python_inner.h"

#define PYTHON_IMAGE_PAGE 4096u

typedef struct python_extent { /* bytes that were read; sorted, apart from each other */
    uint64_t address, bytes;
    const unsigned char *data;
} python_extent;

typedef struct python_image {
    char version[32];
    pid_t pid;
    uint64_t base;      /* where the object with the interpreter is mapped */
    char *truth;        /* what the program wrote about its stacks */
    size_t truth_bytes;
    python_extent *extents;
    size_t n;
    uint64_t missing;   /* a page that cannot be read; 0: none */
    unsigned char *file;
    tare__squeezer *squeezer;
} python_image;

enum { PYTHON_IMAGE_ABOUT, PYTHON_IMAGE_TRUTH, PYTHON_IMAGE_PLACES, PYTHON_IMAGE_BYTES, PYTHON_IMAGE_PARTS };

static python_image python_image_now; /* what python_image_read reads */

static inline bool python_image_parse(python_image *image, size_t bytes)
{
    tare__column parts[PYTHON_IMAGE_PARTS];
    tare__reader file = {image->file, image->file + bytes, false};
    unsigned long long base;
    int pid;
    char about[128];
    if (!image->squeezer ||
        tare__columns_get(image->squeezer, &file, parts, PYTHON_IMAGE_PARTS, TARE__COLUMNS_BYTES_MAX) != 0 ||
        parts[PYTHON_IMAGE_ABOUT].bytes >= sizeof about)
        return false;
    memcpy(about, parts[PYTHON_IMAGE_ABOUT].data, parts[PYTHON_IMAGE_ABOUT].bytes);
    about[parts[PYTHON_IMAGE_ABOUT].bytes] = '\0';
    image->truth = (char *)parts[PYTHON_IMAGE_TRUTH].data;
    image->truth_bytes = parts[PYTHON_IMAGE_TRUTH].bytes;
    if (sscanf(about, "%31s %d %llx", image->version, &pid, &base) != 3)
        return false;
    image->pid = pid;
    image->base = base;
    tare__reader places = {parts[PYTHON_IMAGE_PLACES].data, NULL, false};
    tare__reader data = {parts[PYTHON_IMAGE_BYTES].data, NULL, false};
    places.end = places.at + parts[PYTHON_IMAGE_PLACES].bytes;
    data.end = data.at + parts[PYTHON_IMAGE_BYTES].bytes;
    image->extents = calloc(parts[PYTHON_IMAGE_PLACES].bytes + 1, sizeof *image->extents);
    for (uint64_t address = 0; image->extents && places.at < places.end; image->n++) {
        python_extent *extent = &image->extents[image->n];
        extent->address = address + tare__read_varint(&places);
        extent->bytes = tare__read_varint(&places);
        extent->data = tare__read_bytes(&data, extent->bytes);
        address = extent->address + extent->bytes;
        if (places.failed || !extent->data)
            return false;
    }
    return image->extents != NULL;
}

static inline void python_image_close(python_image *image)
{
    free(image->extents);
    free(image->file);
    tare__squeezer_free(image->squeezer);
    *image = (python_image){0};
}

/* In the folder of fixtures, from the root of the tree or wherever the compiler ran. */
static inline FILE *python_image_file(const char *name)
{
    const char *here = __FILE__, *slash = strrchr(here, '/');
    char path[512];
    snprintf(path, sizeof path, "tests/fixture/%s", name);
    FILE *file = fopen(path, "rb");
    snprintf(path, sizeof path, "%.*sfixture/%s", (int)(slash + 1 - here), here, name);
    return file ? file : fopen(path, "rb");
}

/* False: it cannot be read. */
static inline bool python_image_open(const char *name, python_image *image)
{
    *image = (python_image){.squeezer = tare__squeezer_new()};
    FILE *file = python_image_file(name);
    long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    image->file = bytes > 0 ? malloc((size_t)bytes) : NULL;
    bool read = image->file && fseek(file, 0, SEEK_SET) == 0 &&
                fread(image->file, 1, (size_t)bytes, file) == (size_t)bytes;
    if (file)
        fclose(file);
    if (read && python_image_parse(image, (size_t)bytes))
        return true;
    python_image_close(image);
    return false;
}

/* One range; false where a page of it was never read. What a page has between the extents is zero: a reader that
 * reads a little more than the one that recorded them still works. */
static inline bool python_image_range(uint64_t address, size_t bytes, unsigned char *out)
{
    const python_image *image = &python_image_now;
    uint64_t end = address + bytes, page = address & ~(uint64_t)(PYTHON_IMAGE_PAGE - 1);
    size_t low = 0, high = image->n;
    while (low < high) { /* the first extent that ends after the start of the first page */
        size_t middle = low + (high - low) / 2;
        if (image->extents[middle].address + image->extents[middle].bytes <= page)
            low = middle + 1;
        else
            high = middle;
    }
    memset(out, 0, bytes);
    for (size_t i = low; page < end; page += PYTHON_IMAGE_PAGE) {
        while (i < image->n && image->extents[i].address + image->extents[i].bytes <= page)
            i++;
        if (i == image->n || image->extents[i].address >= page + PYTHON_IMAGE_PAGE || page == image->missing)
            return false;
    }
    for (size_t i = low; i < image->n && image->extents[i].address < end; i++) {
        const python_extent *extent = &image->extents[i];
        uint64_t from = extent->address > address ? extent->address : address;
        uint64_t to = extent->address + extent->bytes < end ? extent->address + extent->bytes : end;
        if (from < to)
            memcpy(out + (from - address), extent->data + (from - extent->address), to - from);
    }
    return true;
}

/* As process_vm_readv: whole ranges up to the first that is not there. */
static inline ssize_t python_image_read(pid_t pid, const struct iovec *local, unsigned long n_local,
                                        const struct iovec *remote, unsigned long n_remote)
{
    size_t got = 0, room = 0;
    for (unsigned long i = 0; i < n_local; i++)
        room += local[i].iov_len;
    if (pid != python_image_now.pid || n_local != 1) {
        errno = ESRCH;
        return -1;
    }
    for (unsigned long i = 0; i < n_remote; i++) {
        size_t bytes = remote[i].iov_len;
        uint64_t address = (uintptr_t)remote[i].iov_base;
        if (bytes > room - got || address + bytes < address ||
            !python_image_range(address, bytes, (unsigned char *)local[0].iov_base + got))
            break;
        got += bytes;
    }
    errno = EFAULT;
    return got ? (ssize_t)got : -1;
}

/* As tare__python_open, but for what /proc says: the interpreter is where it was recorded. */
static inline int python_image_python(tare__python **out, tare__error *error)
{
    unsigned char offsets[TARE__PYTHON_OFFSETS_BYTES];
    uint32_t hex;
    bool without;
    tare__python *python = calloc(1, sizeof *python);
    if (!python)
        return tare__fail(error, TARE_E_MEMORY, "out of memory");
    python->pid = python->own_pid = python_image_now.pid;
    python->memory_fd = python->cpu = -1;
    python->tid_offset = -1;
    int status = tare__python_elf_memory(python->pid, python_image_now.base, &python->symbols, &without) &&
                         tare__python_get(python->pid, python->symbols.runtime, offsets, sizeof offsets)
                     ? tare__python_layout_read(offsets, &python->layout, &hex, error)
                     : tare__fail(error, TARE_E_INPUT, "no interpreter at its address");
    if (status == 0 && (!tare__python_list(python) || !python->n_states))
        status = tare__fail(error, TARE_E_INPUT, "no threads");
    if (status == 0)
        *out = python;
    else
        tare__python_close(python);
    return status;
}

#endif
