/* unwind_rules: rules of unwind tables, each different one once, and what they make of the registers of a frame.
 * One thread owns the rules.
 * Must not trust them: expressions are bounded, and only memory of the stack is read. */
#include "unwind_inner.h"

#include <stdlib.h>
#include <string.h>

#define RULES_MAX (1u << 20)
#define BYTES_MAX (64u << 20)
#define EXPRESSION_MAX 1024u
#define STEPS_MAX 256u
#define DEPTH_MAX 32u

/* A return address is an address of at most 48 bits; on aarch64 those above may be its signature. */
const tare__unwind_cpu tare__unwind_x86_64 = {EM_X86_64, 16, 7, 6, UINT64_MAX};
const tare__unwind_cpu tare__unwind_aarch64 = {EM_AARCH64, 32, 31, 29, (UINT64_C(1) << 48) - 1};

/* ---- each once -------------------------------------------------------------------------------------------- */
bool tare__unwind_rules_new(tare__unwind_rules *rules)
{
    *rules = (tare__unwind_rules){.memory = tare__arena_new(), .expressions = tare__intern_new()};
    return rules->memory && rules->expressions;
}

void tare__unwind_rules_free(tare__unwind_rules *rules)
{
    tare__arena_free(rules->memory);
    tare__intern_free(rules->expressions);
    tare__index_free(&rules->by_content);
    free(rules->at);
}

static size_t bytes_of(const tare__unwind_rule *rule)
{
    return sizeof(*rule) + rule->n_places * sizeof(*rule->places);
}

static bool is_rule(const void *rows, uint32_t row, const void *key)
{
    const tare__unwind_rule *known = ((const tare__unwind_rule *const *)rows)[row], *wanted = key;
    return known->n_places == wanted->n_places && memcmp(known, wanted, bytes_of(wanted)) == 0;
}

static uint32_t hash_of(const tare__unwind_rule *rule)
{
    uint64_t hash = 0, word;
    const unsigned char *at = (const unsigned char *)rule;
    for (size_t i = 0; i < bytes_of(rule) / 4; i++) {
        uint32_t half;
        memcpy(&half, at + 4 * i, sizeof(half));
        word = half;
        hash = tare__hash_mix(hash, word);
    }
    return (uint32_t)hash;
}

uint32_t tare__unwind_rule_add(tare__unwind_rules *rules, const tare__unwind_rule *rule)
{
    uint32_t hash = hash_of(rule);
    uint32_t known = tare__index_find(&rules->by_content, hash, is_rule, rules->at, rule);
    if (known != TARE__INDEX_NONE)
        return known;
    if (rules->n >= RULES_MAX || tare__arena_bytes(rules->memory) >= BYTES_MAX ||
        !tare__array_fit(&rules->at, &rules->room, rules->n + 1, sizeof(*rules->at)))
        return TARE__UNWIND_NO_RULE;
    tare__unwind_rule *copy = tare__arena_alloc(rules->memory, bytes_of(rule));
    if (!copy)
        return TARE__UNWIND_NO_RULE;
    memcpy(copy, rule, bytes_of(rule));
    rules->at[rules->n] = copy;
    if (!tare__index_add(&rules->by_content, hash, (uint32_t)rules->n))
        return TARE__UNWIND_NO_RULE;
    return (uint32_t)rules->n++;
}

const tare__unwind_rule *tare__unwind_rule_at(const tare__unwind_rules *rules, uint32_t rule)
{
    return rule < rules->n ? rules->at[rule] : NULL;
}

int32_t tare__unwind_expression_add(tare__unwind_rules *rules, const unsigned char *code, size_t bytes)
{
    if (bytes > EXPRESSION_MAX || tare__intern_count(rules->expressions) >= RULES_MAX)
        return -1;
    uint32_t id = tare__intern_add(rules->expressions, (const char *)code, bytes);
    return id == TARE__INTERN_NONE ? -1 : (int32_t)id;
}

