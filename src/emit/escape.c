/* escape: iterates over UTF-8 and replaces what each format cannot contain.
 * Owned by the calling thread.
 * Must not know the meaning of the text. */
#include "escape.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Writes an ASCII character that is special in the format; false: it is not special. */
typedef bool special(tare__text *out, char c, bool property);

static void walk(tare__text *out, const char *text, special *puts, bool property)
{
    for (size_t left = strlen(text); left > 0;) {
        uint32_t code;
        size_t length = tare__utf8_decode(text, left, &code);
        bool hidden = length > 1 && tare__utf8_control(code); /* changes the writing direction, or is invisible */
        if (length == 0 || code == 0xfffe || code == 0xffff || hidden)
            tare__text_string(out, REPLACEMENT);
        else if (length > 1 || !puts(out, *text, property))
            tare__text_append(out, text, length);
        length = length ? length : 1;
        text += length;
        left -= length;
    }
}

static bool xml_special(tare__text *out, char c, bool property)
{
    (void)property;
    switch (c) {
    case '&': tare__text_string(out, "&amp;"); return true;
    case '<': tare__text_string(out, "&lt;"); return true;
    case '>': tare__text_string(out, "&gt;"); return true;
    case '"': tare__text_string(out, "&quot;"); return true;
    case '\'': tare__text_string(out, "&#39;"); return true;
    case '\t':
    case '\n':
    case '\r': tare__text_format(out, "&#%d;", c); return true;
    default: break;
    }
    if ((unsigned char)c >= ' ')
        return false;
    tare__text_string(out, REPLACEMENT);
    return true;
}

static bool markdown_special(tare__text *out, char c, bool property)
{
    (void)property;
    if ((unsigned char)c < ' ' || c == 0x7f) {
        tare__text_string(out, " ");
        return true;
    }
    if (c == '<' || c == '>' || c == '&') {
        tare__text_string(out, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
        return true;
    }
    if (!strchr("\\`*_{}[]()#!|~$@", c))
        return false;
    tare__text_format(out, "\\%c", c);
    return true;
}

static bool github_special(tare__text *out, char c, bool property)
{
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','))) {
        tare__text_format(out, "%%%02X", (unsigned char)c);
        return true;
    }
    if ((unsigned char)c >= ' ' && c != 0x7f)
        return false;
    tare__text_string(out, REPLACEMENT);
    return true;
}

void tare__escape_xml(tare__text *out, const char *text)
{
    walk(out, text, xml_special, false);
}

void tare__escape_markdown(tare__text *out, const char *text)
{
    walk(out, text, markdown_special, false);
}

void tare__escape_github(tare__text *out, const char *text, bool property)
{
    walk(out, text, github_special, property);
}
