/* peaks: peak performance of a machine, as numbers and as text; and the minimum time to move bytes.
 * Any thread.
 * Must not know how peaks are measured, nor what is compared with them. */
#include "base.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *names[4]; /* the first is the name that Tare writes */
} types[TARE__PEAK_TYPES] = {
    [TARE__PEAK_F32] = {{"f32", "float32", "float"}},
    [TARE__PEAK_F64] = {{"f64", "float64", "double"}},
    [TARE__PEAK_F16] = {{"f16", "float16"}},
    [TARE__PEAK_BF16] = {{"bf16", "bfloat16"}},
    [TARE__PEAK_INT8] = {{"int8", "uint8", "i8", "u8"}},
};

static const char *const levels[TARE__PEAK_LEVELS] = {"L1", "L2", "L3", "memory"};
#define MEMORY (TARE__PEAK_LEVELS - 1)

void tare__peaks_clear(tare__peaks *peaks)
{
    for (int i = 0; i < TARE__PEAK_TYPES; i++)
        peaks->flops[i] = NAN;
    for (int i = 0; i < TARE__PEAK_LEVELS; i++) {
        peaks->level_bytes[i] = 0;
        peaks->level_per_s[i] = NAN;
    }
}

int tare__peak_find(const char *type, size_t length)
{
    for (int i = 0; i < TARE__PEAK_TYPES; i++)
        for (int k = 0; k < 4 && types[i].names[k]; k++)
            if (strlen(types[i].names[k]) == length && memcmp(types[i].names[k], type, length) == 0)
                return i;
    return -1;
}

void tare__peaks_write(const tare__peaks *peaks, tare__text *to)
{
    const char *between = "";
    for (int i = 0; i < TARE__PEAK_TYPES; i++)
        if (peaks->flops[i] > 0) {
            tare__text_format(to, "%s%s %.4e", between, types[i].names[0], peaks->flops[i]);
            between = " ";
        }
    for (int i = 0; i < TARE__PEAK_LEVELS; i++) {
        if (!(peaks->level_per_s[i] > 0))
            continue;
        if (i == MEMORY)
            tare__text_format(to, "%s%s %.4e", between, levels[i], peaks->level_per_s[i]);
        else
            tare__text_format(to, "%s%s %.0f %.4e", between, levels[i], peaks->level_bytes[i], peaks->level_per_s[i]);
        between = " ";
    }
}

/* A number that may be a peak, and the position after it. */
static double take_number(const char **at)
{
    char *end;
    double value = strtod(*at, &end);
    bool is_one = end != *at && isfinite(value) && value > 0;
    *at = end + strspn(end, " ");
    return is_one ? value : NAN;
}

void tare__peaks_read(tare__peaks *peaks, const char *text)
{
    tare__peaks_clear(peaks);
    while (*text) {
        size_t length = strcspn(text, " ");
        const char *word = text;
        int type = tare__peak_find(word, length), level = TARE__PEAK_LEVELS;
        for (int i = 0; i < TARE__PEAK_LEVELS; i++)
            if (strlen(levels[i]) == length && memcmp(levels[i], word, length) == 0)
                level = i;
        text += length;
        text += strspn(text, " ");
        if (type >= 0) {
            peaks->flops[type] = take_number(&text);
        } else if (level < TARE__PEAK_LEVELS) {
            double bytes = level == MEMORY ? 0 : take_number(&text);
            peaks->level_per_s[level] = take_number(&text);
            peaks->level_bytes[level] = bytes > 0 ? bytes : 0;
        } /* otherwise of a later version: skips words until one is known */
    }
}

const char *tare__peak_level_name(size_t level)
{
    return level < TARE__PEAK_LEVELS ? levels[level] : NULL;
}

double tare__peaks_move_s(const tare__peaks *peaks, double bytes)
{
    double seconds = 0;
    for (int i = 0; i < MEMORY; i++) {
        if (!(peaks->level_per_s[i] > 0))
            continue;
        double here = fmin(bytes, peaks->level_bytes[i]);
        seconds += here / peaks->level_per_s[i];
        bytes -= here;
    }
    return seconds + (bytes > 0 ? bytes / peaks->level_per_s[MEMORY] : 0);
}
