"""The programs of test_same_output.py. Each prints only what does not depend on the run."""
import dataclasses
import sys

PLAIN = ((),)
TORCH = ((), ("--ops", "--shapes"))
ALL = ((), ("--ops",), ("--ops", "--shapes"))
SEEN = ["print(os.environ.get('TARE_SESSION'))", "print(os.getppid())"]


@dataclasses.dataclass
class Program:
    """A script, how it is started, and what shows that it did what it is there for."""
    files: dict
    words: tuple = ("PYTHON", "script.py")
    expect: str = ""
    status: int = 0
    needs: tuple = ()
    modes: tuple = PLAIN
    env: dict = dataclasses.field(default_factory=dict)
    text_in: str = ""
    compares_files: bool = True

    def changed(self, code):
        return dataclasses.replace(self, files={"script.py": code}, expect="")


PROGRAMS = {}


def add(name, code, *, options=(), more=None, **named):
    assert name not in PROGRAMS, name
    if "words" not in named:
        named["words"] = ("PYTHON", *options, "script.py")
    PROGRAMS[name] = Program({"script.py": code, **(more or {})}, **named)


def add_torch(name, code, *, needs=(), modes=TORCH, **named):
    add(name, code, needs=("torch", *needs), modes=modes, **named)


# ---- how a program ends ------------------------------------------------------------------------------------------

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

# ---- how a program is started ------------------------------------------------------------------------------------

add("python -c", "", words=("PYTHON", "-c", "import sys; print(sys.argv, sys.flags, __name__, sys.path[0])"),
    expect="'-c'")
add("python -m", "print(__name__, __package__, __file__)", more={"folder/__init__.py": "", "folder/__main__.py": """
    import sys
    print(__name__, __package__, sys.argv[1:])
"""}, words=("PYTHON", "-m", "folder", "one", "two"), expect="__main__ folder ['one', 'two']")
add("script from stdin", "", words=("PYTHON", "-"), text_in="import sys\nprint(__name__, sys.argv)\n1/0\n",
    expect="ZeroDivisionError", status=1)
add("zipapp", """
    import subprocess, sys, zipapp, os
    os.mkdir("app")
    open("app/__main__.py", "w").write("import sys; print(__name__, sys.argv[1:]); raise SystemExit(4)")
    zipapp.create_archive("app", "app.pyz")
    code = subprocess.call([sys.executable, "app.pyz", "x"])
    os.remove("app.pyz")
    sys.exit(code)
""", expect="__main__ ['x']", status=4)
for _option in ("-I", "-S", "-E", "-s", *(["-P"] if sys.version_info >= (3, 11) else []), "-O", "-u", "-B", "-q", "-bb"):
    add("python " + _option, """
        import os, sys
        print(sys.flags)
        ours = os.environ.get("PYTHONPATH", "").split(":") if sys.flags.no_site else []  # the hook has not run
        print([path for path in sys.path if path not in ours], sorted(sys.modules))
        print(sys.argv, __debug__)
    """, options=(_option,), expect="sys.flags")
add("-W error", """
    import warnings
    warnings.warn("becomes an error")
""", options=("-W", "error"), expect="UserWarning: becomes an error", status=1)
add("-X dev", """
    import warnings, sys
    print(sys.warnoptions, sys.flags.dev_mode)
    open("script.py")
    warnings.warn("old", DeprecationWarning)
""", options=("-X", "dev"), expect="ResourceWarning")
add("-X utf8=0 in C", "import sys; print(sys.stdout.encoding, sys.getfilesystemencoding(), ascii('é'))",
    options=("-X", "utf8=0"), env={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}, expect="ascii")
