/* unwind_scan: what a copy of registers and stack does not have: memory beyond the copy, and the frame of a function
 * whose frame pointer or tables are missing, by the return address that the call of this very function has left.
 * One thread owns the process.
 * Must not take memory of another moment for the copy's, nor an address in the stack for a return address without the
 * call before it. */
#define _GNU_SOURCE
#include <string.h>

#include "unwind_inner.h"

#define READS_MAX 64u       /* of memory beyond the copy, for a stack */
#define TAIL_BYTES 64u      /* of a copy without a return address */
#define SCAN_WORDS 2048u    /* of the stack */
#define GAP_BYTES 65536u    /* a function without tables begins at most this far before its code */

/* ---- beyond the copy -------------------------------------------------------------------------------------- */
static bool in_copy(const tare__unwind_memory *copy, uint64_t address)
{
    return address >= copy->address && copy->bytes >= 8 && address - copy->address <= copy->bytes - 8;
}

void tare__unwind_beyond_start(tare__unwind_beyond *beyond, pid_t pid, const tare__unwind_memory *copy)
{
    beyond->pid = pid;
    beyond->copy = *copy;
    beyond->slot = 0;
    beyond->reads = 0;
    beyond->bytes = 0;
}

void tare__unwind_beyond_frame(tare__unwind_beyond *beyond, uint64_t cfa, uint64_t sp)
{
    beyond->slot = in_copy(&beyond->copy, cfa - 8) ? cfa - 8 : beyond->slot;
    beyond->floor = sp;
}

/* What is above the copy belongs to functions that called those in it. It is what it was as long as these have not
 * returned: then the last return address in the copy, or the end of the copy if it has none, is still there. */
static bool is_unchanged(const tare__unwind_beyond *beyond)
{
    const tare__unwind_memory *copy = &beyond->copy;
    unsigned char now[TAIL_BYTES];
    size_t bytes = beyond->slot ? 8 : sizeof(now);
    if (!beyond->slot && copy->bytes < bytes) /* a few bytes may be the same by chance */
        return false;
    size_t at = beyond->slot ? (size_t)(beyond->slot - copy->address) : copy->bytes - bytes;
    return tare__process_memory(beyond->pid, copy->address + at, now, bytes) == bytes &&
           memcmp(now, copy->data + at, bytes) == 0;
}

