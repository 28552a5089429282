"""Tensor.backward, torch.autograd.backward and torch.autograd.grad: all go through one function."""
from .. import _core


def attach(torch):
    from torch import autograd
    autograd._engine_run_backward = _core.TorchAround(autograd._engine_run_backward, "backward")
