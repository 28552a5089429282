"""Every number that a Python object of Tare shows has a row: public attributes and keys of results, however deep."""
import fnmatch
import json

import pytest
from test_every_figure import every_figure, numbers

# What reads the same figures under another name; rows have the second.
SAME = {"PerformanceProfiler.get_metrics.": "PerformanceProfiler.",
        "PerformanceMonitor.get_metrics[].": "PerformanceMonitor.",
        "ModelProfiler.advice[].evidence.": "ModelProfiler.cpu.",
        "PerformanceMonitor.get_summary.cpu.": "PerformanceMonitor.get_summary[].",
        "PerformanceMonitor.get_summary.memory.": "PerformanceMonitor.get_summary[].",
        "PerformanceMonitor.get_summary.gpu_memory.": "PerformanceMonitor.get_summary[].",
        "ProductionProfiler[].": "ProductionProfiler.", "profile_function[].": "profile_function."}
# Identities, times of day, settings and inputs as they were given.
NO_FIGURES = """
    Result.thread Result.task ModelProfiler.when_ns ModelProfiler.input.arrays[].shape[] PerformanceMonitor.started
    PerformanceProfiler.get_timing_breakdown.*
    DataLoadingProfiler.settings.* ProductionProfiler.request_id profile_function.result*
    profile_function.functions[].line
"""
PROGRAM = """
import inspect, json, time, torch, tare
torch.set_num_threads(1)

def plain(value, depth=0):
    if value is None or isinstance(value, (bool, str, tare.Missing)) or callable(value) or depth > 8:
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one, depth + 1) for one in value]
    return {name: plain(getattr(value, name, None), depth + 1) for name in dir(value) if not name.startswith("_")}

def told(made, *words):
    found = {}
    for name in dir(made):
        if name.startswith("get_"):
            function = getattr(made, name)
            required = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty
                        and one.kind is one.POSITIONAL_OR_KEYWORD]
            try:
                found[name] = plain(function(*words[:len(required)]))
            except Exception as error:
                assert "is not" in str(error) or "are not" in str(error), (name, error)  # what was not asked for
    return found

found = {}
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
profiler = tare.PerformanceProfiler()
monitor = tare.PerformanceMonitor()
recorder = tare.Recorder()
for i in range(3):
    with profiler.profile("block", samples=8), monitor.track("block"), recorder.block("block", samples=8):
        model(torch.ones(8, 16))
        time.sleep(0.05)
found["PerformanceProfiler"] = told(profiler, "block")
found["PerformanceMonitor"] = told(monitor, "block")
found["Result"], found["Aggregate"] = plain(recorder.last()), plain(recorder.aggregate("block"))
found["ModelProfiler"] = plain(dict(tare.ModelProfiler(model).profile(torch.ones(4, 16), num_runs=20)))
epochs, production = tare.EpochPerformanceMonitor(verbose_batches=0), tare.ProductionProfiler()
epochs.on_epoch_start()
for i in range(3):
    epochs.on_batch_start(i)
    with production.profile_request(i):
        time.sleep(0.06)
    epochs.on_batch_end(i)
epochs._print_epoch = lambda seconds: None  # standard output is ours
epochs.on_epoch_end()
found["EpochPerformanceMonitor"] = plain(epochs.get_statistics())
found["ProductionProfiler"] = [plain(production.log_metrics(2, 0.5)), plain(production.generate_hourly_report())]
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(64, 4)), batch_size=4)
found["DataLoadingProfiler"] = plain(tare.DataLoadingProfiler().profile_dataloader(loader, 10))
found["profile_function"] = [plain(dict(one(sorted, [2, 1])))
                             for one in (tare.profile_function, tare.FunctionProfiler(table=True))]
print(json.dumps(found))
"""


def name_of(path):
    for start, other in SAME.items():
        if path.startswith(start):
            return other + path[len(start):]
    return path


def test_python(bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    found = json.loads(bench.python(PROGRAM).out)
    known = {path.partition(":")[2] for path in every_figure() if path.startswith("python:")}
    shown = {name_of(path) for path, _ in numbers(found)}
    assert len(shown) > 100, sorted(shown)
    patterns = [one.replace("[]", "[[]]") for one in NO_FIGURES.split()]
    missing = {path for path in shown - known if not any(fnmatch.fnmatchcase(path, one) for one in patterns)}
    assert sorted(missing) == []
