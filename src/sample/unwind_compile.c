/* unwind_compile: call frame information (.eh_frame): a function's program to rows of address and rule.
 * Any thread: no state.
 * Must not trust any byte: lengths, offsets, numbers of registers and of rows are bounded. */
#include "unwind_inner.h"

#include <stdlib.h>
#include <string.h>

#define FDE_MAX (1u << 20)
#define CIE_MAX 400u /* one that does not fit into the first read would be read again for each of many functions */
#define REMEMBERED_MAX 16u
#define ROWS_MAX (1u << 16) /* of a function */

/* ---- numbers ---------------------------------------------------------------------------------------------- */
static bool take(tare__unwind_bytes *bytes, void *out, size_t n)
{
    if ((size_t)(bytes->end - bytes->at) < n)
        return false;
    memcpy(out, bytes->at, n);
    bytes->at += n;
    bytes->address += n;
    return true;
}

bool tare__unwind_unsigned(tare__unwind_bytes *bytes, uint64_t *out)
{
    unsigned char byte;
    *out = 0;
    for (unsigned shift = 0; take(bytes, &byte, 1); shift += 7) {
        if (shift < 64)
            *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
        if (shift > 140)
            return false;
    }
    return false;
}

bool tare__unwind_signed(tare__unwind_bytes *bytes, int64_t *out)
{
    unsigned char byte;
    uint64_t value = 0;
    for (unsigned shift = 0; take(bytes, &byte, 1); shift += 7) {
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            if (byte & 0x40 && shift + 7 < 64)
                value |= UINT64_MAX << (shift + 7);
            *out = (int64_t)value;
            return true;
        }
        if (shift > 140)
            return false;
    }
    return false;
}

enum { ABSOLUTE = 0, ULEB = 1, UDATA2 = 2, UDATA4 = 3, UDATA8 = 4, SLEB = 9, SDATA2 = 10, SDATA4 = 11, SDATA8 = 12 };
enum { PC_RELATIVE = 0x10, DATA_RELATIVE = 0x30 };

static bool raw_pointer(tare__unwind_bytes *bytes, uint8_t format, uint64_t *out)
{
    static const uint8_t sizes[16] = {[ABSOLUTE] = 8, [UDATA2] = 2, [UDATA4] = 4, [UDATA8] = 8,
                                      [SDATA2] = 2, [SDATA4] = 4, [SDATA8] = 8};
    *out = 0;
    if (format == ULEB)
        return tare__unwind_unsigned(bytes, out);
    if (format == SLEB) {
        int64_t value;
        bool got = tare__unwind_signed(bytes, &value);
        *out = got ? (uint64_t)value : 0;
        return got;
    }
    if (!sizes[format] || !take(bytes, out, sizes[format]))
        return false;
    if (format == SDATA2)
        *out = (uint64_t)(int64_t)(int16_t)*out;
    else if (format == SDATA4)
        *out = (uint64_t)(int64_t)(int32_t)*out;
    return true;
}

bool tare__unwind_pointer(tare__unwind_bytes *bytes, uint8_t encoding, uint64_t data, uint64_t *out)
{
    uint64_t here = bytes->address;
    uint8_t relative = encoding & 0x70;
    /* An indirect pointer is one to data; code is never meant. */
    if (encoding & 0x80 || (relative && relative != PC_RELATIVE && relative != DATA_RELATIVE) ||
        !raw_pointer(bytes, encoding & 0x0f, out))
        return false;
    if (relative == PC_RELATIVE)
        *out += here;
    else if (relative == DATA_RELATIVE)
        *out += data;
    return true;
}

/* ---- CIE and FDE ------------------------------------------------------------------------------------------ */
typedef struct entry { /* one of both */
    unsigned char near[512], *far, *content; /* after its length: `near`, or `far` if it does not fit */
    uint64_t address; /* of `content` */
    size_t bytes;
    uint64_t next;
    uint64_t cie;     /* where that of an FDE is; 0: it is a CIE itself */
} entry;

