"""Who sets torch's number of threads, and where."""
from .. import _core


def _noting(function):
    def note(words, named, raised):
        place = _core.torch_line_here()
        if raised or not words:
            return
        if function.__name__ == "set_num_threads":
            _core.counter("torch.threads", float(words[0]))
        if place:
            _core.mark("torch.%s(%d) at %s:%d" % (function.__name__, words[0], place[0], place[1]))
    return _core.TorchAround(function, "told", None, note)


def attach(torch):
    torch.set_num_threads = _noting(torch.set_num_threads)
    torch.set_num_interop_threads = _noting(torch.set_num_interop_threads)
    _core.counter("torch.threads", float(torch.get_num_threads()))
