/* pairs: backward nodes and the forward operators they belong to, by names and by order.
 * Owned by the thread that analyzes; memory is bounded: calls are paired whenever there are many.
 * Must not know events, nor how rows are displayed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/inner.h"

#define CALLS_MAX ((size_t)1 << 19)
#define KEY_BYTES 96u
static const char evaluates[] = "autograd::engine::evaluate_function: ";

/* ---- names --------------------------------------------------------------------------------------- */
/* "aten::_softmax" and "SoftmaxBackward0" both become "softmax": autograd derives its names from those of the
 * operators, in another spelling. 0: too long for a key. */
static size_t make_key(const char *text, size_t length, char key[KEY_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < length; i++) /* skip namespaces */
        if (text[i] == ':' && text[i + 1] == ':') {
            text += i + 2, length -= i + 2;
            i = (size_t)-1;
        }
    for (size_t i = 0; i < length && n < KEY_BYTES; i++)
        if (text[i] != '_')
            key[n++] = (char)tolower((unsigned char)text[i]);
    return n < KEY_BYTES ? n : 0;
}

/* The key of "…: AddmmBackward0": only the operator's name. */
static size_t backward_key(const char *text, char key[KEY_BYTES])
{
    static const char ending[] = "Backward";
    if (strncmp(text, evaluates, sizeof evaluates - 1) != 0)
        return 0;
    text += sizeof evaluates - 1;
    size_t length = strlen(text);
    while (length && isdigit((unsigned char)text[length - 1]))
        length--;
    if (length <= sizeof ending - 1 || memcmp(text + length - (sizeof ending - 1), ending, sizeof ending - 1) != 0)
        return 0;
    return make_key(text, length - (sizeof ending - 1), key);
}

/* Code outside of the two passes: its operators have no backward nodes. */
static bool is_aside(const canon *name)
{
    static const char *const phases[] = {"optimizer", "data", "copy"};
    if (name->kind == TARE_KIND_OPERATOR)
        return strncmp(name->text, "Optimizer.", 10) == 0;
    return name->kind == TARE_KIND_PHASE && TARE__IS_ONE_OF(name->text, phases);
}

static int load_keys(canons *names, tare__intern *keys)
{
    char key[KEY_BYTES];
    for (uint32_t i = 0; i < names->n; i++) {
        names->key_of[i] = is_aside(&names->rows[i]) ? KEY_ASIDE : 0;
        size_t length = names->rows[i].kind == TARE_KIND_OPERATOR ? backward_key(names->rows[i].text, key) : 0;
        if (!length)
            continue;
        uint32_t at = tare__intern_add(keys, key, length);
        if (at == TARE__INTERN_NONE)
            return TARE_E_MEMORY;
        names->key_of[i] = (at + 1) | KEY_BACKWARD;
    }
    for (uint32_t i = 0; i < names->n && tare__intern_count(keys); i++) {
        if (names->rows[i].kind != TARE_KIND_OPERATOR || names->key_of[i])
            continue;
        const char *text = names->rows[i].text;
        size_t length = make_key(text, strlen(text), key);
        uint32_t at = length ? tare__intern_find(keys, key, length) : TARE__INTERN_NONE;
        names->key_of[i] = at == TARE__INTERN_NONE ? 0 : at + 1;
    }
    return 0;
}

int tare__analyze_load_pairs(work *work)
{
    canons *names = &work->names;
    tare__intern *keys = tare__intern_new();
    names->key_of = calloc((size_t)names->n + 1, sizeof *names->key_of);
    int status = keys && names->key_of ? load_keys(names, keys) : TARE_E_MEMORY;
    if (!status && tare__intern_count(keys) == 0) { /* no backward pass was recorded */
        free(names->key_of);
        names->key_of = NULL;
    }
    tare__intern_free(keys);
    if (!status && names->key_of)
        work->pairs.index = tare__intern_new();
    return status || (names->key_of && !work->pairs.index) ? TARE_E_MEMORY : 0;
}

