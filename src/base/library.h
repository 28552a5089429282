/* library: files that are checked and then used by the name that was checked. Any thread.
 * Must not know what any of them are for. */
#ifndef TARE__BASE_LIBRARY_H
#define TARE__BASE_LIBRARY_H

#include <limits.h>

#include "base/base.h"

/* As tare__trust_path; `real` is what was looked at, links resolved, and what to use. */
bool tare__trust_real(const char *path, char real[PATH_MAX], tare__error *error);
/* What to give to dlopen for the name of a library: the file that LD_LIBRARY_PATH leads to, if it and every folder above
 * it are root's or ours and absolute; without one, the name, for the loader's own places. A path is believed.
 * TARE_E_PERMISSION: it leads to a library of others. */
int tare__library_find(const char *name, char out[PATH_MAX], tare__error *error);

#endif