static void entry_end(entry *entry)
{
    free(entry->far);
}

/* Reads the entry at `at`. entry_end is needed in any case. `next` is set if the length is valid. */
static bool entry_read(tare__unwind_source *source, void *context, uint64_t at, size_t most, entry *out)
{
    uint32_t length, id;
    uint64_t long_length;
    size_t before = sizeof(length);
    out->far = NULL;
    out->next = 0;
    size_t got = source(context, at, out->near, sizeof(out->near));
    if (got < sizeof(length))
        return false;
    memcpy(&length, out->near, sizeof(length));
    uint64_t bytes = length;
    if (length == UINT32_MAX) {
        before += sizeof(long_length);
        if (got < before)
            return false;
        memcpy(&long_length, out->near + sizeof(length), sizeof(long_length));
        bytes = long_length;
    }
    if (bytes > INT32_MAX)
        return false;
    out->next = at + before + bytes;
    if (bytes < sizeof(id) || bytes > most)
        return false;
    out->content = out->near + before;
    if (before + bytes > sizeof(out->near)) {
        out->content = out->far = malloc(bytes);
        if (!out->far || source(context, at + before, out->far, bytes) != bytes)
            return false;
    } else if (before + bytes > got) {
        return false;
    }
    out->address = at + before;
    out->bytes = bytes;
    memcpy(&id, out->content, sizeof(id)); /* also of 4 bytes after a long length, in .eh_frame */
    out->cie = id ? out->address - id : 0;
    return true;
}

typedef struct cie {
    uint64_t code_align;
    int64_t data_align;
    uint8_t ra, pointers;
    bool augmented, signal;
    tare__unwind_bytes program;
} cie;

/* The data of the letters after 'z'. */
static bool read_augmentation(const char *letters, tare__unwind_bytes *bytes, cie *out)
{
    for (; *letters; letters++) {
        uint8_t encoding;
        uint64_t ignored;
        switch (*letters) {
        case 'L': /* where the language's data is */
            if (!take(bytes, &encoding, 1))
                return false;
            break;
        case 'P': /* a function of the language; its value does not matter */
            if (!take(bytes, &encoding, 1) || !raw_pointer(bytes, encoding & 0x0f, &ignored))
                return false;
            break;
        case 'R':
            if (!take(bytes, &out->pointers, 1))
                return false;
            break;
        case 'S': out->signal = true; break;
        case 'B': /* aarch64: return addresses are authenticated with key B */
        case 'G': break; /* memory tags */
        default: return true; /* unknown: the rest is skipped by its length */
        }
    }
    return true;
}

static bool read_cie(const entry *entry, cie *out)
{
    tare__unwind_bytes bytes = {entry->content + 4, entry->content + entry->bytes, entry->address + 4};
    uint8_t version, ra8;
    uint64_t ra, length;
    *out = (cie){.pointers = ABSOLUTE};
    if (entry->cie || !take(&bytes, &version, 1) || (version != 1 && version != 3))
        return false;
    const char *letters = (const char *)bytes.at;
    size_t room = (size_t)(bytes.end - bytes.at), n = strnlen(letters, room);
    if (n == room)
        return false;
    bytes.at += n + 1;
    bytes.address += n + 1;
    if (!tare__unwind_unsigned(&bytes, &out->code_align) || !tare__unwind_signed(&bytes, &out->data_align))
        return false;
    if (version == 1 ? !take(&bytes, &ra8, 1) : !tare__unwind_unsigned(&bytes, &ra))
        return false;
    ra = version == 1 ? ra8 : ra;
    if (ra >= TARE__UNWIND_REGS || out->code_align > 64 || out->data_align > 64 || out->data_align < -64)
        return false;
    out->ra = (uint8_t)ra;
    out->program = bytes;
    if (letters[0] != 'z')
        return letters[0] == '\0';
    out->augmented = true;
    if (!tare__unwind_unsigned(&bytes, &length) || length > (uint64_t)(bytes.end - bytes.at))
        return false;
    out->program = (tare__unwind_bytes){bytes.at + length, bytes.end, bytes.address + length};
    bytes.end = bytes.at + length;
    return read_augmentation(letters + 1, &bytes, out) && out->pointers != TARE__UNWIND_ENCODING_NONE;
}

