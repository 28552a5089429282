"""Recommendations from measurements: sentences with the figures they are based on.

    for advice in profiler._generate_recommendations(data_stats, profile_summary, performance_summary):
        print(advice, advice.gain)
"""
import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from .._core import Missing, unit
from ..config import ProfilingConfig
from . import dataloading
from ._limits import limit, percent, seconds, uneven
from .metric import plain



class Recommendation(str):
    """A sentence with its `id`, `evidence` (figures by name) and `gain` (the upper bound of the gain, in words; None if
    unknown).

        advice.evidence["wait_percent"]
    """
    id: str
    evidence: Dict[str, float]
    gain: Optional[str]

    def __new__(cls, text: str, id: str = "custom", evidence: Optional[Mapping[str, float]] = None,
                gain: Optional[str] = None) -> "Recommendation":
        made = super().__new__(cls, text)
        made.id = id
        made.evidence = dict(evidence or {})
        made.gain = gain
        return made

    def as_dict(self) -> Dict[str, Any]:
        """As a dict, for JSON."""
        return {"id": self.id, "text": str(self), "evidence": plain(self.evidence), "gain": self.gain}


class Seen(NamedTuple):
    """The input of the rules. Absent figures are missing: no comparison with them is true."""
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    machine: Mapping[str, Any]
    training: Mapping[str, Any]
    config: ProfilingConfig


Rule = Callable[[Seen], Iterator[Recommendation]]


def figure(summary: Mapping[str, Any], *path: str) -> float:
    """A number deep in mappings, or missing.

        figure(performance_summary, "cpu", "mean")
    """
    for name in path[:-1]:
        summary = summary.get(name) or {}
        if not isinstance(summary, Mapping):
            return Missing(f"there is no {'.'.join(path)}")
    return dataloading.number(summary, path[-1])


def _loading(seen: Seen) -> Iterator[Recommendation]:
    settings = seen.data.get("settings") or {}
    workers, free = settings.get("num_workers"), dataloading.cpus()
    now = "" if workers is None else f" (now {workers})"
    waited, loading = figure(seen.data, "wait_percent"), figure(seen.data, "avg_loading_time")
    slow = waited > percent("WAITS_FOR_DATA") or (math.isnan(waited) and loading > seconds("BATCH_LOADING"))
    if not slow:
        return
    said = f"a batch takes {unit(loading, 's')} to load"
    if waited >= 0:
        said = f"{waited:.0f} % of a step waits for data"
    gain = f"at most {waited:.0f} % of the training time" if waited >= 0 else None
    evidence = {"wait_percent": waited, "avg_loading_time": loading}
    if workers is not None and workers >= free:
        yield Recommendation(
            f"Make loading cheaper: {said}, and there are already {workers} workers for {free} "
            "CPUs. Preprocess once and store the result, or store samples in fewer, larger files",
            "cheaper-loading", evidence, gain)
    elif not dataloading.number(seen.data, "avg_loading_time") <= seconds("WORKER_BATCH"):
        yield Recommendation(
            f"Increase num_workers in DataLoader{now}: {said}; "
            f"this process may use {free} CPUs", "num-workers", evidence, gain)


def _workers_kept(seen: Seen) -> Iterator[Recommendation]:
    settings = seen.data.get("settings") or {}
    start = dataloading.restart_s(seen.data)
    if start > seconds("WORKER_START"):
        yield Recommendation(
            f"Use persistent_workers=True: starting {settings['num_workers']} workers takes {unit(start, 's')} "
            "in every epoch", "persistent-workers", {"startup_s": start}, f"{unit(start, 's')} an epoch")


def _pinning(seen: Seen) -> Iterator[Recommendation]:
    settings = seen.data.get("settings") or {}
    if dataloading.cuda_there() and settings.get("pin_memory") is False:
        size = figure(seen.data, "bytes_per_batch") / 1e6
        yield Recommendation(
            f"Use pin_memory=True: a batch of {size:.1f} MB is copied to the GPU from pageable memory, "
            "and the program waits for the copy", "pin-memory", {"batch_mb": size})


def _preprocessing(seen: Seen) -> Iterator[Recommendation]:
    part, loading = figure(seen.data, "avg_preprocessing_time"), figure(seen.data, "avg_loading_time")
    if (seen.data.get("settings") or {}).get("num_workers"):
        return
    if dataloading.preprocessing_is_large(loading, part):
        yield Recommendation(f"Optimize preprocessing: it is {100 * part / loading:.0f} % of loading "
                             f"({unit(part, 's')} a batch)", "preprocessing",
                             {"avg_preprocessing_time": part, "avg_loading_time": loading},
                             f"at most {unit(part, 's')} a batch")


def _bound(seen: Seen) -> Iterator[Recommendation]:
    cpu, cuda = figure(seen.model, "cpu_time"), figure(seen.model, "cuda_time")
    evidence = {"cpu_time": cpu, "cuda_time": cuda}
    if cuda > cpu:
        said = f"the model is GPU-bound ({unit(cuda, 's')} on the GPU, {unit(cpu, 's')} on the CPU)"
        if not seen.config.use_mixed_precision:
            yield Recommendation(f"Enable mixed precision training: {said}", "mixed-precision", evidence)
        elif not seen.config.use_compile:
            yield Recommendation(
                f"Try torch.compile (use_compile=True) and channels_last: {said}", "compile", evidence)
    elif cuda >= 0 and cpu > cuda:
        yield Recommendation(
            f"Give the GPU more work at once: the model is CPU-bound ({unit(cpu, 's')} in operators on the CPU, "
            f"{unit(cuda, 's')} on the GPU). Try a larger batch, torch.compile or fewer small operators",
            "cpu-bound", evidence, f"at most {unit(cpu - cuda, 's')} of the profiled {unit(cpu, 's')}")


