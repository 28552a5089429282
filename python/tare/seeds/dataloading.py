"""Measures a data loader: batch times, bottlenecks, and which DataLoader keywords would help.

    stats = tare.DataLoadingProfiler().profile_dataloader(loader, 50)
    print(stats["throughput"], stats["avg_loading_time"])
"""
import ctypes
import itertools
import math
import multiprocessing.sharedctypes
import statistics
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from .. import _check, _core
from .._core import Missing, Recorder, unit
from ..config import ProfilingConfig
from ..torch import _state
from ._limits import limit, percent, seconds, uneven

_PARTS = ("transform", "target_transform", "transforms")
KEYS = ("total_batches", "avg_loading_time", "avg_preprocessing_time", "throughput")


# ---- looking into a loader -----------------------------------------------------------------------------------------

class _Timed:
    """A function of the dataset that adds up its time. The sums are in memory that the workers share, one slot for
    each."""
    _inside = False  # nested calls are counted once

    def __init__(self, function: Callable[..., Any], sums: Any, counts: Any) -> None:
        self._function = function
        self._sums = sums
        self._counts = counts

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _Timed._inside:
            return self._function(*args, **kwargs)
        _Timed._inside = True
        try:
            seconds, result, error = _core.timed_call(self._function, args, kwargs)
        finally:
            _Timed._inside = False
        worker = sys.modules["torch"].utils.data.get_worker_info()
        slot = 0 if worker is None else worker.id + 1
        self._sums[slot] += seconds
        if self._counts is not None:
            self._counts[slot] += 1
        if error is not None:
            raise error
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_function", "_sums", "_counts"):
            raise AttributeError(name)
        return getattr(self._function, name)


