/* path: where the look-alike libraries lie beside the test that runs, in whatever folder was built.
 * Must not know what they are. */
#ifndef TARE_TEST_FAKE_PATH_H
#define TARE_TEST_FAKE_PATH_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "nvml_old" becomes ".../tests/fake/nvml_old.so". */
static const char *fake_path(const char *name)
{
    static char path[4200];
    char self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0 && strrchr(self, '/'))
        *strrchr(self, '/') = '\0';
    snprintf(path, sizeof path, "%s/../fake/%.40s.so", self, name);
    return path;
}

#endif