/* ---- expressions ------------------------------------------------------------------------------------------ */
bool tare__unwind_word(const tare__unwind_memory *memory, uint64_t address, uint64_t *out)
{
    if (address < memory->address || memory->bytes < sizeof(*out) ||
        address - memory->address > memory->bytes - sizeof(*out))
        return memory->beyond && tare__unwind_beyond_word(memory->beyond, address, out);
    memcpy(out, memory->data + (address - memory->address), sizeof(*out));
    return true;
}

static bool register_of(const tare__unwind_regs *regs, uint64_t reg, uint64_t *out)
{
    if (reg >= TARE__UNWIND_REGS || !(regs->known >> reg & 1))
        return false;
    *out = regs->value[reg];
    return true;
}

typedef struct evaluation {
    tare__unwind_bytes code;
    const unsigned char *start;
    const tare__unwind_regs *regs;
    const tare__unwind_memory *memory;
    uint64_t stack[DEPTH_MAX];
    unsigned depth;
} evaluation;

static bool push(evaluation *run, uint64_t value)
{
    if (run->depth == DEPTH_MAX)
        return false;
    run->stack[run->depth++] = value;
    return true;
}

static bool pop(evaluation *run, uint64_t *out)
{
    if (!run->depth)
        return false;
    *out = run->stack[--run->depth];
    return true;
}

/* DW_OP_… */
enum {
    DEREF = 0x06, CONST1U = 0x08, CONST1S = 0x09, CONST2U = 0x0a, CONST2S = 0x0b, CONST4U = 0x0c, CONST4S = 0x0d,
    CONST8U = 0x0e, CONST8S = 0x0f, CONSTU = 0x10, CONSTS = 0x11, DUP = 0x12, DROP = 0x13, OVER = 0x14, PICK = 0x15,
    SWAP = 0x16, ROT = 0x17, ABS = 0x19, AND = 0x1a, DIV = 0x1b, MINUS = 0x1c, MOD = 0x1d, MUL = 0x1e, NEG = 0x1f,
    NOT = 0x20, OR = 0x21, PLUS = 0x22, PLUS_UCONST = 0x23, SHL = 0x24, SHR = 0x25, SHRA = 0x26, XOR = 0x27,
    BRA = 0x28, EQ = 0x29, GE = 0x2a, GT = 0x2b, LE = 0x2c, LT = 0x2d, NE = 0x2e, SKIP = 0x2f, LIT0 = 0x30,
    BREG0 = 0x70, BREGX = 0x92, DEREF_SIZE = 0x94, OP_NOP = 0x96,
};

/* Encodings of pointers that read the constants. */
static uint8_t encoding_of(uint8_t op)
{
    static const uint8_t encodings[] = {[CONST2U] = 2, [CONST2S] = 10, [CONST4U] = 3, [CONST4S] = 11,
                                        [CONST8U] = 4, [CONST8S] = 12, [CONSTU] = 1, [CONSTS] = 9};
    return encodings[op];
}

static bool constant(evaluation *run, uint8_t op)
{
    uint64_t value;
    if (op == CONST1U || op == CONST1S) {
        if (run->code.at == run->code.end)
            return false;
        uint8_t byte = *run->code.at++;
        return push(run, op == CONST1U ? byte : (uint64_t)(int64_t)(int8_t)byte);
    }
    return tare__unwind_pointer(&run->code, encoding_of(op), 0, &value) && push(run, value);
}

static bool based(evaluation *run, uint64_t reg)
{
    int64_t offset;
    uint64_t value;
    return tare__unwind_signed(&run->code, &offset) && register_of(run->regs, reg, &value) &&
           push(run, value + (uint64_t)offset);
}

static bool load(evaluation *run, unsigned bytes)
{
    uint64_t address, value;
    if (!pop(run, &address) || !tare__unwind_word(run->memory, address, &value))
        return false;
    return push(run, bytes < 8 ? value & ((UINT64_C(1) << 8 * bytes) - 1) : value);
}

static bool pick(evaluation *run, unsigned from_top)
{
    return from_top < run->depth && push(run, run->stack[run->depth - 1 - from_top]);
}

static bool rotate(evaluation *run, unsigned n)
{
    if (run->depth < n)
        return false;
    uint64_t top = run->stack[run->depth - 1];
    memmove(&run->stack[run->depth - n + 1], &run->stack[run->depth - n], (n - 1) * sizeof(top));
    run->stack[run->depth - n] = top;
    return true;
}

