/* error: writes the message of a failure where it happened. Owned by the calling thread.
 * Never allocates: it must work when memory is exhausted.
 * Must not know who reads the message. */
#include "base.h"

#include <stdio.h>
#include <string.h>

#include "tare.h"

/* Ends a message that did not fit with "…", without a partial character. */
static void mark_cut(char *text, size_t bytes)
{
    static const char mark[] = "…";
    size_t end = bytes - sizeof mark;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    memcpy(text + end, mark, sizeof mark);
}

int tare__fail(tare__error *error, int status, const char *format, ...)
{
    if (!error)
        return status;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    if (length < 0)
        error->text[0] = '\0';
    else if ((size_t)length >= sizeof error->text)
        mark_cut(error->text, sizeof error->text);
    return status;
}

int tare__no_memory(tare__error *error)
{
    return tare__fail(error, TARE_E_MEMORY, "out of memory");
}
