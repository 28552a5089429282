/* make_stacks: writes a trace with sampled stacks, of a run in 2023, for tests of the command; or one of the same
 * program after a change.
 * usage: make_stacks SCRIPT.py [changed] > run.tare
 * One thread. Must not know how traces are read. */
#include "../unit/stacks_builder.h"

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: make_stacks SCRIPT.py [changed] > run.tare\n");
        return 2;
    }
    const char *script = argv[1];
    builder *b = builder_new();
    build_run(b);
    build_clock(b);
    build_process(b, 1, 77);
    stacks_builder s = stacks_start(b);
    uint32_t leading = stacks_thread(&s, 77, 77, 5, "MainThread"), worker = stacks_thread(&s, 77, 78, 5, "worker");
    uint32_t outer = stacks_python(&s, 0, "<module>", script, 2);
    uint32_t inner = stacks_python(&s, outer, "dumps", "/usr/lib/python3.12/json/__init__.py", 231);
    uint32_t loop = stacks_python(&s, 0, "run", script, 3);
    if (argc == 3) {
        uint32_t extra = stacks_python(&s, outer, "extra", script, 7);
        stacks_samples(&s, leading, extra, TARE__STATE_RUNNING, 40);
    }
    stacks_samples(&s, leading, inner, TARE__STATE_RUNNING, argc == 3 ? 20 : 60);
    stacks_samples(&s, leading, outer, TARE__STATE_NETWORK, 40);
    stacks_samples(&s, worker, loop, TARE__STATE_RUNNING, 20);
    stacks_samples(&s, worker, loop, TARE__STATE_LOCK, 80);
    stacks_done(&s);
    build_end(b, BUILD_START + 2 * 1000 * MS);
    bool written = fwrite(b->file.data, 1, b->file.length, stdout) == b->file.length;
    builder_free(b);
    return !written;
}