static bool unary(evaluation *run, uint8_t op)
{
    uint64_t value, add = 0;
    if (op == PLUS_UCONST && !tare__unwind_unsigned(&run->code, &add))
        return false;
    if (!pop(run, &value))
        return false;
    switch (op) {
    case ABS: return push(run, (int64_t)value < 0 ? -value : value);
    case NEG: return push(run, -value);
    case NOT: return push(run, ~value);
    default: return push(run, value + add);
    }
}

static uint64_t shift(uint8_t op, uint64_t a, uint64_t b)
{
    if (op == SHL)
        return b < 64 ? a << b : 0;
    if (op == SHR)
        return b < 64 ? a >> b : 0;
    uint64_t fill = (int64_t)a < 0 ? UINT64_MAX : 0;
    return b == 0 ? a : b < 64 ? a >> b | fill << (64 - b) : fill;
}

static bool compare(uint8_t op, int64_t a, int64_t b)
{
    switch (op) {
    case EQ: return a == b;
    case GE: return a >= b;
    case GT: return a > b;
    case LE: return a <= b;
    case LT: return a < b;
    default: return a != b;
    }
}

static bool binary(evaluation *run, uint8_t op)
{
    uint64_t a, b;
    if (!pop(run, &b) || !pop(run, &a))
        return false;
    switch (op) {
    case AND: return push(run, a & b);
    case OR: return push(run, a | b);
    case XOR: return push(run, a ^ b);
    case PLUS: return push(run, a + b);
    case MINUS: return push(run, a - b);
    case MUL: return push(run, a * b);
    case MOD: return b && push(run, a % b);
    case DIV:
        if (!b)
            return false;
        return push(run, b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b));
    case SHL:
    case SHR:
    case SHRA: return push(run, shift(op, a, b));
    default: return push(run, compare(op, (int64_t)a, (int64_t)b));
    }
}

static bool jump(evaluation *run, bool always)
{
    uint64_t to, condition = 1;
    if (!tare__unwind_pointer(&run->code, 10, 0, &to) || (!always && !pop(run, &condition)))
        return false;
    if (!condition)
        return true;
    int64_t by = (int64_t)to;
    if (by < run->start - run->code.at || by > run->code.end - run->code.at)
        return false;
    run->code.at += by;
    return true;
}

static bool stack_op(evaluation *run, uint8_t op)
{
    uint64_t ignored;
    switch (op) {
    case DUP: return pick(run, 0);
    case DROP: return pop(run, &ignored);
    case OVER: return pick(run, 1);
    case SWAP: return rotate(run, 2);
    case ROT: return rotate(run, 3);
    default: return run->code.at < run->code.end && pick(run, *run->code.at++);
    }
}

static bool step(evaluation *run, uint8_t op)
{
    uint64_t reg;
    if (op >= LIT0 && op < LIT0 + 32)
        return push(run, op - LIT0);
    if (op >= BREG0 && op < BREG0 + 32)
        return based(run, op - BREG0);
    if (op >= CONST1U && op <= CONSTS)
        return constant(run, op);
    if (op >= DUP && op <= ROT)
        return stack_op(run, op);
    if (op == ABS || op == NEG || op == NOT || op == PLUS_UCONST)
        return unary(run, op);
    if (op == BRA || op == SKIP)
        return jump(run, op == SKIP);
    if (op >= AND && op <= NE)
        return binary(run, op);
    switch (op) {
    case DEREF: return load(run, 8);
    case DEREF_SIZE: {
        uint8_t bytes = run->code.at < run->code.end ? *run->code.at++ : 0;
        return bytes > 0 && bytes <= 8 && load(run, bytes);
    }
    case BREGX: return tare__unwind_unsigned(&run->code, &reg) && based(run, reg);
    case OP_NOP: return true;
    default: return false;
    }
}

