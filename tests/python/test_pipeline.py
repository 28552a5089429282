"""CodeProfiler on real training: what it reports, and that it leaves everything as it was."""
import json
import os
import random

import pytest

import tare
from tare.seeds import recommend
from torch_parts import DataLoader, Slow, labelled, mlp, same, torch, weights

SEED_KEYS = {"data_loading", "data_bottlenecks", "data_optimizations", "model_profiling", "model_optimizations",
             "performance_monitoring", "recommendations"}
LOSS = torch.nn.functional.cross_entropy


def profiler(tmp_path=None, **settings):
    """Without the slow parts, unless they are asked for."""
    settings.setdefault("use_torch_profiler", False)
    settings.setdefault("enable_optimizations", False)
    if tmp_path is not None:
        settings.update(save_profiles=True, output_dir=str(tmp_path / "profiles"))
    return tare.CodeProfiler(tare.ProfilingConfig(**{"save_profiles": False, **settings}))


# ---- the report ----------------------------------------------------------------------------------------------------

def test_the_whole_report(tmp_path):
    made = profiler(tmp_path, use_torch_profiler=True, enable_optimizations=True, use_mixed_precision=False,
                    use_channels_last=True)
    report = made.profile_training_pipeline(mlp(), labelled(), num_steps=4)
    assert SEED_KEYS <= report.keys()
    assert report["data_loading"]["total_batches"] == 4 and report["data_loading"]["throughput"] > 0
    assert report["model_optimizations"]["total_optimizations"] == 0
    model = report["model_profiling"]
    assert 0 < model["cpu_time"] and 0 < model["total_time"] and model["profiled_steps"] == 4
    assert isinstance(model["cuda_time"], tare.Missing) or model["cuda_time"] > 0
    linear = next(row for row in model["top_operations"] if row["name"] == "aten::addmm")
    assert linear["calls"] == 8 and 0 < linear["cpu_time"] <= model["cpu_time"]
    assert report["performance_monitoring"]["memory"]["mean"] > 0
    written = json.loads((tmp_path / "profiles" / "profiling_report.json").read_text())
    assert written.keys() == report.keys()
    assert written["data_loading"]["avg_loading_time"] == report["data_loading"]["avg_loading_time"]
    assert all(os.path.getsize(path) > 0 for path in report["saved"]) and len(report["saved"]) >= 2
    trace = json.loads(open(report["saved"][0]).read())
    assert any("addmm" in event.get("name", "") for event in trace["traceEvents"])


def test_what_is_missing_is_null_with_a_reason(tmp_path):
    report = profiler(tmp_path, profile_data_loading=False, monitor_cpu=False).profile_training_pipeline(
        mlp(), labelled(), 2)
    assert report["data_loading"]["throughput"].reason == "profile_data_loading is off"
    written = json.loads((tmp_path / "profiles" / "profiling_report.json").read_text())
    assert written["data_loading"]["throughput"] is None
    assert written["data_loading"]["throughput_reason"] == "profile_data_loading is off"
    assert written["model_profiling"]["cpu_time_reason"] == "use_torch_profiler is off"
    assert written["performance_monitoring"]["cpu"]["mean_reason"] == "monitor_cpu is off"
    assert "NaN" not in (tmp_path / "profiles" / "profiling_report.json").read_text()


def test_reports_do_not_overwrite_each_other(tmp_path):
    made = profiler(tmp_path)
    for _ in range(2):
        made.profile_training_pipeline(mlp(), labelled(), 1)
    made.benchmark_optimizations(mlp(), labelled(), 1, rounds=1)
    names = {name for name in os.listdir(tmp_path / "profiles") if name.endswith(".json")}
    assert names == {"profiling_report.json", "profiling_report_2.json", "benchmark_report.json"}


def test_phases_make_up_the_step():
    report = profiler().profile_training_pipeline(mlp(), labelled(), 6, loss_fn=LOSS)
    training = report["training"]
    assert set(training["phases"]) == {"data_loading", "forward", "backward", "optimizer"}
    assert 50 < sum(one["share_percent"] for one in training["phases"].values()) <= 100.001
    assert training["steps"] == training["requested_steps"] == 6
    assert training["step_time"]["min"] <= training["step_time"]["p50"] <= training["step_time"]["max"]
    assert training["samples_per_second"] == pytest.approx(8 * training["throughput"])
    whole = profiler(profile_model_forward=False).profile_training_pipeline(mlp(), labelled(), 3)
    assert set(whole["training"]["phases"]) == {"data_loading"}


