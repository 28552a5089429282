/* plugin: a library that records, loaded and unloaded by the hosts. Its names go away with it.
 * Runs in the caller's thread.
 * Must not know anything of Tare but tare.h. */
#include <tare.h>

TARE_API int plugin_work(int n);

TARE_API int plugin_work(int n)
{
    TARE_SPAN("plugin");
    for (int i = 0; i < n; i++) {
        TARE_SPAN("plugin work");
        TARE_AGGREGATE("plugin aggregate");
    }
    TARE_STEP(7);
    TARE_MARK("plugin mark");
    TARE_COUNTER("plugin counter", 1.5);
    tare_begin_name("plugin name");
    tare_end(NULL);
    return tare_recording();
}