/* `cfa` NULL: it starts with an empty stack. */
static bool evaluate(const tare__unwind_rules *rules, int32_t expression, const uint64_t *cfa,
                     const tare__unwind_regs *regs, const tare__unwind_memory *memory, uint64_t *out)
{
    size_t bytes;
    const unsigned char *code =
        (const unsigned char *)tare__intern_text(rules->expressions, (uint32_t)expression, &bytes);
    if (!code)
        return false;
    evaluation run = {.code = {code, code + bytes, 0}, .start = code, .regs = regs, .memory = memory};
    if (cfa)
        push(&run, *cfa);
    for (unsigned steps = 0; run.code.at < run.code.end; steps++)
        if (steps == STEPS_MAX || !step(&run, *run.code.at++))
            return false;
    return pop(&run, out);
}

/* ---- a frame ---------------------------------------------------------------------------------------------- */
static bool cfa_of(const tare__unwind_rules *rules, const tare__unwind_rule *rule, const tare__unwind_memory *memory,
                   const tare__unwind_regs *regs, uint64_t *out)
{
    if (rule->cfa == TARE__UNWIND_CFA_EXPRESSION)
        return evaluate(rules, rule->cfa_value, NULL, regs, memory, out);
    if (!register_of(regs, rule->cfa_reg, out))
        return false;
    *out += (uint64_t)(int64_t)rule->cfa_value;
    return true;
}

/* In an epilogue, compilers do not say which registers were popped already: then their place is below the stack
 * pointer, where the copy does not reach, and the register has its value again. */
static bool saved(const tare__unwind_place *place, uint64_t address, const tare__unwind_cpu *cpu,
                  const tare__unwind_memory *memory, const tare__unwind_regs *regs, uint64_t *out)
{
    if (tare__unwind_word(memory, address, out))
        return true;
    return address < regs->value[cpu->sp] && address < memory->address && register_of(regs, place->reg, out);
}

static bool value_of(const tare__unwind_rules *rules, const tare__unwind_place *place, uint64_t cfa,
                     const tare__unwind_cpu *cpu, const tare__unwind_memory *memory, const tare__unwind_regs *regs,
                     uint64_t *out)
{
    uint64_t address = cfa + (uint64_t)(int64_t)place->value;
    switch ((tare__unwind_kind)place->kind) {
    case TARE__UNWIND_AT_CFA: return saved(place, address, cpu, memory, regs, out);
    case TARE__UNWIND_IS_CFA: *out = address; return true;
    case TARE__UNWIND_REGISTER: return register_of(regs, (uint64_t)place->value, out);
    case TARE__UNWIND_AT_EXPRESSION:
        return evaluate(rules, place->value, &cfa, regs, memory, &address) &&
               tare__unwind_word(memory, address, out);
    case TARE__UNWIND_IS_EXPRESSION: return evaluate(rules, place->value, &cfa, regs, memory, out);
    default: return false;
    }
}

static void set(tare__unwind_regs *regs, unsigned reg, bool known, uint64_t value)
{
    regs->value[reg] = value;
    regs->known = (regs->known & ~(UINT64_C(1) << reg)) | (uint64_t)known << reg;
}

bool tare__unwind_apply(const tare__unwind_rules *rules, const tare__unwind_rule *rule, const tare__unwind_cpu *cpu,
                        const tare__unwind_memory *memory, tare__unwind_regs *regs, uint64_t *cfa, bool *outermost)
{
    tare__unwind_regs caller = *regs;
    uint64_t ip;
    *outermost = false;
    if (!cfa_of(rules, rule, memory, regs, cfa))
        return false;
    set(&caller, cpu->sp, true, *cfa);
    for (uint32_t i = 0; i < rule->n_places; i++) {
        const tare__unwind_place *place = &rule->places[i];
        uint64_t value = 0;
        bool known = value_of(rules, place, *cfa, cpu, memory, regs, &value);
        set(&caller, place->reg, known, value);
        if (place->reg == rule->ra && place->kind == TARE__UNWIND_UNDEFINED)
            *outermost = true;
    }
    if (*outermost || !register_of(&caller, rule->ra, &ip))
        return false;
    ip &= cpu->address_mask;
    set(&caller, cpu->ip, true, ip);
    *regs = caller;
    *outermost = ip == 0;
    return ip != 0;
}
