"""Operators, where they are asked for: on from the import of torch, for the thread that imports it. They step aside by
themselves for the program's own torch.profiler; phases go on meanwhile."""
from . import operators


def attach(torch):
    if operators.wanted():
        operators.start()