/* `program` of `cie` becomes that of the FDE. */
static bool read_fde(const entry *entry, const cie *cie, uint64_t *start, uint64_t *length, tare__unwind_bytes *program)
{
    tare__unwind_bytes bytes = {entry->content + 4, entry->content + entry->bytes, entry->address + 4};
    uint64_t skip;
    if (!tare__unwind_pointer(&bytes, cie->pointers, 0, start) ||
        !raw_pointer(&bytes, cie->pointers & 0x0f, length))
        return false;
    if (cie->pointers & 0x70 && (cie->pointers & 0x70) != PC_RELATIVE)
        return false;
    if (cie->augmented) {
        if (!tare__unwind_unsigned(&bytes, &skip) || skip > (uint64_t)(bytes.end - bytes.at))
            return false;
        bytes.at += skip;
        bytes.address += skip;
    }
    *program = bytes;
    return *length > 0 && *length <= UINT32_MAX && *start + *length > *start;
}

/* ---- the machine of a program ----------------------------------------------------------------------------- */
typedef struct state {
    uint8_t cfa, cfa_reg;
    int32_t cfa_value;
    uint8_t kinds[TARE__UNWIND_REGS];
    int32_t values[TARE__UNWIND_REGS];
} state;

typedef struct machine {
    const cie *cie;
    tare__unwind_rules *rules;
    tare__unwind_rows *rows;
    size_t first_row;
    uint64_t start, length, at; /* of the function */
    state now, initial, remembered[REMEMBERED_MAX];
    unsigned n_remembered;
    uint32_t last_rule;
} machine;

static uint32_t rule_of(machine *machine)
{
    union {
        tare__unwind_rule rule;
        unsigned char room[sizeof(tare__unwind_rule) + TARE__UNWIND_REGS * sizeof(tare__unwind_place)];
    } made;
    const state *now = &machine->now;
    if (now->cfa == TARE__UNWIND_CFA_NONE)
        return TARE__UNWIND_NO_RULE;
    made.rule = (tare__unwind_rule){.cfa = now->cfa, .cfa_reg = now->cfa_reg, .cfa_value = now->cfa_value,
                                    .ra = machine->cie->ra, .signal = machine->cie->signal};
    for (unsigned reg = 0; reg < TARE__UNWIND_REGS; reg++)
        if (now->kinds[reg] != TARE__UNWIND_SAME)
            made.rule.places[made.rule.n_places++] =
                (tare__unwind_place){.reg = (uint8_t)reg, .kind = now->kinds[reg], .value = now->values[reg]};
    return tare__unwind_rule_add(machine->rules, &made.rule);
}

/* The current rule is that of the addresses from `at` on. */
static bool put_row(machine *machine, uint32_t rule)
{
    size_t n = machine->rows->n - machine->first_row;
    if (n && rule == machine->last_rule)
        return true;
    if (n >= ROWS_MAX ||
        !tare__array_fit(&machine->rows->at, &machine->rows->room, machine->rows->n + 1, sizeof(tare__unwind_row)))
        return false;
    machine->rows->at[machine->rows->n++] = (tare__unwind_row){(uint32_t)(machine->at - machine->start), rule};
    machine->last_rule = rule;
    return true;
}

static bool advance(machine *machine, uint64_t to)
{
    if (to < machine->at || to - machine->start > machine->length)
        return false;
    if (to == machine->at)
        return true;
    if (!put_row(machine, rule_of(machine)))
        return false;
    machine->at = to;
    return true;
}

