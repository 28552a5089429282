"""ModelOptimizer and the contest of optimizations, on real models."""
import copy
import math
import pickle
import time
import warnings

import pytest

import tare
from tare.seeds import _benchmark, optimize
from tare.torch import _state
from torch_parts import convolutional, labelled, mlp, same, torch, weights

HALF = "Mixed precision (BF16)"


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on a busy machine are not what is measured."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def half():
    reason = optimize.half_error()
    if reason:
        pytest.skip(reason)


def optimizer(**settings):
    return tare.ModelOptimizer(tare.ProfilingConfig(**settings))


def ahead(model, batch):
    model.eval()
    with torch.no_grad():
        return model(batch)


def halved(model=None, batch=None):
    """A model in mixed precision, whether that is faster here or not."""
    made = optimizer()
    faster = made.optimize_model(mlp() if model is None else model, {}, torch.randn(8, 16) if batch is None else batch,
                                 only_gains=False)
    assert made.get_optimization_summary()["optimizations_applied"] == [HALF]
    return faster


# ---- without an input ----------------------------------------------------------------------------------------------

EVERYTHING = {"use_mixed_precision": True, "use_compile": True, "use_channels_last": True}


def test_without_an_input_nothing_is_applied(monkeypatch):
    """The model comes back as it is, to the bit; what could be tried is advice."""
    for name in ("half_error", "compiler_error"):
        monkeypatch.setattr(optimize, name, lambda: None)
    model, made = convolutional(), optimizer(**EVERYTHING)
    model[0].register_forward_hook(lambda *_: None)
    before, hooks = weights(model), list(model[0]._forward_hooks)
    strides = [one.stride() for one in model.parameters()]
    assert made.optimize_model(model, {"memory_percent": 99.0}) is model
    assert same(before, model) and [one.stride() for one in model.parameters()] == strides
    assert list(model[0]._forward_hooks) == hooks and getattr(model, "_compiled_call_impl", None) is None
    assert type(model) is torch.nn.Sequential and model.training
    summary = made.get_optimization_summary()
    assert summary["optimizations_applied"] == [] and summary["total_optimizations"] == 0
    assert [one["name"] for one in summary["advice"]] == ["Channels last memory format", HALF, "torch.compile"]
    assert all("needs an input to be measured" in one["reason"] for one in summary["advice"])
    assert summary["status"].startswith("nothing applied") and "input" in summary["status"]


def test_the_input_of_a_profile_of_the_same_model_is_used(half):
    model, made = mlp(), tare.CodeProfiler(tare.ProfilingConfig(save_profiles=False))
    made.profile_training_pipeline(model, labelled(), 2)
    before = weights(model)
    made.model_optimizer.optimize_model(model, {})
    summary = made.model_optimizer.get_optimization_summary()
    tried = summary["details"] + summary["rejected"]
    assert [one["name"] for one in tried] == [HALF] and tried[0]["original_s"] > 0 and summary["advice"] == []
    assert same(before, model)
    made.model_optimizer.optimize_model(mlp(), {})
    assert [one["name"] for one in made.model_optimizer.get_optimization_summary()["advice"]] == [HALF]


# ---- mixed precision -----------------------------------------------------------------------------------------------

