/* python_elf: addresses of an interpreter's symbols, from the ELF image in the memory of a process or from its file.
 * Any thread: no state.
 * Must not trust any number in the image: all are checked before they are used. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "python_inner.h"

#define HEADERS_MAX 64u
#define NAME_MAX_BYTES 16u
#define TABLE_MAX (256u << 20)
#define TABLES_MAX (2 * (uint64_t)TABLE_MAX) /* of all sections of a file, which may overlap */

typedef struct image {
    Elf64_Phdr headers[HEADERS_MAX];
    size_t n_headers;
    uint64_t bias; /* address in the process minus address in the file */
} image;

static const struct {
    const char *name;
    size_t offset;
} wanted[] = {
    {"_PyRuntime", offsetof(tare__python_symbols, runtime)},
    {"Py_Version", offsetof(tare__python_symbols, version)},
    {"PyCode_Type", offsetof(tare__python_symbols, code_type)},
};

static uint64_t *symbol_slot(tare__python_symbols *symbols, size_t i)
{
    return (uint64_t *)(void *)((char *)symbols + wanted[i].offset);
}

static bool header_is_valid(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
           (header->e_type == ET_DYN || header->e_type == ET_EXEC) && header->e_phentsize == sizeof(Elf64_Phdr) &&
           header->e_phnum > 0 && header->e_phnum <= HEADERS_MAX;
}

/* `base` is where the first byte of the file is mapped. */
static bool find_bias(image *image, uint64_t base)
{
    for (size_t i = 0; i < image->n_headers; i++) {
        const Elf64_Phdr *part = &image->headers[i];
        if (part->p_type == PT_LOAD && part->p_offset < 4096) {
            image->bias = base - (part->p_vaddr - part->p_offset);
            return true;
        }
    }
    return false;
}

/* ---- the image in memory: dynamic symbols by their GNU hash table ---------------------------- */
typedef struct dynamic {
    uint64_t symbols, strings, hash, strings_bytes;
} dynamic;

static bool read_dynamic(pid_t pid, const image *image, dynamic *out)
{
    for (size_t i = 0; i < image->n_headers; i++) {
        const Elf64_Phdr *part = &image->headers[i];
        Elf64_Dyn entries[256];
        size_t n = part->p_memsz / sizeof(*entries);
        if (part->p_type != PT_DYNAMIC)
            continue;
        n = n < TARE__COUNT_OF(entries) ? n : TARE__COUNT_OF(entries);
        if (!n || !tare__python_get(pid, image->bias + part->p_vaddr, entries, n * sizeof(*entries)))
            return false;
        *out = (dynamic){0};
        for (size_t at = 0; at < n && entries[at].d_tag != DT_NULL; at++) {
            uint64_t value = entries[at].d_un.d_ptr;
            /* The loader of glibc adds the bias to these pointers in place; others leave them as they are. */
            uint64_t address = value < image->bias ? value + image->bias : value;
            if (entries[at].d_tag == DT_SYMTAB)
                out->symbols = address;
            else if (entries[at].d_tag == DT_STRTAB)
                out->strings = address;
            else if (entries[at].d_tag == DT_GNU_HASH)
                out->hash = address;
            else if (entries[at].d_tag == DT_STRSZ)
                out->strings_bytes = value;
        }
        return out->symbols && out->strings && out->hash;
    }
    return false;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

typedef struct hash_table {
    uint32_t n_buckets, first, n_words, shift;
} hash_table;

/* The bloom filter answers for most objects without the symbol. */
/* *without: false if the answer could not be read. */
static bool may_have(pid_t pid, const dynamic *dynamic, const hash_table *table, uint32_t hash, bool *without)
{
    uint64_t word;
    if (!tare__python_get(pid, dynamic->hash + sizeof(*table) + 8 * (uint64_t)(hash / 64 % table->n_words), &word, 8))
        return *without = false;
    return word >> hash % 64 & word >> (hash >> table->shift) % 64 & 1;
}

static bool name_is(pid_t pid, const dynamic *dynamic, uint32_t at, const char *name)
{
    char text[NAME_MAX_BYTES];
    size_t bytes = strlen(name) + 1;
    return at < dynamic->strings_bytes && tare__python_get(pid, dynamic->strings + at, text, bytes) &&
           memcmp(text, name, bytes) == 0;
}

static uint64_t find_dynamic(pid_t pid, const image *image, const dynamic *dynamic, const hash_table *table,
                             const char *name, bool *without)
{
    uint32_t hash = gnu_hash(name), number, link;
    *without = true;
    if (!may_have(pid, dynamic, table, hash, without))
        return 0;
    *without = false; /* rarely wrong: such objects are asked again */
    uint64_t buckets = dynamic->hash + sizeof(*table) + 8 * (uint64_t)table->n_words;
    uint64_t chain = buckets + 4 * (uint64_t)table->n_buckets;
    if (!tare__python_get(pid, buckets + 4 * (uint64_t)(hash % table->n_buckets), &number, 4) || number < table->first)
        return 0;
    for (unsigned steps = 0; steps < 64; steps++, number++) {
        Elf64_Sym symbol;
        if (!tare__python_get(pid, chain + 4 * (uint64_t)(number - table->first), &link, 4))
            return 0;
        if ((link | 1) == (hash | 1) &&
            tare__python_get(pid, dynamic->symbols + sizeof(symbol) * (uint64_t)number, &symbol, sizeof(symbol)) &&
            symbol.st_shndx != SHN_UNDEF && name_is(pid, dynamic, symbol.st_name, name))
            return image->bias + symbol.st_value;
        if (link & 1)
            return 0;
    }
    return 0;
}

bool tare__python_elf_memory(pid_t pid, uint64_t base, tare__python_symbols *symbols, bool *without)
{
    struct {
        Elf64_Ehdr header;
        unsigned char rest[1024];
    } start;
    image image;
    dynamic dynamic;
    hash_table table;
    *symbols = (tare__python_symbols){0};
    *without = false;
    if (!tare__python_get(pid, base, &start, sizeof(start)))
        return false;
    if (!header_is_valid(&start.header)) { /* a data file */
        *without = true;
        return false;
    }
    image.n_headers = start.header.e_phnum;
    size_t bytes = image.n_headers * sizeof(*image.headers);
    if (start.header.e_phoff + bytes <= sizeof(start) && start.header.e_phoff < sizeof(start))
        memcpy(image.headers, (unsigned char *)&start + start.header.e_phoff, bytes);
    else if (!tare__python_get(pid, base + start.header.e_phoff, image.headers, bytes))
        return false;
    if (!find_bias(&image, base) || !read_dynamic(pid, &image, &dynamic) ||
        !tare__python_get(pid, dynamic.hash, &table, sizeof(table)) || !table.n_buckets || !table.n_words ||
        table.n_words > 1u << 24 || table.n_buckets > 1u << 26 || table.shift >= 32)
        return false;
    symbols->runtime = find_dynamic(pid, &image, &dynamic, &table, wanted[0].name, without);
    for (size_t i = 1; symbols->runtime && i < TARE__COUNT_OF(wanted); i++) {
        bool ignored;
        *symbol_slot(symbols, i) = find_dynamic(pid, &image, &dynamic, &table, wanted[i].name, &ignored);
    }
    return symbols->runtime != 0;
}

/* ---- the file: section headers and symbol tables --------------------------------------------- */
static void *read_part(int fd, uint64_t file_bytes, uint64_t offset, uint64_t bytes)
{
    if (!bytes || bytes > TABLE_MAX || offset > file_bytes || bytes > file_bytes - offset)
        return NULL;
    char *data = malloc(bytes);
    for (uint64_t done = 0; data && done < bytes;) {
        ssize_t got = pread(fd, data + done, bytes - done, (off_t)(offset + done));
        if (got <= 0) {
            free(data);
            return NULL;
        }
        done += (uint64_t)got;
    }
    return data;
}

static void search_table(const Elf64_Sym *table, size_t n, const char *strings, uint64_t strings_bytes, uint64_t bias,
                         tare__python_symbols *symbols)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < TARE__COUNT_OF(wanted); k++) {
            size_t bytes = strlen(wanted[k].name) + 1;
            if (table[i].st_shndx != SHN_UNDEF && table[i].st_name < strings_bytes &&
                bytes <= strings_bytes - table[i].st_name &&
                memcmp(strings + table[i].st_name, wanted[k].name, bytes) == 0)
                *symbol_slot(symbols, k) = bias + table[i].st_value;
        }
}

