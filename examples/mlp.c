/* mlp: trains a small neural network in plain C and shows each way to instrument a program with tare.h.
 * Loader threads generate batches of noisy digits; the main thread owns the network and trains it.
 * Must not depend on whether it is recorded: the results are identical, to the last bit.
 *
 *     cc -O2 mlp.c -o mlp -ltare -lm -pthread
 *     tare run -- ./mlp && tare report mlp.tare
 *
 * Everything that begins with TARE_ or tare_ is for the profiler; the program also works without it. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tare.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, DIGITS = 10, LAYERS = 3, LOADERS = 2, QUEUE = 8 };
enum { STEPS = 200, TEST_IMAGES = 1000, REQUESTS = 6 };
enum { TEST_SEED = 1 << 30, WEIGHT_SEED }; /* beyond the numbers of training batches */
static const float learning_rate = 0.02f, momentum = 0.9f, noise = 0.35f;

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (!memory) {
        fprintf(stderr, "mlp: out of memory: try a smaller --hidden or --batch\n");
        exit(1);
    }
    return memory;
}

/* ---- random numbers: each batch has its own state, so results do not depend on threads --------------- */
#define RANDOM_STATE(seed) (((uint64_t)(seed) + 1) * 0x9e3779b97f4a7c15u)

static uint32_t random_bits(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

static float random_normal(uint64_t *state)
{
    /* Called for every pixel, millions of times: all calls are counted, one in 64 is timed. */
    TARE_SAMPLED("random_normal", 64);
    float u = (random_bits(state) + 1.0f) / 4294967296.0f, v = random_bits(state) / 4294967296.0f;
    return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}

/* ---- data: digits of 5 by 7 dots, shifted within 8 by 8 pixels, with noise --------------------------- */
struct batch {
    size_t count;
    float *pixels;  /* [count][PIXELS] */
    uint8_t *digit; /* [count] */
};

static const uint8_t font[DIGITS][7] = { /* one byte per row, its five lowest bits */
    {14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},      {14, 17, 1, 2, 4, 8, 31},
    {31, 2, 4, 2, 1, 17, 14},     {2, 6, 10, 18, 31, 2, 2},     {31, 16, 30, 1, 1, 17, 14},
    {6, 8, 16, 30, 17, 17, 14},   {31, 1, 2, 4, 8, 8, 8},       {14, 17, 17, 14, 17, 17, 14},
    {14, 17, 17, 15, 1, 2, 12},
};

static void batch_open(struct batch *batch, size_t count)
{
    batch->count = count;
    batch->pixels = allocate(count * PIXELS, sizeof(float));
    batch->digit = allocate(count, 1);
}

static void batch_fill(struct batch *batch, uint64_t seed)
{
    TARE_SPAN("make batch"); /* until the end of this block, however it is left */
    uint64_t state = RANDOM_STATE(seed);
    for (size_t n = 0; n < batch->count; n++) {
        float *image = batch->pixels + n * PIXELS;
        unsigned digit = random_bits(&state) % DIGITS;
        unsigned left = random_bits(&state) % 4, top = random_bits(&state) % 2;
        batch->digit[n] = (uint8_t)digit;
        for (int i = 0; i < PIXELS; i++)
            image[i] = noise * random_normal(&state);
        for (unsigned y = 0; y < 7; y++)
            for (unsigned x = 0; x < 5; x++)
                image[(top + y) * SIDE + left + x] += (float)(font[digit][y] >> (4 - x) & 1);
    }
    TARE_SAMPLES(batch->count); /* a number on the innermost open span, here "make batch" */
    TARE_BYTES(batch->count * PIXELS * sizeof(float));
}

/* ---- loaders: batch n goes through slot n % QUEUE, so batches are used in order ---------------------- */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct batch slot[QUEUE];
    long number[QUEUE]; /* number of the batch in the slot; -1: none yet */
    long taken, total;
} feed = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *loader_main(void *index)
{
    char name[32];
    long first = *(const int *)index;
    snprintf(name, sizeof(name), "loader %ld", first);
    tare_thread_name(name);
    for (long n = first; n < feed.total; n += LOADERS) {
        TARE_BEGIN("wait for room"); /* explicit begin and end, where there is no suitable block */
        pthread_mutex_lock(&feed.lock);
        while (n >= feed.taken + QUEUE)
            pthread_cond_wait(&feed.changed, &feed.lock);
        pthread_mutex_unlock(&feed.lock);
        TARE_END();
        batch_fill(&feed.slot[n % QUEUE], (uint64_t)n);
        pthread_mutex_lock(&feed.lock);
        feed.number[n % QUEUE] = n;
        pthread_cond_broadcast(&feed.changed);
        pthread_mutex_unlock(&feed.lock);
    }
    return NULL;
}

static const struct batch *feed_take(void)
{
    long n = feed.taken, ready = 0; /* only this thread changes `taken` */
    pthread_mutex_lock(&feed.lock);
    while (feed.number[n % QUEUE] != n)
        pthread_cond_wait(&feed.changed, &feed.lock);
    for (int i = 0; i < QUEUE; i++)
        ready += feed.number[i] >= n;
    pthread_mutex_unlock(&feed.lock);
    TARE_COUNTER("batches ready", ready); /* a value over time */
    return &feed.slot[n % QUEUE];
}

