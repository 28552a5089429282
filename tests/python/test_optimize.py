"""ModelOptimizer and the contest of optimizations, on real models."""
import copy
import math
import pickle
import warnings

import pytest

import tare
from tare import _benchmark, _torchstate, optimize
from torch_parts import convolutional, labelled, mlp, same, torch, weights

HALF = "Mixed precision (BF16)"


@pytest.fixture
def half():
    trouble = optimize.half_trouble()
    if trouble:
        pytest.skip(trouble)


def optimizer(**settings):
    return tare.ModelOptimizer(tare.ProfilingConfig(**settings))


def ahead(model, batch):
    model.eval()
    with torch.no_grad():
        return model(batch)


# ---- mixed precision -----------------------------------------------------------------------------------------------

def test_mixed_precision_is_applied_and_says_that_nothing_was_run(half):
    model, made = mlp(), optimizer()
    faster = made.optimize_model(model, {})
    summary = made.get_optimization_summary()
    assert summary["optimizations_applied"] == [HALF] and summary["total_optimizations"] == 1
    assert summary["status"] == "applied, neither verified nor measured"
    batch = torch.randn(8, 16)
    exact, rough = ahead(model, batch), ahead(faster, batch)
    assert rough.dtype == torch.float32 and not torch.equal(exact, rough)
    assert _torchstate.difference(exact, rough) < 0.05


def test_the_optimized_model_shares_its_weights_and_looks_the_same(half):
    model = mlp()
    faster = optimizer().optimize_model(model, {})
    assert faster is not model and isinstance(faster, torch.nn.Sequential)
    assert [one.data_ptr() for one in faster.parameters()] == [one.data_ptr() for one in model.parameters()]
    assert faster.state_dict().keys() == model.state_dict().keys()
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    before = ahead(faster, torch.ones(2, 16))
    torch.nn.functional.mse_loss(faster.train()(torch.randn(4, 16)), torch.zeros(4, 3)).backward()
    update.step()
    assert not torch.equal(before, ahead(faster, torch.ones(2, 16)))


def test_the_optimized_model_is_copied_pickled_and_sliced(half):
    model = optimizer().optimize_model(mlp(), {})
    batch = torch.randn(4, 16)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(ahead(model, batch), ahead(other, batch))
        assert next(other.parameters()).data_ptr() != next(model.parameters()).data_ptr()
    assert model[:2](batch).shape == (4, 32)


