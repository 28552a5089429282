"""Optimizer steps by torch's own global hooks, and how many optimizers there are."""
import weakref

from .. import _core

_alive = set()  # ids


def _gone(reference):
    _alive.discard(reference)
    _core.torch_optimizers(len(_alive))


def _count_made(base):
    made = base.__init__

    def __init__(self, *words, **named):
        made(self, *words, **named)
        try:
            _alive.add(weakref.ref(self, _gone))
            _core.torch_optimizers(len(_alive))
        except Exception:  # an optimizer that cannot be referred to is not counted
            pass

    __init__.__wrapped__ = made
    base.__init__ = __init__


def _hooks(is_compiling, begin, end):
    """Python around the calls into C, so that torch.compile reads through them and finds nothing."""
    def before_step(optimizer, args, kwargs):
        if not is_compiling():
            begin(optimizer)

    def after_step(optimizer, args, kwargs):
        if not is_compiling():
            end(optimizer)
    return before_step, after_step


def attach(torch):
    from torch.optim import optimizer
    before, after = _hooks(torch.compiler.is_dynamo_compiling, _core.torch_optimizer_begin, _core.torch_optimizer_end)
    optimizer.register_optimizer_step_pre_hook(before)
    optimizer.register_optimizer_step_post_hook(after)
    _count_made(optimizer.Optimizer)
    scaler = torch.amp.GradScaler
    scaler.step = _core.TorchAround(scaler.step, "scaler")
