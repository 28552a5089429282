/* scan: the longer scanning functions. Pure; any thread.
 * Must not know what the texts mean. */
#include "scan.h"

void tare__scan_keys(const char *text, int bytes, const char *const *keys, size_t n, int64_t *values)
{
    for (size_t i = 0; i < n; i++)
        values[i] = TARE__SCAN_NONE;
    tare__scan rest = tare__scan_of(text, bytes), line;
    for (size_t left = n; left > 0 && tare__scan_line(&rest, &line);) {
        tare__scan key = tare__scan_word(&line);
        if (key.end > key.at && key.end[-1] == ':')
            key.end--;
        for (size_t i = 0; i < n; i++) {
            if (values[i] != TARE__SCAN_NONE || *key.at != *keys[i] || !tare__scan_is(key, keys[i]))
                continue;
            if (!tare__scan_number(&line, &values[i]))
                values[i] = TARE__SCAN_NONE;
            left--;
            break;
        }
    }
}

int tare__scan_cpus(const char *text, int bytes)
{
    tare__scan scan = tare__scan_of(text, bytes);
    int64_t count = 0, first, last;
    do {
        if (!tare__scan_number(&scan, &first))
            return -1;
        last = first;
        if (tare__scan_skip(&scan, "-") && !tare__scan_number(&scan, &last))
            return -1;
        if (first < 0 || last < first || last > 1 << 20)
            return -1;
        count += last - first + 1;
        if (count > 1 << 20)
            return -1;
    } while (tare__scan_skip(&scan, ","));
    tare__scan_blanks(&scan);
    return scan.at == scan.end ? (int)count : -1;
}