static bool set_cfa_reg(machine *machine, uint64_t reg)
{
    machine->now.cfa = TARE__UNWIND_CFA_REGISTER;
    machine->now.cfa_reg = (uint8_t)reg;
    return reg < TARE__UNWIND_REGS;
}

static bool set_cfa_offset(machine *machine, int64_t offset)
{
    machine->now.cfa_value = (int32_t)offset;
    return offset == (int32_t)offset && machine->now.cfa == TARE__UNWIND_CFA_REGISTER;
}

/* Vector registers and the like are not followed. */
static bool set_place(machine *machine, uint64_t reg, tare__unwind_kind kind, int64_t value)
{
    if (reg >= TARE__UNWIND_REGS)
        return true;
    machine->now.kinds[reg] = (uint8_t)kind;
    machine->now.values[reg] = (int32_t)value;
    return value == (int32_t)value;
}

static bool factored(const machine *machine, uint64_t value, int64_t *out)
{
    return !__builtin_mul_overflow((int64_t)value, machine->cie->data_align, out);
}

static bool restore(machine *machine, uint64_t reg)
{
    if (reg < TARE__UNWIND_REGS) {
        machine->now.kinds[reg] = machine->initial.kinds[reg];
        machine->now.values[reg] = machine->initial.values[reg];
    }
    return true;
}

static bool take_expression(machine *machine, tare__unwind_bytes *program, int32_t *out)
{
    uint64_t n;
    if (!tare__unwind_unsigned(program, &n) || n > (uint64_t)(program->end - program->at))
        return false;
    *out = tare__unwind_expression_add(machine->rules, program->at, n);
    program->at += n;
    program->address += n;
    return *out >= 0;
}

static bool advance_by(machine *machine, tare__unwind_bytes *program, size_t bytes)
{
    uint32_t steps = 0;
    return take(program, &steps, bytes) && advance(machine, machine->at + steps * machine->cie->code_align);
}

/* DW_CFA_… with their operands in the following bytes. */
enum {
    OP_NOP = 0x00, OP_SET_LOC = 0x01, OP_ADVANCE1 = 0x02, OP_ADVANCE2 = 0x03, OP_ADVANCE4 = 0x04,
    OP_OFFSET_EXTENDED = 0x05, OP_RESTORE_EXTENDED = 0x06, OP_UNDEFINED = 0x07, OP_SAME_VALUE = 0x08,
    OP_REGISTER = 0x09, OP_REMEMBER = 0x0a, OP_RESTORE_STATE = 0x0b, OP_DEF_CFA = 0x0c, OP_DEF_CFA_REGISTER = 0x0d,
    OP_DEF_CFA_OFFSET = 0x0e, OP_DEF_CFA_EXPRESSION = 0x0f, OP_EXPRESSION = 0x10, OP_OFFSET_EXTENDED_SF = 0x11,
    OP_DEF_CFA_SF = 0x12, OP_DEF_CFA_OFFSET_SF = 0x13, OP_VAL_OFFSET = 0x14, OP_VAL_OFFSET_SF = 0x15,
    OP_VAL_EXPRESSION = 0x16, OP_AARCH64_SIGN_WITH_PC = 0x2c, OP_AARCH64_SIGN = 0x2d, OP_ARGS_SIZE = 0x2e,
    OP_NEGATIVE_OFFSET = 0x2f,
};