add("-X tracemalloc", """
    import tracemalloc
    kept = [bytes(1000) for _ in range(100)]
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
    print([(trace.traceback[0].lineno, trace.size, trace.count) for trace in snapshot.statistics("lineno")
           if trace.size > 50000], tracemalloc.get_traceback_limit())
""", options=("-X", "tracemalloc=5"), expect="[(3, ")
add("warnings as errors", """
    import warnings
    warnings.simplefilter("error")
    print([one[:3] for one in warnings.filters[:1]])
    def old():
        warnings.warn("old", DeprecationWarning)
    old()
""", expect="DeprecationWarning: old", status=1)
add("warnings once a line", """
    import warnings
    for _ in range(3):
        warnings.warn("each line once")
""", expect="each line once")
add("closed streams", """
    import os, sys
    sys.stdout.close()
    os.close(0)
    sys.stderr.write("still here\\n")
""", expect="still here")
add("stdin is read", "import sys; print(len(sys.stdin.read()), sys.stdin.isatty())", text_in="four",
    expect="4 False")
add("descriptors", """
    import os, resource
    print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3], os.open("script.py", os.O_RDONLY))
    print(resource.getrlimit(resource.RLIMIT_NOFILE), os.umask(0o22))
""", expect="[0, 1, 2]")

for _name, _code, _expect, _status in (
        ("raises", "def inner():\n    raise ValueError('at import')\ninner()\n", "ValueError: at import", 1),
        ("imports nothing", "import time\ntime.sleep(0.01)\nimport no_such_module\n", "ModuleNotFoundError", 1),
        ("has bad syntax", "x = = 2\n", "SyntaxError", 1),
        ("exits", "import sys\nsys.exit(5)\n", "", 5),
        ("warns", "import warnings\nwarnings.warn('old module', DeprecationWarning, stacklevel=2)\n", "old module", 0),
        ("is interrupted", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): pass\n",
         "KeyboardInterrupt", 130)):
    add("a module that " + _name, """
        import package.part
        print("imported")
    """, more={"package/__init__.py": "", "package/part.py": _code}, expect=_expect, status=_status)

# ---- processes, threads, tasks -----------------------------------------------------------------------------------

for _method in ("fork", "spawn", "forkserver"):
    add("multiprocessing " + _method, """
        import multiprocessing, sys
        def work(x):
            print("worker", x, flush=True)
            return x * x
        def fails(x):
            raise ValueError("in a worker")
        if __name__ == "__main__":
            multiprocessing.set_start_method("%s")
            with multiprocessing.Pool(1) as pool:
                print(pool.map(work, range(3)))
            process = multiprocessing.Process(target=sys.exit, args=(5,))
            process.start(); process.join()
            print(process.exitcode)
            process = multiprocessing.Process(target=fails, args=(1,), name="failing")
            process.start(); process.join()
            print(process.exitcode)
    """ % _method, expect="ValueError: in a worker")
add("subprocess", """
    import subprocess, sys
    print(subprocess.run([sys.executable, "-c", "import sys; print(sys.path[1:], 'child'); sys.exit(9)"]).returncode,
          flush=True)
    print(subprocess.run(["sh", "-c", "echo out; echo err >&2; kill -9 $$"]).returncode)
""", expect="child")
add("a child that outlives it", """
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5); print('late')"])
    print("first", flush=True)
""", expect="late")
add("os.fork and exec", """
    import os, sys
    sys.stdout.flush()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "print('after exec')"])
    print(os.wait()[1])
""", expect="after exec")
add("concurrent.futures", """
    import concurrent.futures as futures
    def work(x):
        if x == 3:
            raise ValueError(x)
        return x
    if __name__ == "__main__":
        for kind in (futures.ThreadPoolExecutor, futures.ProcessPoolExecutor):
            with kind(2) as pool:
                print([type(one.exception()).__name__ for one in [pool.submit(work, x) for x in range(4)]])
""", expect="ValueError")
add("asyncio", """
    import asyncio
    async def fails():
        raise ValueError("in a task")
    async def main():
        asyncio.create_task(fails(), name="failing")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        print("main ends")
    asyncio.run(main())
""", expect="Task exception was never retrieved", options=("-X", "utf8"))
add("asyncio debug", """
    import asyncio
    async def never(): pass
    async def main():
        never()
        print(asyncio.get_running_loop().get_debug())
    asyncio.run(main(), debug=True)
""", expect="was never awaited")

