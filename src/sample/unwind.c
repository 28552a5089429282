/* unwind: walks a stack, from the copies of registers and stack, frame by frame.
 * One thread owns the tables and the processes.
 * Must not read the memory of the process where the copy has it. */
#define _GNU_SOURCE
#include "unwind.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "unwind_inner.h"

#define MISS_NS UINT64_C(50000000)    /* mappings are not read more often than this */
#define STALE_NS UINT64_C(2000000000) /* nor less often, while stacks are unwound */
#define COST_FACTOR 100u              /* nor for more than this part of the time */
#define VDSO_BYTES_MAX (64u << 10)

/* ---- processes -------------------------------------------------------------------------------------------- */
tare__unwind_process *tare__unwind_process_new(tare__unwind *unwind, pid_t pid)
{
    tare__unwind_process *process = calloc(1, sizeof(*process));
    if (!process)
        return NULL;
    process->unwind = unwind;
    process->pid = pid;
    process->changed = true;
    return process;
}

void tare__unwind_process_free(tare__unwind_process *process)
{
    if (!process)
        return;
    tare__unwind_maps_free(&process->maps);
    free(process);
}

void tare__unwind_process_changed(tare__unwind_process *process)
{
    process->changed = true;
}

static void read_maps(tare__unwind_process *process)
{
    /* Not the time that passed: on a busy machine that is mostly waiting. */
    uint64_t before = tare__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (tare__unwind_maps_read(process->pid, &process->maps) == 1) {
        memset(process->cache, 0, sizeof(process->cache));
        memset(process->calls, 0, sizeof(process->calls));
        process->vdso_opened = false;
        process->vdso = 0;
    }
    process->read_ns = tare__monotonic_ns();
    process->cost_ns = tare__clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    process->changed = false;
}

/* Reads the mappings again if they are older than `age`. */
static bool refresh(tare__unwind_process *process, uint64_t age)
{
    uint64_t least = process->cost_ns * COST_FACTOR;
    if (process->changed ? process->read_ns == 0 || tare__monotonic_ns() - process->read_ns >= least
                         : tare__monotonic_ns() - process->read_ns >= (age > least ? age : least)) {
        read_maps(process);
        return true;
    }
    return false;
}

/* ---- what is known about an address ----------------------------------------------------------------------- */
/* The kernel's code in each process is no file, but an image like those in files. */
static void find_in_vdso(tare__unwind_process *process, const tare__unwind_mapping *mapping, tare__unwind_known *out)
{
    tare__elf image;
    char id[TARE__ELF_ID_BYTES] = "";
    if (!process->vdso_opened && mapping->end - mapping->start <= VDSO_BYTES_MAX &&
        tare__elf_memory(&image, process->pid, mapping->start)) {
        tare__elf_build_id(&image, id);
        process->vdso_bias = image.bias;
        process->vdso = *id ? tare__unwind_object_of(process->unwind, &image, TARE__UNWIND_VDSO) : 0;
    }
    process->vdso_opened = true;
    tare__unwind_file *file = tare__unwind_file_at(process->unwind, process->vdso);
    out->mapped = true;
    if (!file)
        return;
    out->object = process->vdso;
    out->offset = out->address - process->vdso_bias;
    if (file->usable)
        out->rule = tare__unwind_table_find(process->unwind, &file->table, out->offset, &out->damaged);
}

static void find_in_object(tare__unwind *unwind, const tare__unwind_mapping *mapping, tare__unwind_known *out)
{
    tare__unwind_file *file = tare__unwind_file_at(unwind, mapping->object);
    uint64_t in_file = out->address - mapping->start + mapping->offset;
    for (size_t i = 0; file && i < file->n_parts; i++) {
        const Elf64_Phdr *part = &file->parts[i];
        if (in_file < part->p_offset || in_file - part->p_offset >= part->p_filesz)
            continue;
        out->mapped = true;
        out->object = mapping->object;
        out->offset = part->p_vaddr + (in_file - part->p_offset);
        if (file->usable)
            out->rule = tare__unwind_table_find(unwind, &file->table, out->offset, &out->damaged);
        return;
    }
}

