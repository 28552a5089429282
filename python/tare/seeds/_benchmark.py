"""Runs two variants of a computation alternately and compares them: the gain of an optimization."""
import math
import statistics
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .. import _engine
from .._core import Missing, Recorder, quantile
from ..torch import _gpu_memory, _native, _state
from ._limits import limit
from .metric import MB

ROUND_S = 0.005     # short runs are repeated until a round lasts this long
FAR_SLOWER = 1.5


class Trial(NamedTuple):
    """Two variants, run alternately: seconds of each round, for each side."""
    first: List[float]
    second: List[float]

    @property
    def speedup(self) -> float:
        """Of the medians."""
        after = quantile(self.second, 0.5)
        return quantile(self.first, 0.5) / after if after > 0 else Missing("the clock saw no time pass")

    @property
    def decision(self) -> Dict[str, Any]:
        """By the rule of `tare check`: verdict, reason, change (a share of the first) and p."""
        verdict, why, change, p = _engine.decide([1e9 * one for one in self.first], [1e9 * one for one in self.second],
                                                  "lower", gate=limit("OPTIMIZED"), unit="ns")
        return {"verdict": verdict, "why": why, "change": change,
                "p": Missing("too few rounds to be significant") if math.isnan(p) else p}

    @property
    def helps(self) -> bool:
        """Significantly faster, and by more than a few percent."""
        return self.decision["verdict"] == "better"

    def reported(self) -> Dict[str, Any]:
        """As a dict, for reports."""
        return {"speedup": self.speedup, "helps": self.helps, "original_s": quantile(self.first, 0.5),
                "optimized_s": quantile(self.second, 0.5), "rounds": len(self.first), "decision": self.decision}


def takes_less_memory(was: float, now: float) -> bool:
    """Whether a figure without noise is smaller, by more than a share."""
    return _engine.decide(was, now, "lower", gate=limit("OPTIMIZED_MEMORY"), exact=True)[0] == "better"


def interleaved(first: Callable[[], None], second: Callable[[], None], rounds: int,
                settle: Callable[[], None], repeat: bool = False) -> Trial:
    """Runs both alternately, in an order that changes from round to round, so that variations of the machine affect
    both equally. settle waits for a device; it is included in the time, once for each side and round. With `repeat` a
    round of short runs has as many as take 5 ms, and the rounds end when the second is far slower in each of the first
    three: rejecting a change needs less evidence than keeping it."""
    recorder = Recorder(memory=False, cpu=False, keep=1)
    sides: Tuple[List[float], List[float]] = ([], [])
    pair = ((first, recorder.block("benchmark_original")), (second, recorder.block("benchmark_optimized")))

    def timed(which: int, times: int) -> float:
        run, block = pair[which]
        settle()
        with block:
            for _ in range(times):
                run()
            settle()
        return recorder.last().wall_s / times
    shortest = min(timed(which, 1) for which in (0, 1)) if repeat else ROUND_S
    times = max(1, min(1000, math.ceil(ROUND_S / shortest))) if shortest > 0 else 1000
    for turn in range(rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            sides[which].append(timed(which, times))
        if repeat and turn == 2 and all(b > FAR_SLOWER * a for a, b in zip(*sides)):
            break
    return Trial(*sides)


class Trainee:
    """Trains a copy of a model on batches that are loaded already: only computing is timed."""

    def __init__(self, model: Any, batches: Sequence[Any], loss_fn: Optional[Callable[..., Any]]) -> None:
        import torch
        self.model = model
        self.model.train()
        self.device = _state.device_of(model)
        self.batches = batches
        self.loss_fn = loss_fn
        weights = [one for one in model.parameters() if one.requires_grad]
        self.optimizer = torch.optim.SGD(weights, lr=1e-6) if weights else None

    def step(self, batch: Any) -> None:
        call = _state.call_of(self.model, batch)
        output = self.model(*call.args, **call.kwargs)
        loss = _state.loss_of(output, call, self.loss_fn)
        if self.optimizer is not None and loss.requires_grad:
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()

    def epoch(self) -> None:
        for batch in self.batches:
            self.step(batch)

    def peak_mb(self) -> float:
        """The peak memory of a step beyond the weights, by torch's count of its tensors."""
        import torch
        self.step(self.batches[0])
        if self.optimizer is not None:
            self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            peaks = _gpu_memory.peaks(self.device.index or 0)  # so that other measurements keep their peak
            reading = peaks.begin()
            self.step(self.batches[0])
            torch.cuda.synchronize(self.device)
            peaks.end(reading)
            return (reading.peak - reading.before) / MB
        if _native.another_active():
            return Missing("another torch profiler is active")
        cpu = [torch.profiler.ProfilerActivity.CPU]
        try:
            with _native.own_profile(cpu, profile_memory=True) as profiler:
                self.step(self.batches[0])
            peak = _native.peak_bytes(profiler)
        except Exception as error:
            return Missing(f"torch's profiler could not count memory: {error}")
        return peak / MB if peak is not None else Missing("torch's profiler did not count memory")


def side(seconds: List[float], steps: int, samples: Optional[int], peak_mb: float) -> Dict[str, Any]:
    """One side of a comparison, for reports; times are medians over the rounds."""
    total = quantile(seconds, 0.5)
    counted = Missing("the batches have no first dimension to count") if samples is None else samples
    rate = steps / total if total > 0 else Missing("the clock saw no time pass")
    return {"total_time": total, "avg_step_time": total / steps, "throughput": rate,
            "samples_per_second": counted / total if total > 0 else rate, "peak_memory_mb": peak_mb,
            "std": statistics.stdev(seconds) if len(seconds) > 1 else Missing("one round has no deviation"),
            "rounds": [float(one) for one in seconds]}


def improvements(before: Dict[str, Any], after: Dict[str, Any]) -> Dict[str, Any]:
    """time_improvement_percent, memory_improvement_percent and speedup_factor."""
    was, now = before["total_time"], after["total_time"]
    memory, less = before["peak_memory_mb"], after["peak_memory_mb"]
    none = Missing("the clock saw no time pass")
    return {"time_improvement_percent": 100 * (was - now) / was if was > 0 else none,
            "memory_improvement_percent": 100 * (memory - less) / memory if memory != 0 else Missing(
                "a step takes no memory of its own"),
            "speedup_factor": was / now if now > 0 else none}
