"""DataLoader: how long the program waits for a batch, and the work of its workers meanwhile."""
import os

from .. import _core

_process = 0  # that has recorded its name


def _tell_worker(torch):
    """A loader's worker records its name when it first works."""
    global _process
    _process = os.getpid()
    info = torch.utils.data.get_worker_info()
    if info is not None:
        _core.thread_name("loader worker %d" % info.id)
        _core.torch_loads_aside(not torch.is_grad_enabled())  # as where the loop over the loader began
        _core.torch_lines_start(os.path.join(os.path.dirname(os.__file__), ""))


def _tell_loader(words, named, raised):
    """Records a loader's settings, once for each iterator."""
    held = _core.torch_dict_of(words[1] if len(words) > 1 else named["loader"]) or {}
    if not raised and "num_workers" in held:
        _core.fact("torch.loader.workers", held["num_workers"])
        _core.fact("torch.loader.pinned", bool(held.get("pin_memory")))


def attach(torch):
    global _process
    _process = os.getpid()
    from torch.utils.data import dataloader
    from torch.utils.data._utils import fetch
    base = dataloader._BaseDataLoaderIter
    base.__next__ = _core.TorchAround(base.__next__, "data")
    base._next_index = _core.TorchAround(base._next_index, "index")
    base.__init__ = _core.TorchAround(base.__init__, "reported", None, _tell_loader)
    several = dataloader._MultiProcessingDataLoaderIter
    several.__init__ = _core.TorchAround(several.__init__, "workers")
    several._shutdown_workers = _core.TorchAround(several._shutdown_workers, "workers")

    def in_worker(words, named):
        if os.getpid() != _process or torch.utils.data.get_worker_info() is not None:
            _tell_worker(torch)
    fetchers = fetch._BaseDatasetFetcher
    fetchers.__init__ = _core.TorchAround(fetchers.__init__, "reported", in_worker)
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        fetcher.fetch = _core.TorchAround(fetcher.fetch, "load")
