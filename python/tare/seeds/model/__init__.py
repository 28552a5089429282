"""Profiles a model: latency, throughput, memory, and recommendations.

    profiler = tare.ModelProfiler("model.onnx")
    results = profiler.profile(num_runs=100)
    print(results["latency"]["p95"], results["throughput"]["samples_per_second"])
"""
import json
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from ... import _check
from ..._core import Missing
from ..metric import plain_apart
from ..recommend import Recommendation
from . import _figures, _generate, _gpu, _layers, _load, _measure, _memory
from .check import (  # noqa: F401
    CapacityPlan, ModelAlertWarning, Regression, ThresholdCheck, Trend, check_thresholds, detect_regressions,
    load_baseline, model_trend, parse_threshold, plan_capacity)

_CONFIGURATION = {"batch_size", "precision", "device", "threads", "sequence_length"}


class ProfileResults(Dict[str, Any]):
    """The results of profile(), by name: latency in milliseconds, memory in bytes. A value that could not be measured
    is a tare.Missing. `str()` of it is a summary.

        results["latency"]["p99"], results["memory"]["peak"], results["model"]["flops"]
    """

    def to_dict(self) -> Dict[str, Any]:
        """For JSON: None for missing values, the reasons under "missing", and the figures of a baseline under
        "figures".

            json.dumps(results.to_dict())
        """
        reasons: Dict[str, str] = {}
        values = plain_apart(dict(self), reasons)
        values["figures"] = _figures.baseline_of(self)
        return {**values, "missing": reasons}

    def __str__(self) -> str:
        from ._text import summary
        return summary(self)