# ---- programs that look at the interpreter -----------------------------------------------------------------------

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
    print(sorted(vars(builtins)), [one.name for one in threading.enumerate()], sys.getprofile(), sys.gettrace(), sys.getswitchinterval())
    print(sys.getrecursionlimit(), sys.displayhook, sys.getallocatedblocks() > 0)
""", expect="MainThread")
add("tempfile and cwd", """
    import os, tempfile
    with tempfile.TemporaryDirectory() as folder:
        print(tempfile.gettempdir(), sorted(os.listdir(".")), os.listdir(folder))
    with open("result.txt", "w") as out:
        out.write("x" * 10)
""", expect="script.py")

# ---- torch -------------------------------------------------------------------------------------------------------

MODEL = """
    import torch
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    def train(steps, model=model, optimizer=optimizer):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(torch.ones(3, 4)).square().mean()
            loss.backward()
            optimizer.step()
        return loss
"""


def add_training(name, code, **named):
    import textwrap
    add_torch(name, textwrap.dedent(MODEL) + textwrap.dedent(code), **named)


add_training("model and optimizer of the module", """
    print("%.6f" % train(70).item())
""", expect="0.", modes=ALL)
add_training("exit in the middle of a step", """
    import sys
    model.register_forward_hook(lambda *words: sys.exit(6) if train.__dict__.setdefault("n", 0) == 20
                                else train.__dict__.update(n=train.n + 1))
    train(100)
""", status=6)
add_training("exception in forward", """
    train(3)
    model(torch.ones(3, 5))
""", expect="mat1 and mat2 shapes cannot be multiplied", status=1, modes=ALL)
add_training("exception in a module's own forward", """
    class Fails(torch.nn.Module):
        def forward(self, x):
            raise ValueError("in forward")
    torch.nn.Sequential(Fails())(torch.ones(1))
""", expect="ValueError: in forward", status=1)
add_training("exception in backward", """
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2
        @staticmethod
        def backward(ctx, grad):
            raise ValueError("in backward")
    Fails.apply(model(torch.ones(3, 4))).sum().backward()
""", expect="ValueError: in backward", status=1)
add_training("backward twice", """
    loss = model(torch.ones(3, 4)).sum()
    loss.backward()
    loss.backward()
""", expect="Trying to backward through the graph a second time", status=1)
add_torch("optimizer without parameters", """
    import torch
    torch.optim.SGD([], lr=0.1)
""", expect="ValueError: optimizer got an empty parameter list", status=1)
add_training("exception in an optimizer's step", """
    class Fails(torch.optim.SGD):
        def step(self, closure=None):
            raise ValueError("in step")
    train(1, optimizer=Fails(model.parameters(), lr=0.1))
""", expect="ValueError: in step", status=1)
add_torch("exception in a dataset", """
    import torch
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            if index == 5:
                raise IndexError("no such item")
            return torch.ones(2) * index
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2):
        print(batch.shape)
""", expect="IndexError: no such item", status=1)
add_torch("exception in a worker's dataset", """
    import torch
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, index):
            if index == 5:
                raise ValueError("no such item")
            return torch.ones(2) * index
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
        print(batch.shape)
""", expect="ValueError: no such item", status=1)
for _method in ("fork", "spawn", "forkserver"):
    add_torch("loader's workers by " + _method, """
        import torch
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 12
            def __getitem__(self, index):
                return torch.ones(3) * index
        if __name__ == "__main__":
            loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, persistent_workers=True,
                                                 multiprocessing_context="%s")
            for _ in range(2):
                print([batch.sum().item() for batch in loader])
    """ % _method, expect="[18.0, 66.0, 114.0]", modes=PLAIN if _method != "fork" else TORCH)
add_torch("import torch.distributed", """
    import torch
    import torch.distributed
    import torch.distributed as dist
    from torch.distributed import *
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(70):
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        optimizer.step()
    print("done")
""", expect="done")
add_torch("DDP with two ranks", """
    import os, sys, torch, torch.distributed as dist, torch.multiprocessing as multiprocessing
    def work(rank, folder):
        dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(40):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        if rank == 0:
            print("trained", flush=True)
        dist.destroy_process_group()
    if __name__ == "__main__":
        multiprocessing.spawn(work, (os.getcwd(),), nprocs=2)
