"""Tensor.backward, torch.autograd.backward and torch.autograd.grad: all go through one function."""
from .. import _core


def attach(torch):
    from torch import autograd
    foreign = autograd._engine_run_backward
    autograd._engine_run_backward = _core.TorchAround(foreign, "backward")
    home = getattr(autograd, "graph", None)  # where newer versions define it
    if getattr(home, "_engine_run_backward", None) is foreign:
        home._engine_run_backward = autograd._engine_run_backward
