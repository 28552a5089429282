"""CodeProfiler: profiles a training pipeline from its loader to its optimizer, and recommends improvements.

    profiler = tare.CodeProfiler(tare.create_profiling_config(save_profiles=True))
    report = profiler.profile_training_pipeline(model, loader, num_steps=50)
    print(*report["recommendations"], sep="\\n")
"""
import contextlib
import importlib.util
import itertools
import json
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from .. import _check
from .._core import Missing, unit
from .._files import write_whole
from .._views import html_table
from ..config import ProfilingConfig, create_profiling_config
from ..torch import _state
from . import dataloading, recommend
from ._contest import Contest
from ._limits import percent
from ._training import Work
from .dataloading import DataLoadingProfiler
from .functions import profile_function
from .metric import MB, plain
from .monitor import PerformanceMonitor
from .optimize import ModelOptimizer
from .performance import environment
from .recommend import Recommendation, figure
from .torchprofiler import PyTorchProfiler, free_name

PROFILED_STEPS = 10  # at most, under torch's profiler: it is too slow to measure with, and its traces are large
ROUNDS = 5


class PipelineReport(Dict[str, Any]):
    """A report as a dict; to_json() writes null and a reason for values that could not be measured.

        report["data_loading"]["throughput"]
    """

    def to_json(self, path: Any = None) -> Optional[str]:
        """As JSON: to the file, or as text without a path.

            report.to_json("report.json")
        """
        text = json.dumps(plain(self), indent=2, ensure_ascii=False)
        if path is None:
            return text
        write_whole(path, text + "\n")
        return None

    def _repr_html_(self) -> str:
        import html
        steps = self.get("training", {}).get("phases", {})
        rows = [(name, f"{one['mean_s'] * 1e3:.2f}", f"{one['share_percent']:.1f}") for name, one in steps.items()]
        advice = "".join(f"<li>{html.escape(one)}</li>" for one in self.get("recommendations", ()))
        return html_table(("phase", "ms a step", "%"), rows) + f"<ol>{advice}</ol>"


