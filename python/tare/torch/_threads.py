"""Records where torch's number of threads is set."""
from .. import _core


def _noting(function):
    def note(words, named, raised):
        place = _core.torch_line_here() or (None, 0)
        if raised or not words:
            return
        if function.__name__ == "set_num_threads":
            _core.fact("torch.threads", words[0])
        _core.fact("torch." + function.__name__, words[0], file=place[0], line=place[1])
    return _core.TorchAround(function, "reported", None, note)


def attach(torch):
    torch.set_num_threads = _noting(torch.set_num_threads)
    torch.set_num_interop_threads = _noting(torch.set_num_interop_threads)
    _core.fact("torch.threads", torch.get_num_threads())
