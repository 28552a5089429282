"""DataLoader: how long the program waits for a batch, and what its workers do meanwhile."""
import os

from .. import _core

_process = 0  # that has told who it is


def _tell_worker(torch):
    """A loader's worker tells its name when it first works."""
    global _process
    _process = os.getpid()
    info = torch.utils.data.get_worker_info()
    if info is not None:
        _core.thread_name("loader worker %d" % info.id)
        _core.torch_lines_start(os.path.join(os.path.dirname(os.__file__), ""))


def attach(torch):
    global _process
    _process = os.getpid()
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch, worker
    base = dataloader._BaseDataLoaderIter
    base.__next__ = _core.TorchAround(base.__next__, "data")
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = _core.TorchAround(fetcher.fetch, "load")
        _tell_in_workers(fetcher, torch)
    _tell_loaders(base)
    return worker


def _tell_in_workers(fetcher, torch):
    made = fetcher.__init__

    def __init__(self, *words, **named):
        if os.getpid() != _process or torch.utils.data.get_worker_info() is not None:
            _tell_worker(torch)
        made(self, *words, **named)

    __init__.__wrapped__ = made
    fetcher.__init__ = __init__


def _tell_loaders(base):
    """How a loader is set up, once for each iterator."""
    made = base.__init__

    def __init__(self, loader, *words, **named):
        made(self, loader, *words, **named)
        try:
            _core.counter("torch.loader.workers", float(loader.num_workers))
            _core.counter("torch.loader.pinned", float(bool(loader.pin_memory)))
        except Exception:  # a loader of another kind
            pass

    __init__.__wrapped__ = made
    base.__init__ = __init__