""", expect="trained", modes=PLAIN, compares_files=False)
add_training("torch.compile", """
    import logging
    torch._logging.set_logs(all=logging.ERROR)  # warnings have times in them
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for size in (3, 3, 5):
        print(compiled(torch.ones(size, 4)).shape)
    @torch.compile(backend="eager")
    def step():
        optimizer.step()
    model(torch.ones(1, 4)).sum().backward()
    step()
    print(torch._dynamo.utils.counters["graph_break"], torch._dynamo.utils.counters["stats"])
""", expect="torch.Size([5, 2])")
add_training("torch.jit and torch.export", """
    print(torch.jit.script(model).code)
    print(torch.jit.trace(model, torch.ones(1, 4)).graph)
    print(torch.export.export(model, (torch.ones(1, 4),)).graph_module.code)
    print(torch.fx.symbolic_trace(model).code)
""", expect="def forward")
add_training("save, load and pickle", """
    import copy, io, pickle, pickletools
    train(20)
    torch.save(model, "model.pt"); torch.save(optimizer.state_dict(), "optimizer.pt"); torch.save(optimizer, "whole.pt")
    copied = copy.deepcopy((model, optimizer))
    for data in (pickle.dumps(model), pickle.dumps(optimizer), pickle.dumps(copied)):
        print(b"tare" in data, len(data))
    print(pickle.loads(pickle.dumps(optimizer)))
    print(sorted(vars(model)), sorted(vars(optimizer)))
    torch.load("model.pt", weights_only=False)
""", expect="False")
add_training("loop kept in lists", """
    losses = [train(1) for _ in range(60)]
    total = 0
    for _ in range(60):
        total = total + train(1)
    print(len(losses), total.requires_grad)
""", expect="60 True")
add_training("functions that are watched", """
    import inspect, pickle, re, torch.optim.optimizer, torch.utils.data.dataloader as loaders
    from torch.utils.data._utils import fetch
    plain = lambda text: re.sub("0x[0-9a-f]+", "0x", text)
    train(2)
    for one in (torch.nn.Module.__call__, torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad,
                torch.optim.Optimizer.__init__, torch.optim.Adam.step, torch.optim.SGD.step, torch.amp.GradScaler.step,
                torch.utils.data.DataLoader.__iter__, loaders._BaseDataLoaderIter.__next__,
                loaders._BaseDataLoaderIter.__init__, fetch._MapDatasetFetcher.fetch,
                fetch._MapDatasetFetcher.__init__, fetch._IterableDatasetFetcher.fetch,
                torch.autograd._engine_run_backward, torch.set_num_threads, torch.set_num_interop_threads,
                torch.profiler.profile.export_chrome_trace, torch.autograd.profiler.profile.export_chrome_trace,
                torch.autograd.profiler.record_function.__enter__, torch.autograd.profiler.record_function.__exit__,
                torch.Tensor.to, torch.Tensor.item, torch.cuda.synchronize):
        print(plain(repr(one)), one.__name__, one.__qualname__, getattr(one, "__module__", None),
              plain(str(one.__doc__))[:60])
        try:
            print(inspect.signature(one))
        except ValueError as error:
            print(plain(str(error)))
        try:
            print(pickle.loads(pickle.dumps(one)) is one)
        except Exception as error:
            print(type(error))
        print(inspect.isfunction(one), inspect.isbuiltin(one), inspect.isroutine(one), one.__class__)
        if inspect.isfunction(one):
            lines, first = inspect.getsourcelines(one)
            print(first, len(lines), one.__code__.co_filename, one.__code__.co_name, sorted(vars(one)))
    print(torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward)
