/* keep: the name of a trace that is written, when somebody else took that name meanwhile.
 * One thread. Must not know what is recorded. */
#include "collect.h"

void tare__run_keep(tare__run_result *result)
{
    result->lost = result->trace_fd > 0 && !tare__file_keep(&result->trace_fd, result->trace, result->trace_mode,
                                                            result->moved, sizeof result->moved);
}