class CodeProfiler:
    """Profiles training pipelines and functions, and measures the gain of optimizations. Its parts can be used alone:
    performance_monitor, pytorch_profiler, data_loading_profiler, model_optimizer.

        profiler = tare.CodeProfiler(config)
    """

    def __init__(self, config: Optional[ProfilingConfig] = None) -> None:
        if config is not None and not isinstance(config, ProfilingConfig):
            raise TypeError(f"CodeProfiler takes a ProfilingConfig, not {type(config).__name__}")
        self.config = config if config is not None else create_profiling_config()
        self.performance_monitor = PerformanceMonitor()
        self.pytorch_profiler = PyTorchProfiler(self.config)
        self.data_loading_profiler = DataLoadingProfiler(self.config)
        self.model_optimizer = ModelOptimizer(self.config)
        self._rules: List[Callable[[recommend.Seen], Any]] = []

    # -- a pipeline

    def profile_training_pipeline(self, model: Any, dataloader: Any, num_steps: int = 10, *,
                                  loss_fn: Optional[Callable[..., Any]] = None, optimizer: Any = None,
                                  step_fn: Optional[Callable[..., Any]] = None,
                                  restore: bool = True) -> PipelineReport:
        """Measures the loader alone, then num_steps training steps (fewer when the loader has fewer batches: the
        report's notes say so), then some under torch's profiler, and tries the optimizations on a copy.

        loss_fn(output, target) and optimizer are the training's own; step_fn(model, batch) (with an optimizer:
        step_fn(model, batch, optimizer)) is a whole step. Without them a surrogate loss and plain SGD are used, and
        the report notes it. Weights, buffers, gradients, modes, the optimizer's state and random generators are
        restored afterwards; restore=False keeps the weights that the measured steps trained. With save_profiles the
        report, a plot and traces are written to output_dir.

            report = profiler.profile_training_pipeline(model, loader, 50, loss_fn=loss, optimizer=adam)
        """
        _state.check_model(model, "profile_training_pipeline")
        dataloading.check_loader(dataloader, "profile_training_pipeline", again=True)
        _check.whole(num_steps, "num_steps")
        _check_parts(loss_fn, optimizer, step_fn)
        folder = self._folder()
        data = self._data_stats(dataloader, num_steps)
        work = Work(self.config, model, loss_fn, optimizer, step_fn)
        with self._watching(), _state.kept_random(dataloader):
            with _state.kept_state(model, work.optimizer) if restore else contextlib.nullcontext():
                training = work.train(dataloader, num_steps)
            with _state.kept_state(model, work.optimizer):
                summary = self._torch_summary(work, dataloader, min(training["steps"], PROFILED_STEPS), folder)
        machine = self._machine()
        training["restored"] = restore
        peak = figure(summary, "peak_tensor_bytes")
        if work.device.type == "cpu" and peak > 0:  # an allocator that reuses its memory hides a step from the system
            training.update(memory_per_batch_mb=peak / MB, memory_per_batch_source="torch's count of its tensors")
        data["compute_time"] = training["compute_s"]
        data["wait_percent"] = figure(training, "phases", "data_loading", "share_percent")
        optimizations = self._model_optimizations(model, dataloader, machine)
        seen = recommend.Seen(data, summary, machine, training, self.config)
        report = PipelineReport(
            data_loading=data, data_bottlenecks=self.data_loading_profiler.identify_bottlenecks(data),
            data_optimizations=self.data_loading_profiler.optimize_dataloader(dataloader, data),
            model_profiling=summary, model_optimizations=optimizations, performance_monitoring=machine,
            recommendations=recommend.generate(seen, self._rules), training=training, bottlenecks=_bottlenecks(seen),
            notes=list(dict.fromkeys([*data.get("notes", ()), *training["notes"]])), environment=_environment(model),
            config=self.config.as_dict(), saved=[])
        report["recommendation_details"] = [one.as_dict() for one in report["recommendations"]]
        if folder is not None:
            self._save(report, folder)
        return report

    def _folder(self) -> Optional[str]:
        """Created before anything is measured: an unwritable folder must not cost a run."""
        if not self.config.save_profiles:
            return None
        os.makedirs(self.config.output_dir, exist_ok=True)
        if not os.access(self.config.output_dir, os.W_OK | os.X_OK):
            raise PermissionError(f"output_dir cannot be written: {self.config.output_dir}")
        return self.config.output_dir

    def _data_stats(self, loader: Any, steps: int) -> Dict[str, Any]:
        if self.config.profile_data_loading:
            return self.data_loading_profiler.profile_dataloader(loader, steps)
        off = Missing("profile_data_loading is off")
        return {**dict.fromkeys(dataloading.KEYS, off), "settings": dataloading.settings_of(loader), "notes": []}

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        """The machine meanwhile; monitoring that the user has started continues."""
        monitor = self.performance_monitor
        try:
            monitor.start_monitoring(0.05)
            started = True
        except RuntimeError:  # it runs already
            started = False
        try:
            yield
            monitor.record_metrics()
        finally:
            if started:
                monitor.stop_monitoring()

    def _machine(self) -> Dict[str, Any]:
        summary: Dict[str, Any] = self.performance_monitor.get_summary()
        switches = {"cpu": "monitor_cpu", "memory": "monitor_memory", "gpu_memory": "monitor_gpu"}
        for name, switch in switches.items():
            if not getattr(self.config, switch):
                off = Missing(f"{switch} is off")
                summary[name] = {field: 0 if field == "count" else off for field in summary[name]}
        return summary

    def _torch_summary(self, work: Work, loader: Any, steps: int, folder: Optional[str]) -> Dict[str, Any]:
        if not self.config.use_torch_profiler:
            off = Missing("use_torch_profiler is off")
            return {"total_time": off, "cpu_time": off, "cuda_time": off, "top_operations": [], "profiled_steps": 0}
        with self.pytorch_profiler.profile(folder) as profiled:
            done = 0
            for batch in itertools.islice(loader, steps):
                work.step(batch)
                profiled.step()
                done += 1
            _state.synchronize(work.device)
        return {**self.pytorch_profiler.get_profile_summary(), "profiled_steps": done}

    def _model_optimizations(self, model: Any, loader: Any, machine: Mapping[str, Any]) -> Dict[str, Any]:
        """Tried on a copy: the model itself is not changed."""
        summary = {"memory_percent": figure(machine, "memory", "max")}
        try:
            with _state.kept_random(loader):
                batch = dataloading.first_batches(loader, 1)[0]
                _state.remember(model, batch)
                self.model_optimizer.optimize_model(_state.copy_of(model), summary, batch)
        except Exception as error:  # an error in advice must not lose the measurements
            return {"optimizations_applied": [], "total_optimizations": 0, "status": f"could not be tried: {error}"}
        return {**self.model_optimizer.get_optimization_summary(),
                "applied_to": "a copy of the model; optimize_model() gives the optimized one"}

    def _save(self, report: PipelineReport, folder: str) -> None:
        saved = list(self.pytorch_profiler.traces) if self.config.use_torch_profiler else []
        if importlib.util.find_spec("matplotlib") is None:
            report["notes"].append("no plot was saved: plots need matplotlib")
        else:
            plot = free_name(folder, "performance_metrics", ".png")
            self.performance_monitor.plot_metrics(plot)
            saved.append(plot)
        path = free_name(folder, "profiling_report", ".json")
        report["saved"] = saved + [path]
        report.to_json(path)

    # -- functions

    def profile_function(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Dict[str, Any]:
        """Calls the function once: execution_time in seconds, memory_delta in MB and the result.

            profiler.profile_function(training_step, model, batch, optimizer)["execution_time"]
        """
        return profile_function(function, *args, **kwargs)

    # -- optimizations

    def benchmark_optimizations(self, model: Any, dataloader: Any, num_steps: int = 10, *,
                                loss_fn: Optional[Callable[..., Any]] = None, rounds: int = ROUNDS,
                                tolerance: Optional[float] = None) -> PipelineReport:
        """Trains copies of the model, unchanged and optimized, alternately on the same num_steps batches (kept in
        memory), and compares the medians: original, optimized, improvements. An optimization that changes the results
        by more than the tolerance, or does not help, is dropped; candidates describes each. Loader keywords are
        measured too, under data_loading. The model itself is not changed.

            profiler.benchmark_optimizations(model, loader, 10)["improvements"]["speedup_factor"]
        """
        _state.check_model(model, "benchmark_optimizations")
        dataloading.check_loader(dataloader, "benchmark_optimizations", again=True)
        _check.whole(num_steps, "num_steps")
        _check.whole(rounds, "rounds")
        _check_parts(loss_fn, None, None)
        folder = self._folder()
        with _state.kept_random(dataloader):
            batches = dataloading.first_batches(dataloader, num_steps)
            if not batches:
                raise ValueError("the loader has no batches")
            _state.remember(model, batches[0])
            contest = Contest(self.config, model, batches, loss_fn, rounds, tolerance)
            report = PipelineReport(contest.run())
        if len(batches) < num_steps:
            report["notes"].append(f"the loader has {len(batches)} batches; {num_steps} were requested")
        report["data_loading"] = self._measured_keywords(dataloader, num_steps, report["original"]["avg_step_time"])
        if folder is not None:
            path = free_name(folder, "benchmark_report", ".json")
            report["saved"] = [path]
            report.to_json(path)
        return report

    def _measured_keywords(self, loader: Any, steps: int, compute_s: float) -> Dict[str, Any]:
        if not self.config.profile_data_loading:
            return {"keywords": {}, "status": "not measured: profile_data_loading is off"}
        stats = self.data_loading_profiler.profile_dataloader(loader, steps)
        stats["compute_time"] = compute_s
        if not (stats["settings"].get("num_workers") or 0):  # otherwise loading continues beside the computing
            loading = stats["avg_loading_time"]
            stats["wait_percent"] = 100 * loading / (loading + compute_s)
        keywords = self.data_loading_profiler.optimize_dataloader(loader, stats)
        return self.data_loading_profiler.measure_keywords(loader, keywords, stats["total_batches"])

    # -- advice

    def add_rule(self, rule: Callable[[recommend.Seen], Any]) -> None:
        """Adds a custom bottleneck rule: a function of the measurements that returns sentences.

            profiler.add_rule(lambda seen: ["Loading is slow"] if seen.data["avg_loading_time"] > 1 else [])
        """
        if not callable(rule):
            raise TypeError(f"a rule is a function of what was measured, not {type(rule).__name__}")
        self._rules.append(rule)

    def _generate_recommendations(self, data_stats: Mapping[str, Any], profile_summary: Mapping[str, Any],
                                  performance_summary: Mapping[str, Any]) -> List[Recommendation]:
        """Recommendations from the results of profile_dataloader(), get_profile_summary() and get_summary().

            for advice in profiler._generate_recommendations(data_stats, profile_summary, performance_summary):
                print(advice)
        """
        given = {"data_stats": data_stats, "profile_summary": profile_summary,
                 "performance_summary": performance_summary}
        for name, one in given.items():
            if not isinstance(one, Mapping):
                raise TypeError(f"{name} is a dict of figures, not {type(one).__name__}")
        return recommend.generate(recommend.Seen(data_stats, profile_summary, performance_summary, {}, self.config),
                                  self._rules)


def _check_parts(loss_fn: Any, optimizer: Any, step_fn: Any) -> None:
    for name, one in (("loss_fn", loss_fn), ("step_fn", step_fn)):
        if one is not None and not callable(one):
            raise TypeError(f"{name} is a function, not {type(one).__name__}")
    if optimizer is not None and not (hasattr(optimizer, "step") and hasattr(optimizer, "state_dict")):
        raise TypeError(f"optimizer is a torch optimizer, not {type(optimizer).__name__}")
    if step_fn is not None and loss_fn is not None:
        raise TypeError("a step_fn computes its own loss; give it or a loss_fn, not both")


def _environment(model: Any) -> Dict[str, Any]:
    torch = sys.modules["torch"]
    device = _state.device_of(model)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    return {**environment(), "device": str(device), "device_name": name,
            "parameters": sum(one.numel() for one in model.parameters())}


def _bottlenecks(seen: recommend.Seen) -> List[str]:
    """The pipeline's: loading, the device or the CPU, memory."""
    found = []
    waited = figure(seen.data, "wait_percent")
    if waited > percent("WAITS_FOR_DATA"):
        found.append(f"data loading: {waited:.0f} % of a step waits for data")
    cpu, cuda = figure(seen.model, "cpu_time"), figure(seen.model, "cuda_time")
    if cuda > cpu:
        found.append(f"GPU-bound: {unit(cuda, 's')} on the GPU, {unit(cpu, 's')} on the CPU")
    elif cuda >= 0:
        found.append(f"CPU-bound: {unit(cpu, 's')} in operators on the CPU, {unit(cuda, 's')} on the GPU")
    elif cpu > 0 and not waited > percent("OPERATION_LARGE"):  # else most of a step is waiting
        found.append("CPU-bound: the model computes on the CPU")
    memory = figure(seen.machine, "memory", "max")
    if memory > percent("MEMORY_INFO"):
        found.append(f"memory: the machine's is {memory:.0f} % full")
    return found
