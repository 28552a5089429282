/* early: records before main (constructors of every priority), in atexit handlers, and in destructors.
 * One thread.
 * Must not know anything of Tare but tare.h. */
#include "victim.h"

#define RECORD_IN(function, attribute)                                                                 \
    __attribute__((attribute)) static void function(void)                                              \
    {                                                                                                  \
        TARE_SPAN(#function);                                                                          \
    }

RECORD_IN(first_constructor, constructor(102))
RECORD_IN(plain_constructor, constructor)
RECORD_IN(plain_destructor, destructor)
RECORD_IN(last_destructor, destructor(102))

static void preinit(void)
{
    TARE_SPAN("preinit");
}
__attribute__((section(".preinit_array"), used)) static void (*preinit_entry)(void) = preinit;

static void at_exit(void)
{
    TARE_SPAN("at_exit");
}

int main(void)
{
    TARE_SPAN("main");
    atexit(at_exit);
    return 0;
}
