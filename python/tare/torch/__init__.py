"""Records phases, steps and epochs of a program that uses torch, without changes to the program.

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
    """(first step, step to end before or -1, interval of epochs or 0), as checked by `tare run`."""
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
    """When training begins: records the rank of a process that was not started by a launcher (mp.spawn)."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    if distributed.get_world_size() > 1:
        _core.fact("torch.rank", distributed.get_rank())
        _core.thread_name("rank %d" % distributed.get_rank())


def _begin_training():
    """Startup is over: imports are no longer timed, and the import hook is removed."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_ImportWatch"]
    _tell_rank()


def attach(torch):
    """Sets up all parts in this process. A part that does not fit this version of torch is skipped."""
    from importlib import import_module
    if not _core.recording():
        return
    in_worker = "multiprocessing.spawn" in sys.modules and "--multiprocessing-fork" in sys.argv
    _core.torch_setup(torch.is_grad_enabled, *((0, -1, 0) if in_worker else _window()))
    _core.torch_quiet(torch._C.DisableTorchFunction)
    for name in _PARTS:
        try:
            import_module("." + name, __name__).attach(torch)
        except Exception:  # another version of torch: this part is skipped
            _complain(name)
    os.register_at_fork(after_in_child=_core.torch_forked)
    atexit.register(_finish)
    _name_rank()
    _core.torch_on_training(_begin_training)
    _core.torch_lines_start(os.path.join(os.path.dirname(os.__file__), ""))