""", expect="_wrapped_call_impl", modes=((), ("--ops",)))
add_training("torch.profiler of its own", """
    import json
    from torch.profiler import ProfilerActivity, profile, record_function, schedule
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2),
                 record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(4):
            with record_function("block"):
                train(1)
            prof.step()
    print(sorted((row.key, row.count, row.cpu_memory_usage) for row in prof.key_averages()
                 if ".py(" not in row.key and not row.key.startswith(("<", "nn.Module"))))
    prof.export_chrome_trace("trace.json")
    events = json.load(open("trace.json"))["traceEvents"]
    print(sum("Input Dims" in one.get("args", {}) for one in events), sum(one["name"] == "[memory]" for one in events))
    import os; os.remove("trace.json")
""", expect="block", modes=PLAIN)
add_training("anomalies", """
    with torch.autograd.detect_anomaly():
        x = torch.zeros(1, requires_grad=True)
        (torch.sqrt(x) * 0).sum().backward()
""", expect="returned nan values", status=1, modes=PLAIN)
add_training("warnings of torch are errors", """
    import warnings
    warnings.simplefilter("error")
    train(70)
    torch.tensor([1.0]).grad
    torch.ones(2, requires_grad=True).sum().grad
""", expect="UserWarning", status=1)
add_training("-X dev and torch", """
    print("%.4f" % train(40).item())
""", options=("-X", "dev"), expect="0.", modes=ALL)
add_training("-W error and torch", """
    print("%.4f" % train(40).item())
""", options=("-W", "error"), expect="0.")
add_training("modes and subclasses that print", """
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            print("function", getattr(func, "__name__", func))
            return func(*args, **(kwargs or {}))
    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print("dispatch", func)
            return func(*args, **(kwargs or {}))
    class Printing(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print("subclass", getattr(func, "__name__", func))
            return super().__torch_function__(func, types, args, kwargs or {})
    with Functions():
        train(40)
    with Dispatch():
        train(2)
    batches = torch.utils.data.DataLoader([torch.ones(4).as_subclass(Printing)] * 4, batch_size=2)
    for batch in batches:
        model(batch).sum().backward()
    kept = torch.ones(2, requires_grad=True).as_subclass(Printing)
    train(70)
""", expect="subclass")
add_training("objects that print when they are asked", """
    class Proxy:
        def __getattribute__(self, name):
            print("asked for", name)
            return object.__getattribute__(self, name)
        def __eq__(self, other):
            print("compared")
            return NotImplemented
        def __hash__(self):
            print("hashed")
            return 1
    proxy, holder = Proxy(), [Proxy()]
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = torch.nn.Linear(4, 2)
        def __getattr__(self, name):
            print("missing", name)
            return super().__getattr__(name)
        def __eq__(self, other):
            print("model compared")
            return self is other
        def __hash__(self):
            print("model hashed")
            return 2
        def named_modules(self, *words, **named):
            print("modules listed")
            return super().named_modules(*words, **named)
        def forward(self, x):
            return self.part(x)
    class Adam(torch.optim.Adam):
        def __hash__(self):
            print("optimizer hashed")
            return 3
        def __eq__(self, other):
            print("optimizer compared")
            return self is other
    other = Model()
    print(train(70, other, Adam(other.parameters())).shape)
    class Batch:
        def __getattr__(self, name):
            print("batch is asked for", name)
            raise AttributeError(name)
        def __getattribute__(self, name):
            print("batch has", name)
            return super().__getattribute__(name)
    for batch in torch.utils.data.DataLoader([1, 2, 3], collate_fn=lambda items: Batch()):
        print(type(batch).__name__)
""", expect="torch.Size([])", modes=ALL)
add_training("objects of the program deleted at shutdown", """
    import atexit, weakref
    class Noisy(torch.nn.Module):
        def forward(self, x):
            return x
        def __del__(self):
            print("model deleted", torch is None)
    noisy = Noisy()
    noisy(torch.ones(1))
    optimizer.noisy = noisy
    weakref.finalize(optimizer, print, "optimizer finalized")
    reference = weakref.ref(model, lambda _: print("model gone"))
    atexit.register(lambda: print("last", len(list(model.parameters()))))
    import sys
    sys.kept = (model, optimizer)
    train(5)
""", expect="last 4", modes=ALL)
add_training("many models and optimizers", """
    for _ in range(30):
        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(2, model, optimizer)
    import gc; gc.collect()
    print("done")
""", expect="done", modes=ALL)
add_training("os._exit after training", """
    import os
    train(20)
    print("flushed", flush=True)
    os._exit(8)
""", expect="flushed", status=8)
add_training("killed while training", """
    import os, signal
    train(20)
    print("flushed", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    import time; time.sleep(60)
""", expect="flushed", status=143)
add_training("threads train", """
    import threading
    threads = [threading.Thread(target=lambda: train(10, *make())) for _ in range(2)]
    def make():
        model = torch.nn.Linear(4, 2)
        return model, torch.optim.SGD(model.parameters(), lr=0.1)
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    # One that waits when the program ends: torch itself may abort where it is still training then.
    trained = threading.Event()
    threading.Thread(target=lambda: (train(2, *make()), trained.set(), __import__("time").sleep(60)), daemon=True).start()
    trained.wait(60)
    print("done")
""", expect="done")
add_torch("torch's globals", """
    import sys, torch
    print([name for name in sorted(vars(torch)) if "tare" in name], len(sys.path_hooks))
    print(torch.get_num_threads(), torch.is_grad_enabled(), torch._C._get_tracing_state())
    print(sorted(name for name in sys.modules if name.partition(".")[0] not in ("torch", "tare", "numpy")))
""", expect="[]")
add_torch("failing import after torch", """
    import torch, torch.no_such_part
""", expect="ModuleNotFoundError", status=1, modes=PLAIN)

# ---- frameworks --------------------------------------------------------------------------------------------------

add_torch("Lightning", """
    import logging, torch, lightning
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, _):
            return self.layer(batch).mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    lightning.seed_everything(0, verbose=False)
    model = Model()
    trainer = lightning.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                accelerator="cpu")
    trainer.fit(model, torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2))
    print(trainer.global_step)
