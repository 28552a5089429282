"""Programs that look at torch, or make it hard to watch."""
from ._table import ALL, PLAIN, add_torch, add_training

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
add_training("profilers that are pickled", """
    import copy, pickle, torch.autograd.profiler as switches
    for one in (switches._enable_profiler, switches._disable_profiler, torch.profiler.profile.export_chrome_trace):
        print(pickle.dumps(one), copy.copy(one) is copy.deepcopy(one) is one, pickle.loads(pickle.dumps(one)).__name__)
""", expect="_enable_profiler", modes=((), ("--ops",)))
add_training("torch.profiler of its own, later than the first steps", """
    from torch.profiler import ProfilerActivity, profile
    train(2)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        train(4)
    print(sorted((event.name, str(event.input_shapes)) for event in prof.events()))
    train(4)
""", expect="aten::addmm", modes=(("--ops", "--shapes"),))
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
""", expect="block", modes=((), ("--ops", "--shapes")), every=True)
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
    work = lambda: (train(2, *make()), trained.set(), __import__("time").sleep(60))
    threading.Thread(target=work, daemon=True).start()
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