static void feed_give_back(void)
{
    pthread_mutex_lock(&feed.lock);
    feed.taken++;
    pthread_cond_broadcast(&feed.changed);
    pthread_mutex_unlock(&feed.lock);
}

/* ---- the network: fully connected layers, ReLU between them, softmax at the end ---------------------- */
static struct layer {
    char name[24];
    size_t in, out, weights;
    float *weight, *gradient, *velocity; /* [in + 1][out]; the last row is the bias */
    float *y, *dy;                       /* [images][out]: outputs and their gradients */
} net[LAYERS];

static void network_open(size_t hidden, size_t images)
{
    uint64_t state = RANDOM_STATE(WEIGHT_SEED);
    for (int l = 0; l < LAYERS; l++) {
        struct layer *layer = &net[l];
        snprintf(layer->name, sizeof(layer->name), "layer %d", l);
        layer->in = l == 0 ? PIXELS : hidden;
        layer->out = l == LAYERS - 1 ? DIGITS : hidden;
        layer->weights = (layer->in + 1) * layer->out;
        layer->weight = allocate(layer->weights, sizeof(float));
        layer->gradient = allocate(layer->weights, sizeof(float));
        layer->velocity = allocate(layer->weights, sizeof(float));
        layer->y = allocate(images * layer->out, sizeof(float));
        layer->dy = allocate(images * layer->out, sizeof(float));
        for (size_t i = 0; i < layer->in * layer->out; i++)
            layer->weight[i] = random_normal(&state) * sqrtf(2.0f / (float)layer->in);
    }
}

static void layer_forward(struct layer *layer, const float *x, size_t count, int relu)
{
    TARE_SPAN_NAME(layer->name); /* a name created at run time */
    float *y = layer->y;
    for (size_t n = 0; n < count; n++, x += layer->in, y += layer->out) {
        memcpy(y, layer->weight + layer->in * layer->out, layer->out * sizeof(*y));
        for (size_t i = 0; i < layer->in; i++)
            for (size_t o = 0; o < layer->out; o++)
                y[o] += x[i] * layer->weight[i * layer->out + o];
        for (size_t o = 0; relu && o < layer->out; o++)
            y[o] = y[o] > 0 ? y[o] : 0;
    }
    TARE_FLOPS(2 * count * layer->in * layer->out);
}

static const float *forward(const float *pixels, size_t count)
{
    for (int l = 0; l < LAYERS; l++)
        layer_forward(&net[l], l > 0 ? net[l - 1].y : pixels, count, l < LAYERS - 1);
    return net[LAYERS - 1].y;
}

/* Cross-entropy of one image; its gradient goes to dy. */
static float softmax_loss(const float *y, float *dy, int digit)
{
    TARE_AGGREGATE("softmax_loss"); /* once per image: count, total and histogram, no event per call */
    float top = y[0], sum = 0;
    for (int o = 1; o < DIGITS; o++)
        top = y[o] > top ? y[o] : top;
    for (int o = 0; o < DIGITS; o++)
        sum += dy[o] = expf(y[o] - top);
    for (int o = 0; o < DIGITS; o++)
        dy[o] = dy[o] / sum - (float)(o == digit);
    return logf(sum) + top - y[digit];
}

/* From layer->dy to layer->gradient and to `dx`, the dy of the previous layer (NULL: none). */
static void layer_backward(struct layer *layer, const float *x, float *dx, size_t count)
{
    TARE_SPAN_NAME(layer->name);
    const float *dy = layer->dy;
    memset(layer->gradient, 0, layer->weights * sizeof(float));
    for (size_t n = 0; n < count; n++, x += layer->in, dy += layer->out) {
        for (size_t i = 0; i <= layer->in; i++) {
            float input = i < layer->in ? x[i] : 1; /* the input of the bias is constant */
            for (size_t o = 0; o < layer->out; o++)
                layer->gradient[i * layer->out + o] += input * dy[o];
        }
        for (size_t i = 0; dx && i < layer->in; i++) {
            float sum = 0;
            for (size_t o = 0; o < layer->out; o++)
                sum += layer->weight[i * layer->out + o] * dy[o];
            dx[n * layer->in + i] = x[i] > 0 ? sum : 0;
        }
    }
    TARE_FLOPS((dx ? 4 : 2) * count * layer->in * layer->out);
}

static float backward(const struct batch *batch)
{
    struct layer *last = &net[LAYERS - 1];
    float loss = 0;
    for (size_t n = 0; n < batch->count; n++)
        loss += softmax_loss(last->y + n * DIGITS, last->dy + n * DIGITS, batch->digit[n]);
    for (int l = LAYERS - 1; l > 0; l--)
        layer_backward(&net[l], net[l - 1].y, net[l - 1].dy, batch->count);
    layer_backward(&net[0], batch->pixels, NULL, batch->count);
    return loss / (float)batch->count;
}