class SlowInHalf(torch.nn.Module):
    """Known by construction: far slower under autocast, and just as right."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(16, 16), torch.nn.BatchNorm1d(16)

    def forward(self, batch):
        time.sleep(0.03 if torch.is_autocast_enabled("cpu") else 0)
        return self.norm(self.layer(batch))


class FastInHalf(SlowInHalf):
    def forward(self, batch):
        time.sleep(0 if torch.is_autocast_enabled("cpu") else 0.03)
        return self.norm(self.layer(batch))


@pytest.mark.parametrize("training", [True, False])
def test_what_slows_the_model_is_not_applied(half, training):
    model, made = SlowInHalf().train(training), optimizer()
    batch = torch.randn(8, 16)
    before, state = weights(model), torch.get_rng_state()
    assert made.optimize_model(model, {}, batch) is model
    rejected, = made.get_optimization_summary()["rejected"]
    assert rejected["name"] == HALF and rejected["speedup"] < 0.67 and rejected["reason"].startswith("slower: ")
    assert rejected["measured"].startswith("forward and backward" if training else "forward pass, evaluation")
    assert same(before, model) and type(model) is SlowInHalf and model.training is training
    assert all(one.grad is None and one.dtype == torch.float32 for one in model.parameters())
    assert torch.equal(state, torch.get_rng_state())


def test_what_is_faster_is_applied_with_its_evidence(half):
    model, made = FastInHalf(), optimizer()
    before = weights(model)
    faster = made.optimize_model(model, {}, torch.randn(8, 16))
    detail, = made.get_optimization_summary()["details"]
    assert faster is not model and detail["status"] == "applied, verified and measured"
    assert detail["speedup"] > 1.03 and detail["decision"]["verdict"] == "better" and detail["decision"]["p"] < 0.02
    assert detail["evidence"]["half_precision_operators"] > 0
    assert same(before, model) and all(one.grad is None for one in model.parameters())


def test_autocast_that_changes_nothing_is_not_claimed(half):
    class Exact(torch.nn.Linear):
        def forward(self, batch):
            with torch.autocast("cpu", enabled=False):
                return super().forward(batch)
    made, model = optimizer(), Exact(16, 3)
    assert made.optimize_model(model, {}, torch.randn(8, 16), only_gains=False) is model
    assert "no operator" in made.get_optimization_summary()["skipped"][0]["reason"]


def test_the_optimized_model_shares_its_weights_and_looks_the_same(half):
    model = mlp()
    faster = halved(model)
    batch = torch.randn(8, 16)
    exact, rough = ahead(model, batch), ahead(faster, batch)
    assert rough.dtype == torch.float32 and not torch.equal(exact, rough)
    assert _state.difference(exact, rough) < 0.05
    assert faster is not model and isinstance(faster, torch.nn.Sequential)
    assert [one.data_ptr() for one in faster.parameters()] == [one.data_ptr() for one in model.parameters()]
    assert faster.state_dict().keys() == model.state_dict().keys()
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    before = ahead(faster, torch.ones(2, 16))
    torch.nn.functional.mse_loss(faster.train()(torch.randn(4, 16)), torch.zeros(4, 3)).backward()
    update.step()
    assert not torch.equal(before, ahead(faster, torch.ones(2, 16)))


def test_the_optimized_model_is_copied_pickled_and_sliced(half):
    model = halved()
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
    twice = made.optimize_model(halved(), {})
    assert made.get_optimization_summary()["skipped"][-1]["reason"] == "the model already computes in mixed precision"
    assert ahead(twice, torch.ones(1, 16)).shape == (1, 3)
    made.optimize_model(torch.nn.DataParallel(mlp()), {})
    assert "DataParallel" in made.get_optimization_summary()["skipped"][-1]["reason"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(mlp().eval(), torch.ones(2, 16))
    made.optimize_model(traced, {})
    assert "fixed" in made.get_optimization_summary()["skipped"][-1]["reason"]


def test_a_model_that_cannot_be_tried_stays_and_says_why(half):
    class Locked(torch.nn.Linear):
        def __init__(self):
            super().__init__(16, 3)
            import threading
            self.lock = threading.Lock()
    made, model = optimizer(), Locked()
    assert made.optimize_model(model, {}, torch.randn(8, 16)) is model
    assert "cannot be copied" in made.get_optimization_summary()["rejected"][0]["reason"]
    assert made.optimize_model(mlp(inputs=5), {}, torch.randn(8, 16)) is not None
    assert "mat1 and mat2" in made.get_optimization_summary()["rejected"][0]["reason"]

    class Empty(torch.nn.Module):
        def forward(self, batch):
            return batch.relu()
    assert isinstance(made.optimize_model(Empty(), {}, torch.randn(8, 16)), Empty)
    assert "no weights" in made.get_optimization_summary()["skipped"][0]["reason"]


def test_a_processor_without_bfloat16_costs_no_process(bench):
    """Where torch's bfloat16 ends a process, it ends one of ours that was made for that, not the user's."""
    done = bench.python("""
        import torch, tare
        made = tare.ModelOptimizer(tare.ProfilingConfig())
        model = made.optimize_model(torch.nn.Linear(64, 256), {}, torch.randn(32, 64))
        model(torch.randn(32, 64)).sum().backward()
        summary = made.get_optimization_summary()
        print(summary["optimizations_applied"], summary["rejected"], summary["skipped"])
        """, env={"ONEDNN_MAX_CPU_ISA": None})
    assert "Mixed precision" in done.out


def test_errors_are_explained():
    import signal
    assert optimize._probe_error("it", "pass") is None
    assert optimize._probe_error("it", "raise ValueError('no compiler')") == \
        "it does not work here: ValueError: no compiler"
    told = optimize._probe_error("it", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
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
    assert detail["evidence"]["channels_last_weights"] == 2 and detail["evidence"]["channels_last_results"] > 0
    assert faster[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert torch.allclose(exact, ahead(faster, batch), atol=1e-5)


def test_without_a_gain_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(optimize, "measure", lambda *_: {
        "speedup": 0.8, "helps": False, "original_s": 0.008, "optimized_s": 0.01, "decision": {"why": "significant"}})
    model, made = convolutional(), optimizer(use_mixed_precision=False, use_channels_last=True)
    assert made.optimize_model(model, {}, torch.randn(2, 3, 16, 16)) is model
    summary = made.get_optimization_summary()
    assert summary["optimizations_applied"] == [] and summary["status"] == "nothing applied"
    assert summary["rejected"][0]["reason"] == "not faster: 8.00 ms, 10.0 ms with it (0.80x; significant)"
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

    def probe(what, code):
        tried.append(what)
        return "torch.compile does not work here: no compiler"
    monkeypatch.setattr(optimize, "_probe_error", probe)
    optimize.compiler_error.cache_clear()
    try:
        made = optimizer(use_mixed_precision=False, use_compile=True)
        model = mlp()
        assert made.optimize_model(model, {}) is model and tried == ["torch.compile"]
        assert made.get_optimization_summary()["skipped"][0]["reason"].endswith("no compiler")
    finally:
        optimize.compiler_error.cache_clear()


def graphs():
    """By torch's own count."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.fixture
