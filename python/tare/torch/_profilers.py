"""The program's own torch.profiler: how long it runs, and which files it writes. `tare run` adds these files to
its trace when the program has ended; nothing is read while it runs."""
import importlib
import os
import sys
import threading
import time

from .. import _core

_WRITERS = (("torch.profiler.profiler", "_KinetoProfile"), ("torch.autograd.profiler", "profile"))


class _Thread(threading.local):
    writing = 0  # one of torch's functions of this name calls the other
    since = ()  # start times of running profilers: None for Tare's own use of it


_thread = _Thread()


def _is_ours():
    """Tare itself uses torch's profiler, for what only that can measure."""
    frame = sys._getframe(1)
    for _ in range(10):
        if frame is None:
            return False
        module = frame.f_globals.get("__name__") or ""
        if module.startswith("tare.") and not module.startswith("tare.torch."):
            return True
        frame = frame.f_back
    return False


def _begin_writing(words, named):
    _thread.writing += 1


def _end_writing(words, named, raised):
    _thread.writing -= 1
    path = words[1] if len(words) > 1 else named.get("path")
    if not raised and not _thread.writing and not _is_ours():
        _core.fact("torch.profiler.wrote", file=os.path.abspath(os.fsdecode(path)))


def _begun(words, named, raised):
    if not raised:
        activities = words[1] if len(words) > 1 else named.get("activities")
        ours = not activities or _is_ours()  # none: emit_itt, emit_nvtx
        _thread.since += (None if ours else time.perf_counter(),)


def _ends(words, named):
    since = _thread.since[-1] if _thread.since else None
    _thread.since = _thread.since[:-1]
    if since is not None:
        _core.fact("torch.profiler.seconds", time.perf_counter() - since)


def attach(torch):
    for module_name, class_name in _WRITERS:
        kind = getattr(importlib.import_module(module_name), class_name)
        kind.export_chrome_trace = _core.TorchAround(kind.export_chrome_trace, "reported", _begin_writing, _end_writing)
    switches = importlib.import_module("torch.autograd.profiler")
    switches._enable_profiler = _core.TorchAround(switches._enable_profiler, "reported", None, _begun)
    switches._disable_profiler = _core.TorchAround(switches._disable_profiler, "reported", _ends)