def test_a_slow_loader_is_found_and_advice_given():
    class Pairs(Slow):
        def __getitem__(self, index):
            return super().__getitem__(index), 1
    profiler().profile_training_pipeline(mlp(), labelled(), 1)  # a process's first step takes as long as many
    report = profiler().profile_training_pipeline(mlp(4), DataLoader(Pairs(24, read_s=0.05), batch_size=4), 5)
    assert report["data_loading"]["wait_percent"] > 30
    assert any("Slow data loading" in one for one in report["data_bottlenecks"])
    assert any(one.startswith("data loading:") for one in report["bottlenecks"])
    advice = report["recommendations"][0]
    assert advice.startswith("Increase num_workers in DataLoader (now 0)") and advice.id == "num-workers"
    assert advice.evidence["wait_percent"] == report["data_loading"]["wait_percent"] and "at most" in advice.gain
    assert report["data_optimizations"]["num_workers"] >= 1


def test_short_loaders_are_told():
    report = profiler().profile_training_pipeline(mlp(), labelled(count=16), 50)
    assert report["training"]["steps"] == 2
    assert report["notes"].count("the loader has 2 batches; 50 were requested") == 1


# ---- losses, optimizers, steps -------------------------------------------------------------------------------------

def test_a_surrogate_loss_is_called_one():
    training = profiler().profile_training_pipeline(mlp(), labelled(), 2)["training"]
    assert training["loss"].startswith("surrogate loss") and training["optimizer"].startswith("surrogate optimizer")
    training = profiler().profile_training_pipeline(mlp(), labelled(), 2, loss_fn=LOSS)["training"]
    assert training["loss"] == "loss_fn"


def test_a_model_with_a_loss_of_its_own():
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(16, 3)

        def forward(self, inputs, labels):
            return {"loss": LOSS(self.layer(inputs), labels), "extra": None}
    batches = [{"inputs": torch.randn(4, 16), "labels": torch.tensor([0, 1, 2, 0]), "name": "x"}] * 3
    training = profiler().profile_training_pipeline(Own(), batches, 3)["training"]
    assert training["loss"] == "the model's own" and "backward" in training["phases"]


def test_the_training_s_own_step():
    model, calls = mlp(), []
    adam = torch.optim.Adam(model.parameters())

    def step(given, batch, optimizer):
        assert given is model and optimizer is adam
        calls.append(len(batch[0]))
        optimizer.zero_grad()
        LOSS(given(batch[0]), batch[1]).backward()
        optimizer.step()
    before = weights(model)
    report = profiler().profile_training_pipeline(model, labelled(), 3, step_fn=step, optimizer=adam)
    assert calls == [8, 8, 8] and set(report["training"]["phases"]) == {"data_loading", "step_fn"}
    assert same(before, model) and adam.state_dict()["state"] == {}


def test_a_model_without_gradients():
    frozen = mlp().requires_grad_(False)
    report = profiler().profile_training_pipeline(frozen, labelled(), 2)
    assert "backward" not in report["training"]["phases"]
    assert any("no backward pass" in note for note in report["notes"])


def test_batches_of_all_kinds():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, left, right, scale=1.0):
            return self.layer(left + right) * scale
    batch = [torch.ones(3, 4), torch.ones(3, 4), torch.zeros(3, 2)]
    loss = torch.nn.functional.mse_loss
    for batches in ([batch], [tuple(batch)]):
        report = profiler().profile_training_pipeline(Two(), batches, 1, loss_fn=loss)
        assert report["training"]["phases"]["backward"]["mean_s"] > 0
    alone = profiler().profile_training_pipeline(torch.nn.Linear(4, 2), [torch.ones(3, 4)], 1)
    assert alone["training"]["steps"] == 1
    with pytest.raises(TypeError, match="no key of the batch .*left, right, scale"):
        profiler().profile_training_pipeline(Two(), [{"a": batch[0]}], 1)


# ---- everything as it was ------------------------------------------------------------------------------------------