def quick_compiler(monkeypatch):
    """torch.compile without code generation: dynamo captures as always."""
    import functools
    monkeypatch.setattr(optimize, "compiler_error", lambda: None)
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))


class FastWhenCompiled(torch.nn.Module):
    """Known by construction: it waits where it is not compiled."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, batch):
        if not torch.compiler.is_compiling():
            time.sleep(0.03)
        return self.layer(batch)


def test_a_sequential_is_really_compiled(quick_compiler):
    """Module.compile() leaves a Sequential as it is: dynamo skips torch's own files."""
    model, made = mlp(), optimizer(use_mixed_precision=False, use_compile=True)
    faster = made.optimize_model(model, {}, torch.randn(8, 16), only_gains=False)
    summary = made.get_optimization_summary()
    assert summary["optimizations_applied"] == ["torch.compile"]
    assert summary["details"][0]["evidence"]["graphs"] >= 1
    assert summary["details"][0]["evidence"]["operators_captured"] >= 4
    assert faster.state_dict().keys() == model.state_dict().keys()
    assert getattr(model, "_compiled_call_impl", None) is None
    assert _state.copy_of(faster)._compiled_call_impl is not None
    torch._dynamo.reset()
    before = graphs()
    model(torch.randn(8, 16))
    assert graphs() == before
    faster(torch.randn(8, 16))
    assert graphs() > before


def test_compiling_is_kept_where_it_is_faster(quick_compiler):
    model, made = FastWhenCompiled(), optimizer(use_mixed_precision=False, use_compile=True)
    faster = made.optimize_model(model, {}, torch.randn(8, 16))
    detail, = made.get_optimization_summary()["details"]
    assert faster is not model and detail["speedup"] > 2 and detail["evidence"]["graphs"] >= 1
    before = ahead(model, torch.ones(2, 16))
    assert torch.allclose(before, ahead(faster, torch.ones(2, 16)))


def test_what_dynamo_skips_is_not_called_compiled(quick_compiler):
    class Skipped(FastWhenCompiled):
        forward = torch.compiler.disable(FastWhenCompiled.forward)
    made, model = optimizer(use_mixed_precision=False, use_compile=True), Skipped()
    assert made.optimize_model(model, {}, torch.randn(8, 16), only_gains=False) is model
    assert made.get_optimization_summary()["skipped"][0]["reason"] == "torch.compile captured no graph of this model"
    report = benchmark(model, labelled(), rounds=5, use_mixed_precision=False, use_compile=True)
    assert report["candidates"][0]["status"] == "skipped" and report["optimized"]["optimizations_applied"] == []