def _operator(seen: Seen) -> Iterator[Recommendation]:
    top: Sequence[Mapping[str, Any]] = seen.model.get("top_operations") or ()
    cuda = figure(seen.model, "cuda_time")
    column = "cuda_time" if cuda > 0 else "cpu_time"
    whole = figure(seen.model, column)
    for row in top[:1]:
        share = 100 * dataloading.number(row, column) / whole if whole > 0 else math.nan
        if share > percent("OPERATION_INFO"):
            yield Recommendation(
                f"Optimize {row.get('name')} first: it takes {share:.0f} % of the time in operators",
                "top-operation", {"share_percent": share}, f"at most {share:.0f} % of the operators' time")


def _memory(seen: Seen) -> Iterator[Recommendation]:
    used, most = figure(seen.machine, "memory", "mean"), figure(seen.machine, "memory", "max")
    batch = figure(seen.data, "samples_per_batch")
    gpu, total = figure(seen.machine, "gpu_memory", "max"), _gpu_total_gb()
    full = gpu / total if total > 0 else math.nan
    high = percent("MEMORY_INFO")
    if not (used > high or most > high or full > limit("GPU_MEMORY")):
        return
    said = f"the machine's memory is {most:.0f} % full"
    if full > limit("GPU_MEMORY"):
        said = f"GPU memory is {100 * full:.0f} % full"
    half = batch / 2
    example = f": batches of {half:.0f} in 2 steps train as one of {batch:.0f}" if batch >= 2 else ""
    evidence = {"memory_percent": most, "gpu_fraction": full}
    yield Recommendation(f"Use gradient checkpointing: {said}", "checkpointing", evidence)
    yield Recommendation(f"Use gradient accumulation with smaller batches{example}; {said}", "accumulation", evidence)


def _room(seen: Seen) -> Iterator[Recommendation]:
    gpu, total = figure(seen.machine, "gpu_memory", "max"), _gpu_total_gb()
    batch = figure(seen.data, "samples_per_batch")
    if not (gpu > 0 and total > 0 and gpu / total < limit("GPU_ROOM") and batch >= 1):
        return
    larger = 2 ** math.floor(math.log2(limit("GPU_MEMORY") * total / gpu))
    if larger >= 2:
        yield Recommendation(f"Optimize batch size: {gpu:.1f} of {total:.1f} GB of the GPU are used with batches of "
                             f"{batch:.0f}; up to {larger}x of that may fit (an estimate)", "batch-size",
                             {"gpu_memory_gb": gpu, "gpu_total_gb": total, "samples_per_batch": batch})


def _gpu_total_gb() -> float:
    if not dataloading.cuda_there():
        return Missing("no CUDA device")
    import torch
    return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory / 1024 ** 3


def _processor(seen: Seen) -> Iterator[Recommendation]:
    cpu = figure(seen.machine, "cpu", "mean")
    if cpu > percent("CPU_WARNING") and figure(seen.model, "cuda_time") >= 0:
        yield Recommendation(
            f"Reduce the work on the CPU: it is {cpu:.0f} % busy, and the GPU waits for it. Make preprocessing "
            "cheaper, or move it to the GPU; more workers do not help", "cpu-full", {"cpu": cpu})


def _phases(seen: Seen) -> Iterator[Recommendation]:
    if figure(seen.training, "phases", "forward", "device_s") > 0:
        return  # host times of work on a GPU are not shares of the time
    forward = figure(seen.training, "phases", "forward", "share_percent")
    backward = figure(seen.training, "phases", "backward", "share_percent")
    if forward > percent("FORWARD"):
        yield Recommendation(
            f"Speed up the forward pass: it takes {forward:.0f} % of a step. Try half precision, a smaller model or "
            "torch.compile", "forward", {"share_percent": forward})
    if backward > percent("BACKWARD"):
        yield Recommendation(
            f"Speed up the backward pass: it takes {backward:.0f} % of a step. Try half precision, frozen layers or "
            "torch.compile", "backward", {"share_percent": backward})


def _steps(seen: Seen) -> Iterator[Recommendation]:
    least, half, late, most = (figure(seen.training, "step_time", name) for name in ("min", "p50", "p95", "max"))
    if uneven(figure(seen.training, "steps"), least, half, late, most):
        yield Recommendation(
            f"Find what makes steps slow: 5 % of them take {unit(late, 's')} or more, half of them {unit(half, 's')} "
            "or less. Likely causes: inputs of different shapes, random augmentation, other programs on the machine",
            "uneven-steps", {"p50": half, "p95": late})


RULES: Sequence[Rule] = (_loading, _preprocessing, _workers_kept, _pinning, _bound, _operator, _memory, _room,
                         _processor, _phases, _steps)


def generate(seen: Seen, more: Sequence[Callable[[Seen], Any]] = ()) -> List[Recommendation]:
    """All advice, the most useful first. Custom rules may return text.

        generate(Seen(data_stats, profile_summary, performance_summary, {}, config))
    """
    found: List[Recommendation] = []
    for rule in (*RULES, *more):
        given = rule(seen) or ()
        for one in [given] if isinstance(given, str) else given:
            if not isinstance(one, str):
                raise TypeError(f"a rule gives sentences, not {type(one).__name__}")
            found.append(one if isinstance(one, Recommendation) else Recommendation(one))
    return found
