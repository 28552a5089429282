/* html_pack: packs numbers into bytes and encodes them as base64, so that a hundred thousand boxes make a small page.
 * Owned by the calling thread.
 * Must not know what the numbers mean. */
#include "html.h"

#include <math.h>

void tare__pack_varint(tare__text *bytes, double whole)
{
    char out[10];
    size_t n = 0;
    uint64_t value =
        whole >= 1 ? (uint64_t)(whole < 9e15 ? whole : 9e15) : 0; /* a double represents that exactly */
    for (; value >= 0x80; value >>= 7)
        out[n++] = (char)(value | 0x80);
    out[n++] = (char)value;
    tare__text_append(bytes, out, n);
}

void tare__pack_share(tare__text *bytes, double share)
{
    unsigned value = share > 0 ? (unsigned)((share < 1 ? share : 1) * 65535 + 0.5) : 0;
    tare__text_append(bytes, (char[]){(char)(value & 0xff), (char)(value >> 8)}, 2);
}

void tare__pack_stretch(tare__text *bytes, double at, double lasts, double *end)
{
    double start = fmax(floor(at), *end), stop = fmax(floor(at + lasts), start);
    tare__pack_varint(bytes, start - *end);
    tare__pack_varint(bytes, stop - start);
    *end = stop;
}

static void put_quad(char out[4], const unsigned char *in, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)in[0] << 16 | (n > 1 ? (uint32_t)in[1] << 8 : 0) | (n > 2 ? in[2] : 0);
    out[0] = digits[bits >> 18];
    out[1] = digits[bits >> 12 & 63];
    out[2] = n > 1 ? digits[bits >> 6 & 63] : '=';
    out[3] = n > 2 ? digits[bits & 63] : '=';
}

void tare__html_packed(tare__html *page, const tare__text *bytes)
{
    tare__text coded = {0};
    const unsigned char *in = (const unsigned char *)bytes->data;
    for (size_t at = 0; at < bytes->length; at += 3) {
        char quad[4];
        put_quad(quad, in + at, bytes->length - at);
        tare__text_append(&coded, quad, sizeof quad);
    }
    if (bytes->failed || coded.failed)
        page->text.failed = true;
    tare__json_text(&page->json, coded.data, coded.length);
    tare__text_free(&coded);
}

/* ---- points ------------------------------------------------------------------------------------- */
/* Merges `n` neighbors into one. */
static tare__metric_point merge(const tare__metric_point *points, size_t n)
{
    tare__metric_point sum = points[0];
    double weight = points[0].lasts_ns, weighted = points[0].mean * weight;
    for (size_t i = 1; i < n; i++) {
        sum.min = fmin(sum.min, points[i].min);
        sum.max = fmax(sum.max, points[i].max);
        weight += points[i].lasts_ns;
        weighted += points[i].mean * points[i].lasts_ns;
    }
    sum.lasts_ns = points[n - 1].at_ns + points[n - 1].lasts_ns - sum.at_ns;
    if (n > 1 && weight > 0)
        sum.mean = weighted / weight;
    return sum;
}

static void pack_point(tare__text *bytes, const tare__metric_point *point, double *end, double low, double high)
{
    double range = high > low ? high - low : 1;
    tare__pack_stretch(bytes, point->at_ns, point->lasts_ns, end);
    tare__pack_share(bytes, (point->min - low) / range);
    tare__pack_share(bytes, (point->mean - low) / range);
    tare__pack_share(bytes, (point->max - low) / range);
}

void tare__html_points(tare__html *page, const tare__metric_point *points, size_t n, size_t most)
{
    size_t each = most ? (n + most - 1) / most : n;
    double low = INFINITY, high = -INFINITY, end = 0;
    tare__text bytes = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, points[i].min);
        high = fmax(high, points[i].max);
    }
    for (size_t at = 0; at < n; at += each, kept++) {
        tare__metric_point point = merge(points + at, n - at < each ? n - at : each);
        pack_point(&bytes, &point, &end, low, high);
    }
    tare__json_object(&page->json);
    tare__json_put_unsigned(&page->json, "n", kept);
    tare__html_key_figure(page, "low", low);
    tare__html_key_figure(page, "high", high);
    tare__json_key(&page->json, "packed");
    tare__html_packed(page, &bytes);
    tare__json_end_object(&page->json);
    tare__text_free(&bytes);
}