def test_what_does_not_suit_is_skipped_with_the_reason(half):
    made = optimizer(use_channels_last=True)
    made.optimize_model(mlp().bfloat16(), {})
    skipped = {one["name"]: one["reason"] for one in made.get_optimization_summary()["skipped"]}
    assert "4-dimensional" in skipped["Channels last memory format"]
    assert skipped[HALF] == "the model has no weights of 32 bits"
    twice = made.optimize_model(made.optimize_model(mlp(), {}), {})
    assert made.get_optimization_summary()["skipped"][-1]["reason"] == "the model already computes in mixed precision"
    assert ahead(twice, torch.ones(1, 16)).shape == (1, 3)
    made.optimize_model(torch.nn.DataParallel(mlp()), {})
    assert "DataParallel" in made.get_optimization_summary()["skipped"][-1]["reason"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(mlp().eval(), torch.ones(2, 16))
    made.optimize_model(traced, {})
    assert "fixed" in made.get_optimization_summary()["skipped"][-1]["reason"]


def test_a_processor_without_bfloat16_costs_no_process(bench):
    """Where torch's bfloat16 ends a process, it ends one of ours that was made for that, not the user's."""
    done = bench.python("""
        import torch, tare
        made = tare.ModelOptimizer(tare.ProfilingConfig())
        model = made.optimize_model(torch.nn.Linear(64, 256), {})
        model(torch.randn(32, 64)).sum().backward()
        summary = made.get_optimization_summary()
        print(summary["optimizations_applied"], summary["skipped"])
        """, env={"ONEDNN_MAX_CPU_ISA": None})
    assert "Mixed precision" in done.out


def test_trouble_is_told_in_words():
    import signal
    assert optimize._trouble_with("it", "pass") is None
    assert optimize._trouble_with("it", "raise ValueError('no compiler')") == \
        "it does not work here: ValueError: no compiler"
    told = optimize._trouble_with("it", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert told == f"it does not work here: a process that tries it is killed by {signal.SIGILL.name}"


# ---- with an input -------------------------------------------------------------------------------------------------

def test_channels_last_is_verified_and_measured():
    model, made = convolutional(), optimizer(use_mixed_precision=False, use_channels_last=True)
    batch = torch.randn(2, 3, 16, 16)
    exact = ahead(model, batch)
    faster = made.optimize_model(model, {}, batch, only_gains=False)
    detail = made.get_optimization_summary()["details"][0]
    assert detail["status"] == "applied, verified and measured"
    assert detail["difference"] <= detail["tolerance"] and detail["original_s"] > 0 and detail["optimized_s"] > 0
    assert detail["speedup"] == pytest.approx(detail["original_s"] / detail["optimized_s"])
    assert faster[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(exact, ahead(faster, batch), atol=1e-5)


def test_without_a_gain_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(optimize, "measure_forward", lambda *_: {"speedup": 0.8, "helps": False})
    model, made = convolutional(), optimizer(use_mixed_precision=False, use_channels_last=True)
    assert made.optimize_model(model, {}, torch.randn(2, 3, 16, 16)) is model
    summary = made.get_optimization_summary()
    assert summary["optimizations_applied"] == [] and summary["status"] == "nothing applied"
    assert summary["rejected"][0]["reason"] == "not faster: 0.80x when measured"
    assert model[0].weight.is_contiguous() and model.training


def test_an_optimization_that_changes_the_results_is_rejected(half):
    made = optimizer()
    model = mlp()
    assert made.optimize_model(model, {}, torch.randn(8, 16), tolerance=1e-9) is model
    rejected = made.get_optimization_summary()["rejected"][0]
    assert rejected["name"] == HALF and "it changes the results" in rejected["reason"]
    assert 1e-9 < rejected["difference"] < 0.05


def test_what_comes_after_half_precision_is_not_blamed_for_it(half, monkeypatch):
    def unchanged(model):
        return model
    again = optimize.Optimization(lambda model: "Again", "use_mixed_precision", 1e-9, unchanged)
    monkeypatch.setattr(optimize, "OPTIMIZATIONS", (*optimize.OPTIMIZATIONS, again))
    made = optimizer()
    made.optimize_model(mlp(), {}, torch.randn(8, 16), only_gains=False)
    assert made.get_optimization_summary()["optimizations_applied"] == [HALF, "Again"]


def test_one_that_does_not_run_is_rejected(monkeypatch):
    class Broken(torch.nn.Linear):
        def forward(self, batch):
            raise RuntimeError("no kernel\nlong explanation")
    wrong = optimize.Optimization(lambda model: "Wrong", "use_mixed_precision", 1e-3, lambda model: Broken(16, 3))
    monkeypatch.setattr(optimize, "OPTIMIZATIONS", (wrong,))
    made = optimizer()
    made.optimize_model(mlp(), {}, torch.randn(8, 16))
    assert made.get_optimization_summary()["rejected"][0]["reason"] == "it does not run: no kernel"


def test_the_switches():
    made = optimizer(enable_optimizations=False)
    model = mlp()
    assert made.optimize_model(model, {}) is model
    assert "enable_optimizations is off" in made.get_optimization_summary()["status"]
    made = optimizer(use_mixed_precision=False)
    assert made.optimize_model(model, {}) is model and made.get_optimization_summary()["total_optimizations"] == 0


@pytest.mark.parametrize("model, summary, words", [(7, {}, "not int"), (None, {}, "not NoneType"),
                                                   (torch.nn.Linear(1, 1), [1], "not list")])
def test_bad_input_gets_a_sentence(model, summary, words):
    with pytest.raises(TypeError, match=words):
        optimizer().optimize_model(model, summary)


def test_compiling_is_tried_in_a_process_of_its_own(monkeypatch):
    tried = []

    def trouble(what, code):
        tried.append(what)
        return "torch.compile does not work here: no compiler"
    monkeypatch.setattr(optimize, "_trouble_with", trouble)
    optimize.compiler_trouble.cache_clear()
    try:
        made = optimizer(use_mixed_precision=False, use_compile=True)
        model = mlp()
        assert made.optimize_model(model, {}) is model and tried == ["torch.compile"]
        assert made.get_optimization_summary()["skipped"][0]["reason"].endswith("no compiler")
    finally:
        optimize.compiler_trouble.cache_clear()


def test_a_compiled_model_has_the_same_names_and_weights(monkeypatch):
    monkeypatch.setattr(optimize, "compiler_trouble", lambda: None)
    model, made = mlp(), optimizer(use_mixed_precision=False, use_compile=True)
    faster = made.optimize_model(model, {})
    assert made.get_optimization_summary()["optimizations_applied"] == ["torch.compile"]
    assert faster.state_dict().keys() == model.state_dict().keys() and faster._compiled_call_impl is not None
    assert getattr(model, "_compiled_call_impl", None) is None
    assert _torchstate.copy_of(faster)._compiled_call_impl is not None


# ---- memory --------------------------------------------------------------------------------------------------------

class Checkpointed(torch.nn.Module):
    """Has what transformers' models have."""

    class config:
        _attn_implementation = "eager"

    def __init__(self, refuses=False):
        super().__init__()
        self.layer, self.refuses, self.on, self.attention = torch.nn.Linear(16, 3), refuses, False, "eager"

    def gradient_checkpointing_enable(self):
        if self.refuses:
            raise ValueError("not with this model")
        self.on = True

    def set_attn_implementation(self, name):
        self.attention = name

    def forward(self, batch):
        if self.on:
            return torch.utils.checkpoint.checkpoint(self.layer, batch, use_reentrant=False)
        return self.layer(batch)


def test_memory_optimizations():
    made, model = optimizer(), Checkpointed()
    assert made._apply_memory_optimizations(model) is model and model.on and model.attention == "sdpa"
    applied = made.get_optimization_summary()["optimizations_applied"]
    assert applied == ["Gradient checkpointing", "Efficient attention"]
    made = optimizer()
    made._apply_memory_optimizations(mlp())
    made._apply_memory_optimizations(Checkpointed(refuses=True))
    reasons = [one["reason"] for one in made.get_optimization_summary()["skipped"]]
    assert "no gradient_checkpointing_enable" in reasons[0] and reasons[1] == "the model refuses: not with this model"


def test_memory_is_saved_where_it_is_short():
    made, model = optimizer(use_mixed_precision=False), Checkpointed()
    made.optimize_model(model, {"memory_percent": 40.0})
    assert not model.on
    made.optimize_model(model, {"memory_percent": 92.0})
    assert model.on


# ---- how far outputs are apart -------------------------------------------------------------------------------------

@pytest.mark.parametrize("expected, got, apart", [
    ([3.0, 4.0], [3.0, 4.0], 0.0), ([3.0, 4.0], [3.0, 4.5], 0.1), ([0.0], [0.0], 0.0), ([0.0], [1e-9], math.inf),
    ([1.0, 2.0], [1.0], math.inf), ([1.0], [math.nan], math.inf), ([math.inf, 1.0], [math.inf, 1.0], 0.0),
    ([math.inf], [-math.inf], math.inf), ([], [], 0.0)])
def test_difference(expected, got, apart):
    assert _torchstate.difference(torch.tensor(expected), torch.tensor(got)) == pytest.approx(apart)


def test_difference_of_nests():
    one = {"a": torch.ones(2), "b": (torch.zeros(1), [torch.tensor([1, 2])])}
    other = copy.deepcopy(one)
    assert _torchstate.difference(one, other) == 0
    other["b"][1][0][0] = 9
    assert _torchstate.difference(one, other) > 1
    assert _torchstate.difference(one, {"a": one["a"]}) == math.inf


# ---- the benchmark -------------------------------------------------------------------------------------------------

def benchmark(model, loader, steps=3, rounds=2, more=None, **settings):
    config = tare.ProfilingConfig(save_profiles=False, **settings)
    return tare.CodeProfiler(config).benchmark_optimizations(model, loader, steps, rounds=rounds, **(more or {}))


def test_both_sides_are_measured_and_the_model_is_left_alone():
    model = convolutional()
    data = torch.utils.data.TensorDataset(torch.randn(8, 3, 16, 16), torch.randint(0, 3, (8,)))
    loader = torch.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    before, state = weights(model), torch.get_rng_state()
    report = benchmark(model, loader, use_channels_last=True, use_mixed_precision=False)
    assert same(before, model) and model.training and model[0].weight.is_contiguous()
    assert torch.equal(state, torch.get_rng_state()) and all(one.grad is None for one in model.parameters())
    assert report["original"]["total_time"] > 0 and len(report["original"]["rounds"]) == 2
    assert report["original"]["peak_memory_mb"] > 0 and report["steps"] == 3
    assert report["original"]["samples_per_second"] == pytest.approx(2 * report["original"]["throughput"])
    candidate = report["candidates"][0]
    assert candidate["accepted"] and candidate["difference"] < 1e-3 and candidate["speedup"] > 0
    assert (report["optimized"]["optimizations_applied"] == []) == (candidate["status"] == "rejected")


def test_improvements_are_those_of_the_two_sides():
    before = {"total_time": 2.0, "peak_memory_mb": 10.0}
    got = _benchmark.improvements(before, {"total_time": 1.0, "peak_memory_mb": 15.0})
    assert got == {"time_improvement_percent": 50.0, "memory_improvement_percent": -50.0, "speedup_factor": 2.0}
    gone = _benchmark.improvements(before, {"total_time": 1.0, "peak_memory_mb": tare.Missing("no count")})
    assert gone["memory_improvement_percent"].reason == "no count"


def _contest_of(monkeypatch, *optimizations):
    from tare import _contest
    monkeypatch.setattr(_contest, "OPTIMIZATIONS", optimizations)


class Wasteful(torch.nn.Module):
    """Computes the same as its layer, again and again."""

    def __init__(self, times):
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.times = torch.nn.Linear(16, 256), times

    def forward(self, batch):
        for _ in range(self.times):
            out = self.layer(batch)
        return out


def test_what_helps_is_kept_and_really_faster(monkeypatch):
    def lean(model):
        model.times = 1
        return model
    _contest_of(monkeypatch, optimize.Optimization(lambda model: "Lean", "use_mixed_precision", 1e-3, lean))
    report = benchmark(Wasteful(200), labelled(), rounds=4)
    assert report["optimized"]["optimizations_applied"] == ["Lean"] and report["status"] == "measured"
    gained = report["improvements"]
    assert gained["speedup_factor"] > 2
    assert gained["speedup_factor"] == pytest.approx(
        report["original"]["total_time"] / report["optimized"]["total_time"])
    assert gained["time_improvement_percent"] == pytest.approx(100 - 100 / gained["speedup_factor"])


def test_what_is_faster_and_wrong_is_rejected(monkeypatch):
    def wrong(model):
        model.layer.weight.data += 1
        model.times = 1
        return model
    _contest_of(monkeypatch, optimize.Optimization(lambda model: "Wrong", "use_mixed_precision", 1e-3, wrong))
    report = benchmark(Wasteful(50), labelled())
    assert report["optimized"]["optimizations_applied"] == [] and report["improvements"]["speedup_factor"] == 1.0
    assert report["candidates"][0]["status"] == "rejected"
    assert "it changes the results" in report["candidates"][0]["reason"]
    assert any("no optimization was kept" in note for note in report["notes"])


def test_what_cannot_be_trained_is_rejected(monkeypatch):
    class Frozen(Wasteful):
        def forward(self, batch):
            out = super().forward(batch)
            if self.training:
                raise RuntimeError("no backward")
            return out

    def apply(model):
        model.__class__ = Frozen
        return model
    _contest_of(monkeypatch, optimize.Optimization(lambda model: "Frozen", "use_mixed_precision", 1e-3, apply))
    report = benchmark(Wasteful(2), labelled())
    assert report["candidates"][0]["reason"] == "it cannot be trained: no backward"


def test_two_that_help_are_measured_together(monkeypatch):
    def fewer(by):
        def apply(model):
            model.times //= by
            return model
        return apply
    _contest_of(monkeypatch, *(optimize.Optimization(lambda model, by=by: f"By {by}", "use_mixed_precision", 1e-3,
                                                     fewer(by)) for by in (8, 10)))
    report = benchmark(Wasteful(800), labelled(), rounds=4)
    assert report["optimized"]["optimizations_applied"] == ["By 8", "By 10"]
    assert report["improvements"]["speedup_factor"] > report["candidates"][0]["speedup"]


def test_losses_of_ones_own_and_short_loaders():
    seen = []

    def loss(output, target):
        seen.append(target.shape)
        return torch.nn.functional.cross_entropy(output, target)
    report = benchmark(mlp(), labelled(count=16), 9, more={"loss_fn": loss}, enable_optimizations=False)
    assert seen and report["steps"] == 2 and report["notes"][-1] == "the loader has 2 batches; 9 were asked for"


def test_a_model_that_cannot_run_says_so_itself():
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        benchmark(mlp(inputs=5), labelled())
    with pytest.raises(ValueError, match="no batches"):
        benchmark(mlp(), [])
    with pytest.raises(TypeError, match="more than once"):
        benchmark(mlp(), iter(labelled()))
    with pytest.raises(ValueError, match="rounds is 1 or more"):
        benchmark(mlp(), labelled(), rounds=0)
