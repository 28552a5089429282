"""The program's own torch.profiler: how long it is at work, and which files it writes. `tare run` adds these files to
its trace when the program has ended; nothing is read while it runs."""
import functools
import importlib
import os
import sys
import threading
import time

from .. import _core

_WRITERS = (("torch.profiler.profiler", "_KinetoProfile"), ("torch.autograd.profiler", "profile"))


class _Thread(threading.local):
    writing = 0  # one of torch's calls of this name makes use of the other
    since = ()  # when profilers that are at work began: None for Tare's own use of it


_thread = _Thread()


def _is_ours():
    """Tare itself makes use of torch's profiler, where only that can tell."""
    frame = sys._getframe(2)
    for _ in range(10):
        if frame is None:
            return False
        module = frame.f_globals.get("__name__") or ""
        if module.startswith("tare.") and not module.startswith("tare._torch."):
            return True
        frame = frame.f_back
    return False


def _noting_file(function):
    @functools.wraps(function)
    def export_chrome_trace(self, path, *words, **named):
        _thread.writing += 1
        try:
            result = function(self, path, *words, **named)
        finally:
            _thread.writing -= 1
        try:
            if not _thread.writing and not _is_ours():
                _core.mark("torch.profiler wrote " + os.path.abspath(os.fspath(path)))
        except Exception:  # no path at all: torch has taken it, whatever it was
            pass
        return result
    return export_chrome_trace


def _noting_begin(function):
    @functools.wraps(function)
    def _enable_profiler(config, activities, *words, **named):
        result = function(config, activities, *words, **named)
        _thread.since += (None if not activities or _is_ours() else time.perf_counter(),)  # none: emit_itt, emit_nvtx
        return result
    return _enable_profiler


def _noting_end(function):
    @functools.wraps(function)
    def _disable_profiler(*words, **named):
        since = _thread.since[-1] if _thread.since else None
        _thread.since = _thread.since[:-1]
        if since is not None:
            _core.counter("torch.profiler.seconds", time.perf_counter() - since)
        return function(*words, **named)
    return _disable_profiler


def attach(torch):
    for module_name, class_name in _WRITERS:
        kind = getattr(importlib.import_module(module_name), class_name)
        kind.export_chrome_trace = _noting_file(kind.export_chrome_trace)
    switches = importlib.import_module("torch.autograd.profiler")
    switches._enable_profiler = _noting_begin(switches._enable_profiler)
    switches._disable_profiler = _noting_end(switches._disable_profiler)
