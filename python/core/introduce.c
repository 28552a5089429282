/* introduce: records what identifies this interpreter as soon as it records: its version and script as a mark, the
 * name of its main thread.
 * The main thread, attached to the interpreter. Must not know how the recording was started. */
#include "core.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The script's name without its folder; "" for code on the command line. */
static const char *script(void)
{
    PyObject *words = PySys_GetObject("argv"); /* borrowed */
    PyObject *first = words && PyList_Check(words) && PyList_GET_SIZE(words) ? PyList_GET_ITEM(words, 0) : NULL;
    const char *text = first && PyUnicode_Check(first) ? PyUnicode_AsUTF8(first) : NULL;
    PyErr_Clear(); /* a name that is not valid UTF-8 */
    if (!text || strcmp(text, "-c") == 0)
        return "";
    const char *slash = strrchr(text, '/');
    return slash ? slash + 1 : text;
}

void tare__py_introduce(void)
{
    static pid_t reported; /* of a forked child: its parent has recorded it */
    if (!tare_recording() || reported == getpid() || syscall(SYS_gettid) != getpid())
        return;
    reported = getpid();
    const char *name = script();
    char text[256];
    snprintf(text, sizeof text, "Python %d.%d.%d%s%s", PY_MAJOR_VERSION, PY_MINOR_VERSION, PY_MICRO_VERSION,
             *name ? " " : "", name);
    tare_thread_name("MainThread");
    tare_mark_name(text);
}
