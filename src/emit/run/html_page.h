/* html_page: generated from page/ by the build (tools/embed-page): the page up to its data, and the rest of it.
 * Constant; any thread.
 * Must not know the data. */
#ifndef TARE_EMIT_HTML_PAGE_H
#define TARE_EMIT_HTML_PAGE_H

#include <stddef.h>

extern const char tare__html_before_data[], tare__html_after_data[];
extern const size_t tare__html_before_data_bytes, tare__html_after_data_bytes;

#endif
