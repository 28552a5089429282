"""The program's own torch.profiler goes first: recording of operators ends before it starts, and goes on after it."""
import os


def _operators():
    try:
        from . import operators
    except ImportError:
        return None
    return operators


def attach(torch):
    operators = _operators() if os.environ.get("TARE_OPS") else None
    if operators is None:
        return
    from torch.autograd import profiler
    operators.start()
    for kind in (profiler.profile, profiler.emit_itt, profiler.emit_nvtx):
        _stand_back(kind, operators)


def _stand_back(kind, operators):
    begins = "_prepare_trace" if hasattr(kind, "_prepare_trace") else "__enter__"
    begin, end = getattr(kind, begins), kind.__exit__

    def __enter__(self, *words, **named):
        operators.stop()
        return begin(self, *words, **named)

    def __exit__(self, *words, **named):
        try:
            return end(self, *words, **named)
        finally:
            operators.start()

    __enter__.__wrapped__, __exit__.__wrapped__ = begin, end
    setattr(kind, begins, __enter__)
    kind.__exit__ = __exit__
