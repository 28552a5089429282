"""Who sets torch's number of threads, and where."""
from .. import _core


def _noting(function):
    def set_num_threads(n, *words):
        result = function(n, *words)
        try:
            place = _core.torch_line_here()
            if function.__name__ == "set_num_threads":
                _core.counter("torch.threads", float(n))
            if place:
                _core.mark("torch.%s(%d) at %s:%d" % (function.__name__, n, place[0], place[1]))
        except Exception:  # a number that is none: torch has said so
            pass
        return result
    set_num_threads.__wrapped__ = function
    set_num_threads.__doc__ = function.__doc__
    set_num_threads.__name__ = set_num_threads.__qualname__ = function.__name__
    return set_num_threads


def attach(torch):
    torch.set_num_threads = _noting(torch.set_num_threads)
    torch.set_num_interop_threads = _noting(torch.set_num_interop_threads)
    _core.counter("torch.threads", float(torch.get_num_threads()))