def test_a_model_that_does_not_compile_stays(monkeypatch):
    def backend(graph, inputs):
        raise RuntimeError("no code for this")
    monkeypatch.setattr(optimize, "compiler_error", lambda: None)
    compile_ = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function: compile_(function, backend=backend))
    made, model = optimizer(use_mixed_precision=False, use_compile=True), mlp()
    assert made.optimize_model(model, {}, torch.randn(8, 16)) is model
    assert "it does not run" in made.get_optimization_summary()["rejected"][0]["reason"]
    assert ahead(model, torch.ones(2, 16)).shape == (2, 3)


def test_many_models_are_compiled_each_on_its_own(quick_compiler):
    """Dynamo gives a code object up after eight recompilations: no two models may share one."""
    for _ in range(9):
        made = optimizer(use_mixed_precision=False, use_compile=True)
        made.optimize_model(mlp(), {}, torch.randn(8, 16), only_gains=False)
        assert made.get_optimization_summary()["optimizations_applied"] == ["torch.compile"]


# ---- memory --------------------------------------------------------------------------------------------------------

class Checkpointed(torch.nn.Module):
    """Has what transformers' models have, and does with it what they do."""

    def __init__(self, refuses=False, works=True):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(
            torch.nn.Linear(16, 512), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(512, 16))
            for _ in range(4))
        self.refuses, self.works, self.on = refuses, works, False
        self.config = type("Config", (), {})()
        self.config._attn_implementation = "eager"

    def gradient_checkpointing_enable(self):
        if self.refuses:
            raise ValueError("not with this model")
        self.on = True

    def set_attn_implementation(self, name):
        self.config._attn_implementation = name

    def _attend(self, x):
        x = x[None, None]
        if self.config._attn_implementation == "sdpa":
            return torch.nn.functional.scaled_dot_product_attention(x, x, x)[0, 0]
        weights = torch.softmax(x @ x.transpose(-1, -2) / x.shape[-1] ** 0.5, -1)
        for _ in range(20):  # what an eager attention keeps for its backward pass
            weights = weights.clamp(min=1e-30).log().exp()
        return (weights @ x)[0, 0]

    def forward(self, batch):
        for layer in self.layers:
            if self.on and self.works and self.training:
                batch = torch.utils.checkpoint.checkpoint(layer, batch, use_reentrant=False)
            else:
                batch = layer(batch)
        return self._attend(batch)


BATCH = torch.randn(64, 16)


def test_memory_optimizations_are_measured():
    """Module calls that checkpointing computes again, calls of the fused attention: counted; memory: less."""
    made, model = optimizer(), Checkpointed()
    before, state = weights(model), torch.get_rng_state()
    assert made._apply_memory_optimizations(model, BATCH) is model
    summary = made.get_optimization_summary()
    # Whether the fused attention is faster for a model this small is the machine's to say: it is applied, or was
    # measured. A model for which it is faster on every machine takes seconds a step.
    faster = "Efficient attention" in summary["optimizations_applied"]
    assert summary["optimizations_applied"] == ["Gradient checkpointing"] + ["Efficient attention"] * faster, summary
    first = summary["details"][0]
    assert first["evidence"]["module_calls_recomputed"] == 4 * 5  # four blocks of a Sequential and its four layers
    assert first["optimized_mb"] < 0.7 * first["original_mb"] and first["gradient_difference"] <= 1e-3
    if faster:
        assert summary["details"][1]["evidence"] == {"scaled_dot_product_attention_calls": 1}
    assert model.on and model.config._attn_implementation == ("sdpa" if faster else "eager") and model.training
    assert same(before, model) and torch.equal(state, torch.get_rng_state())
    assert all(one.grad is None for one in model.parameters())


def test_memory_optimizations_without_an_input_are_advice():
    made, model = optimizer(), Checkpointed()
    assert made._apply_memory_optimizations(model) is model
    assert not model.on and model.config._attn_implementation == "eager"
    assert [one["name"] for one in made.get_optimization_summary()["advice"]] == ["Gradient checkpointing",
                                                                                  "Efficient attention"]


def test_checkpointing_that_checkpoints_nothing_is_not_claimed():
    made, model = optimizer(), Checkpointed(works=False)
    made._apply_memory_optimizations(model, BATCH)
    assert not model.on and "Gradient checkpointing" not in made.get_optimization_summary()["optimizations_applied"]
    assert "changed nothing" in made.get_optimization_summary()["skipped"][0]["reason"]