bool tare__unwind_beyond_word(tare__unwind_beyond *beyond, uint64_t address, uint64_t *out)
{
    if (address < beyond->floor)
        return false;
    if (address < beyond->address || beyond->bytes < sizeof(*out) ||
        address - beyond->address > beyond->bytes - sizeof(*out)) {
        if (beyond->reads == READS_MAX)
            return false;
        beyond->reads++;
        beyond->address = address;
        beyond->bytes = tare__process_memory(beyond->pid, address, beyond->data, sizeof(beyond->data));
        if (beyond->bytes < sizeof(*out) || !is_unchanged(beyond)) {
            beyond->bytes = 0;
            beyond->reads = READS_MAX;
            return false;
        }
    }
    memcpy(out, beyond->data + (address - beyond->address), sizeof(*out));
    return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------ */
static bool pointer_at(pid_t pid, uint64_t address, uint64_t *out)
{
    return tare__process_memory(pid, address, out, sizeof(*out)) == sizeof(*out);
}

/* The address behind this code and a displacement from there: both are relative to the next instruction. */
static uint64_t relative(const unsigned char *displacement, uint64_t next)
{
    int32_t by;
    memcpy(&by, displacement, sizeof(by));
    return next + (uint64_t)(int64_t)by;
}

/* Where a jump of the linkage table (endbr64; bnd jmp *slot) leads; the address itself if there is none. */
static uint64_t through_table(pid_t pid, uint64_t address)
{
    static const unsigned char landing[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    unsigned char code[16];
    uint64_t target;
    if (tare__process_memory(pid, address, code, sizeof(code)) != sizeof(code))
        return address;
    size_t at = memcmp(code, landing, sizeof(landing)) == 0 ? sizeof(landing) : 0;
    at += code[at] == 0xf2;
    return code[at] == 0xff && code[at + 1] == 0x25 &&
                   pointer_at(pid, relative(code + at + 2, address + at + 6), &target)
               ? target
               : address;
}

/* What the call before this return address calls: 0: it is none, or one through a register or a table of the program,
 * which does not say so. */
static uint64_t called(tare__unwind_process *process, uint64_t ip)
{
    tare__unwind_call *known = &process->calls[(ip ^ ip >> 9) & (TARE__UNWIND_CALLS - 1)];
    unsigned char code[6];
    if (known->ip == ip)
        return known->target;
    *known = (tare__unwind_call){.ip = ip};
    if (tare__process_memory(process->pid, ip - sizeof(code), code, sizeof(code)) != sizeof(code))
        return 0;
    if (code[1] == 0xe8)
        known->target = through_table(process->pid, relative(code + 2, ip));
    else if (code[0] == 0xff && code[1] == 0x15 && !pointer_at(process->pid, relative(code + 2, ip), &known->target))
        known->target = 0;
    return known->target;
}

/* The first return address from `at` on whose call leads to an address from `low` to `high`. */
static bool find_call(tare__unwind_process *process, const tare__unwind_memory *memory, uint64_t at, uint64_t low,
                      uint64_t high, uint64_t *slot, uint64_t *ip)
{
    const tare__unwind_maps *maps = &process->maps;
    if (!maps->n || process->unwind->cpu->machine != EM_X86_64)
        return false;
    for (unsigned i = 0; i < SCAN_WORDS && tare__unwind_word(memory, at, ip); i++, at += sizeof(*ip)) {
        if (*ip <= maps->at[0].start || *ip >= maps->at[maps->n - 1].end || !tare__unwind_maps_find(maps, *ip - 1))
            continue;
        uint64_t target = called(process, *ip);
        if (target && target >= low && target <= high) {
            *slot = at;
            return true;
        }
    }
    return false;
}

static uint64_t aligned(uint64_t address)
{
    return (address + 7) & ~UINT64_C(7);
}

bool tare__unwind_by_call(tare__unwind_process *process, const tare__unwind_memory *memory,
                          const tare__unwind_known *known, tare__unwind_regs *regs, uint64_t *cfa, bool *outermost)
{
    const tare__unwind_cpu *cpu = process->unwind->cpu;
    tare__unwind_file *file = tare__unwind_file_at(process->unwind, known->object);
    uint64_t bias = known->address - known->offset, low = 0, slot, ip;
    *outermost = false;
    if (!file || !file->usable || (known->rule && regs->known >> cpu->fp & 1))
        return false;
    bool begins = tare__unwind_table_begin(process->unwind, &file->table, known->offset, &low);
    if (begins != (known->rule != NULL))
        return false;
    if (!begins && known->offset - low > GAP_BYTES)
        low = known->offset - GAP_BYTES;
    if (!find_call(process, memory, aligned(regs->value[cpu->sp]), low + bias, begins ? low + bias : known->address,
                   &slot, &ip))
        return false;
    if (known->rule) { /* a function with a frame pointer has saved the caller's below the return address */
        regs->value[cpu->fp] = slot - 8;
        regs->known |= UINT64_C(1) << cpu->fp;
        return tare__unwind_apply(&process->unwind->rules, known->rule, cpu, memory, regs, cfa, outermost) &&
               regs->value[cpu->ip] == ip;
    }
    *cfa = slot + 8;
    regs->value[cpu->sp] = *cfa;
    regs->value[cpu->ip] = ip;
    regs->known = UINT64_C(1) << cpu->sp | UINT64_C(1) << cpu->ip;
    return true;
}