class _Inside:
    """Times collating and the dataset's transforms while it is open; restores the loader afterwards."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.parts: List[str] = []
        self.changed: List[Tuple[Any, str, Any]] = []
        self.had_iterator = getattr(loader, "_iterator", None) is not None
        slots = loader.num_workers + 1
        self.sums = multiprocessing.sharedctypes.RawArray(ctypes.c_double, slots)
        self.collated = multiprocessing.sharedctypes.RawArray(ctypes.c_long, slots)

    def __enter__(self) -> "_Inside":
        self._wrap(self.loader, "collate_fn", "collate")
        for dataset in _datasets(self.loader.dataset):
            for name in _PARTS:
                self._wrap(dataset, name, name)
        return self

    def _wrap(self, holder: Any, name: str, shown: str) -> None:
        function = getattr(holder, "__dict__", {}).get(name)
        if not callable(function):
            return
        try:
            setattr(holder, name, _Timed(function, self.sums, self.collated if shown == "collate" else None))
        except Exception:  # a loader or dataset that does not allow it is measured without it
            return
        self.changed.append((holder, name, function))
        if shown not in self.parts:
            self.parts.append(shown)

    def __exit__(self, *exception: Any) -> None:
        for holder, name, function in reversed(self.changed):
            setattr(holder, name, function)
        if not self.had_iterator and getattr(self.loader, "_iterator", None) is not None:
            self.loader._iterator = None  # persistent workers that were started with the timers in place

    def seconds_a_batch(self, taken: int) -> float:
        """Workers are ahead of the batches taken: collated batches are counted."""
        return math.fsum(self.sums) / (sum(self.collated) or taken)


def _datasets(dataset: Any, depth: int = 0) -> Iterator[Any]:
    """A dataset and the datasets it wraps (Subset, ConcatDataset, …)."""
    yield dataset
    inner = getattr(dataset, "__dict__", {})
    below = [inner["dataset"]] if "dataset" in inner else inner.get("datasets", ())
    if depth < 8 and isinstance(below, (list, tuple)):
        for one in below:
            yield from _datasets(one, depth + 1)


def is_torch_loader(loader: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(loader, torch.utils.data.DataLoader)


def check_loader(loader: Any, what: str, again: bool = False) -> None:
    """`again`: its batches are needed more than once."""
    if isinstance(loader, (str, bytes)) or not (hasattr(loader, "__iter__") or hasattr(loader, "__getitem__")):
        raise TypeError(f"{what} takes a DataLoader or another iterable of batches, not {type(loader).__name__}")
    if again and iter_is_self(loader):
        raise TypeError(f"{what} needs the batches more than once; pass the loader, not its iterator")


def iter_is_self(loader: Any) -> bool:
    return hasattr(loader, "__next__")


# ---- the profiler --------------------------------------------------------------------------------------------------

class DataLoadingProfiler:
    """Measures a loader alone, with nothing else running beside it.

        profiler = tare.DataLoadingProfiler()
        stats = profiler.profile_dataloader(loader, 50)
        for sentence in profiler.identify_bottlenecks(stats):
            print(sentence)
        faster = torch.utils.data.DataLoader(dataset, **profiler.optimize_dataloader(loader, stats))
    """

    def __init__(self, config: Optional[ProfilingConfig] = None) -> None:
        self.config = config if config is not None else ProfilingConfig()

    def profile_dataloader(self, dataloader: Any, num_batches: int = 50) -> Dict[str, Any]:
        """Loads num_batches batches (or as many as there are) and returns, in seconds: avg_loading_time, the wait for
        a batch (without the first one, which is first_batch_time); avg_preprocessing_time, the part of collating and
        of the dataset's transforms, summed over the workers; startup_time; throughput in batches per second,
        samples_per_second; variance, std, min, max, p50 and p95 of loading. The state of random generators is
        restored afterwards.

            stats = profiler.profile_dataloader(loader, num_batches=20)
        """
        check_loader(dataloader, "profile_dataloader")
        _check.whole(num_batches, "num_batches")
        inside: Optional[_Inside] = None
        if is_torch_loader(dataloader) and self.config.profile_preprocessing:
            inside = _Inside(dataloader)
        with _state.kept_random(dataloader):
            if inside is None:
                run = _Run(dataloader, num_batches)
            else:
                with inside:
                    run = _Run(dataloader, num_batches)
        if not run.waits:
            raise ValueError("the loader has no batches")
        return self._stats(dataloader, run, inside, num_batches)

    def _stats(self, loader: Any, run: "_Run", inside: Optional[_Inside], requested: int) -> Dict[str, Any]:
        steady = run.waits[1:] or run.waits
        count, total = len(run.waits), math.fsum(run.waits)
        steady_s = math.fsum(steady)
        no_samples = Missing("the batches have no first dimension to count")
        samples = sum(run.samples) if None not in run.samples else None
        per_batch = samples / count if samples is not None else no_samples
        stats: Dict[str, Any] = {
            "total_batches": count, "requested_batches": requested, "total_time": run.startup + total,
            "avg_loading_time": steady_s / len(steady), "avg_preprocessing_time": self._preprocessing(run, inside),
            "throughput": len(steady) / steady_s if steady_s > 0 else Missing("the clock saw no time pass"),
            "startup_time": run.startup, "first_batch_time": run.waits[0],
            "total_samples": samples if samples is not None else no_samples, "samples_per_batch": per_batch,
            "bytes_per_batch": run.bytes / count}
        # Samples of exactly the timed batches: the first one is excluded, and the last one may be smaller.
        seen = no_samples if samples is None else math.fsum(run.samples[1:] or run.samples)
        stats["samples_per_second"] = (stats["throughput"] if isinstance(stats["throughput"], Missing) else
                                       seen / steady_s)
        stats.update(spread(steady))
        stats["preprocessing_parts"] = inside.parts if inside is not None else []
        stats["settings"] = settings_of(loader)
        stats["notes"] = _notes(run, inside, requested)
        return stats

    def _preprocessing(self, run: "_Run", inside: Optional[_Inside]) -> float:
        if inside is None:
            return Missing("profile_preprocessing is off" if not self.config.profile_preprocessing
                           else "only torch's DataLoader can be looked into")
        if inside.had_iterator:
            return Missing("the loader's persistent workers were running before")
        if not inside.parts:
            return Missing("the loader has neither a collate_fn nor transforms that can be timed")
        return inside.seconds_a_batch(len(run.waits))

    def identify_bottlenecks(self, stats: Mapping[str, Any]) -> List[str]:
        """Loading bottlenecks, a sentence each; rules whose figures are missing are skipped.

            for sentence in profiler.identify_bottlenecks(stats):
                print(sentence)
        """
        _check_stats(stats)
        found = [rule(stats) for rule in _RULES]
        return [sentence for sentence in found if sentence]

    def optimize_dataloader(self, dataloader: Any, stats: Mapping[str, Any]) -> Dict[str, Any]:
        """DataLoader keywords that are worth changing. Empty: nothing to gain.

            keywords = profiler.optimize_dataloader(loader, stats)
        """
        check_loader(dataloader, "optimize_dataloader")
        _check_stats(stats)
        now = settings_of(dataloader) or dict(stats.get("settings") or {})
        wanted: Dict[str, Any] = {}
        workers = _workers_wanted(stats, int(now.get("num_workers") or 0))
        if workers is not None:
            wanted["num_workers"] = workers
        if wanted.get("num_workers", now.get("num_workers") or 0) > 0:
            if not now.get("persistent_workers"):
                wanted["persistent_workers"] = True
            if workers is not None and (now.get("prefetch_factor") or 2) < 4 and _uneven(stats):
                wanted["prefetch_factor"] = 4
        if cuda_there() and not now.get("pin_memory"):
            wanted["pin_memory"] = True
        return wanted

    def measure_keywords(self, dataloader: Any, keywords: Mapping[str, Any], num_batches: int = 20,
                         rounds: int = 5) -> Dict[str, Any]:
        """Runs the loader and one with the keywords alternately, and decides whether they help by the rule of
        `tare check` (which needs 5 rounds): status, speedup (of the medians), original and optimized (batches per
        second).

            profiler.measure_keywords(loader, {"num_workers": 2})["speedup"]
        """
        check_loader(dataloader, "measure_keywords", again=True)
        _check.whole(num_batches, "num_batches")
        _check.whole(rounds, "rounds")
        out: Dict[str, Any] = {"keywords": dict(keywords)}

        def without(status: str, why: str) -> Dict[str, Any]:
            return {**out, "status": f"{status}: {why}",
                    **dict.fromkeys(("original", "optimized", "speedup"), Missing(why))}
        if not keywords:
            return without("not measured", "nothing to try")
        try:
            other = rebuilt(dataloader, keywords)
        except (TypeError, ValueError) as error:
            return without("not measured", str(error))
        try:
            rates = _rates(dataloader, other, num_batches, rounds)
        except Exception as error:  # workers that cannot be started or cannot load
            return without("rejected", f"the loader does not run with them: {error}")
        original, optimized = _core.quantile(rates[0], 0.5), _core.quantile(rates[1], 0.5)
        from .. import _engine
        verdict, why, _, _ = _engine.decide(rates[0], rates[1], "higher")
        status = "kept: measured faster" if verdict == "better" else f"rejected: measured not faster ({why})"
        return {**out, "status": status, "original": original, "optimized": optimized,
                "speedup": optimized / original, "rounds": rounds}


class _Run:
    """One pass over a loader: the wait for each batch."""

    def __init__(self, loader: Any, limit: int) -> None:
        recorder = Recorder(memory=False, cpu=False, keep=limit + 2)
        self.samples: List[Optional[int]] = []
        self.bytes = 0
        starting, loading = recorder.block("loader_startup"), recorder.block("data_loading")
        with starting:
            iterator = iter(loader)
        self.startup = recorder.last().wall_s
        self.waits: List[float] = []
        for _ in range(limit):
            try:
                with loading:
                    batch = next(iterator)
            except StopIteration:
                break
            self.waits.append(recorder.last().wall_s)
            self.samples.append(_state.samples_in(batch))
            self.bytes += _state.bytes_in(batch)


def spread(seconds: List[float]) -> Dict[str, Any]:
    """Standard deviation and quantiles of durations; a deviation needs two."""
    one = Missing("one value has no deviation")
    deviation = statistics.stdev(seconds) if len(seconds) > 1 else one
    return {"variance": deviation * deviation, "std": deviation, "min": min(seconds), "max": max(seconds),
            "p50": _core.quantile(seconds, 0.5), "p95": _core.quantile(seconds, 0.95)}


def settings_of(loader: Any) -> Dict[str, Any]:
    """The performance-related keywords a DataLoader was created with."""
    if not is_torch_loader(loader):
        return {}
    return {name: getattr(loader, name) for name in ("batch_size", "num_workers", "pin_memory", "persistent_workers",
                                                     "prefetch_factor", "drop_last")}


def _notes(run: _Run, inside: Optional[_Inside], requested: int) -> List[str]:
    notes = []
    if len(run.waits) < requested:
        notes.append(f"the loader has {len(run.waits)} batches; {requested} were requested")
    if len(run.waits) == 1:
        notes.append("one batch only: the average is of the first batch, with all that comes with a start")
    if inside is not None and inside.parts == ["collate"] and not inside.had_iterator:
        notes.append("the dataset has no transform attribute: work inside its __getitem__ counts as loading")
    if inside is not None and inside.loader.num_workers and not inside.had_iterator:
        notes.append("preprocessing is an estimate: the workers were in the middle of batches when the profile ended")
    return notes


def _check_stats(stats: Any) -> None:
    if not isinstance(stats, Mapping):
        raise TypeError(f"stats are what profile_dataloader() gave, not {type(stats).__name__}")


def number(stats: Mapping[str, Any], name: str) -> float:
    """A figure of a mapping; an absent one is missing, and no comparison with it is true."""
    value = stats.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Missing(f"there is no {name}")
    return value


# ---- rules ---------------------------------------------------------------------------------------------------------

def _workers_now(stats: Mapping[str, Any]) -> Optional[int]:
    return (stats.get("settings") or {}).get("num_workers")


def _slow(stats: Mapping[str, Any]) -> Optional[str]:
    loading, step = number(stats, "avg_loading_time"), number(stats, "compute_time")
    workers = _workers_now(stats)
    where = "" if workers is None else " in the main process" if workers == 0 else f" with {workers} workers"
    advice = "consider more workers (num_workers)" if workers else "consider using multiple workers (num_workers)"
    waited = number(stats, "wait_percent")
    if waited > percent("WAITS_FOR_DATA"):
        return f"Slow data loading: {waited:.0f} % of a training step waits for its batch{where}; {advice}"
    if step > 0 or waited >= 0:
        return None  # there is a step to compare with, and it does not wait
    if loading > seconds("BATCH_LOADING"):
        return f"Slow data loading: {unit(loading, 's')} a batch{where}; {advice}"
    return None


def _preprocessing(stats: Mapping[str, Any]) -> Optional[str]:
    loading, part = number(stats, "avg_loading_time"), number(stats, "avg_preprocessing_time")
    if _workers_now(stats):  # work of several processes is not a share of the waiting time
        return None
    if not preprocessing_is_large(loading, part):
        return None
    return (f"Preprocessing is {100 * part / loading:.0f} % of loading ({unit(part, 's')} of {unit(loading, 's')} a "
            "batch); do it once beforehand, or cheaper, or in workers")


def _uneven(stats: Mapping[str, Any]) -> bool:
    return uneven(number(stats, "total_batches"), *(number(stats, name) for name in ("min", "p50", "p95", "max")))


def _variance(stats: Mapping[str, Any]) -> Optional[str]:
    if not _uneven(stats):
        return None
    return (f"Uneven loading: one batch in twenty takes {unit(number(stats, 'p95'), 's')} or more, half of them "
            f"{unit(number(stats, 'p50'), 's')} or less; samples of different sizes, costly random augmentation, "
            "or slow storage")


def preprocessing_is_large(loading_s: float, part_s: float) -> bool:
    return loading_s > seconds("WORKER_BATCH") and part_s > loading_s * limit("PREPROCESSING")


def restart_s(stats: Mapping[str, Any]) -> float:
    """Seconds that starting workers takes in every epoch; 0 without workers, or if they persist."""
    settings = stats.get("settings") or {}
    if not settings.get("num_workers") or settings.get("persistent_workers"):
        return 0.0
    return number(stats, "startup_time") + number(stats, "first_batch_time") - number(stats, "avg_loading_time")


def _startup(stats: Mapping[str, Any]) -> Optional[str]:
    start = restart_s(stats)
    if not start > seconds("WORKER_START"):
        return None
    return (f"Workers are started again for every epoch: {unit(start, 's')} until the first batch; "
            "persistent_workers=True keeps them")


_RULES = (_slow, _preprocessing, _variance, _startup)


# ---- keywords ------------------------------------------------------------------------------------------------------

def cuda_there() -> bool:
    torch = sys.modules.get("torch")
    try:
        return torch is not None and bool(torch.cuda.is_available())
    except Exception:
        return False


def cpus() -> int:
    """Number of CPUs that this process may use, by its affinity and the quotas of its cgroups."""
    return max(1, _core.cpus())


def _workers_wanted(stats: Mapping[str, Any], now: int) -> Optional[int]:
    """Number of workers that hide the loading behind the computing; None: no change."""
    loading, compute = number(stats, "avg_loading_time"), number(stats, "compute_time")
    if not _slow(stats) or not loading > seconds("WORKER_BATCH"):
        return None
    most = max(1, cpus())
    work = loading * max(1, now)  # of one process, for one batch
    needed = math.ceil(work / compute) + 1 if compute > 0 else most
    wanted = min(most, needed)
    return wanted if wanted > now else None


def rebuilt(loader: Any, keywords: Mapping[str, Any]) -> Any:
    """A DataLoader over the same dataset and sampler, with some keywords changed."""
    if not is_torch_loader(loader):
        raise TypeError("only torch's DataLoader can be made again with other keywords")
    kind = sys.modules["torch"].utils.data.DataLoader
    if type(loader) is not kind:
        raise TypeError(f"the loader is a {type(loader).__name__}, which may have keywords of its own")
    words: Dict[str, Any] = {name: getattr(loader, name) for name in (
        "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
        "generator", "persistent_workers", "prefetch_factor", "in_order") if hasattr(loader, name)}
    if isinstance(loader.dataset, sys.modules["torch"].utils.data.IterableDataset):
        words.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
    elif loader.batch_sampler is not None:
        words["batch_sampler"] = loader.batch_sampler
    else:
        words.update(batch_size=None, sampler=loader.sampler)
    words.update(keywords)
    if not words["num_workers"]:
        for name in ("persistent_workers", "prefetch_factor", "multiprocessing_context"):
            words.pop(name, None)
    return kind(loader.dataset, **words)


def _rates(loader: Any, other: Any, batches: int, rounds: int) -> Tuple[List[float], List[float]]:
    """Batches per second of both, run alternately. A persistent loader's workers are started beforehand, as in a
    training's second epoch."""
    rates: Tuple[List[float], List[float]] = ([], [])
    pair = (loader, other)
    had_iterator = getattr(loader, "_iterator", None) is not None
    try:
        with _state.kept_random(loader):
            for one in pair:
                if getattr(one, "persistent_workers", False):
                    _Run(one, 1)
            for turn in range(rounds):
                for which in (0, 1) if turn % 2 == 0 else (1, 0):
                    run = _Run(pair[which], batches)
                    if not run.waits:
                        raise ValueError("the loader has no batches")
                    rates[which].append(len(run.waits) / (run.startup + math.fsum(run.waits)))
    finally:
        other._iterator = None
        if not had_iterator and hasattr(loader, "_iterator"):
            loader._iterator = None
    return rates


def first_batches(loader: Any, count: int) -> List[Any]:
    """The first batches of a loader; restores the state of random generators."""
    with _state.kept_random(loader):
        return list(itertools.islice(iter(loader), count))
