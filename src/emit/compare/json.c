/* compare json: a comparison as JSON, generated from its schema.
 * Owned by the calling thread.
 * Must not know how it was made. */
#include "emit/emit.h"
#include "tare.h"

int tare__emit_comparison_json(const void *what, const tare__emit_options *options, const tare__emit_sink *sink,
                               tare__error *error)
{
    const tare__emit_comparison *input = what;
    tare__text answer = {0};
    tare__compared_answer(&answer, input);
    tare__compare_view view = tare__compared_view(input, answer.data);
    int status = answer.failed ? tare__fail(error, TARE_E_MEMORY, "out of memory")
                               : tare__emit_document(&tare__document_compare, &view, options, sink, error);
    tare__text_free(&answer);
    return status;
}