void tare__analyze_free_pairs(work *work)
{
    free(work->names.key_of);
    free(work->pairs.calls);
    free(work->pairs.rows);
    free(work->pairs.missed);
    tare__intern_free(work->pairs.index);
}

/* ---- calls --------------------------------------------------------------------------------------- */
int tare__analyze_note(work *work, const stream *stream, const frame *frame, uint64_t now)
{
    pairs *pairs = &work->pairs;
    if (pairs->n == CALLS_MAX) {
        int status = tare__analyze_pair(work);
        if (status)
            return status;
    }
    if (!tare__array_fit(&pairs->calls, &pairs->room, pairs->n + 1, sizeof *pairs->calls))
        return TARE_E_MEMORY;
    pairs->calls[pairs->n++] = (call){
        frame->span.begin, now - frame->span.begin, frame->node->id, stream->process,
        work->names.key_of[frame->node->name]};
    return 0;
}

TARE__ORDER(by_process_and_time, call,
            TARE__RISING(process) TARE__RISING(begin) TARE__RISING(node) /* outer nodes were created first */)

/* ---- pairing ------------------------------------------------------------------------------------- */
/* A window is one forward pass and the backward pass after it. Of the nodes that are ready, autograd runs the one
 * created last; a node is ready when the nodes created after it that depend on it have run. So one thread runs them
 * in the reverse order of the forward pass, in which some calls may have no node (no gradient required): the
 * backward pass is a subsequence. It is matched to the forward pass as early as possible and as late as possible: a
 * node that matches the same call both times can belong to no other. */
static uint32_t module_above(const work *work, uint32_t id)
{
    const node *node = work->nodes.all[id - 1];
    for (; node->parent; node = parent_of(&work->nodes, node))
        if (work->names.rows[node->name].kind == TARE_KIND_MODULE)
            return node->id;
    return 0;
}

/* Calls that are identical in all recorded properties. */
static bool alike(const work *work, const call *a, const call *b)
{
    const node *left = work->nodes.all[a->node - 1], *right = work->nodes.all[b->node - 1];
    return left == right || (left->name == right->name && module_above(work, a->node) == module_above(work, b->node));
}

/* Matches all of `backward` to calls of `forward`, from its end: as early as possible, or as `late` as possible.
 * False: it does not fit. */
static bool lay(const call *forward, size_t n_forward, const call *backward, size_t n, bool late, uint32_t *places)
{
    size_t at = late ? 0 : n_forward; /* forward[at - 1] is checked next, or forward[at] */
    for (size_t i = 0; i < n; i++) {
        size_t b = late ? n - 1 - i : i;
        uint32_t key = backward[b].key & ~KEY_BACKWARD;
        while (late ? at < n_forward && forward[at].key != key : at > 0 && forward[at - 1].key != key)
            at = late ? at + 1 : at - 1;
        if (at == (late ? n_forward : 0))
            return false;
        places[b] = (uint32_t)(late ? at++ : --at);
    }
    return true;
}

static bool only_one_fits(const work *work, const call *forward, uint32_t late, uint32_t early)
{
    for (uint32_t at = late; at < early; at++)
        if (forward[at].key == forward[early].key && !alike(work, &forward[at], &forward[early]))
            return false;
    return true;
}

#define KEY_OF_PAIR(row) ((row)->key & ~KEY_BACKWARD)
TARE__ORDER(by_key_and_time, call, TARE__RISING_BY(KEY_OF_PAIR) TARE__RISING(key) /* forward calls first */
            TARE__RISING(begin))

static uint32_t name_of(const work *work, const call *call)
{
    return work->nodes.all[call->node - 1]->name;
}

static int add_pair(work *work, const call *forward, const call *backward)
{
    pairs *pairs = &work->pairs;
    uint32_t key[2] = {forward->node, backward->node};
    uint32_t at = tare__intern_add(pairs->index, (const char *)key, sizeof key);
    if (at == TARE__INTERN_NONE ||
        !tare__array_fit(&pairs->rows, &pairs->rows_room, (size_t)at + 1, sizeof *pairs->rows))
        return TARE_E_MEMORY;
    if (at == pairs->n_rows)
        pairs->rows[pairs->n_rows++] = (pair){.forward = key[0], .backward = key[1]};
    pairs->rows[at].calls++;
    pairs->rows[at].total += backward->duration;
    pairs->rows[at].forward_total += forward->duration;
    return 0;
}

