/* keep: the name of a written trace, if another process took that name in the meantime.
 * One thread. Must not know what is recorded. */
#include "collect.h"

void tare__run_keep(tare__run_result *result)
{
    result->lost = result->trace_fd > 0 && !tare__file_keep(&result->trace_fd, result->trace, result->trace_mode,
                                                            result->moved, sizeof result->moved);
}