def test_weights_buffers_gradients_modes_and_random_numbers_are_put_back():
    model = mlp()
    model[1].eval()
    sgd = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    LOSS(model(torch.randn(8, 16)), torch.zeros(8, dtype=torch.long)).backward()
    sgd.step()
    momentum = {key: one["momentum_buffer"].clone() for key, one in sgd.state_dict()["state"].items()}
    before, gradients = weights(model), [one.grad.clone() for one in model.parameters()]
    modes = [module.training for module in model.modules()]
    loader = labelled(shuffle=True)
    states = torch.get_rng_state(), random.getstate()
    profiler(use_torch_profiler=True, enable_optimizations=True, use_mixed_precision=False, use_channels_last=True
             ).profile_training_pipeline(model, loader, 3, loss_fn=LOSS, optimizer=sgd)
    assert same(before, model) and modes == [module.training for module in model.modules()]
    assert all(torch.equal(one.grad, was) for one, was in zip(model.parameters(), gradients))
    after = sgd.state_dict()["state"]
    assert after.keys() == momentum.keys()
    assert all(torch.equal(momentum[key], one["momentum_buffer"]) for key, one in after.items())
    assert torch.equal(states[0], torch.get_rng_state()) and states[1] == random.getstate()


def test_after_an_exception_too():
    model = mlp()
    before, calls = weights(model), []

    def step(given, batch):
        calls.append(1)
        with torch.no_grad():
            given[0].weight += 1
        if len(calls) == 2:
            raise RuntimeError("out of patience")
    made = profiler()
    with pytest.raises(RuntimeError, match="out of patience"):
        made.profile_training_pipeline(model, labelled(), 3, step_fn=step)
    assert same(before, model)
    assert made.profile_training_pipeline(model, labelled(), 1)["training"]["steps"] == 1


def test_training_can_be_kept():
    model = mlp()
    sgd = torch.optim.SGD(model.parameters(), lr=0.5)
    before = weights(model)
    report = profiler(use_torch_profiler=True).profile_training_pipeline(
        model, labelled(), 2, loss_fn=LOSS, optimizer=sgd, restore=False)
    assert not same(before, model) and report["training"]["restored"] is False


def test_monitoring_that_runs_goes_on():
    made = profiler()
    made.performance_monitor.start_monitoring(0.01)
    made.profile_training_pipeline(mlp(), labelled(), 2)
    with pytest.raises(RuntimeError, match="already running"):
        made.performance_monitor.start_monitoring()
    made.performance_monitor.stop_monitoring()


# ---- torch's profiler ----------------------------------------------------------------------------------------------

def test_nothing_profiled_is_missing_and_not_zero():
    summary = profiler().pytorch_profiler.get_profile_summary()
    assert "nothing was profiled" in summary["total_time"].reason and summary["top_operations"] == []
    assert not summary["cuda_time"] > summary["cpu_time"]


def test_schedules():
    made = profiler(use_torch_profiler=True)
    made.config.profiler_schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    made.profile_training_pipeline(mlp(), labelled(), 6)
    rows = made.pytorch_profiler.get_profile_summary()["top_operations"]
    assert next(row["calls"] for row in rows if row["name"] == "aten::addmm") == 2 * 2
    made.config.profiler_schedule = torch.profiler.ProfilerAction.NONE
    report = made.profile_training_pipeline(mlp(), labelled(), 2)
    assert report["model_profiling"]["cpu_time"].reason == "profiler_schedule is NONE: no step is recorded"


def test_loading_is_no_operation():
    """torch puts a block around each batch that its loader gives: with a slow one, most of all that it recorded."""
    data = [(sample, 0) for sample in torch.randn(24, 16)]
    loader = DataLoader(Slow(transform=lambda value: data[int(value[0])], read_s=0.02), batch_size=4)
    report = profiler(use_torch_profiler=True).profile_training_pipeline(mlp(), loader, 3)
    told = report["model_profiling"]
    assert 0 < told["cpu_time"] < told["total_time"] - 3 * 4 * 0.02
    assert not [row["name"] for row in told["top_operations"] if "DataLoader" in row["name"]]
    assert not [advice for advice in report["recommendations"] if "enumerate(DataLoader)" in advice]