class ModelProfiler:
    """Measures a model: a torch.nn.Module, a function, or the path of an ONNX file, a TorchScript or torch.export
    file, or a Hugging Face folder. Nothing is downloaded, and a given module is not changed.

    device is "cpu" or "cuda" (default: where the model is); precision is "fp32", "fp16" or "bf16" (default: the
    model's own). A configuration that cannot be executed is refused with the reason. preprocess and postprocess are
    functions around a run, for end-to-end latency.

        profiler = tare.ModelProfiler(model, device="cpu", precision="bf16")
        results = profiler.profile(batch, num_runs=100, warmup_runs=10)
        profiler.generate_html_report("report.html")
    """

    def __init__(self, model_path: Any, device: Any = None, precision: Optional[str] = None, *,
                 preprocess: Optional[Callable[[Any], Any]] = None,
                 postprocess: Optional[Callable[[Any], Any]] = None) -> None:
        self.preprocess, self.postprocess = preprocess, postprocess
        self._open(model_path, device, precision)

    def _open(self, model_path: Any, device: Any, precision: Optional[str]) -> None:
        """Discards measurements of another model."""
        self.runner = _load.load(model_path, device, precision)
        self._requested = (model_path, device, precision)
        self._input: Any = None          # as it was given
        self._is_generated = False
        self.results: Optional[ProfileResults] = None  #: of the last profile()
        self.benchmarks: List[Dict[str, Any]] = []     #: of the last benchmark()
        self.layers: Optional[Dict[str, Any]] = None   #: of the last profile_layers()
        self.memory: Optional[Dict[str, Any]] = None   #: of the last memory_profile()
        self.gpu: Optional[Dict[str, Any]] = None      #: of the last gpu_profile()

    # ---- inputs ---------------------------------------------------------------------------------------------------

    def _take(self, input_data: Any, runner: Any = None) -> Any:
        """The input on the model's device; the last one, or a generated one, where none is given."""
        if input_data is not None:
            self._input, self._is_generated = input_data, False
        elif self._input is None:
            self._input, self._is_generated = self.runner.generated_input(1), True
        data = self._input
        if self.preprocess is not None and not self._is_generated:
            data = self.preprocess(data)
        return (runner or self.runner).take(data)

    def _is_model(self, given: Any) -> bool:
        import os
        return isinstance(given, (str, os.PathLike)) and not (
            self.runner.kind == "function" or self.preprocess is not None)

    # ---- measuring ------------------------------------------------------------------------------------------------

    def profile(self, input_data: Any = None, num_runs: int = 100, warmup_runs: int = 10,
                detailed_analysis: bool = False) -> ProfileResults:
        """Latency, throughput, memory, cost and use of the machine, each measured in separate runs, after a warm-up
        of warmup_runs runs or more, until times are steady. Without input_data it uses the last input, or one
        generated from the shapes that the model declares. A path names a model to profile instead, on the last
        input that was given. detailed_analysis adds layers, operators, memory, GPU, a sweep over batch sizes, and
        the advice that needs them.

            results = profiler.profile(torch.randn(8, 3, 224, 224), num_runs=200)
        """
        _check.whole(num_runs, "num_runs", 1)
        _check.whole(warmup_runs, "warmup_runs", 0)
        if self._is_model(input_data):
            kept = None if self._is_generated else self._input
            self._open(input_data, *self._requested[1:])
            input_data = kept
        inputs = self._take(input_data)
        results = self._measured(self.runner, inputs, num_runs, warmup_runs, self._requested[2])
        self.results = results
        if _generate.can(self.runner):
            results["generation"] = self._generation(inputs, _generate.TOKENS, min(num_runs, _generate.RUNS))
        if detailed_analysis:
            self._detail(results, inputs, num_runs)
        results["advice"] = [one.as_dict() for one in self.advise()]
        return results

    def _generation(self, inputs: Any, tokens: int, runs: int) -> Any:
        try:
            return _generate.profile(self.runner, inputs, tokens, runs)
        except Exception as error:  # a model's own generate() may need other arguments, and may fail
            from ...torch._state import first_line
            return Missing(f"generate() failed: {first_line(error)}")

    def _measured(self, runner: Any, inputs: Any, runs: int, warmup: int, requested: Optional[str]) -> ProfileResults:
        call, settle = runner.call(inputs), runner.settle()
        units = runner.units(inputs) if hasattr(runner, "units") else {"samples": _length(inputs)}
        notes: List[str] = []
        try:
            runner.first_run(call)
        except Exception as error:
            raise _run_error(runner, error) from error
        with runner.running():
            warmed = _measure.warm(call, settle, warmup)
            taken = _measure.latency(call, settle, runs)
            typical = taken["p50"] / 1e3
            rate = _measure.throughput(call, settle, typical, runs, units)
            used = _measure.usage(runner, call, settle, typical)
            whole = self._end_to_end(runner, runs)
        if "note" in warmed:
            notes.append(warmed["note"])
        if self._is_generated:
            notes.append("the input was generated from what the model tells of it: real data may cost more or less")
        cost = _costs(runner, inputs)
        notes += _other_precision(runner, cost["executed"])
        memory = used["memory"]
        memory["activation"] = _memory.activation_bytes(runner, inputs)
        memory["activation_source"] = ("by the shapes and the order in the file: an estimate"
                                       if runner.kind == "ONNX file" else "torch's count of its tensors")
        memory["per_sample"] = _per_sample(memory, units.get("samples"))
        facts, where = runner.facts(), _figures.machine()
        if getattr(runner, "note", None):
            notes.append(runner.note)
        results = ProfileResults(
            model={"name": runner.name, "kind": runner.kind, "path": runner.path, "device": runner.device,
                   "precision": {"requested": requested, "executed": cost["executed"]}, **facts,
                   "flops": cost["flops"], "macs": cost["macs"], "flops_at_least": cost.get("at_least", False),
                   "not_counted": cost.get("not_counted", []), "activation_bytes": memory["activation"]},
            input={"batch_size": units.get("samples") if units.get("samples") is not None else Missing(
                       "the input has no first dimension to count"),
                   "tokens": _count(units, "tokens", "the input is no text"),
                   "images": _count(units, "images", "the input is no image"),
                   "arrays": _load.shapes_in(runner.named(inputs)), "is_generated": self._is_generated,
                   "generated": dict(getattr(runner, "generated", {})) if self._is_generated else {}},
            latency=taken, end_to_end=whole, throughput=rate, memory=memory, cpu=used["cpu"], gpu=used["gpu"],
            io=used["io"], warmup=warmed, machine=where, when_ns=_figures.now_ns(),
            revision=where.pop("revision"), notes=notes)
        results["compute"] = _compute(results)
        return results

    def _end_to_end(self, runner: Any, runs: int) -> Any:
        """Preprocessing, transfer to the device, the run, the result back, postprocessing."""
        on_gpu = runner.device.startswith("cuda")
        if self.preprocess is None and self.postprocess is None and not on_gpu:
            return Missing("no preprocess or postprocess was given, and nothing is copied to a device: it is the "
                           "latency")
        before, after, data = self.preprocess, self.postprocess, self._input

        def whole() -> Any:
            given = before(data) if before is not None and not self._is_generated else data
            result = runner.call(runner.take(given))()
            if on_gpu and hasattr(runner, "model"):
                from ...torch import _state
                result = _state.mapped(result, lambda tensor: tensor.cpu())
            return after(result) if after is not None else result
        whole()
        return _measure.latency(whole, runner.settle(), runs)

    def _detail(self, results: ProfileResults, inputs: Any, runs: int) -> None:
        results["gpu_profile"] = self.gpu_profile()
        if self.runner.kind == "function":
            results["layers"] = None
            results["memory_profile"] = self.memory_profile()
            return
        results["layers"] = self.profile_layers()
        results["memory_profile"] = self.memory_profile()
        results["operators"] = (_layers.operators(self.runner, inputs) if hasattr(self.runner, "model")
                                else Missing("see layers: ONNX Runtime tells of nodes"))
        results["dependencies"] = _dependencies(results)
        now = results["input"]["batch_size"]
        if isinstance(now, int):
            kept = self.benchmarks
            sizes = [{"batch_size": now * times} for times in (1, 2, 4)]
            results["batch_sweep"] = self.benchmark(sizes, num_runs=min(runs, 20))
            self.benchmarks = kept or results["batch_sweep"]

    def profile_generation(self, input_data: Any = None, max_new_tokens: int = _generate.TOKENS,
                           num_runs: int = _generate.RUNS) -> Dict[str, Any]:
        """Time to the first token, time between tokens and tokens per second of a model that generates text.

            profiler.profile_generation(prompt, max_new_tokens=64)["time_to_first_token"]["p50"]
        """
        _check.whole(max_new_tokens, "max_new_tokens", 1)
        _check.whole(num_runs, "num_runs", 1)
        if not _generate.can(self.runner):
            raise TypeError(f"{self.runner.name} does not generate text")
        return _generate.profile(self.runner, self._take(input_data), max_new_tokens, num_runs)

    def benchmark(self, configurations: Iterable[Mapping[str, Any]], num_runs: int = 50,
                  warmup_runs: int = 5) -> List[Dict[str, Any]]:
        """One row for each configuration ("batch_size", "precision", "device", "threads", "sequence_length"): latency,
        throughput, memory, and "best", the metrics in which it is the best of all. A configuration that cannot be
        executed has "status" "refused" and its "reason".

            rows = profiler.benchmark([{"batch_size": 1}, {"batch_size": 8, "precision": "bf16"}])
        """
        chosen = [_check_configuration(one) for one in configurations]
        _check.whole(num_runs, "num_runs", 1)
        _check.whole(warmup_runs, "warmup_runs", 0)
        if not chosen:
            raise ValueError("there are no configurations")
        self._take(None)  # an unavailable input is not an error of a configuration
        rows = [self._one_row(one, num_runs, warmup_runs) for one in chosen]
        _mark_best(rows)
        self.benchmarks = rows
        return rows

    def _one_row(self, configuration: Dict[str, Any], runs: int, warmup: int) -> Dict[str, Any]:
        row: Dict[str, Any] = {"configuration": configuration}
        try:
            row.update(self._configured(configuration, runs, warmup))
            row["status"] = "measured"
        except Exception as error:  # out of memory, an operator without this precision, a fixed batch
            from ...torch._state import first_line
            none = Missing(first_line(error))
            row.update(status="refused", reason=none.reason, latency=none, throughput=none, memory=none)
        return row

    def _configured(self, wanted: Dict[str, Any], runs: int, warmup: int) -> Dict[str, Any]:
        import contextlib
        model, device, precision = self._requested
        runner = self.runner
        if wanted.get("precision", precision) != precision or wanted.get("device", device) != device:
            runner = _load.load(model, wanted.get("device", device), wanted.get("precision", precision))
        threads = runner.threads(wanted["threads"]) if "threads" in wanted else contextlib.nullcontext()
        with threads:
            inputs = self._take(None, runner)
            if "batch_size" in wanted:
                inputs = runner.resized(inputs, wanted["batch_size"])
            if "sequence_length" in wanted:
                inputs = _lengthened(runner, inputs, wanted["sequence_length"])
            found = self._measured(runner, inputs, runs, warmup, wanted.get("precision", precision))
        return {"latency": found["latency"], "throughput": found["throughput"], "memory": found["memory"],
                "model": found["model"], "input": found["input"], "compute": found["compute"],
                "warmup": found["warmup"], "notes": found["notes"]}

    def profile_layers(self, input_data: Any = None, layer_names: Optional[Sequence[str]] = None,
                       num_runs: int = _layers.RUNS) -> Dict[str, Any]:
        """Time, parameters and operations of layers: "layers", a row each, and "patterns", a sum for each of
        layer_names. A name with *, ? or [ is a pattern for the whole name; any other name matches anywhere in a
        layer's name or type.

            profiler.profile_layers(batch, ["attention", "*.mlp"])["patterns"]["attention"]["percent"]
        """
        patterns = _layers.check_patterns(layer_names)
        _check.whole(num_runs, "num_runs", 1)
        self.layers = _layers.profile(self.runner, self._take(input_data), patterns, num_runs)
        return self.layers

    def memory_profile(self, track_allocations: bool = True, track_deallocations: bool = True,
                       memory_snapshots: bool = True, input_data: Any = None) -> Dict[str, Any]:
        """Allocations of one run by operator, freed memory, the peak, memory over the course of a run, snapshots after
        each of several runs, growth from run to run, and the heap's fragmentation.

            profiler.memory_profile()["allocations"]["bytes"]
        """
        self.memory = _memory.profile(self.runner, self._take(input_data), track_allocations,
                                      track_deallocations, memory_snapshots)
        return self.memory

    def gpu_profile(self, track_kernels: bool = True, track_memory_transfers: bool = True, profile_nvtx: bool = False,
                    input_data: Any = None) -> Dict[str, Any]:
        """Kernels, copies and NVTX ranges of one run on a GPU; without one "available" is False, and the parts are
        Missing with the reason.

            profiler.gpu_profile(profile_nvtx=True)["kernels"][0]["name"]
        """
        self.gpu = _gpu.profile(self.runner, self._take(input_data), track_kernels, track_memory_transfers,
                                profile_nvtx)
        return self.gpu

    # ---- conclusions ----------------------------------------------------------------------------------------------

    def _need_results(self) -> ProfileResults:
        if self.results is None:
            raise RuntimeError("nothing was profiled yet: call profile() first")
        return self.results

    def advise(self) -> List[Recommendation]:
        """Recommendations from the measurements so far: sentences with evidence and expected gain.

            for advice in profiler.advise():
                print(advice, advice.gain)
        """
        from ._advice import advise
        return advise(self._need_results(), self.benchmarks, self.layers, self.memory)

    def check_thresholds(self, *thresholds: str) -> List[ThresholdCheck]:
        """Checks the last results; calls alert_threshold for each broken threshold.

            broken = [one for one in profiler.check_thresholds("latency:100ms", "memory:2GB") if one.broken]
        """
        checks = check_thresholds(self._need_results(), thresholds)
        for one in checks:
            if one.broken:
                self.alert_threshold(one)
        return checks

    def alert_threshold(self, check: ThresholdCheck) -> None:
        """Called for a broken threshold; warns, unless overridden.

            class Profiler(tare.ModelProfiler):
                def alert_threshold(self, check):
                    page_someone(str(check))
        """
        import warnings
        warnings.warn(str(check), ModelAlertWarning, stacklevel=3)

    def plan_capacity(self, requests_per_second: float, latency_ms: Optional[float] = None,
                      utilization: float = 0.7) -> CapacityPlan:
        """Estimates from the measurements how many replicas of the model, at which batch size, serve this request rate.

            print(profiler.plan_capacity(500, latency_ms=50))
        """
        return plan_capacity(self._need_results(), requests_per_second, latency_ms, utilization, self.benchmarks)

    def load_baseline(self, path: Any) -> Dict[str, Any]:
        """As tare.load_baseline."""
        return load_baseline(path)

    def detect_regressions(self, baseline: Any, current: Any = None, **options: Any) -> List[Regression]:
        """As tare.detect_regressions; current is the last profile().

            profiler.detect_regressions(tare.load_baseline("baseline.json"))
        """
        return detect_regressions(baseline, self._need_results() if current is None else current, **options)

    # ---- reports --------------------------------------------------------------------------------------------------

    def _whole(self) -> Dict[str, Any]:
        """The last results with all measurements since."""
        whole = self._need_results().to_dict()
        reasons = whole.pop("missing")
        for name, value in (("benchmark", self.benchmarks or None), ("layers", self.layers),
                            ("memory_profile", self.memory), ("gpu_profile", self.gpu)):
            if value is not None:
                whole[name] = plain_apart(value, reasons, name)
        whole["advice"] = [one.as_dict() for one in self.advise()]
        return {"tare_model_profile": 1, **whole, "missing": reasons}

    def export_json(self, output_path: Any) -> str:
        """Writes and returns all results as JSON, which `tare compare` and `tare check` read.

            profiler.export_json("profiling_results.json")
        """
        from ..._files import write_whole
        text = json.dumps(self._whole(), indent=1) + "\n"
        write_whole(output_path, text)
        return text

    def export_csv(self, output_path: Any) -> None:
        """Writes one line for each metric: section, name, metric, value, unit, reason.

            profiler.export_csv("profiling_metrics.csv")
        """
        from ..._files import write_whole
        from ._text import csv_of
        write_whole(output_path, csv_of(self._need_results(), self.benchmarks, self.layers))

    def generate_html_report(self, output_path: Any, include_graphs: bool = True, include_details: bool = True) -> None:
        """Writes a self-contained HTML report.

            profiler.generate_html_report("report.html", include_graphs=True)
        """
        from ..._files import write_whole
        from ._html import page
        write_whole(output_path, page(self._need_results(), self.benchmarks, self.layers, self.memory, self.gpu,
                                      self.advise(), include_graphs, include_details))


