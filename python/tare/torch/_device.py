"""Copies to a GPU and waits for it: set up when the program first uses one, not before."""
from .. import _core

_WAITS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__", "__index__")
_COPIES = ("to", "cuda", "copy_")


def _watch(torch):
    try:
        tensor = torch.Tensor
        for name in _WAITS:
            setattr(tensor, name, _core.TorchAround(getattr(tensor, name), "." + name + "()"))
        for name in _COPIES:
            setattr(tensor, name, _core.TorchAround(getattr(tensor, name), name))
        torch.cuda.synchronize = _core.TorchAround(torch.cuda.synchronize, "torch.cuda.synchronize()")
    except Exception:  # runs inside of torch's own initialization
        pass


def attach(torch):
    torch.cuda._lazy_call(lambda: _watch(torch))
