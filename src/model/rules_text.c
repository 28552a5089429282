/* rules_text: shapes of string operators. Their cost depends on the length of the strings.
 * Owned by the calling thread.
 * Must not know how anything is run. */
#include "rules.h"

static void cost_by_length(tare__step *step)
{
    tare__cost_unknown(step, "its cost depends on the lengths of the texts");
}

static void shape_join(tare__step *step)
{
    tare__shape_broadcast(step);
    tare__set_type(step, 0, TARE__ONNX_STRING);
}

static void shape_match(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, TARE__ONNX_BOOL);
}

/* The words that are removed are known only at run time. */
static void shape_normalize(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[] = {UNKNOWN, UNKNOWN};
    tare__slice message;
    if (!tare__attribute_find(step, "stopwords", &message)) {
        tare__shape_like_first(step);
        return;
    }
    if (has_rank(x, 2))
        dims[0] = x->dims[0];
    tare__set(step, 0, TARE__ONNX_STRING, has_rank(x, 1) || has_rank(x, 2) ? x->rank : UNKNOWN, dims);
}

/* As many columns as the longest has parts. */
static void shape_split(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[TARE__MODEL_RANK_MAX];
    bool ranked = is_ranked(x) && x->rank < (int)TARE__MODEL_RANK_MAX;
    if (ranked && x->rank)
        memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    if (ranked)
        dims[x->rank] = UNKNOWN;
    tare__set(step, 0, TARE__ONNX_STRING, ranked ? x->rank + 1 : UNKNOWN, dims);
    tare__set_like(step, 1, x);
    tare__set_type(step, 1, TARE__ONNX_INT64);
}

/* A column for each number that is assigned to a sequence of words. */
static void shape_frequencies(tare__step *step)
{
    const tare__value *x = input(step, 0);
    tare__slice message = {0};
    int64_t columns = 0;
    if (!tare__attribute_find(step, "ngram_indexes", &message))
        columns = UNKNOWN;
    tare__wire_numbers numbers = tare__wire_numbers_of(message, 8, TARE__WIRE_VARINT);
    for (uint64_t index; columns >= 0 && tare__wire_number(&numbers, &index);)
        columns = index >= INT32_MAX ? UNKNOWN : (int64_t)index + 1 > columns ? (int64_t)index + 1 : columns;
    if (has_rank(x, 1))
        SET(step, 0, TARE__ONNX_FLOAT, columns);
    else if (has_rank(x, 2))
        SET(step, 0, TARE__ONNX_FLOAT, dim(x, 0), columns);
    else
        tare__set_type(step, 0, TARE__ONNX_FLOAT);
}

const tare__rule tare__rules_text[] = {
    {"StringConcat", shape_join, cost_by_length, 0},
    {"StringNormalizer", shape_normalize, cost_by_length, 0},
    {"StringSplit", shape_split, cost_by_length, 0},
    {"RegexFullMatch", shape_match, cost_by_length, 0},
    {"TfIdfVectorizer", shape_frequencies, cost_by_length, 0},
    {NULL, NULL, NULL, 0},
};
