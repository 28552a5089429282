"""Rules and hooks of one's own, suggestions while it runs, adaptive profiling, predictions, platforms, trackers."""
import json
import math
import statistics
import threading
import time

import pytest
import tare


def busy(seconds):
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        pass


@pytest.fixture
def rule():
    """register(function): gone after the test."""
    names = []

    def register(function, name):
        names.append(name)
        return tare.bottleneck_rule(function, name=name)
    yield register
    for name in names:
        tare.remove_rule(name)


# ---- rules of one's own --------------------------------------------------------------------------------------------

def test_a_rule_sees_operations_and_the_machine(rule):
    seen = []

    def watch(observed):
        seen.append(observed)
        one = observed.operations["tokenize"]
        return f"tokenize ahead of time: {one.self_percent:.0f} %" if one.self_percent > 50 else None
    rule(watch, "tokenizer")
    monitor = tare.PerformanceMonitor()
    with monitor.track("tokenize"):
        busy(0.03)
    with monitor.track("other"):
        pass
    monitor.record_metrics()
    found = [one for one in monitor.bottlenecks() if one.kind == "rule"]
    assert [one.operation for one in found] == ["tokenizer"] and "ahead of time" in str(found[0])
    assert seen[0].source == "monitor" and seen[0].operations["tokenize"].count == 1
    assert seen[0].operations["tokenize"].total_s == monitor.get_operation_time("tokenize")
    assert 0 < seen[0].machine["memory"]["mean"] <= 100


def test_rules_may_give_several_or_fail(rule):
    rule(lambda seen: ["one", tare.Bottleneck("x", "mine", "bottleneck", 3.0, "two")], "several")
    rule(lambda seen: 1 / 0, "broken")
    rule(lambda seen: [3], "wrong")
    monitor = tare.PerformanceMonitor()
    with monitor.track("a"):
        busy(0.001)
    texts = [str(one) for one in monitor.bottlenecks()]
    assert "one" in texts and "two" in texts
    assert any("the rule broken failed: ZeroDivisionError" in text for text in texts)
    assert any("the rule wrong failed: TypeError: a rule gives sentences" in text for text in texts)


def test_rules_that_are_none():
    with pytest.raises(TypeError, match="a rule is a function"):
        tare.bottleneck_rule(3, name="x")
    with pytest.raises(KeyError, match="there is no rule 'nothing'"):
        tare.remove_rule("nothing")


def test_rules_of_epochs_and_of_traces(rule, bench):
    rule(lambda seen: f"{seen.source}: {sorted(seen.operations)}", "names")
    monitor = tare.EpochPerformanceMonitor(verbose_batches=0)
    monitor.on_epoch_start(0)
    for batch in range(3):
        monitor.on_batch_start(batch)
        monitor.on_batch_end(batch)
    monitor.on_epoch_end()
    assert "epochs: ['batch', 'epoch']" in [str(one) for one in monitor.bottlenecks()]
    (bench.folder / "team.rules").write_text(
        'rule many-forwards\n  table spans where name = "forward"\n  when calls >= 3\n  say "{name} ran {calls} '
        'times"\n')
    done = bench.recorded("""
        import tare
        for _ in range(3):
            with tare.span("forward"): pass
    """)
    assert [str(one) for one in done.report.bottlenecks()] == ["report: ['forward']"]
    found = tare.report(bench.folder / "trace.tare", rules=bench.folder / "team.rules").findings
    assert [one.title for one in found if one.id == "many-forwards"] == ["forward ran 3 times"]


# ---- hooks ---------------------------------------------------------------------------------------------------------

def test_a_hook_measures_around_blocks():
    queue, profiler = [], tare.PerformanceProfiler()
    profiler.add_hook("grown", lambda: len(queue), end=lambda before: len(queue) - before)
    profiler.add_hook("now", end=lambda: {"length": len(queue), "twice": 2 * len(queue)})
    with profiler.profile("fill"):
        queue.extend(range(5))
    assert profiler.get_metrics().custom == {"grown": 5.0, "now.length": 5.0, "now.twice": 10.0}
    with profiler.profile("fill"):
        queue.extend(range(3))
    assert 3 <= profiler.get_metrics("fill").custom["grown"] <= 5
    assert json.loads(profiler.to_json())["names"]["fill"]["custom"]["now.length"] >= 5


def test_a_hook_that_fails_takes_nothing_with_it():
    profiler = tare.PerformanceProfiler()
    profiler.add_hook("bad", lambda: 1 / 0, end=lambda state: 1)
    with profiler.profile("a"):
        pass
    metrics = profiler.get_metrics()
    assert "ZeroDivisionError" in metrics.custom["bad"].reason and metrics.timing.wall_time_s > 0
    with pytest.raises(ValueError, match="already"):
        profiler.add_hook("bad", end=lambda: 1)
    with pytest.raises(TypeError):
        profiler.add_hook("x", end=3)


# ---- suggestions while it runs --------------------------------------------------------------------------------------