def test_the_user_s_own_profiler_is_not_disturbed():
    made = profiler(use_torch_profiler=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as outer:
        report = made.profile_training_pipeline(mlp(), labelled(), 2)
    assert report["model_profiling"]["total_time"].reason == "another torch profiler is active"
    assert any(event.key == "aten::addmm" for event in outer.key_averages())


def test_what_the_block_raises_passes_through():
    made = profiler().pytorch_profiler
    with pytest.raises(KeyError):
        with made.profile():
            torch.ones(2) + 1
            raise KeyError("mine")
    assert made.get_profile_summary()["cpu_time"] > 0


# ---- bad input -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("change, error, words", [
    ({"model": 7}, TypeError, "takes a torch.nn.Module, not int"), ({"dataloader": 7}, TypeError, "not int"),
    ({"dataloader": []}, ValueError, "the loader has no batches"), ({"num_steps": 0}, ValueError, "1 or more"),
    ({"num_steps": "5"}, TypeError, "not str"), ({"loss_fn": 3}, TypeError, "loss_fn is a function"),
    ({"optimizer": "adam"}, TypeError, "optimizer is a torch optimizer, not str"),
    ({"step_fn": 3}, TypeError, "step_fn is a function"),
    ({"step_fn": print, "loss_fn": print}, TypeError, "not both"),
    ({"dataloader": iter([1])}, TypeError, "more than once")])
def test_bad_input_gets_a_sentence(change, error, words):
    arguments = {"model": mlp(), "dataloader": labelled(), "num_steps": 2, **change}
    with pytest.raises(error, match=words):
        profiler().profile_training_pipeline(**arguments)


def test_a_config_of_another_kind():
    with pytest.raises(TypeError, match="ProfilingConfig, not dict"):
        tare.CodeProfiler({"use_compile": True})
    with pytest.raises(TypeError, match="a rule is a function"):
        profiler().add_rule("slow")


def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(tmp_path):
    (tmp_path / "profiles").write_text("a file")
    with pytest.raises(OSError):
        profiler(tmp_path).profile_training_pipeline(mlp(), labelled(), 1, step_fn=lambda *_: pytest.fail("it ran"))


# ---- functions and advice ------------------------------------------------------------------------------------------

def test_functions():
    told = profiler().profile_function(lambda data, times: sum(data) * times, [1, 2, 3], times=2)
    assert told["result"] == 12 and told["execution_time"] > 0 and "memory_delta" in told


def advice(data=None, model=None, machine=None, **settings):
    return profiler(**settings)._generate_recommendations(data or {}, model or {}, machine or {})


def test_advice_needs_figures():
    assert advice() == []
    gone = tare.Missing("not measured")
    assert advice({"avg_loading_time": gone}, {"cpu_time": gone, "cuda_time": gone}, {"cpu": {"mean": gone}}) == []
    with pytest.raises(TypeError, match="profile_summary is a dict"):
        profiler()._generate_recommendations({}, None, {})


def test_advice_for_the_seed_s_figures():
    data = {"total_batches": 50, "avg_loading_time": 0.023, "avg_preprocessing_time": 0.015, "throughput": 45.2}
    found = advice(data, {"cpu_time": 3.2, "cuda_time": 9.3}, {"memory": {"mean": 62.1, "max": 89.3}},
                   use_mixed_precision=False)
    ids = [one.id for one in found]
    assert ids == ["num-workers", "preprocessing", "mixed-precision", "checkpointing", "accumulation"]
    assert "9.30 s on the GPU" in found[2] and "89 % full" in found[3]


def test_advice_with_figures_for_batches():
    data = {"samples_per_batch": 64, "settings": {"num_workers": 2, "persistent_workers": False},
            "startup_time": 1.0, "first_batch_time": 0.5, "avg_loading_time": 0.001, "wait_percent": 3.0}
    found = {one.id: one for one in advice(data, {"cpu_time": 4.0, "cuda_time": 1.0}, {"memory": {"max": 95.0}})}
    assert found.keys() == {"persistent-workers", "cpu-bound", "checkpointing", "accumulation"}
    assert "batches of 32 in 2 steps train as one of 64" in found["accumulation"]
    assert "1.50 s in every epoch" in found["persistent-workers"]