/* mov x8, #__NR_rt_sigreturn; svc #0: at the address, or behind it if that is of a caller. Of x86-64 the C library has
 * tables for this. */
static bool is_sigreturn(const tare__unwind_process *process, uint64_t address)
{
    static const uint32_t code[2] = {0xd2801168, 0xd4000001};
    uint32_t found[2];
    uint64_t at = (address + 3) & ~UINT64_C(3);
    struct iovec local = {found, sizeof(found)}, remote = {(void *)(uintptr_t)at, sizeof(found)};
    return process->unwind->cpu->machine == EM_AARCH64 &&
           process_vm_readv(process->pid, &local, 1, &remote, 1, 0) == sizeof(found) &&
           memcmp(found, code, sizeof(code)) == 0;
}

static const tare__unwind_known *find(tare__unwind_process *process, uint64_t address)
{
    tare__unwind_known *known =
        &process->cache[(address ^ address >> 10 ^ address >> 20) & (TARE__UNWIND_CACHE - 1)];
    if (known->address == address && address)
        return known;
    tare__unwind_mapping *mapping = tare__unwind_maps_find(&process->maps, address);
    if (!mapping && address && refresh(process, MISS_NS))
        mapping = tare__unwind_maps_find(&process->maps, address);
    *known = (tare__unwind_known){.address = mapping ? address : 0}; /* what is not mapped may be in a moment */
    if (mapping && !mapping->opened)
        tare__unwind_mapping_open(process->unwind, process->pid, mapping);
    if (mapping && mapping->vdso)
        find_in_vdso(process, mapping, known);
    else if (mapping)
        find_in_object(process->unwind, mapping, known);
    known->damaged = known->damaged && !known->rule;
    known->sigreturn = !known->rule && !known->object && is_sigreturn(process, address);
    return known;
}

/* What is known about the address itself, if it is the first one of a function. */
static const tare__unwind_known *find_start(tare__unwind_process *process, uint64_t address,
                                            const tare__unwind_known *before)
{
    const tare__unwind_known *known = find(process, address);
    tare__unwind_file *file = tare__unwind_file_at(process->unwind, known->object);
    uint64_t start;
    return known->rule && file && tare__unwind_table_begin(process->unwind, &file->table, known->offset, &start) &&
                   start == known->offset
               ? known
               : before;
}

/* ---- frames ----------------------------------------------------------------------------------------------- */
static bool has(const tare__unwind_regs *regs, unsigned reg)
{
    return regs->known >> reg & 1;
}

/* Code without tables that has frame pointers: the saved frame pointer and the return address are in the stack. */
static bool by_frame_pointer(tare__unwind_process *process, const tare__unwind_memory *memory, tare__unwind_regs *regs,
                             uint64_t *cfa, bool *outermost)
{
    const tare__unwind_cpu *cpu = process->unwind->cpu;
    uint64_t fp = regs->value[cpu->fp], saved, ip;
    *outermost = has(regs, cpu->fp) && fp == 0; /* as the start of a program leaves it */
    if (!has(regs, cpu->fp) || fp % 8 || fp < regs->value[cpu->sp] || !tare__unwind_word(memory, fp, &saved) ||
        !tare__unwind_word(memory, fp + 8, &ip) || (saved && saved <= fp))
        return false;
    ip &= cpu->address_mask;
    if (!ip || !tare__unwind_maps_find(&process->maps, ip - 1))
        return false;
    *cfa = fp + 16;
    regs->value[cpu->sp] = *cfa;
    regs->value[cpu->fp] = saved;
    regs->value[cpu->ip] = ip;
    regs->known = UINT64_C(1) << cpu->sp | UINT64_C(1) << cpu->fp | UINT64_C(1) << cpu->ip;
    return true;
}

