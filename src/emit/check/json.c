/* check json: a check as JSON, generated from its schema.
 * Owned by the calling thread.
 * Must not know how a check is made. */
#include "check.h"

#include "emit/emit.h"

void tare__emit_check_json(const tare__check *check, const tare__check_names *names, bool pretty,
                           tare__text *out)
{
    const tare__check_view view = {
        .check = check, .baseline = {names->base, check->base}, .candidate = {names->head, check->head}};
    tare__put_document(out, &tare__document_check, &view, pretty);
}