# ---- parts ---------------------------------------------------------------------------------------------------------

def _check_configuration(given: Any) -> Dict[str, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"a configuration is a mapping, not {type(given).__name__}")
    unknown = [str(key) for key in given if key not in _CONFIGURATION]
    if unknown:
        raise ValueError(f"a configuration has {', '.join(sorted(_CONFIGURATION))}, not {', '.join(unknown)}")
    for name in ("batch_size", "threads", "sequence_length"):
        if name in given:
            _check.whole(given[name], name, 1)
    return dict(given)


def _length(inputs: Any) -> Optional[int]:
    from ...torch._state import samples_in
    return samples_in(inputs) if inputs is not None else None


def _count(units: Mapping[str, Any], name: str, reason: str) -> Any:
    return units[name] if units.get(name) is not None else Missing(reason)


def _costs(runner: Any, inputs: Any) -> Dict[str, Any]:
    if not hasattr(runner, "costs"):
        none = Missing(f"the operations of a {runner.kind} are not counted")
        return {"flops": none, "macs": none, "executed": none}
    return runner.costs(inputs)


def _per_sample(memory: Mapping[str, Any], samples: Optional[int]) -> Any:
    if not samples:
        return Missing("the input has no first dimension to count")
    taken = memory["activation"] if not isinstance(memory["activation"], Missing) else memory["added"]
    return taken / samples


