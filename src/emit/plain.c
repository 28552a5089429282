/* plain: header and footer of pages without a script.
 * Owned by the calling thread.
 * Must not know what is on the pages. */
#include "plain.h"

#include <string.h>

#include "escape.h"

void tare__plain_text(tare__text *out, const char *text)
{
    tare__escape_xml(out, text);
}

void tare__plain_begin(tare__text *out, const char *title, const char *heading, const char *lead)
{
    tare__plain_begin_with(out, title, heading, lead, NULL, NULL);
}

void tare__plain_begin_with(tare__text *out, const char *title, const char *heading, const char *lead,
                            const char *style_hash, const char *script_hash)
{
    tare__text_string(
        out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '");
    tare__text_string(out, tare__plain_style_hash);
    if (style_hash)
        tare__text_format(out, "' '%s'; script-src '%s", style_hash, script_hash);
    tare__text_string(out, "'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
                           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                           "<meta name=\"color-scheme\" content=\"light dark\">\n"
                           "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    tare__plain_text(out, title);
    tare__text_string(out, "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>");
    tare__text_string(out, tare__plain_style);
    tare__text_string(out, "</style>\n</head>\n<body>\n<header class=\"wide\" id=\"top\">\n"
                           "<p class=\"mark\" aria-hidden=\"true\">tare</p>\n<h1>");
    tare__plain_text(out, heading);
    tare__text_string(out, "</h1>\n");
    if (lead) {
        tare__text_string(out, "<p class=\"answer\">");
        tare__plain_text(out, lead);
        tare__text_string(out, "</p>\n");
    }
    tare__text_string(out, "</header>\n<main class=\"wide\">\n");
}

void tare__plain_words(tare__text *out, const char *text)
{
    tare__text escaped = {0};
    bool inside = false;
    tare__plain_text(&escaped, text);
    const char *from = escaped.data ? escaped.data : "";
    for (const char *tick; (tick = strchr(from, '`')) && (inside || strchr(tick + 1, '`')); from = tick + 1) {
        tare__text_append(out, from, (size_t)(tick - from));
        tare__text_string(out, inside ? "</code>" : "<code>");
        inside = !inside;
    }
    tare__text_string(out, from);
    tare__text_end(&escaped, out);
}

void tare__plain_table(tare__text *out, const char *label, bool tall, bool folds)
{
    tare__text_format(out, "<div class=\"sheet%s\" tabindex=\"0\" role=\"region\" aria-label=\"", tall ? " tall" : "");
    tare__plain_text(out, label);
    tare__text_format(out, "\"><table class=\"plain%s\"><thead><tr>", folds ? " folds" : "");
}

void tare__plain_table_end(tare__text *out)
{
    tare__text_string(out, "</tbody></table></div>\n");
}

void tare__plain_share(tare__text *out, double share)
{
    char width[32];
    tare__text_double(width, sizeof width, 'f', 1, 100 * (share < 0 ? 0 : share > 1 ? 1 : share));
    tare__text_format(
        out,
        "<svg class=\"share\" aria-hidden=\"true\"><rect class=\"all\" width=\"100%%\" height=\"8\" "
        "rx=\"2\"/><rect class=\"part\" width=\"%s%%\" height=\"8\" rx=\"2\"/></svg>",
        width);
}

void tare__plain_end(tare__text *out)
{
    tare__text_string(out, "</main>\n</body>\n</html>\n");
}