static void optimize(size_t count)
{
    float rate = learning_rate / (float)count;
    for (struct layer *layer = net; layer < net + LAYERS; layer++) {
        for (size_t i = 0; i < layer->weights; i++) {
            layer->velocity[i] = momentum * layer->velocity[i] - rate * layer->gradient[i];
            layer->weight[i] += layer->velocity[i];
        }
    }
}

/* ---- training, evaluation, serving ------------------------------------------------------------------- */
static float train_step(long step)
{
    TARE_STEP(step);    /* one iteration of the training loop, until this function returns */
    TARE_BEGIN("load"); /* chained phases: one timestamp ends a phase and begins the next */
    const struct batch *batch = feed_take();
    TARE_NEXT("forward");
    forward(batch->pixels, batch->count);
    TARE_NEXT("backward");
    float loss = backward(batch);
    TARE_NEXT("optimizer");
    optimize(batch->count);
    TARE_END();
    TARE_SAMPLES(batch->count); /* the phases have ended, so this number belongs to the step */
    TARE_COUNTER("loss", loss);
    feed_give_back();
    return loss;
}

static double evaluate(const struct batch *test)
{
    TARE_SPAN("evaluate");
    const float *y = forward(test->pixels, test->count);
    size_t right = 0;
    for (size_t n = 0; n < test->count; n++, y += DIGITS) {
        int best = 0;
        for (int o = 1; o < DIGITS; o++)
            best = y[o] > y[best] ? o : best;
        right += best == test->digit[n];
    }
    TARE_SAMPLES(test->count);
    return (double)right / (double)test->count;
}

static void train(long epochs, const struct batch *test)
{
    double best = 0;
    for (long epoch = 0; epoch < epochs; epoch++) {
        TARE_EPOCH(epoch);
        double loss = 0;
        for (int i = 0; i < STEPS; i++)
            loss += train_step(epoch * STEPS + i);
        double accuracy = evaluate(test);
        printf("epoch %2ld  loss %.4f  accuracy %.1f %%\n", epoch + 1, loss / STEPS, 100 * accuracy);
        if (accuracy > best)
            TARE_MARK("best accuracy so far"); /* a point in time */
        best = accuracy > best ? accuracy : best;
    }
}

/* Requests that arrive together and are answered one by one. They overlap, so they cannot be nested on a thread:
 * each is recorded on a separate track when it is complete. */
static void serve(const struct batch *test)
{
    static tare_site request = TARE_SITE("request"), infer = TARE_SITE("infer");
    uint32_t track = tare_track("requests", TARE_TRACK_REQUEST);
    uint64_t arrived = tare_now();
    for (uint64_t id = 1; id <= REQUESTS; id++) {
        tare_complete_span whole = {.track = track, .start = arrived, .id = id};
        tare_complete_span part = {.track = track, .start = tare_now(), .parent = id};
        forward(test->pixels + id * PIXELS, 1);
        whole.end = part.end = tare_now();
        tare_complete(&request, &whole);
        tare_complete(&infer, &part);
    }
}

static void run(long epochs, size_t hidden, size_t images)
{
    static struct batch test; /* never freed; neither are `feed` and `net` */
    pthread_t loader[LOADERS];
    int index[LOADERS];
    batch_open(&test, TEST_IMAGES);
    batch_fill(&test, TEST_SEED);
    network_open(hidden, images > TEST_IMAGES ? images : TEST_IMAGES);
    feed.total = epochs * STEPS;
    for (int i = 0; i < QUEUE; i++) {
        batch_open(&feed.slot[i], images);
        feed.number[i] = -1;
    }
    for (int i = 0; i < LOADERS; i++) {
        index[i] = i;
        if (pthread_create(&loader[i], NULL, loader_main, &index[i])) {
            fprintf(stderr, "mlp: cannot start a loader thread\n");
            exit(1);
        }
    }
    train(epochs, &test);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(loader[i], NULL);
    serve(&test);
}

static long parse_number(const char *option, const char *text, long most)
{
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || *end || value < 1 || value > most) {
        fprintf(stderr, "mlp: %s needs a number from 1 to %ld\n", option, most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    long epochs = 10, hidden = 64, images = 64;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--help")) {
            puts("usage: mlp [--epochs N] [--hidden N] [--batch N]\n"
                 "Trains a small network on noisy digits; prints loss and accuracy after each epoch.");
            return 0;
        } else if (!strcmp(option, "--epochs")) {
            epochs = parse_number(option, argv[++i], 10000);
        } else if (!strcmp(option, "--hidden")) {
            hidden = parse_number(option, argv[++i], 4096);
        } else if (!strcmp(option, "--batch")) {
            images = parse_number(option, argv[++i], 65536);
        } else {
            fprintf(stderr, "mlp: unknown option '%s'; see mlp --help\n", option);
            return 2;
        }
    }
    tare_thread_name("trainer");
    run(epochs, (size_t)hidden, (size_t)images);
    return 0;
}