static void search_sections(int fd, uint64_t file_bytes, const Elf64_Shdr *sections, const Elf64_Ehdr *header,
                            uint64_t bias, tare__python_symbols *symbols)
{
    size_t n = header->e_shnum;
    uint64_t left = TABLES_MAX;
    const Elf64_Shdr *names = header->e_shstrndx < n ? &sections[header->e_shstrndx] : NULL;
    char *text = names ? read_part(fd, file_bytes, names->sh_offset, names->sh_size) : NULL;
    for (size_t i = 0; i < n; i++) {
        const Elf64_Shdr *part = &sections[i];
        if ((part->sh_type == SHT_SYMTAB || part->sh_type == SHT_DYNSYM) && part->sh_link < n) {
            const Elf64_Shdr *link = &sections[part->sh_link];
            if (part->sh_size > left || link->sh_size > left - part->sh_size)
                continue;
            left -= part->sh_size + link->sh_size;
            Elf64_Sym *table = read_part(fd, file_bytes, part->sh_offset, part->sh_size);
            char *strings = table ? read_part(fd, file_bytes, link->sh_offset, link->sh_size) : NULL;
            if (strings)
                search_table(table, part->sh_size / sizeof(*table), strings, link->sh_size, bias, symbols);
            free(strings);
            free(table);
        } else if (text && part->sh_name < names->sh_size && names->sh_size - part->sh_name >= sizeof(".PyRuntime") &&
                   memcmp(text + part->sh_name, ".PyRuntime", sizeof(".PyRuntime")) == 0 && !symbols->runtime) {
            symbols->runtime = bias + part->sh_addr;
        }
    }
    free(text);
}

bool tare__python_elf_file(int fd, uint64_t base, tare__python_symbols *symbols)
{
    struct stat about;
    image image;
    *symbols = (tare__python_symbols){0};
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0)
        return false;
    uint64_t file_bytes = (uint64_t)about.st_size;
    Elf64_Ehdr *header = read_part(fd, file_bytes, 0, sizeof(*header));
    Elf64_Phdr *parts = NULL;
    Elf64_Shdr *sections = NULL;
    if (header && header_is_valid(header) && header->e_shentsize == sizeof(*sections)) {
        parts = read_part(fd, file_bytes, header->e_phoff, header->e_phnum * sizeof(*parts));
        sections = read_part(fd, file_bytes, header->e_shoff, header->e_shnum * sizeof(*sections));
    }
    if (parts && sections) {
        image.n_headers = header->e_phnum;
        memcpy(image.headers, parts, image.n_headers * sizeof(*parts));
        if (find_bias(&image, base))
            search_sections(fd, file_bytes, sections, header, image.bias, symbols);
    }
    free(sections);
    free(parts);
    free(header);
    return symbols->runtime != 0;
}
