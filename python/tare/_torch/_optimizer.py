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


def attach(torch):
    from torch.optim import optimizer
    optimizer.register_optimizer_step_pre_hook(_core.torch_optimizer_begin)
    optimizer.register_optimizer_step_post_hook(_core.torch_optimizer_end)
    _count_made(optimizer.Optimizer)
    scaler = torch.amp.GradScaler
    scaler.step = _core.TorchAround(scaler.step, "scaler")
