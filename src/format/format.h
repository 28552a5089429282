/* format: defines records in shared memory and blocks in a file: layouts, versions, codec.
 * Shared by the recording and the reading side; owns no state.
 * Must not know who writes and who reads. */
#ifndef TARE_FORMAT_H
#define TARE_FORMAT_H

#include "ring.h"
#include "file.h"
#include "metrics.h"
#include "codec.h"
#include "stacks.h"
#include "writer.h"

#endif
