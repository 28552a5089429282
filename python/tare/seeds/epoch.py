"""EpochPerformanceMonitor: times a training loop's batches and epochs, and prints the first batches of each epoch."""
import math
import os
from typing import Any, Dict, List, Mapping, Optional, Union

from .. import _check, _core
from .._core import Missing
from ..config import read_trainer_params
from ..torch import _gpu_memory
from . import _bottlenecks, rules
from ._bottlenecks import Bottleneck
from .metric import MB, megabytes
from .monitor import cudnn_benchmark


class EpochPerformanceMonitor:
    """Times batches and epochs. The first `verbose_batches` batches of every epoch get a line with their memory and
    loss; a loss that is a tensor is read for these only, since reading it waits for the GPU. Batches are steps of the
    trace, when one is recorded.

        monitor = tare.EpochPerformanceMonitor(verbose_batches=5)
        for epoch in range(epochs):
            monitor.on_epoch_start()
            for index, batch in enumerate(loader):
                monitor.on_batch_start(index)
                loss = train(batch)
                monitor.on_batch_end(index, loss)
            monitor.on_epoch_end()
    """

    def __init__(self, enabled: bool = True, verbose_batches: int = 5, device: Any = 0) -> None:
        self.enabled = bool(enabled)
        self.verbose_batches = _check.whole(verbose_batches, "verbose_batches", 0)
        self.device = _gpu_memory.number_of(device)
        #: torch.backends.cudnn.benchmark as the last epoch found it
        self.cudnn_benchmark: Any = Missing("no epoch has begun")
        self._batches = _core.Laps()
        self._epochs = _core.Laps()
        self._of_epoch = _core.Laps()
        self._epoch_index = -1
        self._step_open = self._epoch_open = False

    @classmethod
    def from_config(cls, config: Union[None, Mapping[str, Any], str, "os.PathLike[str]"] = None,
                    device: Any = 0, strict: bool = True) -> "EpochPerformanceMonitor":
        """A monitor from a trainer's settings, a mapping or a YAML file (needs PyYAML):
        `enable_memory_monitoring` (default: off) and `memory_monitor_batches`, at the top level or under
        `trainer_params`; without either, from tare.toml, [tool.tare] and TARE_* variables. Other keys belong to the
        trainer: unknown ones are ignored with a warning, with strict=False silently.

            monitor = tare.EpochPerformanceMonitor.from_config("conf/trainer/synthetic_with_memory.yaml")
        """
        read = read_trainer_params(config, strict)
        return cls(enabled=read.get("enable_memory_monitoring", False),
                   verbose_batches=read.get("memory_monitor_batches", 5), device=device)

    # -- the hooks

    def on_epoch_start(self, epoch: Optional[int] = None) -> None:
        """Begins an epoch; one that is still open is dropped, with its batch.

            monitor.on_epoch_start()
        """
        if not self.enabled:
            return
        self._drop_batch()
        if self._epoch_open:
            _core.epoch_end()
        self._epoch_index = self._epoch_index + 1 if epoch is None else epoch
        self.cudnn_benchmark = cudnn_benchmark()
        _core.epoch_begin(self._epoch_index)
        self._epoch_open = True
        self._of_epoch.clear()
        self._epochs.begin()

    def on_batch_start(self, batch_idx: int) -> None:
        """Begins a batch; one that was not ended is not counted.

            monitor.on_batch_start(index)
        """
        if not self.enabled:
            return
        self._drop_batch()
        _core.step_begin(batch_idx)
        self._step_open = True
        self._of_epoch.begin()
        self._batches.begin()

    def on_batch_end(self, batch_idx: int, loss: Any = None) -> None:
        """Ends a batch, with its loss if there is one. RuntimeError if none has begun.

            monitor.on_batch_end(index, loss)
        """
        if not self.enabled:
            return
        seconds = self._batches.end()
        if seconds is None:
            raise RuntimeError(f"on_batch_end({batch_idx}) without its on_batch_start({batch_idx})")
        self._of_epoch.end()
        self._end_step()
        if batch_idx < self.verbose_batches:
            self._print_batch(batch_idx, seconds, loss)

    def on_epoch_end(self) -> None:
        """Ends the epoch and prints its two lines. RuntimeError if none has begun.

            monitor.on_epoch_end()
        """
        if not self.enabled:
            return
        self._drop_batch()
        seconds = self._epochs.end()
        if seconds is None:
            raise RuntimeError("on_epoch_end() without its on_epoch_start()")
        _core.epoch_end()
        self._epoch_open = False
        self._print_epoch(seconds)

    def _drop_batch(self) -> None:
        self._batches.cancel()
        self._of_epoch.cancel()
        self._end_step()

    def _end_step(self) -> None:
        if self._step_open:
            _core.step_end()
            self._step_open = False

    # -- its lines

    def _print_batch(self, index: int, seconds: float, loss: Any) -> None:
        gpu = _gpu_memory.memory(self.device).allocated / MB
        text = f"  Batch {index}: {seconds:.3f}s, GPU {megabytes(gpu)}, CPU {megabytes(_core.rss() / MB)}"
        if loss is not None:
            value = _loss_value(loss)
            if not isinstance(value, Missing):
                _core.counter("loss", value)
            text += f", loss={value:.6f}"
        print(text, flush=True)

    def _print_epoch(self, seconds: float) -> None:
        gpu = _gpu_memory.memory(self.device)
        print(f"  Epoch end: {seconds:.3f}s total, GPU {megabytes(gpu.allocated / MB)}, "
              f"{megabytes(gpu.reserved / MB, '.0f')} reserved, peak {megabytes(gpu.peak / MB, '.0f')}", flush=True)
        laps = self._of_epoch
        if laps.count:
            print(f"  Batch timing: avg={laps.mean:.3f}s, min={laps.min:.3f}s, max={laps.max:.3f}s", flush=True)
        if _gpu_memory.torch_in_use() is not None:
            print("  Times are host time: work queued on the GPU may end later", flush=True)

    # -- what was measured

    def get_statistics(self) -> Dict[str, float]:
        """Seconds and counts over all epochs: total_epoch_time, avg_epoch_time, total_batch_time, avg_batch_time,
        min_batch_time, max_batch_time, num_batches, num_epochs.

            stats = monitor.get_statistics()
            stats["max_batch_time"] / stats["min_batch_time"]
        """
        return {
            "total_epoch_time": self._value(self._epochs, "total", "epoch"),
            "avg_epoch_time": self._value(self._epochs, "mean", "epoch"),
            "total_batch_time": self._value(self._batches, "total", "batch"),
            "avg_batch_time": self._value(self._batches, "mean", "batch"),
            "min_batch_time": self._value(self._batches, "min", "batch"),
            "max_batch_time": self._value(self._batches, "max", "batch"),
            "num_batches": self._batches.count,
            "num_epochs": self._epochs.count,
        }

    def _value(self, laps: Any, field: str, what: str) -> float:
        if not self.enabled:
            return Missing("monitoring is disabled")
        value: float = getattr(laps, field)
        return Missing(f"no {what} has ended") if math.isnan(value) else value

    def bottlenecks(self) -> List[Bottleneck]:
        """A slow first batch, and batches of which the slowest took more than twice as long as the fastest, with
        likely causes; time of the epochs outside of batches (loading, validation) above 30 %; and findings of custom
        rules (bottleneck_rule) for the operations "batch" and "epoch".

            for found in monitor.bottlenecks():
                print(found, *found.advice, sep="\\n  ")
        """
        laps, epochs = self._batches, self._epochs
        found: List[Bottleneck] = []
        if laps.count > 1:
            others = (laps.total - laps.first) / (laps.count - 1)
            found += _bottlenecks.first_batch("batch", laps.first, others, laps.count)
        found += _bottlenecks.variance("batch", laps.min, laps.max, laps.count)
        if epochs.count and not epochs.open and epochs.total > 0:
            found += _bottlenecks.between_batches(100 * (1 - laps.total / epochs.total))
        return found + rules.apply(rules.Observed("epochs", {
            name: rules.Operation(name, one.count, one.total, one.total, one.mean, Missing("laps keep no percentiles"),
                                  100 * one.total / epochs.total if epochs.total > 0 else Missing("no epoch has ended"),
                                  Missing("batches are inside epochs"))
            for name, one in (("batch", laps), ("epoch", epochs)) if one.count}))


def _loss_value(loss: Any) -> float:
    try:
        return float(loss.item() if hasattr(loss, "item") else loss)
    except Exception:  # printing a loss must not stop the training
        return Missing("the loss is not one number")
