"""How a program ends."""
from ._table import add

add("prints", """
    import sys
    print("out", file=sys.stdout)
    print("err", file=sys.stderr)
""", expect="out")
add("no newline, no flush", """
    import sys
    sys.stdout.write("half a line")
    sys.stderr.write("the other half")
""", expect="half")
add("bytes that are no text", """
    import sys
    sys.stdout.buffer.write(bytes(range(256)) * 300)
""")
add("exception", """
    def inner():
        raise ValueError("a message")
    inner()
""", expect="ValueError: a message", status=1)
add("chained exceptions", """
    try:
        {}["key"]
    except KeyError as error:
        raise RuntimeError("while looking") from error
""", expect="direct cause", status=1)
add("syntax error", "print(1\nx = = 2\n", expect="SyntaxError", status=1)
add("sys.exit with a number", "import sys; print('before'); sys.exit(3)", expect="before", status=3)
add("sys.exit with text", "import sys; sys.exit('a text')", expect="a text", status=1)
add("SystemExit in a thread", """
    import sys, threading
    thread = threading.Thread(target=lambda: sys.exit("unseen"))
    thread.start(); thread.join()
    print("goes on")
""", expect="goes on")
add("exception in a thread", """
    import threading
    def work():
        raise ValueError("in a thread")
    thread = threading.Thread(target=work, name="worker")
    thread.start(); thread.join()
""", expect="Exception in thread worker")
add("os._exit", """
    import atexit, os, sys
    atexit.register(print, "never")
    sys.stdout.write("lost")
    os.write(1, b"written\\n")
    os._exit(7)
""", expect="written", status=7)
for _name, _status in (("SIGTERM", 143), ("SIGKILL", 137), ("SIGSEGV", 139), ("SIGHUP", 129), ("SIGUSR1", 138)):
    add(_name, """
        import os, signal
        print("before", flush=True)
        os.kill(os.getpid(), signal.%s)
        import time; time.sleep(60)
    """ % _name, expect="before", status=_status)
add("SIGINT", """
    import os, signal
    print("before", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(10**9):
        pass
""", expect="KeyboardInterrupt", status=130)
add("SIGINT handled", """
    import os, signal
    signal.signal(signal.SIGINT, lambda number, frame: print("handled", number))
    os.kill(os.getpid(), signal.SIGINT)
    print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD), signal.getsignal(signal.SIGPROF))
""", expect="handled 2")
add("abort", "import os; os.abort()", status=134)
add("faulthandler", """
    import faulthandler, os, signal
    faulthandler.enable()
    os.kill(os.getpid(), signal.SIGSEGV)
    import time; time.sleep(60)
""", expect="Fatal Python error: Segmentation fault", status=139)
add("crash in C", "import ctypes; ctypes.string_at(0)", options=("-X", "faulthandler"), expect="most recent call first",
    status=139)
add("recursion", """
    import sys
    def deeper(n):
        return deeper(n + 1)
    try:
        deeper(0)
    except RecursionError as error:
        print(error)
    print(sys.getrecursionlimit())
    deeper(0)
""", expect="RecursionError", status=1)
add("atexit order", """
    import atexit
    for number in range(3):
        atexit.register(print, "at exit", number)
    @atexit.register
    def fails():
        raise ValueError("at exit")
""", expect="at exit 0")
add("daemon thread printing at exit", """
    import threading, time, sys
    started = threading.Event()
    def work():
        print("daemon", flush=True)
        started.set()
        time.sleep(60)
        print("never")
    threading.Thread(target=work, daemon=True).start()
    started.wait()
""", expect="daemon")
add("threads that outlive main", """
    import threading, time
    def work():
        threading.main_thread().join()
        print("after main")
    threading.Thread(target=work).start()
    print("main ends")
""", expect="after main")
add("globals torn down", """
    import sys
    class Noisy:
        def __init__(self, name):
            self.name = name
        def __del__(self):
            print("deleted", self.name, sys is None, sorted(globals())[:3])
    one, _two = Noisy("one"), Noisy("two")
    print("ends")
""", expect="deleted one")
add("__del__ that fails at shutdown", """
    class Fails:
        def __del__(self):
            raise ValueError("in del")
    kept = Fails()
""", expect="Exception ignored in")
add("weakref.finalize", """
    import weakref
    class Thing: pass
    thing = Thing()
    weakref.finalize(thing, print, "finalized")
    reference = weakref.ref(thing, lambda _: print("gone"))
""", expect="finalized")
add("excepthook", """
    import sys
    sys.excepthook = lambda kind, value, trace: print("hook:", kind.__name__, value)
    raise KeyError("x")
""", expect="hook: KeyError", status=1)
add("unraisablehook", """
    import sys
    sys.unraisablehook = lambda args: print("unraisable:", args.exc_value)
    class Fails:
        def __del__(self):
            raise ValueError("one")
    del Fails
    class Again:
        def __del__(self):
            raise ValueError("two")
    kept = Again()
    Again()
""", expect="unraisable: two")
add("logging at exit", """
    import atexit, logging
    logging.basicConfig(filename="log.txt", format="%(levelname)s %(name)s %(module)s:%(lineno)d %(message)s")
    logging.warning("to the file")
    logging.getLogger("x").addHandler(logging.StreamHandler())
    logging.getLogger("x").error("to both")
    atexit.register(logging.error, "at exit")
    print(sorted(logging.root.manager.loggerDict))
""", expect="['x']")
