/* stacks: what the exports of sampled stacks share: one walk over the call tree, and how its nodes are named.
 * Owned by the calling thread; used inside emit only.
 * Must not know the formats. */
#ifndef TARE_EMIT_STACKS_H
#define TARE_EMIT_STACKS_H

#include "emit/emit.h"

/* A node with time of its own: chain[0] is its process, chain[1] its thread, chain[n - 1] the node itself. 0, or a
 * status that ends the walk. */
typedef int tare__stack_visitor(void *context, const tare__stack_node *const *chain, size_t n);
/* 0; TARE_E_INPUT if there are no stacks, TARE_E_MEMORY, with a message; the visitor's status. */
int tare__stacks_walk(const tare__analysis *analysis, tare__stack_visitor *visit, void *context, tare__error *error);
/* TARE_E_INPUT with a message if there are no stacks. */
int tare__stacks_require(const tare__analysis *analysis, tare__error *error);

/* "MainThread (4120)": unique in the run, as the name of a process is. */
void tare__stack_thread_name(const tare__analysis *analysis, const tare__stack_node *node, tare__text *out);
/* Appends a text of one line: control characters become spaces, bytes that are not UTF-8 U+FFFD. */
void tare__stack_put_line(tare__text *out, const char *text, size_t length);
/* A file without the directory that every reader knows: that of the run, of packages or of the standard library. Part
 * of `file`. */
const char *tare__stack_file(const tare__analysis *analysis, const char *file);
/* Whether this state counts as active time of the node's thread; see sampled_threads. */
bool tare__stack_is_active(const tare__analysis *analysis, const tare__stack_node *node, unsigned state);

#endif