def _compute(results: Mapping[str, Any]) -> Dict[str, Any]:
    flops, seconds = results["model"]["flops"], results["latency"]["p50"] / 1e3
    rate = flops / seconds if seconds > 0 else Missing("the clock saw no time pass")
    moved = results["model"]["parameter_bytes"]
    return {"flops_per_second": flops if isinstance(flops, Missing) else rate,
            "flops_per_parameter_byte": flops / moved if moved > 0 else Missing("there are no parameters")}


def _other_precision(runner: Any, executed: Any) -> List[str]:
    """A note if a model computes in another precision than the requested one."""
    short = _load.SHORT.get(runner.precision or "")
    if short is None or isinstance(executed, Missing) or set(executed["operators"]) == {short}:
        return []
    done = ", ".join(f"{number} in {name}" for name, number in executed["operators"].items())
    return [f"{short} was requested; products and convolutions were computed {done}, with {executed['casts']} casts"]


def _run_error(runner: Any, error: Exception) -> Exception:
    from ...torch._state import first_line
    text = first_line(error)
    if runner.precision is not None and "not implemented for" in text:
        short = _load.SHORT.get(runner.precision, runner.precision)
        return _load.Refused(f"precision {short} cannot be executed on {runner.device}: {text}")
    return RuntimeError(f"{runner.name} ({runner.kind}) cannot be run on this input: {text}")


