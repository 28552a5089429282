"""Programs that look at the interpreter."""
from ._table import add

add("sys.settrace", """
    import sys
    def trace(frame, event, argument):
        print(event, frame.f_code.co_name, frame.f_lineno)
        return trace
    def work(n):
        return n + 1
    sys.settrace(trace)
    work(work(1))
    sys.settrace(None)
""", expect="call work 6")
add("sys.setprofile", """
    import sys
    def profile(frame, event, argument):
        print(event, frame.f_code.co_name, getattr(argument, "__name__", argument))
    sys.setprofile(profile)
    sorted([len("x")])
    sys.setprofile(None)
""", expect="c_call")
add("cProfile", """
    import cProfile, pstats, io, re
    out = io.StringIO()
    profile = cProfile.Profile()
    profile.runcall(sorted, range(100), key=lambda x: -x)
    pstats.Stats(profile, stream=out).sort_stats("name").print_stats()
    print(re.sub(r"\\d+\\.\\d+", "T", out.getvalue()))
""", expect="function calls")
add("gc", """
    import gc
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    ring = []; ring.append(ring); del ring
    print(gc.collect(), gc.garbage, gc.get_threshold(), gc.isenabled(), gc.callbacks)
""", expect="[[...]]")
add("sys.modules", """
    import sys
    for name in sorted(sys.modules):
        print(name, getattr(sys.modules[name], "__file__", None))
    print(sys.path, sys.path_hooks and len(sys.path_hooks), sorted(sys.path_importer_cache))
""", expect="site")
add("builtins and threads", """
    import builtins, threading, sys, signal
    print(sorted(vars(builtins)), [one.name for one in threading.enumerate()])
    print(sys.getprofile(), sys.gettrace(), sys.getswitchinterval())
    print(sys.getrecursionlimit(), sys.displayhook, sys.getallocatedblocks() > 0)
""", expect="MainThread")
add("tempfile and cwd", """
    import os, tempfile
    with tempfile.TemporaryDirectory() as folder:
        print(tempfile.gettempdir(), sorted(os.listdir(".")), os.listdir(folder))
    with open("result.txt", "w") as out:
        out.write("x" * 10)
""", expect="script.py")