/* The registers of a thread of aarch64 when a signal interrupted it: in the struct rt_sigframe at the stack pointer. */
static bool by_signal_frame(const tare__unwind_cpu *cpu, const tare__unwind_memory *memory, tare__unwind_regs *regs,
                            uint64_t *cfa)
{
    uint64_t at = regs->value[cpu->sp] + 128 + 176 + 8; /* siginfo, ucontext before uc_mcontext, fault_address */
    for (unsigned reg = 0; reg <= 32; reg++)            /* x0 to x30, sp, pc */
        if (!tare__unwind_word(memory, at + 8 * reg, &regs->value[reg]))
            return false;
    regs->known = (UINT64_C(1) << 33) - 1;
    *cfa = regs->value[cpu->sp];
    return true;
}

/* The caller's frame is above: else the stack is damaged, and its frames might repeat. A signal handler may be on
 * another stack; a function of aarch64 that calls nothing may have no frame. */
static bool is_above(const tare__unwind_regs *caller, const tare__unwind_regs *callee, const tare__unwind_cpu *cpu,
                     bool innermost, bool signal)
{
    uint64_t above = caller->value[cpu->sp], below = callee->value[cpu->sp];
    if (!has(caller, cpu->sp))
        return false;
    return above > below || (signal && above != below) ||
           (innermost && above == below && caller->value[cpu->ip] != callee->value[cpu->ip]);
}

size_t tare__unwind_stack(tare__unwind_process *process, const tare__unwind_regs *regs, const unsigned char *stack,
                          uint64_t stack_address, size_t bytes, tare__unwind_frame *frames, size_t max, bool *whole)
{
    const tare__unwind_cpu *cpu = process->unwind->cpu;
    tare__unwind_memory memory = {stack, stack_address, bytes, NULL};
    tare__unwind_regs now = *regs, before;
    bool outermost = false, exact = true; /* the ip is the next instruction, not behind a call */
    size_t n = 0;
    *whole = false;
    if (!has(&now, cpu->ip) || !has(&now, cpu->sp))
        return 0;
    refresh(process, STALE_NS);
    tare__unwind_beyond_start(&process->beyond, process->pid, &memory);
    tare__unwind_beyond_frame(&process->beyond, 0, now.value[cpu->sp]);
    memory.beyond = &process->beyond;
    while (n < max) {
        tare__unwind_frame *frame = &frames[n];
        tare__unwind_known known = *find(process, now.value[cpu->ip] - !exact);
        if (!exact && !known.rule && !known.damaged) /* a start of a stack that was made, not called (coroutines) */
            known = *find_start(process, now.value[cpu->ip], &known);
        if (n && !known.address && !known.sigreturn) /* no code: this was no return address */
            break;
        *frame = (tare__unwind_frame){.ip = now.value[cpu->ip], .object = known.object, .offset = known.offset};
        n++;
        before = now;
        bool found = false, signal = known.sigreturn || (known.rule && known.rule->signal);
        if (known.sigreturn)
            found = by_signal_frame(cpu, &memory, &now, &frame->cfa);
        else if (known.rule)
            found = tare__unwind_apply(&process->unwind->rules, known.rule, cpu, &memory, &now, &frame->cfa,
                                       &outermost);
        if (!found && !outermost && known.mapped && !known.damaged && !known.sigreturn)
            found = tare__unwind_by_call(process, &memory, &known, &now, &frame->cfa, &outermost);
        if (!found && !outermost && known.mapped && !known.damaged && !known.rule)
            found = by_frame_pointer(process, &memory, &now, &frame->cfa, &outermost);
        if (!found || !is_above(&now, &before, cpu, n == 1, signal))
            break;
        exact = signal;
        tare__unwind_beyond_frame(&process->beyond, frame->cfa, now.value[cpu->sp]);
    }
    *whole = outermost;
    return n;
}
