/* host: loads the plugin beside it, lets it work and unloads it, several times over.
 * One thread.
 * Must not know what the plugin does. */
#ifndef TARE_VICTIM_HOST_H
#define TARE_VICTIM_HOST_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int use_plugin(const char *self, int times, int work)
{
    char path[4096];
    const char *slash = strrchr(self, '/');
    snprintf(path, sizeof path, "%.*s/plugin.so", slash ? (int)(slash - self) : 1, slash ? self : ".");
    int recording = 0;
    for (int i = 0; i < times; i++) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!plugin) {
            fprintf(stderr, "victim: %s\n", dlerror());
            return 98;
        }
        int (*plugin_work)(int) = (int (*)(int))(uintptr_t)dlsym(plugin, "plugin_work");
        recording += plugin_work(work);
        dlclose(plugin);
    }
    printf("recording %d\n", recording);
    return 0;
}

#endif