def test_rules_of_one_s_own():
    made = profiler()
    made.add_rule(lambda seen: f"Batches: {seen.data['total_batches']}" if seen.data else None)
    made.add_rule(lambda seen: [recommend.Recommendation("Second", "mine", {"x": 1.0}, "2 s")])
    found = made._generate_recommendations({"total_batches": 3}, {}, {})
    assert found == ["Batches: 3", "Second"] and [one.id for one in found] == ["custom", "mine"]
    assert made.profile_training_pipeline(mlp(), labelled(), 2)["recommendation_details"][-1]["gain"] == "2 s"
    made.add_rule(lambda seen: [7])
    with pytest.raises(TypeError, match="a rule gives sentences, not int"):
        made._generate_recommendations({}, {}, {})


# ---- in the trace --------------------------------------------------------------------------------------------------

def test_steps_and_phases_are_in_the_trace(bench):
    done = bench.recorded("""
        import torch, tare
        model = torch.nn.Linear(4, 2)
        config = tare.ProfilingConfig(save_profiles=False, use_torch_profiler=False, enable_optimizations=False)
        tare.CodeProfiler(config).profile_training_pipeline(model, [torch.ones(8, 4)] * 5, 5)
        """)
    spans = {row.name: row for row in done.report.spans}
    assert {"forward", "backward", "optimizer", "data_loading"} <= spans.keys()
    assert spans["forward"].calls == 5 and done.report.steps[0]["count"] == 5


# ---- samples that a loader gave ------------------------------------------------------------------------------------

def test_a_loaders_samples_are_the_throughput():
    """Whoever iterates torch's DataLoader in a block has counted its samples, with and without workers."""
    profiler = tare.PerformanceProfiler()
    with profiler.profile("epoch"):
        for workers in (0, 2):
            with profiler.profile(f"workers {workers}"):
                for samples, labels in labelled(count=44, batch=8, num_workers=workers):
                    pass
        with profiler.profile("nothing"):
            pass
    for name, count in (("workers 0", 44), ("workers 2", 44), ("epoch", 88)):
        metrics = profiler.get_metrics(name)
        assert metrics.samples == count and metrics.throughput == pytest.approx(count / metrics.timing.wall_time_s)
    assert "DataLoader" in profiler.get_metrics("nothing").throughput.reason


def test_what_the_program_counts_itself_is_counted_once():
    profiler = tare.PerformanceProfiler()
    with profiler.profile("counted"):
        for samples, labels in labelled(count=16, batch=8):
            tare.count_samples(5)
    with profiler.profile("given", samples=7):
        for samples, labels in labelled(count=16, batch=8):
            pass
    assert profiler.get_metrics("counted").samples == 10 and profiler.get_metrics("given").samples == 7


def test_batches_of_every_kind_are_counted():
    class Words(torch.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return {"text": "a", "ids": torch.zeros(3)}
    profiler = tare.PerformanceProfiler()
    with profiler.profile("mappings"):
        for batch in torch.utils.data.DataLoader(Words(), batch_size=4):
            assert set(batch) == {"text", "ids"}
    with profiler.profile("text"):
        for batch in torch.utils.data.DataLoader(["a", "b"], batch_size=2):
            assert batch == ["a", "b"]
    assert profiler.get_metrics("mappings").samples == 6
    assert isinstance(profiler.get_metrics("text").throughput, tare.Missing)


# ---- as JSON -------------------------------------------------------------------------------------------------------

def test_whatever_is_returned_becomes_json():
    """Strictly: no NaN, and a reason beside every null of a figure."""
    import json
    config = tare.ProfilingConfig(save_profiles=False, use_torch_profiler=False)
    made = tare.CodeProfiler(config)
    report = made.profile_training_pipeline(mlp(), labelled(), 2)
    stats = made.data_loading_profiler.profile_dataloader([torch.ones(2)], 1)
    values = [report, stats, made.model_optimizer.get_optimization_summary(), made.performance_monitor.get_summary(),
              tare.EpochPerformanceMonitor().get_statistics(), made.profile_function(len, [1]),
              made.benchmark_optimizations(mlp(), labelled(), 1, rounds=1), tare.Missing("x"),
              tare.PerformanceProfiler().compare().rows, [one.as_dict() for one in report["recommendations"]]]
    for value in values:
        text = json.dumps(tare.plain(value), allow_nan=False)
        assert "NaN" not in text and "Infinity" not in text
    told = tare.plain(stats)
    assert told["std"] is None and told["std_reason"] == "one value has no deviation"
    for one in report["recommendations"]:
        json.dumps(one.as_dict(), allow_nan=False)
    assert json.loads(report.to_json(), parse_constant=pytest.fail)
