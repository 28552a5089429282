/* rules_classic: ai.onnx.ml: linear models, support vectors, trees, and preprocessing of their inputs. Their weights
 * are attributes. Owned by the calling thread.
 * Must not know how anything is run. */
#include "rules.h"

#define FLOATS  7
#define INTS    8
#define STRINGS 9

/* ---- attributes ---------------------------------------------------------------------------------------------- */
/* The number of values in a list; 0: absent. */
static int64_t length_of(const tare__step *step, const char *name, uint32_t field)
{
    tare__slice message;
    uint64_t value;
    int64_t n = 0;
    if (!tare__attribute_find(step, name, &message))
        return 0;
    if (field == STRINGS) {
        tare__wire wire = tare__wire_of(message);
        for (tare__wire_field one; tare__wire_next(&wire, &one);)
            n += one.number == field && one.type == TARE__WIRE_BYTES;
        return n;
    }
    tare__wire_type element = field == FLOATS ? TARE__WIRE_FIXED32 : TARE__WIRE_VARINT;
    tare__wire_numbers numbers = tare__wire_numbers_of(message, field, element);
    while (tare__wire_number(&numbers, &value))
        n++;
    return n;
}

/* Classes are given by their labels, in one of two attributes. */
static int64_t classes_of(const tare__step *step, int *type)
{
    static const char *const numbered[] = {"classlabels_ints", "classlabels_int64s"};
    int64_t n = length_of(step, "classlabels_strings", STRINGS);
    *type = n ? TARE__ONNX_STRING : TARE__ONNX_INT64;
    for (size_t i = 0; i < TARE__COUNT_OF(numbered) && n == 0; i++)
        n = length_of(step, numbered[i], INTS);
    return n;
}

static void tell_weights(tare__step *step)
{
    tare__walk_note(step->walk, "weights of %.*s are attributes of its nodes and not among the parameters",
                    (int)(step->node->op.length < 64 ? step->node->op.length : 64), (const char *)step->node->op.data);
}

/* ---- samples ------------------------------------------------------------------------------------------------- */
/* A row is a sample; a list is one. */
static int64_t samples_of(const tare__step *step)
{
    const tare__value *x = input(step, 0);
    return has_rank(x, 1) ? 1 : dim(x, 0);
}

static void set_classes(tare__step *step, int64_t scores)
{
    int type;
    int64_t classes = classes_of(step, &type);
    SET(step, 0, type, samples_of(step));
    SET(step, 1, TARE__ONNX_FLOAT, samples_of(step), scores ? scores : classes ? classes : UNKNOWN);
}

static void shape_classifier(tare__step *step)
{
    set_classes(step, 0);
}

/* The attribute is "targets" of linear models, "n_targets" of trees. */
static void shape_regressor(tare__step *step)
{
    int64_t targets = tare__attribute_int(step, "n_targets", tare__attribute_int(step, "targets", 1));
    SET(step, 0, TARE__ONNX_FLOAT, samples_of(step), targets);
}

static void add_transform(tare__step *step, const tare__value *scores)
{
    tare__slice how = tare__attribute_text(step, "post_transform");
    bool softmax = tare__slice_is(how, "SOFTMAX") || tare__slice_is(how, "SOFTMAX_ZERO");
    if (how.length && !tare__slice_is(how, "NONE"))
        ADD_OTHER(step, tare__elements(scores), softmax ? 5 : 1);
}

/* ---- linear models ------------------------------------------------------------------------------------------- */
static void cost_linear(tare__step *step)
{
    ADD_MACS(step, samples_of(step), length_of(step, "coefficients", FLOATS));
    ADD_OTHER(step, samples_of(step), length_of(step, "intercepts", FLOATS));
    add_transform(step, output(step, step->n_out - 1));
    tell_weights(step);
}

/* ---- support vectors ----------------------------------------------------------------------------------------- */
/* Without probabilities, more than two classes have a score for each pair of them. */
static void shape_vector_classifier(tare__step *step)
{
    int type;
    int64_t classes = classes_of(step, &type);
    bool pairs = classes > 2 && classes < INT32_MAX && !length_of(step, "prob_a", FLOATS) &&
                 length_of(step, "vectors_per_class", INTS);
    set_classes(step, pairs ? classes * (classes - 1) / 2 : 0);
}

static void shape_vector_regressor(tare__step *step)
{
    SET(step, 0, TARE__ONNX_FLOAT, samples_of(step), 1);
}

/* Each sample with each vector, and the sums by the coefficients. A kernel takes 3 more per vector. */
static void cost_vectors(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t values = length_of(step, "support_vectors", FLOATS), width = dim(x, -1);
    bool linear = !tare__attribute_text(step, "kernel_type").data || tare__attribute_is(step, "kernel_type", "LINEAR");
    ADD_MACS(step, samples_of(step), values);
    ADD_MACS(step, samples_of(step), length_of(step, "coefficients", FLOATS));
    if (!linear && values)
        ADD_OTHER(step, samples_of(step), width > 0 ? values / width : UNKNOWN, 3);
    add_transform(step, output(step, step->n_out - 1));
    tell_weights(step);
}