def test_memory_optimizations_that_do_not_suit():
    made = optimizer()
    made._apply_memory_optimizations(mlp(), torch.randn(8, 16))
    made._apply_memory_optimizations(Checkpointed(refuses=True), BATCH)
    reasons = [one["reason"] for one in made.get_optimization_summary()["skipped"]]
    assert "no gradient_checkpointing_enable" in reasons[0] and "no attention" in reasons[1]
    assert reasons[2] == "the model rejects it: not with this model"


def test_memory_is_saved_where_it_is_short():
    made, model = optimizer(use_mixed_precision=False), Checkpointed()
    made.optimize_model(model, {"memory_percent": 40.0}, BATCH)
    assert not model.on
    made.optimize_model(model, {"memory_percent": 92.0}, BATCH)
    assert model.on


def test_a_model_of_transformers_is_checkpointed():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    config = transformers.BertConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=2,
                                     intermediate_size=128, vocab_size=100)
    made, model = optimizer(use_mixed_precision=False), transformers.BertModel(config)
    assert made.optimize_model(model, {"memory_percent": 92.0}, {"input_ids": torch.randint(0, 100, (4, 32))}) is model
    detail = made.get_optimization_summary()["details"][0]
    assert detail["name"] == "Gradient checkpointing" and model.is_gradient_checkpointing
    assert detail["evidence"]["module_calls_recomputed"] > 0 and detail["optimized_mb"] < detail["original_mb"]


# ---- how far outputs are apart -------------------------------------------------------------------------------------

@pytest.mark.parametrize("expected, got, apart", [
    ([3.0, 4.0], [3.0, 4.0], 0.0), ([3.0, 4.0], [3.0, 4.5], 0.1), ([0.0], [0.0], 0.0), ([0.0], [1e-9], math.inf),
    ([1.0, 2.0], [1.0], math.inf), ([1.0], [math.nan], math.inf), ([math.inf, 1.0], [math.inf, 1.0], 0.0),
    ([math.inf], [-math.inf], math.inf), ([], [], 0.0)])
def test_difference(expected, got, apart):
    assert _state.difference(torch.tensor(expected), torch.tensor(got)) == pytest.approx(apart)


def test_difference_of_nests():
    one = {"a": torch.ones(2), "b": (torch.zeros(1), [torch.tensor([1, 2])])}
    other = copy.deepcopy(one)
    assert _state.difference(one, other) == 0
    other["b"][1][0][0] = 9
    assert _state.difference(one, other) > 1
    assert _state.difference(one, {"a": one["a"]}) == math.inf


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
    from tare.seeds import _contest
    monkeypatch.setattr(_contest, "OPTIMIZATIONS", optimizations)


class Wasteful(torch.nn.Module):
    """Its layer, after a wait of 0.1 ms each time."""

    def __init__(self, times):
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.times = torch.nn.Linear(16, 256), times

    def forward(self, batch):
        time.sleep(1e-4 * self.times)
        return self.layer(batch)


def test_what_helps_is_kept_and_really_faster(monkeypatch):
    def lean(model):
        model.times = 1
        return model
    _contest_of(monkeypatch, optimize.Optimization(lambda model: "Lean", "use_mixed_precision", 1e-3, lean))
    report = benchmark(Wasteful(200), labelled(), rounds=5)
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
    # A third of a second, and 4 ms in the end: on a busy machine a thread waits some 20 ms for a CPU, which must not
    # be more than what the second one of them saves.
    report = benchmark(Wasteful(3200), labelled(), rounds=7)
    assert report["optimized"]["optimizations_applied"] == ["By 8", "By 10"]
    assert report["improvements"]["speedup_factor"] > report["candidates"][0]["speedup"]


def test_losses_of_ones_own_and_short_loaders():
    seen = []

    def loss(output, target):
        seen.append(target.shape)
        return torch.nn.functional.cross_entropy(output, target)
    report = benchmark(mlp(), labelled(count=16), 9, more={"loss_fn": loss}, enable_optimizations=False)
    assert seen and report["steps"] == 2 and report["notes"][-1] == "the loader has 2 batches; 9 were requested"


def test_a_model_that_cannot_run_says_so_itself():
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        benchmark(mlp(inputs=5), labelled())
    with pytest.raises(ValueError, match="no batches"):
        benchmark(mlp(), [])
    with pytest.raises(TypeError, match="more than once"):
        benchmark(mlp(), iter(labelled()))
    with pytest.raises(ValueError, match="rounds is 1 or more"):
        benchmark(mlp(), labelled(), rounds=0)