static int miss(work *work, const call *backward, size_t n, size_t n_forward)
{
    pairs *pairs = &work->pairs;
    if (!pairs->missed)
        pairs->missed = calloc(work->names.n, sizeof *pairs->missed);
    if (!pairs->missed)
        return TARE_E_MEMORY;
    for (size_t i = 0; i < n; i++) {
        unpaired *missed = &pairs->missed[name_of(work, &backward[i])];
        if (!missed->calls++)
            missed->forward = n_forward, missed->backward = n;
    }
    return 0;
}

/* Pairs the calls of one key: forward calls, then backward calls. */
static int pair_key(work *work, const call *calls, size_t n)
{
    size_t forward = 0;
    while (forward < n && !(calls[forward].key & KEY_BACKWARD))
        forward++;
    if (forward != n - forward)
        return miss(work, calls + forward, n - forward, forward);
    int status = 0;
    for (size_t i = 0; i < forward && !status; i++)
        status = add_pair(work, &calls[forward - 1 - i], &calls[forward + i]);
    return status;
}

/* 1: done; 0: the order differs (several threads, nodes run manually); TARE_E_MEMORY. */
static int pair_by_order(work *work, const call *forward, size_t n_forward, const call *backward, size_t n)
{
    uint32_t *early = malloc((2 * n + 1) * sizeof *early), *late = early + n;
    if (!early)
        return TARE_E_MEMORY;
    int status = lay(forward, n_forward, backward, n, false, early) && lay(forward, n_forward, backward, n, true, late);
    for (size_t i = 0; i < n && status == 1; i++) {
        bool sure = only_one_fits(work, forward, late[i], early[i]);
        int failed = sure ? add_pair(work, &forward[early[i]], &backward[i]) : miss(work, &backward[i], 1, 0);
        status = failed ? failed : 1;
    }
    free(early);
    return status;
}

/* Forward calls come before all backward ones; the begin of a step may come before both. */
static int pair_window(work *work, call *calls, size_t n)
{
    size_t first = n > 0 && calls[0].key == 0, forward = first;
    while (forward < n && !(calls[forward].key & KEY_BACKWARD))
        forward++;
    if (forward == n)
        return 0;
    int status = pair_by_order(work, calls + first, forward - first, calls + forward, n - forward);
    if (status)
        return status < 0 ? status : 0;
    qsort(calls, n, sizeof *calls, by_key_and_time);
    for (size_t from = 0, to; from < n && !status; from = to) {
        uint32_t key = calls[from].key & ~KEY_BACKWARD;
        for (to = from; to < n && (calls[to].key & ~KEY_BACKWARD) == key;)
            to++;
        if (key)
            status = pair_key(work, calls + from, to - from);
    }
    return status;
}

/* A window begins with a step, with a forward operator after a backward pass, and with another process. */
static bool begins_window(const call *calls, size_t at)
{
    const call *before = &calls[at - 1], *now = &calls[at];
    return now->key == 0 || now->process != before->process ||
           (!(now->key & KEY_BACKWARD) && (before->key & KEY_BACKWARD));
}

int tare__analyze_pair(work *work)
{
    pairs *pairs = &work->pairs;
    int status = 0;
    if (pairs->n == 0)
        return 0;
    qsort(pairs->calls, pairs->n, sizeof *pairs->calls, by_process_and_time);
    for (size_t from = 0, to; from < pairs->n && !status; from = to) {
        to = from + 1;
        while (to < pairs->n && !begins_window(pairs->calls, to))
            to++;
        status = pair_window(work, pairs->calls + from, to - from);
    }
    pairs->n = 0;
    return status;
}
