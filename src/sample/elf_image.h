/* elf_image: parts of ELF images (64 bit, little endian), from a file or from the memory of a process.
 * Any thread: no state but the struct.
 * Must not trust any number in an image: all are checked before they are used. */
#ifndef TARE_SAMPLE_ELF_IMAGE_H
#define TARE_SAMPLE_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TARE__ELF_PARTS_MAX 64u
#define TARE__ELF_ID_BYTES 130u /* of a build id in hex with its NUL; longer ones are none */

typedef struct tare__elf {
    int fd;         /* -1: in the memory of `pid` */
    pid_t pid;
    uint64_t bias;  /* address in that process minus virtual address of the image */
    uint64_t bytes; /* of the file */
    Elf64_Ehdr header;
    Elf64_Phdr parts[TARE__ELF_PARTS_MAX];
    size_t n_parts;
} tare__elf;

/* False: it is no ELF image that can be read. The file stays open; it is read with pread and never mapped, since a
 * file that is truncated while it is mapped is a SIGBUS. */
bool tare__elf_file(tare__elf *elf, int fd);
/* `base`: where the first byte of the file is mapped. */
bool tare__elf_memory(tare__elf *elf, pid_t pid, uint64_t base);

/* Bytes of another process; how many were read. */
size_t tare__process_memory(pid_t pid, uint64_t address, void *out, size_t bytes);
/* Bytes at a virtual address of the image: how many of `bytes` there are up to the end of their part. */
size_t tare__elf_read_some(const tare__elf *elf, uint64_t address, void *out, size_t bytes);
bool tare__elf_read(const tare__elf *elf, uint64_t address, void *out, size_t bytes); /* all of them */
/* How many bytes there are from this address to the end of its part. */
uint64_t tare__elf_left(const tare__elf *elf, uint64_t address);
const Elf64_Phdr *tare__elf_part(const tare__elf *elf, uint32_t type); /* the first one; NULL: none */
/* The virtual address of a byte of the file in an executable part, or before it in its first page. False: in none. */
bool tare__elf_address_of(const tare__elf *elf, uint64_t offset, uint64_t *address);
/* In hex; "" if there is none. */
void tare__elf_build_id(const tare__elf *elf, char out[TARE__ELF_ID_BYTES]);

/* ---- sections, only of files ---------------------------------------------------------------------------- */
typedef struct tare__elf_sections {
    Elf64_Shdr *at; /* for tare__elf_sections_free */
    size_t n;
    char *names;
    size_t names_bytes;
} tare__elf_sections;

bool tare__elf_sections_read(const tare__elf *elf, tare__elf_sections *out); /* false: none, or no memory */
void tare__elf_sections_free(tare__elf_sections *sections);
const Elf64_Shdr *tare__elf_section(const tare__elf_sections *sections, const char *name); /* NULL: none */
/* The content of a section of at most `most` bytes, for free(). NULL: none, too large, compressed, or no memory. */
void *tare__elf_content(const tare__elf *elf, const Elf64_Shdr *section, size_t most);

#endif