static bool run_cfa(machine *machine, uint8_t op, tare__unwind_bytes *program)
{
    uint64_t reg = 0, offset = 0;
    int64_t value = 0;
    switch (op) {
    case OP_DEF_CFA:
        return tare__unwind_unsigned(program, &reg) && tare__unwind_unsigned(program, &offset) &&
               set_cfa_reg(machine, reg) && set_cfa_offset(machine, (int64_t)offset);
    case OP_DEF_CFA_SF:
        return tare__unwind_unsigned(program, &reg) && tare__unwind_signed(program, &value) &&
               factored(machine, (uint64_t)value, &value) && set_cfa_reg(machine, reg) &&
               set_cfa_offset(machine, value);
    case OP_DEF_CFA_REGISTER:
        return machine->now.cfa == TARE__UNWIND_CFA_REGISTER && tare__unwind_unsigned(program, &reg) &&
               set_cfa_reg(machine, reg);
    case OP_DEF_CFA_OFFSET:
        return tare__unwind_unsigned(program, &offset) && set_cfa_offset(machine, (int64_t)offset);
    case OP_DEF_CFA_OFFSET_SF:
        return tare__unwind_signed(program, &value) && factored(machine, (uint64_t)value, &value) &&
               set_cfa_offset(machine, value);
    default:
        machine->now.cfa = TARE__UNWIND_CFA_EXPRESSION;
        machine->now.cfa_reg = 0;
        return take_expression(machine, program, &machine->now.cfa_value);
    }
}

static bool run_register(machine *machine, uint8_t op, tare__unwind_bytes *program)
{
    uint64_t reg, offset = 0;
    int64_t value = 0;
    int32_t expression;
    if (!tare__unwind_unsigned(program, &reg))
        return false;
    switch (op) {
    case OP_RESTORE_EXTENDED: return restore(machine, reg);
    case OP_UNDEFINED: return set_place(machine, reg, TARE__UNWIND_UNDEFINED, 0);
    case OP_SAME_VALUE: return set_place(machine, reg, TARE__UNWIND_SAME, 0);
    case OP_REGISTER:
        return tare__unwind_unsigned(program, &offset) && offset < TARE__UNWIND_REGS &&
               set_place(machine, reg, TARE__UNWIND_REGISTER, (int64_t)offset);
    case OP_EXPRESSION:
    case OP_VAL_EXPRESSION:
        return take_expression(machine, program, &expression) &&
               set_place(machine, reg,
                         op == OP_EXPRESSION ? TARE__UNWIND_AT_EXPRESSION : TARE__UNWIND_IS_EXPRESSION, expression);
    case OP_OFFSET_EXTENDED:
    case OP_VAL_OFFSET:
        return tare__unwind_unsigned(program, &offset) && factored(machine, offset, &value) &&
               set_place(machine, reg, op == OP_VAL_OFFSET ? TARE__UNWIND_IS_CFA : TARE__UNWIND_AT_CFA, value);
    case OP_NEGATIVE_OFFSET:
        return tare__unwind_unsigned(program, &offset) && factored(machine, offset, &value) && value != INT64_MIN &&
               set_place(machine, reg, TARE__UNWIND_AT_CFA, -value);
    default: /* OP_OFFSET_EXTENDED_SF, OP_VAL_OFFSET_SF */
        return tare__unwind_signed(program, &value) && factored(machine, (uint64_t)value, &value) &&
               set_place(machine, reg, op == OP_VAL_OFFSET_SF ? TARE__UNWIND_IS_CFA : TARE__UNWIND_AT_CFA, value);
    }
}

static bool run_other(machine *machine, uint8_t op, tare__unwind_bytes *program)
{
    uint64_t number;
    switch (op) {
    case OP_NOP:
    case OP_AARCH64_SIGN: /* every return address is cleaned of its signature */
    case OP_AARCH64_SIGN_WITH_PC: return true;
    case OP_SET_LOC:
        return tare__unwind_pointer(program, machine->cie->pointers, 0, &number) && advance(machine, number);
    case OP_ADVANCE1: return advance_by(machine, program, 1);
    case OP_ADVANCE2: return advance_by(machine, program, 2);
    case OP_ADVANCE4: return advance_by(machine, program, 4);
    case OP_REMEMBER:
        if (machine->n_remembered == REMEMBERED_MAX)
            return false;
        machine->remembered[machine->n_remembered++] = machine->now;
        return true;
    case OP_RESTORE_STATE:
        if (!machine->n_remembered)
            return false;
        machine->now = machine->remembered[--machine->n_remembered];
        return true;
    case OP_ARGS_SIZE: return tare__unwind_unsigned(program, &number);
    case OP_DEF_CFA:
    case OP_DEF_CFA_SF:
    case OP_DEF_CFA_REGISTER:
    case OP_DEF_CFA_OFFSET:
    case OP_DEF_CFA_OFFSET_SF:
    case OP_DEF_CFA_EXPRESSION: return run_cfa(machine, op, program);
    case OP_OFFSET_EXTENDED:
    case OP_RESTORE_EXTENDED:
    case OP_UNDEFINED:
    case OP_SAME_VALUE:
    case OP_REGISTER:
    case OP_EXPRESSION:
    case OP_OFFSET_EXTENDED_SF:
    case OP_VAL_OFFSET:
    case OP_VAL_OFFSET_SF:
    case OP_VAL_EXPRESSION:
    case OP_NEGATIVE_OFFSET: return run_register(machine, op, program);
    default: return false;
    }
}