def test_suggestions_come_while_it_runs_and_once_each():
    monitor, told, there = tare.PerformanceMonitor(), [], threading.Event()

    def tell(one):
        told.append(one)
        there.set()
    with tare.Suggestions(monitor, tell, interval=0.02) as suggestions:
        with monitor.track("load data"):
            busy(0.05)
        assert there.wait(30), suggestions.error
        assert any("load data" in str(one) for one in told)
        for _ in range(3):
            with monitor.track("load data"):
                busy(0.01)
        time.sleep(0.1)
    keys = [(one.kind, one.operation) for one in told]
    assert len(keys) == len(set(keys)) and suggestions.reported == told and suggestions.error is None


def test_suggestions_from_the_trace_that_is_being_written(bench):
    done = bench.python("""
        import time, tare
        tare.bottleneck_rule(lambda seen: "forward is there" if "forward" in seen.operations else None, name="mine")
        tare.start("own.tare")
        suggestions = tare.Suggestions(interval=0.2).start()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(str(one) == "forward is there" for one in suggestions.reported):
            with tare.span("forward"):
                time.sleep(0.02)
        suggestions.stop()
        tare.stop()
        print(any(str(one) == "forward is there" for one in suggestions.reported), suggestions.error)
    """, env={"TARE_HELPER": bench.command})
    assert done.out == "True None\n"


def test_suggestions_survive_what_goes_wrong():
    class Broken:
        def bottlenecks(self):
            raise OSError("gone")
    suggestions = tare.Suggestions(Broken(), interval=0.01).start()
    with pytest.raises(RuntimeError, match="already"):
        suggestions.start()
    suggestions.stop()
    assert suggestions.error == "OSError: gone"
    for interval, kind in ((0, ValueError), ("x", TypeError), (math.nan, ValueError)):
        with pytest.raises(kind):
            tare.Suggestions(Broken(), interval=interval)


# ---- adaptive ------------------------------------------------------------------------------------------------------

def test_short_blocks_are_measured_now_and_then():
    profiler = tare.AdaptiveProfiler(budget=0.01)
    profiler.add_hook("dear", end=lambda: busy(0.002) or 1.0)  # measuring costs 2 ms, a block next to nothing
    for _ in range(300):
        with profiler.profile("short"):
            pass
    coverage = profiler.get_coverage("short")
    assert coverage.seen == 300 and coverage.measured < 60 and coverage.every > 10
    assert coverage.cost_s > 0.0019 and "an estimate" in coverage.note
    assert profiler.get_metrics("short").timing.count == coverage.measured
    mean = profiler.get_metrics("short").timing.mean_s
    assert coverage.estimated_total_s == pytest.approx(300 * mean, rel=0.5, abs=0.01)


def test_long_blocks_are_all_measured():
    profiler = tare.AdaptiveProfiler(budget=0.5)
    for _ in range(8):
        with profiler.profile("long") as block:
            block.samples = 4
            time.sleep(0.02)
    coverage = profiler.get_coverage("long")
    assert coverage.seen == coverage.measured == 8 and coverage.note == "every block was measured"
    assert 0 < coverage.overhead_percent < 50


def test_adaptive_mistakes():
    for budget, kind in ((0, ValueError), (2, ValueError), ("x", TypeError), (math.nan, ValueError)):
        with pytest.raises(kind):
            tare.AdaptiveProfiler(budget=budget)
    with pytest.raises(KeyError):
        tare.AdaptiveProfiler().get_coverage("none")
    profiler = tare.AdaptiveProfiler()
    with pytest.raises(ZeroDivisionError):
        with profiler.profile("raises"):
            1 / 0
    assert profiler.get_coverage("raises").measured == 1


# ---- predictions ---------------------------------------------------------------------------------------------------

def test_memory_is_predicted_from_real_measurements():
    scaling = tare.measure_scaling(lambda megabytes: bytearray(int(megabytes) << 20), [8, 16, 24, 32, 48, 64],
                                   repeats=3)
    told = scaling.memory.predict(128)
    assert told.low <= told.value <= told.high and told.value == pytest.approx(128, rel=0.2)
    assert "an estimate" in told.note
    assert 64 < scaling.memory.largest(200) <= 220
    assert [row["size"] for row in scaling.rows] == [8, 16, 24, 32, 48, 64] and scaling.time.slope > 0


def test_a_line_through_what_is_known():
    sizes = [1, 2, 4, 8, 16, 32]
    model = tare.ScalingModel(sizes, [5 + 3 * size for size in sizes])
    assert model.slope == 3 and model.intercept == 5 and model.predict(64)[:3] == (197, 197, 197)
    assert model.largest(101) == pytest.approx(32)
    assert "far from what was measured" in model.predict(1000).note
    spoilt = tare.ScalingModel(sizes, [5 + 3 * size + (1000 if size == 8 else 0) for size in sizes])
    assert spoilt.slope == pytest.approx(3, rel=0.5), "one outlier is not a trend"
    curved = tare.ScalingModel([1, 2, 3, 4, 5, 6], [1, 60, 2, 70, 3, 50])
    assert "no straight line" in curved.predict(4).note
    few = tare.ScalingModel([1, 2], [1, 2]).predict(3)
    assert few.value == 3 and "6" in few.low.reason
    assert "does not grow" in tare.ScalingModel(sizes, [7] * 6).largest(100).reason


