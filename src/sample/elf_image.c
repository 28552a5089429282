/* elf_image: parts of ELF images, from a file or from the memory of a process.
 * Any thread: no state but the struct.
 * Must not trust any number in an image: all are checked before they are used. */
#define _GNU_SOURCE
#include "elf_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"

#define SECTIONS_MAX (1u << 16)
#define NAMES_MAX (16u << 20)
#define NOTES_MAX 4096u
#define ID_MAX ((TARE__ELF_ID_BYTES - 2) / 2)

static bool header_is_valid(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           header->e_ident[EI_DATA] == ELFDATA2LSB && (header->e_type == ET_DYN || header->e_type == ET_EXEC) &&
           header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum > 0 &&
           header->e_phnum <= TARE__ELF_PARTS_MAX;
}

static bool read_file(const tare__elf *elf, uint64_t offset, void *out, size_t bytes)
{
    size_t got;
    return offset <= elf->bytes && bytes <= elf->bytes - offset &&
           tare__pread_all(elf->fd, out, bytes, offset, &got) == 0 && got == bytes;
}

size_t tare__process_memory(pid_t pid, uint64_t address, void *out, size_t bytes)
{
    struct iovec local = {out, bytes}, remote = {(void *)(uintptr_t)address, bytes}; // NOLINT: an address there
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool read_memory(pid_t pid, uint64_t address, void *out, size_t bytes)
{
    return bytes && tare__process_memory(pid, address, out, bytes) == bytes;
}

bool tare__elf_file(tare__elf *elf, int fd)
{
    struct stat about;
    *elf = (tare__elf){.fd = fd};
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0)
        return false;
    elf->bytes = (uint64_t)about.st_size;
    if (!read_file(elf, 0, &elf->header, sizeof(elf->header)) || !header_is_valid(&elf->header))
        return false;
    elf->n_parts = elf->header.e_phnum;
    return read_file(elf, elf->header.e_phoff, elf->parts, elf->n_parts * sizeof(*elf->parts));
}

bool tare__elf_memory(tare__elf *elf, pid_t pid, uint64_t base)
{
    *elf = (tare__elf){.fd = -1, .pid = pid};
    if (!read_memory(pid, base, &elf->header, sizeof(elf->header)) || !header_is_valid(&elf->header))
        return false;
    elf->n_parts = elf->header.e_phnum;
    if (!read_memory(pid, base + elf->header.e_phoff, elf->parts, elf->n_parts * sizeof(*elf->parts)))
        return false;
    for (size_t i = 0; i < elf->n_parts; i++)
        if (elf->parts[i].p_type == PT_LOAD && elf->parts[i].p_offset < 4096) {
            elf->bias = base - (elf->parts[i].p_vaddr - elf->parts[i].p_offset);
            return true;
        }
    return false;
}

/* The loaded part with this address and, in a file, its bytes there. */
static const Elf64_Phdr *part_with(const tare__elf *elf, uint64_t address)
{
    for (size_t i = 0; i < elf->n_parts; i++) {
        const Elf64_Phdr *part = &elf->parts[i];
        if (part->p_type == PT_LOAD && address >= part->p_vaddr && address - part->p_vaddr < part->p_filesz)
            return part;
    }
    return NULL;
}

uint64_t tare__elf_left(const tare__elf *elf, uint64_t address)
{
    const Elf64_Phdr *part = part_with(elf, address);
    if (!part)
        return 0;
    uint64_t at = address - part->p_vaddr, left = part->p_filesz - at;
    if (elf->fd < 0)
        return left;
    if (part->p_offset > elf->bytes || at >= elf->bytes - part->p_offset)
        return 0;
    uint64_t in_file = elf->bytes - part->p_offset - at;
    return left < in_file ? left : in_file;
}

size_t tare__elf_read_some(const tare__elf *elf, uint64_t address, void *out, size_t bytes)
{
    uint64_t left = tare__elf_left(elf, address);
    size_t take = bytes < left ? bytes : (size_t)left;
    if (!take)
        return 0;
    if (elf->fd < 0)
        return read_memory(elf->pid, elf->bias + address, out, take) ? take : 0;
    const Elf64_Phdr *part = part_with(elf, address);
    return read_file(elf, part->p_offset + (address - part->p_vaddr), out, take) ? take : 0;
}

bool tare__elf_read(const tare__elf *elf, uint64_t address, void *out, size_t bytes)
{
    return tare__elf_read_some(elf, address, out, bytes) == bytes;
}

const Elf64_Phdr *tare__elf_part(const tare__elf *elf, uint32_t type)
{
    for (size_t i = 0; i < elf->n_parts; i++)
        if (elf->parts[i].p_type == type)
            return &elf->parts[i];
    return NULL;
}