static bool run(machine *machine, tare__unwind_bytes program)
{
    uint8_t op;
    while (take(&program, &op, 1)) {
        uint8_t low = op & 0x3f;
        uint64_t offset;
        int64_t value;
        bool done;
        switch (op >> 6) {
        case 1: done = advance(machine, machine->at + low * machine->cie->code_align); break;
        case 2:
            done = tare__unwind_unsigned(&program, &offset) && factored(machine, offset, &value) &&
                   set_place(machine, low, TARE__UNWIND_AT_CFA, value);
            break;
        case 3: done = restore(machine, low); break;
        default: done = run_other(machine, op, &program);
        }
        if (!done)
            return false;
    }
    return true;
}

/* ---- both together ---------------------------------------------------------------------------------------- */
static bool make_rows(const cie *cie, tare__unwind_bytes program, tare__unwind_rules *rules, tare__unwind_rows *rows,
                      tare__unwind_function *out)
{
    machine machine = {.cie = cie, .rules = rules, .rows = rows, .first_row = rows->n, .start = out->start,
                       .length = out->length, .at = out->start};
    bool done = run(&machine, cie->program) && machine.at == out->start;
    machine.initial = machine.now;
    machine.n_remembered = 0;
    done = done && run(&machine, program);
    /* Nothing is known from the first instruction on that is not understood. */
    if (machine.at < out->start + out->length)
        done = put_row(&machine, done ? rule_of(&machine) : TARE__UNWIND_NO_RULE) && done;
    out->first_row = (uint32_t)machine.first_row;
    out->n_rows = (uint32_t)(rows->n - machine.first_row);
    return out->n_rows > 0;
}

bool tare__unwind_compile(tare__unwind_source *source, void *context, uint64_t fde, tare__unwind_rules *rules,
                          tare__unwind_rows *rows, tare__unwind_function *out)
{
    entry function, common = {.far = NULL};
    cie cie;
    tare__unwind_bytes program;
    *out = (tare__unwind_function){.fde = fde};
    bool done = entry_read(source, context, fde, FDE_MAX, &function) && function.cie &&
                entry_read(source, context, function.cie, CIE_MAX, &common) && read_cie(&common, &cie) &&
                read_fde(&function, &cie, &out->start, &out->length, &program) &&
                make_rows(&cie, program, rules, rows, out);
    entry_end(&function);
    entry_end(&common);
    return done;
}

bool tare__unwind_range(tare__unwind_source *source, void *context, uint64_t fde, uint64_t *start, uint64_t *length,
                        uint64_t *next)
{
    entry function, common = {.far = NULL};
    cie cie;
    tare__unwind_bytes program;
    bool done = entry_read(source, context, fde, FDE_MAX, &function);
    *next = function.next;
    done = done && function.cie && entry_read(source, context, function.cie, CIE_MAX, &common) &&
           read_cie(&common, &cie) && read_fde(&function, &cie, start, length, &program);
    entry_end(&function);
    entry_end(&common);
    return done;
}