""", needs=("lightning",), expect="8", modes=ALL)
add_torch("Transformers' Trainer", """
    import torch, transformers
    transformers.logging.set_verbosity_error()
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30))
    data = [{"input_ids": torch.arange(4), "labels": torch.tensor(1)} for _ in range(6)]
    arguments = transformers.TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=2, report_to=[],
                                               disable_tqdm=True, save_strategy="no", use_cpu=True)
    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    trainer.remove_callback(transformers.PrinterCallback)  # it prints times
    trainer.train()
    print(trainer.state.global_step)
""", needs=("transformers", "accelerate"), expect="3", compares_files=False)
add_torch("accelerate", """
    import torch, accelerate
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(2, 1)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1),
                                                   torch.utils.data.DataLoader(torch.ones(6, 2), batch_size=2))
    for batch in loader:
        optimizer.zero_grad()
        accelerator.backward(model(batch).sum())
        optimizer.step()
    print("done")
""", needs=("accelerate",), expect="done")
add_torch("torch beside lightning, transformers and scikit-learn", """
    import torch, lightning, transformers, sklearn.linear_model
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    print(sklearn.linear_model.LinearRegression().fit([[0], [1]], [0, 1]).predict([[2]]).round(3))
""", needs=("lightning", "transformers", "sklearn"), expect="[2.]", modes=ALL)
add("scikit-learn with joblib", """
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score
    data = make_classification(100, random_state=0)
    print(cross_val_score(RandomForestClassifier(5, random_state=0), *data, n_jobs=2, cv=3))
    from sklearn.linear_model import LogisticRegression
    LogisticRegression(max_iter=1).fit(*data)
""", needs=("sklearn",), expect="ConvergenceWarning")
add("pandas", """
    import pandas
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
    print(frame.describe(include="all"), frame.isna())
    frame.to_csv("frame.csv")
    frame["c"]
""", needs=("pandas",), expect="KeyError: 'c'", status=1)
add("matplotlib", """
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    for _ in range(21):
        plt.figure()
    plt.plot([1, 2])
    print(plt.get_fignums()[-1])
""", needs=("matplotlib",), expect="More than 20 figures")