_BLOCKING = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "cudaStreamSynchronize",
             "cudaDeviceSynchronize", "cudaEventSynchronize", "aten::is_nonzero", "aten::masked_select", "aten::unique")


def _dependencies(results: Mapping[str, Any]) -> Dict[str, Any]:
    """Waits of a run: operators whose result the host needs before it can continue, and time off the CPU."""
    reported = results.get("operators")
    blocking = reported if isinstance(reported, Missing) else [
        {"name": row["name"], "calls": row["calls"], "ms": row["total_us"] / 1e3} for row in reported or ()
        if row["name"].startswith(_BLOCKING)]
    cpu = results["cpu"]
    return {"blocking_operators": blocking, "waiting_percent": cpu["waiting_percent"],
            "waits_per_run": cpu["waits_per_run"], "parallelism": cpu["parallelism"], "cpus": cpu["cpus"]}


def _lengthened(runner: Any, inputs: Any, length: int) -> Any:
    from ...torch import _state
    if not hasattr(runner, "model"):
        raise _load.Refused(f"sequence_length cannot be set for a {runner.kind}: pass input_data")

    def change(tensor: Any) -> Any:
        if tensor.dim() != 2 or tensor.is_floating_point():
            return tensor
        times = -(-length // tensor.shape[1])
        return tensor.repeat(1, times)[:, :length].contiguous()
    return _state.mapped(inputs, change)


def _mark_best(rows: List[Dict[str, Any]]) -> None:
    """The metrics in which a row is best, and the rows worth choosing: no other is better in latency and throughput."""
    good = [row for row in rows if row["status"] == "measured"]
    for row in rows:
        row["best"] = []
    if not good:
        return

    def rate(row: Dict[str, Any]) -> float:
        reported = row["throughput"]["samples_per_second"]
        return reported if not isinstance(reported, Missing) else row["throughput"]["requests_per_second"]
    min(good, key=lambda row: row["latency"]["p50"])["best"].append("latency")
    max(good, key=rate)["best"].append("throughput")
    known = [row for row in good if not isinstance(row["memory"]["activation"], Missing)]
    if known:
        min(known, key=lambda row: row["memory"]["activation"])["best"].append("memory")
    for row in good:
        if not any(other is not row and other["latency"]["p50"] <= row["latency"]["p50"] and rate(other) >= rate(row)
                   and (other["latency"]["p50"] < row["latency"]["p50"] or rate(other) > rate(row)) for other in good):
            row["best"].append("trade-off")