/* Parts are mapped from the start of their page. */
static bool address_in(const tare__elf *elf, uint64_t offset, uint64_t page, uint64_t *address)
{
    for (size_t i = 0; i < elf->n_parts; i++) {
        const Elf64_Phdr *part = &elf->parts[i];
        uint64_t before = part->p_offset & (page - 1);
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && offset >= part->p_offset - before &&
            offset - (part->p_offset - before) < part->p_filesz + before) {
            *address = part->p_vaddr + (offset - part->p_offset);
            return true;
        }
    }
    return false;
}

bool tare__elf_address_of(const tare__elf *elf, uint64_t offset, uint64_t *address)
{
    return address_in(elf, offset, 1, address) || address_in(elf, offset, 65536, address);
}

/* ---- build ids -------------------------------------------------------------------------------------------- */
static bool id_in_notes(const unsigned char *notes, size_t bytes, size_t align, char out[TARE__ELF_ID_BYTES])
{
    Elf64_Nhdr note;
    for (size_t at = 0; bytes - at >= sizeof(note);) {
        memcpy(&note, notes + at, sizeof(note));
        size_t name_at = at + sizeof(note);
        if (note.n_namesz > bytes || note.n_descsz > bytes)
            return false;
        size_t id_at = (name_at + note.n_namesz + align - 1) / align * align;
        if (id_at > bytes || note.n_descsz > bytes - id_at)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name_at, "GNU", 4) == 0 &&
            note.n_descsz > 0 && note.n_descsz <= ID_MAX) {
            for (size_t i = 0; i < note.n_descsz; i++)
                snprintf(out + 2 * i, 3, "%02x", notes[id_at + i]);
            return true;
        }
        at = (id_at + note.n_descsz + align - 1) / align * align;
        if (at > bytes)
            return false;
    }
    return false;
}

void tare__elf_build_id(const tare__elf *elf, char out[TARE__ELF_ID_BYTES])
{
    unsigned char notes[NOTES_MAX];
    out[0] = '\0';
    for (size_t i = 0; i < elf->n_parts; i++) {
        const Elf64_Phdr *part = &elf->parts[i];
        if (part->p_type != PT_NOTE)
            continue;
        size_t bytes = part->p_filesz < sizeof(notes) ? (size_t)part->p_filesz : sizeof(notes);
        /* A file with debug information only has its notes, but not at the places of its parts. */
        bool got = elf->fd < 0 ? tare__elf_read(elf, part->p_vaddr, notes, bytes)
                               : read_file(elf, part->p_offset, notes, bytes);
        if (bytes && got && id_in_notes(notes, bytes, part->p_align == 8 ? 8 : 4, out))
            return;
    }
}

/* ---- sections --------------------------------------------------------------------------------------------- */
void *tare__elf_content(const tare__elf *elf, const Elf64_Shdr *section, size_t most)
{
    if (elf->fd < 0 || !section->sh_size || section->sh_size > most || section->sh_type == SHT_NOBITS ||
        section->sh_flags & SHF_COMPRESSED || section->sh_offset > elf->bytes ||
        section->sh_size > elf->bytes - section->sh_offset)
        return NULL;
    void *content = malloc(section->sh_size);
    if (content && !read_file(elf, section->sh_offset, content, section->sh_size)) {
        free(content);
        return NULL;
    }
    return content;
}

void tare__elf_sections_free(tare__elf_sections *sections)
{
    free(sections->at);
    free(sections->names);
    *sections = (tare__elf_sections){0};
}

bool tare__elf_sections_read(const tare__elf *elf, tare__elf_sections *out)
{
    const Elf64_Ehdr *header = &elf->header;
    *out = (tare__elf_sections){0};
    if (elf->fd < 0 || header->e_shentsize != sizeof(*out->at) || !header->e_shoff)
        return false;
    uint64_t n = header->e_shnum, names = header->e_shstrndx;
    Elf64_Shdr first;
    if ((!n || names == SHN_XINDEX) && read_file(elf, header->e_shoff, &first, sizeof(first))) {
        n = n ? n : first.sh_size; /* more than fit into the header */
        names = names == SHN_XINDEX ? first.sh_link : names;
    }
    if (!n || n > SECTIONS_MAX || names >= n)
        return false;
    out->at = malloc(n * sizeof(*out->at));
    out->n = n;
    if (out->at && read_file(elf, header->e_shoff, out->at, n * sizeof(*out->at))) {
        out->names = tare__elf_content(elf, &out->at[names], NAMES_MAX);
        out->names_bytes = out->at[names].sh_size;
    }
    if (out->names && out->names[out->names_bytes - 1] == '\0')
        return true;
    tare__elf_sections_free(out);
    return false;
}

const Elf64_Shdr *tare__elf_section(const tare__elf_sections *sections, const char *name)
{
    for (size_t i = 0; i < sections->n; i++)
        if (sections->at[i].sh_name < sections->names_bytes &&
            strcmp(sections->names + sections->at[i].sh_name, name) == 0)
            return &sections->at[i];
    return NULL;
}
