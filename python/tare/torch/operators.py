"""Torch's own reports of its operators, enabled for the calling thread: `aten::mm` begins, `aten::mm` ends. Their
receiver is C, libtare-itt.so or libtare-nvtx.so, which `tare run --ops` names in the environment.

While they are enabled, torch refuses to start a profiler on the same thread. So they are disabled before the program's
own profiler starts, and enabled again when it has ended."""
import atexit
import os
import threading

from .. import _core

__all__ = ["start", "stop", "wanted", "why_not"]

_INTERFACES = (("INTEL_LIBITTNOTIFY64", "libtare-itt.so", "ITT"), ("NVTX_INJECTION64_PATH", "libtare-nvtx.so", "NVTX"))
# Where torch switches its profilers on and off: module, what starts one, what ends it.
_SWITCHES = (("torch.autograd.profiler", ("_prepare_profiler", "_enable_profiler"), "_disable_profiler"),
             ("torch.autograd.profiler_legacy", ("_enable_profiler_legacy",), "_disable_profiler_legacy"))


class _Thread(threading.local):
    on = False  # torch reports its operators
    held = False  # suspended for the program's own profiler
    foreign = 0  # running profilers of the program
    ranges = 0  # record_functions that were entered meanwhile and are open


_thread = _Thread()
_reason = "torch was not requested to report its operators"
_watched = False
before_profiler = None  # called before the program's own profiler starts, to suspend other uses


def profiler_runs():
    """Whether the program's own profiler runs on this thread."""
    return _thread.foreign > 0


def wanted():
    """Whether this program was started with `tare run --ops`."""
    return os.environ.get("TARE_OPS") == "1"


def why_not():
    """A sentence: why no operators are recorded on this thread. None: they are."""
    if _thread.on:
        return None
    if _thread.held:
        return "the program's own torch.profiler is at work"
    return _reason or "operators are recorded on the thread that imported torch"


def _interface(torch):
    """Name of the interface that has a listener and that this torch supports; None and a sentence otherwise."""
    listening = [name for variable, library, name in _INTERFACES
                 if os.path.basename(os.environ.get(variable, "")) == library]
    if not listening:
        return None, "no library of Tare's listens: start the program with tare run --ops"
    if "ITT" in listening and torch.profiler.itt.is_available():
        return "ITT", None
    if "NVTX" in listening and torch.version.cuda:
        return "NVTX", None
    return None, "torch %s reports its operators neither by ITT nor, as a CUDA build, by NVTX" % torch.__version__


def _switch_on(state):
    """As torch.autograd.profiler.emit_itt and emit_nvtx do, but without the latter's synchronize."""
    from torch._C._autograd import _enable_profiler
    from torch.autograd.profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig
    config = ProfilerConfig(getattr(ProfilerState, state), False, False, False, False, False, _ExperimentalConfig())
    _enable_profiler(config, set())


def start():
    """Starts recording operators of this thread, and of the threads that autograd runs for it. False: they are not
    recorded, and why_not() returns the reason. A second start has no effect."""
    global _reason
    import torch
    if _thread.foreign:
        _thread.held = True
    if _thread.on or _thread.held:
        return _thread.on
    state, _reason = _interface(torch)
    if state is None:
        return False
    try:
        _switch_on(state)
    except (RuntimeError, TypeError, AttributeError, ImportError) as error:
        _reason = "torch did not switch it on: %s" % str(error).split("\n")[0]
        return False
    _thread.on = True
    _watch_profilers()
    if os.environ.pop("TARE_SHAPES", None) == "1":  # once, and not in processes that this one starts
        from . import shapes
        shapes.prepare()
    return True


def _switch_off():
    """Ends only our own profiler: others end any active profiler (Lightning does), and ending one that does not exist
    makes torch free the next one's results twice."""
    import torch._C._autograd as switches
    kind = getattr(switches, "_profiler_type", None)
    if switches._profiler_enabled() and (kind is None or kind().name in ("ITT", "NVTX")):
        switches._disable_profiler()


def stop():
    """Stops recording operators of this thread."""
    global _reason
    if _thread.on:
        _switch_off()
        _reason = "recording of operators was stopped"
    _thread.on = _thread.held = False


# ---- beside the program's own profiler -------------------------------------------------------------------------------

def _step_aside():
    if _thread.on:
        stop()
        _thread.held = True
    elif before_profiler is not None and before_profiler():
        _thread.held = True


def _come_back():
    """Not while a range is open that began under the program's profiler: its end would be attributed to any profiler
    that is active then."""
    if _thread.held and _thread.foreign == 0 and _thread.ranges == 0 and not _in_backward():
        _thread.held = False
        start()


def _in_backward():
    import torch
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def _entered(words, named, raised):
    """One of torch's record_functions, which optimizers and frameworks use, too."""
    if _thread.foreign and not raised:
        (_core.torch_dict_of(words[0]) or {})["_tare_counts"] = True
        _thread.ranges += 1


def _left(words, named, raised):
    if (_core.torch_dict_of(words[0]) or {}).pop("_tare_counts", False):
        _thread.ranges = max(0, _thread.ranges - 1)
        _come_back()


def _before(function, counts):
    """Wraps a function that starts a profiler, or only prepares it."""
    def started(words, named, raised):
        if raised:
            _come_back()
        else:
            _thread.foreign += counts
    return _core.TorchAround(function, "reported", lambda words, named: _step_aside(), started)


def _ended(words, named, raised):
    _thread.foreign = max(0, _thread.foreign - 1)
    _come_back()


def _watch_profilers():
    """Once per process. These are the functions that torch's own Python code calls; no other name changes."""
    global _watched
    if _watched:
        return
    _watched = True
    atexit.register(stop)  # torch warns about a listener that still exists at shutdown
    import importlib
    from torch.autograd.profiler import record_function
    record_function.__enter__ = _core.TorchAround(record_function.__enter__, "reported", None, _entered)
    record_function.__exit__ = _core.TorchAround(record_function.__exit__, "reported", None, _left)
    for module_name, starters, ender in _SWITCHES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        for name in starters:
            if hasattr(module, name):
                setattr(module, name, _before(getattr(module, name), "enable" in name))
        if hasattr(module, ender):
            setattr(module, ender, _core.TorchAround(getattr(module, ender), "reported", None, _ended))