@pytest.mark.parametrize("sizes, values", [([1], [1]), ([1, 2], [1]), ([1, 1], [1, 2]), ([1, math.nan], [1, 2]),
                                           ([1, "x"], [1, 2])])
def test_lines_that_cannot_be(sizes, values):
    with pytest.raises((ValueError, TypeError)):
        tare.ScalingModel(sizes, values)


# ---- two platforms -------------------------------------------------------------------------------------------------

def test_two_saved_reports_side_by_side(tmp_path):
    for name, seconds in (("a", 0.01), ("b", 0.03)):
        profiler = tare.PerformanceProfiler()
        with profiler.profile("train", samples=10):
            busy(seconds)
        profiler.to_json(str(tmp_path / f"{name}.json"))
    saved = json.loads((tmp_path / "b.json").read_text())
    assert saved["environment"]["python"]
    saved["environment"]["machine"] = "another"
    (tmp_path / "b.json").write_text(json.dumps(saved))
    compared = tare.compare_reports(tmp_path / "a.json", tmp_path / "b.json")
    row = next(row for row in compared.rows if row["figure"] == "train.timing.cpu_time_s")
    assert row["ratio"] == pytest.approx(row["other"] / row["base"]) and row["ratio"] > 1.5
    assert list(compared.platform) == ["machine"] and compared.platform["machine"][1] == "another"
    assert any("not the same platform: machine" in note for note in compared.notes)
    assert "train.timing.cpu_time_s" in str(compared) and "no significance" in str(compared)
    assert compared.to_csv().startswith("figure,base,other,ratio")


def test_two_traces_side_by_side(bench):
    for name, times in (("a", 2), ("b", 6)):
        done = bench.recorded(f"""
            import tare
            for _ in range({times}):
                with tare.span("forward"): pass
        """)
        (bench.folder / "trace.tare").rename(bench.folder / f"{name}.tare")
        assert done.status == 0
    compared = tare.compare_reports(bench.folder / "a.tare", bench.folder / "b.tare")
    calls = next(row for row in compared.rows if row["figure"] == "forward.calls")
    assert (calls["base"], calls["other"], calls["ratio"]) == (2, 6, 3)
    assert "cpu_model" not in compared.platform


def test_reports_that_are_none(tmp_path):
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "torn.json").write_text("{\"names\": ")
    with pytest.raises(FileNotFoundError):
        tare.compare_reports(tmp_path / "none.json", tmp_path / "none.json")
    with pytest.raises(ValueError, match="no figure in common"):
        tare.compare_reports(tmp_path / "empty.json", tmp_path / "empty.json")
    with pytest.raises(ValueError, match="is not a saved report"):
        tare.compare_reports(tmp_path / "torn.json", tmp_path / "empty.json")


# ---- trackers ------------------------------------------------------------------------------------------------------

@pytest.fixture
def measured():
    profiler = tare.PerformanceProfiler()
    with profiler.profile("train", samples=10):
        busy(0.01)
    return profiler


def test_mlflow_gets_the_figures(measured, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs more than the small package has
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        logged = tare.log_to_mlflow(measured, step=3)
    kept = mlflow.tracking.MlflowClient().get_run(run.info.run_id).data.metrics
    assert kept == pytest.approx(logged) and kept["tare/train/timing/wall_time_s"] > 0.009
    assert all(math.isfinite(value) for value in logged.values()) and not any("gpu" in name for name in logged)


def test_wandb_gets_the_figures(measured, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    if wandb.run is None:
        with pytest.raises(RuntimeError, match="wandb.init"):
            tare.log_to_wandb(measured)
    run = wandb.init(mode="offline", dir=str(tmp_path), project="tare")
    logged = tare.log_to_wandb(measured)
    assert run.summary["tare/train/timing/wall_time_s"] == logged["tare/train/timing/wall_time_s"]
    run.finish()


def test_without_a_tracker_there_is_a_sentence(measured, monkeypatch):
    import sys
    for name, log in (("mlflow", tare.log_to_mlflow), ("wandb", tare.log_to_wandb)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"pip install {name}"):
            log(measured)


def test_what_can_be_logged():
    from tare.integrations.trackers import figures_of
    monitor = tare.PerformanceMonitor()
    for _ in range(3):
        with monitor.track("forward"):
            pass
    monitor.record_metrics()
    figures = figures_of(monitor)
    assert figures["tare/forward/count"] == 3 and 0 < figures["tare/machine/memory/mean"] <= 100
    assert figures_of({"a": {"b": 2, "c": "text", "d": math.nan}}, "x") == {"x/a/b": 2.0}
    with pytest.raises(TypeError, match="what is logged is"):
        figures_of(3)
    assert statistics.mean(figures.values()) > 0
