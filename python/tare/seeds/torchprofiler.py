"""torch's own profiler, driven by a ProfilingConfig, and its results in seconds."""
import contextlib
import os
from typing import Any, Dict, Iterator, List, Optional

from .._core import Missing, Recorder
from ..config import ProfilerAction, ProfilingConfig
from ..torch import _native

_NOTHING = "nothing was profiled yet: profile_training_pipeline() or `with profiler.pytorch_profiler.profile():`"


class PyTorchProfiler:
    """Runs torch.profiler around steps and sums its operators up.

        with profiler.pytorch_profiler.profile() as steps:
            for batch in loader:
                train(batch)
                steps.step()
        print(profiler.pytorch_profiler.get_profile_summary()["cpu_time"])
    """

    def __init__(self, config: Optional[ProfilingConfig] = None) -> None:
        self.config = config if config is not None else ProfilingConfig()
        self.traces: List[str] = []     #: files written by the last profile()
        self._folder: Optional[str] = None
        self._reset(_NOTHING)

    def _reset(self, reason: Optional[str]) -> None:
        self._reason = reason
        self._operations: Dict[str, Dict[str, Any]] = {}
        self._kernels: Dict[str, Dict[str, Any]] = {}
        self._seconds = 0.0
        self._device = False
        self._peak: Optional[int] = None
        self.traces = []

    @contextlib.contextmanager
    def profile(self, trace_folder: Optional[str] = None) -> Iterator["_Steps"]:
        """Profiles the block; call step() on the returned object after each step. Traces are written to trace_folder. A
        profiler that cannot start does not stop the block: the summary is missing, with the reason.

            with profiler.pytorch_profiler.profile():
                model(batch)
        """
        self._reset(None)
        self._folder = trace_folder
        profiler = self._start()
        recorder = Recorder(memory=False, cpu=False, keep=1)
        block = recorder.block("torch.profiler")
        try:
            with block:
                yield _Steps(profiler)
        finally:
            self._seconds = recorder.last().wall_s
            if profiler is not None:
                self._stop(profiler)

    def _start(self) -> Any:
        try:
            import torch
            import torch.profiler as native
        except ImportError:
            self._reason = "torch is not installed"
            return None
        if _native.another_active():
            self._reason = "another torch profiler is active"
            return None
        config = self.config
        activities = [native.ProfilerActivity.CPU]
        if torch.cuda.is_initialized() and native.ProfilerActivity.CUDA in native.supported_activities():
            activities.append(native.ProfilerActivity.CUDA)
            self._device = True
        schedule = None
        if callable(config.profiler_schedule):
            def schedule(step: int) -> Any:
                return native.ProfilerAction[config.action(step).name]
        elif config.action(0) in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            self._reason = f"profiler_schedule is {config.action(0).name}: no step is recorded"
            return None
        try:
            profiler = native.profile(activities=activities, schedule=schedule, on_trace_ready=self._collect,
                                      record_shapes=config.record_shapes, profile_memory=config.profile_memory,
                                      with_stack=config.with_stack)
            profiler.__enter__()
            return profiler
        except Exception as error:  # another profiler is active, no permission, …
            self._reason = f"torch's profiler could not start: {error}"
            return None

    def _stop(self, profiler: Any) -> None:
        try:
            profiler.__exit__(None, None, None)
        except Exception as error:
            self._reason = f"torch's profiler failed: {error}"
        if not self._operations and self._reason is None:
            self._reason = "torch's profiler recorded no operation; its schedule, or another profiler at work"

    def _collect(self, profiler: Any) -> None:
        for event in profiler.key_averages():
            # torch's own blocks: a step, and the loader's Python code. Neither is part of the model.
            if event.key.startswith(("ProfilerStep", "enumerate(DataLoader)")):
                continue
            if _native.is_of_device(event):
                if not getattr(event, "is_user_annotation", False):  # a span of the program's, around its kernels
                    kernel = self._kernels.setdefault(event.key, {"calls": 0, "seconds": 0.0})
                    kernel["calls"] += event.count
                    kernel["seconds"] += _native.of_device(event, "self_{}_time_total") / 1e6
                continue
            one = self._operations.setdefault(event.key, dict.fromkeys(
                ("calls", "self_cpu", "cpu", "self_device", "device", "memory"), 0))
            one["calls"] += event.count
            one["self_cpu"] += event.self_cpu_time_total
            one["cpu"] += event.cpu_time_total
            one["self_device"] += _native.of_device(event, "self_{}_time_total")
            one["device"] += _native.of_device(event, "{}_time_total")
            one["memory"] += getattr(event, "self_cpu_memory_usage", 0)
        peak = _native.peak_bytes(profiler)
        if peak is not None:
            self._peak = max(peak, self._peak or 0)
        if self._folder is not None:
            path = free_name(self._folder, "torch_trace", ".json")
            profiler.export_chrome_trace(path)
            self.traces.append(path)

    def get_profile_summary(self) -> Dict[str, Any]:
        """total_time (of the block), cpu_time (in operators) and cuda_time (of kernels and copies on the GPU, each
        counted once; several streams may add up to more than total_time), in seconds; top_operations with name,
        calls, cpu_time, cuda_time (of the kernels they launched themselves, without what they call), cpu_time_total,
        cuda_time_total, memory_bytes; top_kernels with name, calls, cuda_time; peak_tensor_bytes, the peak of
        allocated memory. Without torch's profiler they are missing, with the reason.

            for operation in profiler.pytorch_profiler.get_profile_summary()["top_operations"][:5]:
                print(f"{operation['name']}: {operation['cpu_time']:.3f}s")
        """
        if self._reason is not None:
            missing = Missing(self._reason)
            return {"total_time": missing, "cpu_time": missing, "cuda_time": missing, "top_operations": [],
                    "top_kernels": [], "peak_tensor_bytes": missing}
        seen = bool(self._kernels) or any(one["self_device"] for one in self._operations.values())
        no_device = None if seen else Missing("torch's profiler saw no work on the GPU" if self._device
                                              else "CUDA was not in use")
        rows = [self._row(name, one, no_device) for name, one in self._operations.items()]
        rows.sort(key=lambda row: -max(row["cpu_time"], row["cuda_time"] if seen else 0))
        return {"total_time": self._seconds,
                "cpu_time": sum(row["cpu_time"] for row in rows),
                "cuda_time": self._device_seconds() if seen else no_device,
                "top_operations": rows[:20],
                "top_kernels": self._top_kernels(),
                "peak_tensor_bytes": self._peak if self._peak is not None else Missing("profile_memory is off")}

    def _device_seconds(self) -> float:
        """torch lists a kernel by itself, and once more in the time of the operator that launched it; a torch that
        lists no kernels has their time with the operators only."""
        if self._kernels:
            return sum(kernel["seconds"] for kernel in self._kernels.values())
        return sum(one["self_device"] for one in self._operations.values()) / 1e6

    def _top_kernels(self) -> List[Dict[str, Any]]:
        rows = [{"name": name, "calls": kernel["calls"], "cuda_time": kernel["seconds"]}
                for name, kernel in self._kernels.items()]
        return sorted(rows, key=lambda row: -row["cuda_time"])[:20]

    def _row(self, name: str, one: Dict[str, Any], no_device: Optional[float]) -> Dict[str, Any]:
        return {"name": name, "calls": one["calls"], "cpu_time": one["self_cpu"] / 1e6,
                "cuda_time": one["self_device"] / 1e6 if no_device is None else no_device,
                "cpu_time_total": one["cpu"] / 1e6,
                "cuda_time_total": one["device"] / 1e6 if no_device is None else no_device,
                "memory_bytes": one["memory"] if self.config.profile_memory else Missing("profile_memory is off")}


class _Steps:
    def __init__(self, profiler: Any) -> None:
        self._profiler = profiler

    def step(self) -> None:
        """Ends a step, for the schedule."""
        if self._profiler is not None:
            self._profiler.step()


def free_name(folder: str, name: str, ending: str) -> str:
    """A path that does not exist yet: nothing is overwritten."""
    path, number = os.path.join(folder, name + ending), 2
    while os.path.exists(path):
        path, number = os.path.join(folder, f"{name}_{number}{ending}"), number + 1
    return path
