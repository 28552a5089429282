"""Operators, if requested: enabled from the import of torch, for the thread that imports it. They are suspended
while the program's own torch.profiler runs; phases continue meanwhile."""
from . import operators


def attach(torch):
    if operators.wanted():
        operators.start()
