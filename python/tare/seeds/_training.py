"""Training steps, measured part by part."""
import contextlib
import math
from typing import Any, Dict, List

from .. import _core
from .._core import Missing, quantile
from ..config import ProfilingConfig
from ..torch import _state
from . import dataloading
from .metric import MB
from .monitor import PerformanceMonitor

PHASES = ("data_loading", "to_device", "forward", "backward", "optimizer", "step_fn")


class Work:
    """Training steps in blocks: their times, their memory, their spans in the trace."""

    def __init__(self, config: ProfilingConfig, model: Any, loss_fn: Any, optimizer: Any, step_fn: Any) -> None:
        import torch
        self.model = model
        self.loss_fn = loss_fn
        self.step_fn = step_fn
        self.split = config.profile_model_forward and step_fn is None
        self.device = _state.device_of(model)
        self.monitor = PerformanceMonitor(device=self.device.index or 0, memory=True, keep=1_000_000)
        self.given = optimizer
        weights = [one for one in model.parameters() if one.requires_grad]
        self.optimizer = optimizer
        if optimizer is None and step_fn is None and weights:
            self.optimizer = torch.optim.SGD(weights, lr=1e-6)
        self.samples: List[int] = []
        self.own_loss = False
        self.no_gradient = False

    def _block(self, name: str) -> Any:
        return self.monitor.track(name) if self.split or name in ("data_loading", "to_device", "step", "step_fn") \
            else contextlib.nullcontext()

    def step(self, batch: Any) -> None:
        """One step, with a separate block for each part."""
        if self.step_fn is not None:
            with self._block("step_fn"):
                arguments = (self.model, batch) if self.given is None else (self.model, batch, self.given)
                self.step_fn(*arguments)
            return
        if not _state.on_device(batch, self.device):
            with self._block("to_device"):
                batch = _state.to_device(batch, self.device)
        with self._block("forward"):
            call = _state.call_of(self.model, batch)
            output = self.model(*call.args, **call.kwargs)
            loss = _state.loss_of(output, call, self.loss_fn)
            self.own_loss = self.loss_fn is None and _state.own_loss(output) is not None
        del output  # as at the end of a loop's body: its memory is free for the next step
        if not getattr(loss, "requires_grad", False):
            self.no_gradient = True
            return
        with self._block("backward"):
            loss.backward()
        if self.optimizer is not None:
            with self._block("optimizer"):
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)

    def _steps(self, iterator: Any, limit: int) -> int:
        done = 0
        while done < limit:
            try:
                with self._block("data_loading"):
                    batch = next(iterator)
            except StopIteration:
                break
            _core.step_begin(done)
            try:
                with self._block("step"):
                    self.step(batch)
            finally:
                _core.step_end()
            self.samples.append(_state.samples_in(batch) or 0)
            done += 1
        return done

    def train(self, loader: Any, limit: int) -> Dict[str, Any]:
        """The measured steps."""
        if self.step_fn is None:
            self.model.train()
            if self.optimizer is not None:
                self.optimizer.zero_grad(set_to_none=True)
        reported_before = _core.torch_hand_over(True)  # steps are reported here, not inferred
        try:
            done = self._steps(iter(loader), limit)
        finally:
            _core.torch_hand_over(reported_before)
        _state.synchronize(self.device)  # once, after the last step: its device time is known then
        if not done:
            raise ValueError("the loader has no batches")
        return self._figures(done, limit)

    def _of(self, name: str, count: int) -> List[Any]:
        return self.monitor.get_metrics(name)[:count]  # the attempt that reached the loader's end is one more

    def _figures(self, done: int, requested: int) -> Dict[str, Any]:
        steps, waits = self._of("step", done), self._of("data_loading", done)
        # The first step includes one-time setup; it is reported separately.
        first = 1 if done > 1 else 0
        whole = [one.duration_seconds + wait.duration_seconds for one, wait in zip(steps, waits)]
        steady = whole[first:]
        total = math.fsum(steady)
        per_second = len(steady) / total if total > 0 else Missing("the clock saw no time pass")
        # Samples of exactly the timed steps: the last batch may be smaller than the others.
        samples = (math.fsum(self.samples[first:done]) if all(self.samples)
                   else Missing("the batches have no first dimension to count"))
        compute = math.fsum(one.duration_seconds for one in steps[first:]) / len(steady)
        figures = {"steps": done, "requested_steps": requested, "first_step_time": whole[0],
                   "step_time": {"mean": total / len(steady), **dataloading.spread(steady)},
                   "compute_s": compute if self.device.type != "cuda" else self._device_mean("step", done, first),
                   "throughput": per_second, "samples_per_second": samples / total if total > 0 else per_second,
                   "memory_per_batch_mb": quantile([_memory(one, self.device) for one in steps[first:]], 0.5),
                   "memory_per_batch_source": ("torch's count on the GPU" if self.device.type == "cuda"
                                               else "the process's resident memory"),
                   "phases": self._phases(done, first, total / len(steady)), "notes": self._notes(done, requested)}
        figures["loss"], figures["optimizer"] = self._stand_ins()
        return figures

    def _device_mean(self, name: str, done: int, first: int) -> float:
        seconds = [one.device_seconds for one in self._of(name, done)[first:]]
        missing = [one for one in seconds if math.isnan(one)]
        return missing[0] if missing else math.fsum(seconds) / len(seconds)

    def _phases(self, done: int, first: int, step_s: float) -> Dict[str, Dict[str, float]]:
        names = {one.operation for one in self.monitor.get_metrics()}
        phases: Dict[str, Dict[str, float]] = {}
        for name in PHASES:
            if name not in names:
                continue
            blocks = self._of(name, done)[first:]
            seconds = [one.duration_seconds for one in blocks]
            mean = math.fsum(seconds) / len(seconds)
            phases[name] = {"mean_s": mean, "p50_s": quantile(seconds, 0.5), "max_s": max(seconds),
                            "share_percent": 100 * mean / step_s if step_s > 0 else Missing("no time passed"),
                            "device_s": self._device_mean(name, done, first)}
        return phases

    def _stand_ins(self) -> Any:
        if self.step_fn is not None:
            return "the step_fn's", "the step_fn's"
        loss = ("loss_fn" if self.loss_fn is not None else "the model's own" if self.own_loss
                else _state.SURROGATE)
        if self.no_gradient:
            return loss, "none: the loss depends on no parameter that is trained"
        return loss, "given" if self.given is not None else _state.SURROGATE_OPTIMIZER

    def _notes(self, done: int, requested: int) -> List[str]:
        notes = []
        if done < requested:
            notes.append(f"the loader has {done} batches; {requested} were requested")
        if done == 1:
            notes.append("one step only: its time contains what is set up once")
        if self.no_gradient:
            notes.append("no backward pass: the loss depends on no parameter that is trained")
        if self.device.type == "cuda":
            notes.append("times of phases are host times; device_s is the GPU's")
        if self.step_fn is not None and self.given is None:
            notes.append("an optimizer inside the step_fn is not put back; pass it as optimizer")
        return notes


def _memory(step: Any, device: Any) -> float:
    """Peak memory of a step in MB, above the level before it; GPU memory if the model is on a GPU."""
    if device.type == "cuda":
        return step.gpu_peak_mb
    result = step._result
    return (result.rss_peak - result.rss_before) / MB
