"""Checkpoints: how long torch.save takes, and which line calls it."""
from .. import _core


def attach(torch):
    save = _core.TorchAround(torch.serialization.save, "save")
    torch.save = torch.serialization.save = save