/* ---- trees --------------------------------------------------------------------------------------------------- */
static void shape_trees(tare__step *step)
{
    shape_regressor(step);
    tare__set_type(step, 0, type_of(input(step, 0)));
}

static void cost_trees(tare__step *step)
{
    tare__cost_unknown(step, "how many nodes of its trees a sample passes depends on its values");
}

/* ---- what prepares ------------------------------------------------------------------------------------------- */
static void shape_as_float(tare__step *step)
{
    tare__shape_like_first(step);
    tare__set_type(step, 0, TARE__ONNX_FLOAT);
}

/* The attribute of the labels determines the type. */
static void shape_labels(tare__step *step)
{
    static const struct {
        const char *name;
        int type;
    } kinds[] = {{"values_strings", TARE__ONNX_STRING}, {"values_int64s", TARE__ONNX_INT64},
                 {"values_floats", TARE__ONNX_FLOAT},   {"classes_strings", 0}, {"cats_int64s", 0}};
    tare__slice message;
    tare__shape_like_first(step);
    for (size_t i = 0; i < TARE__COUNT_OF(kinds); i++) {
        bool turned = kinds[i].type == 0; /* older versions: the type that the input does not have */
        int type = turned && type_of(input(step, 0)) == TARE__ONNX_STRING ? TARE__ONNX_INT64 : TARE__ONNX_STRING;
        if (!tare__attribute_find(step, kinds[i].name, &message))
            continue;
        tare__set_type(step, 0, turned ? type : kinds[i].type);
        return;
    }
    tare__set_type(step, 0, 0);
}

static void shape_one_hot(tare__step *step)
{
    const tare__value *x = input(step, 0);
    int64_t dims[TARE__MODEL_RANK_MAX];
    int64_t n = length_of(step, "cats_int64s", INTS) + length_of(step, "cats_strings", STRINGS);
    tare__set_type(step, 0, TARE__ONNX_FLOAT);
    if (!is_ranked(x) || x->rank == (int)TARE__MODEL_RANK_MAX)
        return;
    memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
    dims[x->rank] = n ? n : UNKNOWN;
    tare__set(step, 0, TARE__ONNX_FLOAT, x->rank + 1, dims);
}

static void shape_extract(tare__step *step)
{
    const tare__value *x = input(step, 0);
    if (has_rank(x, 1)) /* a list becomes a row */
        SET(step, 0, x->type, 1, tare__elements(input(step, 1)));
    else
        tare__set_axis(step, 0, type_of(x), x, is_ranked(x) ? x->rank - 1 : UNKNOWN, tare__elements(input(step, 1)));
}

static void shape_features(tare__step *step)
{
    int64_t width = 0;
    for (size_t i = 0; i < step->n_in && width >= 0; i++) {
        const tare__value *x = input(step, i);
        int64_t one = has_rank(x, 1) ? 1 : has_rank(x, 2) ? dim(x, 1) : UNKNOWN;
        width = one < 0 || one > INT32_MAX ? UNKNOWN : width + one;
    }
    SET(step, 0, TARE__ONNX_FLOAT, dim(input(step, 0), 0), width);
}

/* The keys of a sample are known only at run time; the vocabulary is known. */
static void shape_vocabulary(tare__step *step)
{
    int64_t n = length_of(step, "string_vocabulary", STRINGS) + length_of(step, "int64_vocabulary", INTS);
    SET(step, 0, 0, 1, n ? n : UNKNOWN);
}

#define ML "ai.onnx.ml:"
#define FREE(name, shape) {ML name, shape, tare__cost_none, 0}

const tare__rule tare__rules_classic[] = {
    {ML "LinearClassifier", shape_classifier, cost_linear, 0},
    {ML "LinearRegressor", shape_regressor, cost_linear, 0},
    {ML "SVMClassifier", shape_vector_classifier, cost_vectors, 0},
    {ML "SVMRegressor", shape_vector_regressor, cost_vectors, 0},
    {ML "TreeEnsembleClassifier", shape_classifier, cost_trees, 0},
    {ML "TreeEnsembleRegressor", shape_regressor, cost_trees, 0},
    {ML "TreeEnsemble", shape_trees, cost_trees, 0},
    {ML "Scaler", shape_as_float, tare__cost_output, 2},
    {ML "Normalizer", shape_as_float, tare__cost_output, 3},
    {ML "Imputer", tare__shape_like_first, tare__cost_output, 1},
    {ML "Binarizer", tare__shape_like_first, tare__cost_output, 1},
    FREE("LabelEncoder", shape_labels),
    FREE("CategoryMapper", shape_labels),
    FREE("OneHotEncoder", shape_one_hot),
    FREE("ArrayFeatureExtractor", shape_extract),
    FREE("FeatureVectorizer", shape_features),
    FREE("DictVectorizer", shape_vocabulary),
    FREE("CastMap", tare__shape_none),
    FREE("ZipMap", tare__shape_none),
    {NULL, NULL, NULL, 0},
};
