"""Tensor.backward, torch.autograd.backward and torch.autograd.grad: all go through one function."""
from .. import _core


def attach(torch):
    from torch import autograd
    theirs = autograd._engine_run_backward
    autograd._engine_run_backward = _core.TorchAround(theirs, "backward")
    home = getattr(autograd, "graph", None)  # where newer versions define it
    if getattr(home, "_engine_run_backward", None) is theirs:
        home._engine_run_backward = autograd._engine_run_backward
