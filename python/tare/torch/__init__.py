"""Watches a program that uses torch, without a change to it: phases, steps and epochs.

Loaded by the start-up hook of `tare run` once the program has imported torch. Nothing here may raise into the program,
print, or change what it computes."""
import atexit
import os
import sys

from .. import _core

_PARTS = ("_loader", "_forward", "_modules", "_backward", "_graph", "_optimizer", "_loops", "_compile", "_device",
          "_threads", "_save", "_profilers", "_operators")


def _complain(what):
    if os.environ.get("TARE_VERBOSE"):
        sys.stderr.write("tare: torch: %s: %s: %s\n" % (what, *sys.exc_info()[:2]))


def _window():
    """(first step, step to end before or -1, every so many epochs or 0), as `tare run` has checked them."""
    first, _, end = os.environ.get("TARE_STEPS", "").partition(":")
    return int(first or 0), int(end or -1), int(os.environ.get("TARE_EVERY_EPOCHS") or 0)


def _finish():
    _core.torch_lines_stop()
    _core.torch_finish()


def _name_rank():
    rank = os.environ.get("RANK")
    if rank and os.environ.get("WORLD_SIZE"):
        _core.thread_name("rank %s" % rank)


def _tell_rank():
    """When training begins: the rank of a process that no launcher started as one (mp.spawn)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    if distributed.get_world_size() > 1:
        _core.fact("torch.rank", distributed.get_rank())
        _core.thread_name("rank %d" % distributed.get_rank())


def _begin_training():
    """Startup is over: imports are timed no longer, and nothing of that stays with the program."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_ImportWatch"]
    _tell_rank()


def attach(torch):
    """Sets all of it up in this process. A part that does not fit this torch is left out, the others stay."""
    from importlib import import_module
    if not _core.recording():
        return
    in_worker = "multiprocessing.spawn" in sys.modules and "--multiprocessing-fork" in sys.argv
    _core.torch_setup(torch.is_grad_enabled, *((0, -1, 0) if in_worker else _window()))
    _core.torch_quiet(torch._C.DisableTorchFunction)
    for name in _PARTS:
        try:
            import_module("." + name, __name__).attach(torch)
        except Exception:  # another version of torch: this part is left out
            _complain(name)
    os.register_at_fork(after_in_child=_core.torch_forked)
    atexit.register(_finish)
    _name_rank()
    _core.torch_on_training(_begin_training)
    _core.torch_lines_start(os.path.join(os.path.dirname(os.__file__), ""))
