/* symbols_demangle: names as in the source, by the demangler of the C++ library where there is one, and the names that
 * older Rust makes of them.
 * One thread owns a demangler.
 * Must not change a name that is not mangled. */
#include "symbols_inner.h"

#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 8192u

#define SLOT(member) offsetof(tare__demangler, api.member) - offsetof(tare__demangler, api)
static const tare__dl_symbol symbols[] = {{"__cxa_demangle", SLOT(demangle), true}};

static void open_library(tare__demangler *demangler)
{
    demangler->opened = true;
    if (tare__dl_open(&demangler->library, "libstdc++.so.6", symbols, TARE__COUNT_OF(symbols), &demangler->api, NULL))
        demangler->api.demangle = NULL;
}

void tare__demangler_close(tare__demangler *demangler)
{
    tare__dl_close(&demangler->library);
}

/* ---- Rust: C++ names with a hash as the last part, and escapes -------------------------------------------- */
static const struct {
    const char *escape, *text;
} escapes[] = {{"$LT$", "<"},   {"$GT$", ">"},   {"$RF$", "&"},   {"$BP$", "*"},   {"$LP$", "("}, {"$RP$", ")"},
               {"$C$", ","},    {"$SP$", "@"},   {"$u20$", " "},  {"$u27$", "'"},  {"$u5b$", "["}, {"$u5d$", "]"},
               {"$u7b$", "{"},  {"$u7d$", "}"},  {"$u7e$", "~"},  {"$u3b$", ";"},  {"$u2b$", "+"}, {"$u22$", "\""}};

static bool is_rust(const char *name, size_t *length)
{
    size_t n = strlen(name);
    if (n < 20 || strncmp(name + n - 19, "::h", 3) != 0 || strspn(name + n - 16, "0123456789abcdef") != 16)
        return false;
    *length = n - 19;
    return true;
}

static void put_rust(char *name, size_t length)
{
    char *to = name, *end = name + length;
    *end = '\0';
    for (char *at = name; at < end;) {
        size_t i = 0;
        while (i < TARE__COUNT_OF(escapes) && strncmp(at, escapes[i].escape, strlen(escapes[i].escape)) != 0)
            i++;
        if (i < TARE__COUNT_OF(escapes)) {
            *to++ = escapes[i].text[0];
            at += strlen(escapes[i].escape);
        } else if (at[0] == '.' && at[1] == '.') {
            *to++ = ':';
            *to++ = ':';
            at += 2;
        } else if (at[0] == '_' && at[1] == '$' && (at == name || at[-1] == ':')) {
            at++; /* a part must not begin with $ */
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static const char *const parts[] = {".cold", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".llvm."};

const char *tare__symbols_whole(tare__arena *texts, const char *name)
{
    const char *end = NULL;
    for (size_t i = 0; i < TARE__COUNT_OF(parts); i++) {
        const char *found = strstr(name, parts[i]);
        if (found && found > name && (!end || found < end))
            end = found;
    }
    const char *whole = end ? tare__arena_copy(texts, name, (size_t)(end - name)) : NULL;
    return whole ? whole : name;
}

const char *tare__symbols_demangle(tare__demangler *demangler, tare__arena *texts, const char *name)
{
    size_t length;
    int status = 0;
    if (strncmp(name, "_Z", 2) != 0 || strlen(name) > MANGLED_MAX)
        return name;
    if (!demangler->opened)
        open_library(demangler);
    char *made = demangler->api.demangle ? demangler->api.demangle(name, NULL, NULL, &status) : NULL;
    if (!made || status) {
        free(made);
        return name;
    }
    if (is_rust(made, &length))
        put_rust(made, length);
    const char *kept = tare__arena_copy(texts, made, strlen(made));
    free(made);
    return kept ? kept : name;
}
