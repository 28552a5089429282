"""What models are measured with, without any framework: the loop, layers, tokens, intervals, and a function as
model."""
import base64
import csv
import hashlib
import json
import math
import re
import signal
import time

import pytest
import tare
from tare import _core, _engine


class Calls:
    """Counts calls, in order with those of others."""

    def __init__(self, log, name, seconds=0.0):
        self.log, self.name, self.seconds = log, name, seconds

    def __call__(self):
        self.log.append(self.name)
        if self.seconds:
            time.sleep(self.seconds)


# ---- the loop ---------------------------------------------------------------------------------------------------

def test_latency_settles_every_run_and_throughput_once_a_window():
    log = []
    seconds = _core.timed_runs(Calls(log, "run"), 3, settle=Calls(log, "settle"))
    assert len(seconds) == 3 and all(one >= 0 for one in seconds)
    assert log == ["settle"] + ["run", "settle"] * 3
    log.clear()
    assert len(_core.timed_runs(Calls(log, "run"), 2, each=3, settle=Calls(log, "settle"))) == 2
    assert log == ["settle"] + ["run", "run", "run", "settle"] * 2


def test_what_settling_takes_is_in_the_time():
    seconds = _core.timed_runs(lambda: None, 2, settle=lambda: time.sleep(0.01))
    assert all(one >= 0.01 for one in seconds)


def test_the_end_of_a_result_is_not_the_runs():
    class Slow:
        def __del__(self):
            time.sleep(0.05)
    begun = time.perf_counter()
    seconds = _core.timed_runs(Slow, 2)
    assert time.perf_counter() - begun >= 0.1
    assert sum(seconds) <= time.perf_counter() - begun - 0.1


def test_exceptions_leave_the_loop():
    def fails():
        raise LookupError("no")
    with pytest.raises(LookupError, match="no"):
        _core.timed_runs(fails, 5)
    with pytest.raises(LookupError, match="no"):
        _core.timed_runs(lambda: None, 5, settle=fails)
    with pytest.raises(LookupError, match="no"):
        _core.warm_up(fails, 1, 5)


def test_an_interrupt_ends_it():
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            _core.timed_runs(int, 10_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_time_can_end_it():
    seconds = _core.timed_runs(lambda: time.sleep(0.01), 1000, most_s=0.03)
    assert 1 <= len(seconds) <= 3


@pytest.mark.parametrize("given, error", [((1, 5), TypeError), ((int, -1), (ValueError, OverflowError, TypeError)),
                                          ((int, 10 ** 9), ValueError)])
def test_bad_loops_are_refused(given, error):
    with pytest.raises(error):
        _core.timed_runs(*given)
    with pytest.raises(ValueError):
        _core.timed_runs(int, 1, each=0)
    with pytest.raises(ValueError):
        _core.warm_up(int, 5, 4)


def test_warm_up_ends_when_times_are_steady():
    log = []
    seconds, steady, before, cv = _core.warm_up(lambda: log.append(time.sleep(0.002)), 10, 1000)
    assert steady and len(seconds) == len(log) < 1000 and before < len(seconds) and cv >= 0


def test_warm_up_of_what_never_becomes_steady_ends():
    waits = iter(0.0005 * 2 ** number for number in range(8))
    seconds, steady, before, _ = _core.warm_up(lambda: time.sleep(next(waits)), 2, 8)
    assert not steady and before == len(seconds) == 8


def test_warm_up_has_its_least_runs_even_when_time_is_over():
    assert len(_core.warm_up(lambda: time.sleep(0.002), 5, 100, most_s=0)[0]) == 5


# ---- layers and tokens --------------------------------------------------------------------------------------------

def test_a_layer_inside_another_is_in_its_time_and_not_in_its_own():
    times = _core.LayerTimes(2, 2)
    hooks = [(times.begins(at), times.ends(at)) for at in range(2)]
    for _ in range(2):
        hooks[0][0]("module", "input")
        hooks[1][0]()
        time.sleep(0.005)
        hooks[1][1](1, 2, 3, named=4)
        hooks[0][1]()
        times.next_run()
    calls, whole, own = times.read(0)
    inner_calls, inner, inner_own = times.read(1)
    assert calls == inner_calls == 2 and len(whole) == 2 and times.broken == 0
    for outer, inside, rest in zip(whole, inner, own):
        assert outer >= inside >= 0.005 and rest == pytest.approx(outer - inside, abs=1e-9)
    assert inner == inner_own
    with pytest.raises(IndexError):
        times.begins(2)


def test_ends_that_do_not_fit_are_counted_not_added():
    times = _core.LayerTimes(2, 1)
    times.begins(0)()
    times.ends(1)()
    times.ends(0)()
    assert times.broken == 1
    times.next_run()
    assert times.read(0) == (0, [0.0], [0.0])
    times.begins(0)()
    times.ends(0)()  # after the last run
    assert times.read(0)[0] == 0


def test_tokens_have_the_time_they_came_at():
    times = _core.TokenTimes(3)
    assert times.seconds() == []
    times.start()
    for value in ("prompt", 1, 2, 3):
        time.sleep(0.002)
        times.put(value)
    times.end()
    came = times.seconds()
    assert len(came) == 3 and times.lost == 1 and came == sorted(came) and came[0] >= 0.002
    times.start()
    assert times.seconds() == []


def test_the_heap_and_waits_are_told():
    told = _core.heap()
    assert told is None or (told[0] >= told[1] > 0)
    before = _core.waits()
    time.sleep(0.01)
    after = _core.waits()
    assert after[2] > before[2] and all(b >= a for a, b in zip(before, after))


# ---- statistics ----------------------------------------------------------------------------------------------------

def test_intervals_are_order_statistics_or_tell_what_they_need():
    values = [float(one) for one in range(1, 101)]
    low, high, needed = _core.quantile_interval(values, 0.5)
    assert (low, high, needed) == (40.0, 61.0, None)
    assert _core.quantile_interval(values, 0.99) == (None, None, 368)
    assert _core.quantile_interval([], 0.5)[2] == 6
    with pytest.raises(ValueError):
        _core.quantile_interval(values, 2)


def test_outliers_and_changes():
    assert _engine.outliers([10.0, 11.0, 10.5, 10.2, 10.9, 10.4, 10.6, 12.5, 99.0])[1] == 1
    values = [10 + 0.01 * (number % 5) for number in range(20)] + [20 + 0.01 * (number % 5) for number in range(20)]
    (at, before, after, p), = _engine.change_points(values)
    assert at == 20 and before == pytest.approx(10.02) and after == pytest.approx(20.02) and p < 0.001
    assert _engine.change_points(values[:20]) == []


# ---- a function as a model -----------------------------------------------------------------------------------------

def work(numbers=(1, 2, 3)):
    return sum(one * one for one in numbers for _ in range(50))


@pytest.fixture(scope="module")
def profiled():
    profiler = tare.ModelProfiler(work)
    profiler.profile([1, 2, 3, 4], num_runs=80, warmup_runs=5)
    return profiler


def test_a_function_is_measured(profiled):
    results = profiled.results
    latency = results["latency"]
    assert latency["count"] == 80 == len(latency["samples"]) and latency["unit"] == "ms"
    assert 0 < latency["min"] <= latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"]
    assert latency["intervals"]["p50"]["low"] <= latency["p50"] <= latency["intervals"]["p50"]["high"]
    assert latency["intervals"]["p99"].reason == "too few runs for an interval: 80, 368 are needed"
    assert latency["gc"]["enabled"] is True and latency["gc"]["collections"] >= 0
    assert results["throughput"]["requests_per_second"] > 0
    assert results["memory"]["peak"] >= results["memory"]["before"] > 0 < results["memory"]["average"]
    for value in (results["model"]["parameters"], results["model"]["flops"], results["throughput"]["tokens_per_second"],
                  results["gpu"]["utilization_percent"], results["end_to_end"]):
        assert isinstance(value, tare.Missing) and value.reason
    assert "latency" in str(results) and f"{results['model']['flops']:.2f}" == "n/a"
    assert results["warmup"]["runs"] >= 5


def test_runs_are_as_many_as_were_asked_for():
    log = []
    results = tare.ModelProfiler(lambda: log.append(1)).profile(num_runs=7, warmup_runs=0)
    assert results["latency"]["count"] == 7 and isinstance(results["warmup"]["steady"], tare.Missing)


def test_end_to_end_is_with_what_is_around():
    profiler = tare.ModelProfiler(lambda text: text.upper(), preprocess=lambda raw: (time.sleep(0.002), raw)[1],
                                  postprocess=lambda text: time.sleep(0.002))
    results = profiler.profile("text", num_runs=5, warmup_runs=1)
    assert results["end_to_end"]["min"] >= 4 and results["end_to_end"]["count"] == 5


def test_what_is_wrong_gets_a_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        tare.ModelProfiler(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="is not an ONNX file"):
        tare.ModelProfiler(tmp_path / "text")
    (tmp_path / "empty.onnx").write_text("")
    with pytest.raises(ValueError, match="empty"):
        tare.ModelProfiler(tmp_path / "empty.onnx")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="neither a config.json"):
        tare.ModelProfiler(tmp_path / "folder")
    with pytest.raises(TypeError, match="not int"):
        tare.ModelProfiler(7)
    with pytest.raises(ValueError, match="device is"):
        tare.ModelProfiler(work, device="tpu")
    with pytest.raises(ValueError, match="precision is"):
        tare.ModelProfiler(work, precision="fp15")
    with pytest.raises(ValueError, match="quantize"):
        tare.ModelProfiler(work, precision="int8")
    profiler = tare.ModelProfiler(work)
    for name in ("num_runs", "warmup_runs"):
        with pytest.raises(ValueError, match=name):
            profiler.profile(**{name: -1})
        with pytest.raises(TypeError, match=name):
            profiler.profile(**{name: 1.5})
    with pytest.raises(RuntimeError, match="profile\\(\\) first"):
        profiler.export_json(tmp_path / "x.json")
    with pytest.raises(TypeError, match="no layers"):
        profiler.profile_layers()
    with pytest.raises(ValueError, match="no configurations"):
        profiler.benchmark([])
    with pytest.raises(ValueError, match="not colour"):
        profiler.benchmark([{"colour": 1}])
    with pytest.raises(RuntimeError, match="cannot be run on this input: .*unsupported"):
        profiler.profile([None], num_runs=1)


def test_a_configuration_that_cannot_be_is_refused_in_its_row():
    rows = tare.ModelProfiler(work).benchmark([{}, {"threads": 2}], num_runs=5, warmup_runs=1)
    assert [row["status"] for row in rows] == ["measured", "refused"] and "function" in rows[1]["reason"]
    assert "trade-off" in rows[0]["best"] and rows[1]["best"] == []


# ---- reports -------------------------------------------------------------------------------------------------------

def test_json_has_null_and_the_reason_and_is_a_baseline(profiled, tmp_path):
    text = profiled.export_json(tmp_path / "results.json")
    assert (tmp_path / "results.json").read_text() == text
    told = json.loads(text)
    assert told["model"]["flops"] is None and "counted" in told["missing"]["model.flops"]
    assert told["latency"]["p50"] == profiled.results["latency"]["p50"]
    figures = told["figures"]
    assert figures["tare_baseline"] == 1 and figures["kind"] == "model" and len(figures["machine"]) == 16
    row = {row["name"]: row for row in figures["figures"]}["model.latency"]
    assert row["unit"] == "ns" and row["better"] == "lower" and len(row["samples"]) == 80
    assert row["value"] == pytest.approx(1e6 * profiled.results["latency"]["p50"])


def test_csv_has_a_line_a_metric(profiled, tmp_path):
    profiled.export_csv(tmp_path / "metrics.csv")
    rows = list(csv.DictReader((tmp_path / "metrics.csv").open()))
    by_name = {(row["section"], row["metric"]): row for row in rows}
    assert float(by_name["latency", "p50"]["value"]) == profiled.results["latency"]["p50"]
    assert by_name["latency", "p99_low"]["value"] == "" and "too few" in by_name["latency", "p99_low"]["reason"]
    assert by_name["model", "flops"]["value"] == "" and by_name["model", "flops"]["reason"]


def test_a_page_escapes_and_leaves_out_what_is_not_wanted(tmp_path):
    def named():
        pass
    named.__name__ = "<script>alert(1)</script>"
    profiler = tare.ModelProfiler(named)
    profiler.profile(num_runs=10, warmup_runs=1)
    profiler.generate_html_report(tmp_path / "all.html")
    whole = (tmp_path / "all.html").read_text()
    assert "<script>" not in whole and "&lt;script&gt;" in whole and "<svg" in whole and "All figures" in whole
    assert "http" not in whole.replace("http-equiv", "")
    style = re.search("<style>(.*)</style>", whole, re.S).group(1)
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{allowed}'" in whole and " style=" not in whole
    assert whole.count('<path class="course"') == 1 and whole.count('<rect class="bin"') > 0
    assert re.search(r"d=\"M[^\"]*\"", whole).group().count("L") == 9  # ten runs
    profiler.generate_html_report(tmp_path / "less.html", include_graphs=False, include_details=False)
    less = (tmp_path / "less.html").read_text()
    assert "<svg" not in less and "All figures" not in less and "latency, p50" in less


def test_a_page_of_sections():
    from tare import _engine
    none = ([], [], [])
    made = _engine.page("<a>", "b & c", [
        ("table", "T \"q\"", "note", "Name|#n|%Share", ["x<", "1", "50.0 %", "y", "2", "n/a"], *none),
        ("distribution", "d", "", "", [], [2.0, 4.0], [1.0, 2.0, 3.0, 4.0], []),
        ("course", "m", "", "bytes", ["0", "", "9"], [0.0, 1.0, 9.0], [1024.0, 4096.0, 0.0], []),
        ("trade-off", "", "", "samples/s", ["one", "two"], [1e6, 2e6], [10.0, 20.0], [1, 0]),
        ("list", "do", "", "", ["this"], *none)]).decode()
    assert "<title>&lt;a&gt;</title>" in made and "b &amp; c" in made and "x&lt;" in made and "T \"" not in made
    assert made.count('class="share"') == 1 and made.count("<circle") == 2 and made.count("<figure") == 3
    path = re.search(r'class="course"[^>]* d="M([^"]*)"', made).group(1)
    assert path.count("L") == 4  # three values as steps
    for wrong in (("pie", "", "", "", [], *none), ("course", "", "", "ns", [], [1.0], [], []),
                  ("trade-off", "", "", "", [], [1.0], [1.0], [1.0])):
        with pytest.raises(ValueError):
            _engine.page("t", "", [wrong])


def test_a_report_that_cannot_be_written_leaves_nothing(profiled, tmp_path):
    with pytest.raises(OSError):
        profiled.export_json(tmp_path / "none" / "results.json")
    assert list(tmp_path.iterdir()) == []


# ---- limits --------------------------------------------------------------------------------------------------------

def test_thresholds(profiled):
    p50 = profiled.results["latency"]["p50"]
    holds, broken, missing = tare.check_thresholds(profiled.results, ["latency:100s", f"p50:{p50 / 2}ms", "flops:1G"])
    assert not holds.broken and holds.limit == 100_000 and str(holds).startswith("latency:100s: ")
    assert broken.broken and broken.percent == pytest.approx(100, abs=1) and "% over" in str(broken)
    assert missing.broken and isinstance(missing.value, tare.Missing) and "n/a" in str(missing)
    slow, = tare.check_thresholds(profiled.results, ["throughput:1000000000000000requests/s"])
    assert slow.broken and slow.unit == "requests/s"
    assert tare.parse_threshold("memory:2GB").limit == 2e9 and tare.parse_threshold("memory:2GiB").limit == 2 ** 31
    assert tare.parse_threshold("parameters:25.5M").limit == 25.5e6 and tare.parse_threshold("flops:3").limit == 3
    for text in ("latency", "latency:", "latency:fast", "colour:3", "latency:3GB", "memory:1ms", "latency:-3ms",
                 "p99:5", "latency:5%", "flops:1ms", "throughput:5/h"):
        with pytest.raises(ValueError, match="the threshold"):
            tare.parse_threshold(text)


def test_a_broken_threshold_alerts(profiled):
    with pytest.warns(tare.ModelAlertWarning, match="over the limit"):
        profiled.check_thresholds("latency:0ms")

    class Loud(tare.ModelProfiler):
        alerts = []

        def alert_threshold(self, check):
            self.alerts.append(check)
    loud = Loud(work)
    loud.profile(num_runs=5, warmup_runs=0)
    loud.check_thresholds("latency:0ms", "latency:1000s")
    assert [one.threshold for one in Loud.alerts] == ["latency:0ms"]


# ---- baselines -----------------------------------------------------------------------------------------------------

def changed(profiled, factor=1.0, name="model.latency", **more):
    """The figures of results with one of them scaled."""
    figures = json.loads(json.dumps(profiled.results.to_dict()["figures"]))
    for row in figures["figures"]:
        if row["name"].startswith(name):
            row["value"] *= factor
            row["samples"] = [factor * one for one in row.get("samples", [])]
    figures.update(more)
    return figures


def steady(profiled, factor=1.0, **more):
    """The same with samples that differ little, in milliseconds: a floor is no matter."""
    figures = changed(profiled, **more)
    for row in figures["figures"]:
        if row["name"].startswith("model.latency"):
            row["samples"] = [factor * (1e7 + 1e4 * (number % 9)) for number in range(40)]
            row["value"] = row["samples"][4]
    return figures


def test_nothing_is_found_where_nothing_changed(profiled):
    assert tare.detect_regressions(profiled.results, profiled.results) == []
    assert tare.detect_regressions(steady(profiled), steady(profiled, 1.04)) == []


def test_a_regression_is_found_with_its_significance(profiled, tmp_path):
    (tmp_path / "base.json").write_text(json.dumps(steady(profiled)))
    found, = tare.detect_regressions(tare.load_baseline(tmp_path / "base.json"), steady(profiled, 1.15))
    assert found.name == "model.latency" and found.change_percent == pytest.approx(15, abs=0.2)
    assert found.p_value < 0.01 and "at 95 %" in found.significance and "model.latency" in str([found])
    assert tare.detect_regressions(steady(profiled), steady(profiled, 1.15), threshold=0.2) == []
    assert tare.detect_regressions(steady(profiled), steady(profiled, 1.15), thresholds={"model.latency": 0.2}) == []
    assert tare.detect_regressions(steady(profiled), steady(profiled, 0.5)) == []  # faster is no regression


@pytest.mark.parametrize("runs", [1, 9])
@pytest.mark.parametrize("machine", ["here", "there"])
def test_the_decision_is_that_of_tare_check(bench, tmp_path, runs, machine):
    """On both sides of both gates, with few and with many samples, for what is better when it is lower or higher, exact
    figures and lower bounds: what check fails is what is detected, and the other way round."""
    def row(name, value, unit="ns", better="lower", n=40, **more):
        samples = [value * (1 + 1e-3 * (number % 9)) for number in range(n)]
        return {"name": name, "unit": unit, "better": better, "exact": False, "value": samples[n // 2] if n else value,
                "total": None, "n": max(n, 1), "per": "run" if runs > 1 else "call", "each": 1, "samples": samples,
                **more}

    def figures(factor, machine):
        rows = [row("model.latency", 1e7 * factor, n=runs if runs > 1 else 40),
                row("model.throughput", 1000 / factor, "samples/s", "higher", n=runs if runs > 1 else 20),
                row("model.latency.p99", 2e7 * factor, n=3),
                {**row("model.parameters", 1000 * factor, "", n=0), "exact": True},
                {**row("model.macs", 1000 * factor, "", n=0), "exact": True, "at_least": True}]
        return {"tare_baseline": 1, "kind": "runs" if runs > 1 else "model", "command": "m", "host": "a",
                "cpu_model": "X", "machine": machine, "when_ns": 1, "runs": runs, "notes": [], "figures": rows}
    import warnings
    outcomes = set()
    for factor in (0.8, 0.97, 1.0, 1.03, 1.08, 1.13, 1.3):
        base, head = figures(1.0, "here"), figures(factor, machine)
        for name, one in (("base.json", base), ("head.json", head)):
            (tmp_path / name).write_text(json.dumps(one))
        done = bench.call(bench.command, "check", "--json", tmp_path / "head.json", "-b", tmp_path / "base.json",
                          status=None)
        failed = {one["name"] for one in json.loads(done.out)["figures"] if one["outcome"] == "failed"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {one.name for one in tare.detect_regressions(base, head)}
        assert found == failed, (factor, json.loads(done.out)["figures"])
        outcomes.add(len(failed))
    assert len(outcomes) >= 3


@pytest.mark.parametrize("given", [{"throughput": 100.0, "latency": 10.0},
                                   {"throughput": 100.0, "latency": 10.0, "std": 0.0, "memory": 2.0 ** 30,
                                    "batch_size": 1},
                                   {"throughput": {"samples_per_second": 100.0}, "latency": {"p50": 10.0, "std": 0.0}}])
def test_a_plan_from_plain_numbers(given):
    plan = tare.plan_capacity(given, requests_per_second=140, utilization=0.7)
    assert (plan.replicas, plan.batch_size, plan.latency_ms) == (2, 1, 10.0)
    assert plan.waiting_ms == pytest.approx(0.7 / 0.3 / 2 * 10)  # Pollaczek and Khinchine, runs of one length
    assert isinstance(plan.memory_bytes, tare.Missing) != ("memory" in given) and "replicas" in str(plan)
    assert ("not known" in plan.note) != ("std" in str(given))


@pytest.mark.parametrize("given, words", [({}, "throughput"), ({"throughput": 5.0}, "latency"), ({"throughput": 0.0,
                                           "latency": 1.0}, "above 0"),
                                          ({"throughput": "fast", "latency": 1.0}, "throughput")])
def test_a_plan_needs_a_rate_and_a_time(given, words):
    with pytest.raises(ValueError, match=words):
        tare.plan_capacity(given, requests_per_second=1)
    with pytest.raises(TypeError, match="a dict of numbers"):
        tare.plan_capacity(3.0, requests_per_second=1)


def test_less_throughput_is_a_regression(profiled):
    base, head = steady(profiled), steady(profiled)
    for figures, factor in ((base, 1.0), (head, 0.8)):
        for row in figures["figures"]:
            if row["name"].startswith("model.throughput"):
                row["samples"] = [factor * (1000 + number) for number in range(10)]
                row["value"] = row["samples"][5]
    found, = tare.detect_regressions(base, head)
    assert found.name.startswith("model.throughput") and found.change_percent < 0


def test_noise_is_no_regression(profiled):
    head = steady(profiled)
    row = next(row for row in head["figures"] if row["name"] == "model.latency")
    row["samples"] = [1e7, 3e7] * 3
    row["value"] = 2e7
    base = steady(profiled)
    next(row for row in base["figures"] if row["name"] == "model.latency")["samples"] = [1e7, 2.9e7] * 3
    assert tare.detect_regressions(base, head) == []


def test_exact_figures_gate_exactly(profiled):
    base, head = steady(profiled), steady(profiled)
    for figures, value in ((base, 1000), (head, 1001)):
        figures["figures"].append({"name": "model.parameters", "unit": "", "better": "lower", "exact": True,
                                   "value": value, "total": None, "n": 1})
    found, = tare.detect_regressions(base, head)
    assert found.name == "model.parameters" and found.significance == "exact"
    assert tare.detect_regressions(head, base) == []


def test_another_machines_baseline_is_warned_of_and_gated_wider(profiled):
    other = steady(profiled, machine="0" * 16)
    with pytest.warns(UserWarning, match="another machine"):
        assert tare.detect_regressions(other, steady(profiled, 1.08)) == []
    with pytest.warns(UserWarning, match="another machine"):
        assert len(tare.detect_regressions(other, steady(profiled, 1.16))) == 1


def test_what_cannot_be_compared_gets_a_sentence(profiled, tmp_path):
    with pytest.raises(FileNotFoundError, match="no baseline"):
        tare.load_baseline(tmp_path / "none.json")
    for text, sentence in (("{", "byte 1"), ("[]", "must be an object"), ("{}", "no figures in it"),
                           ('{"tare_baseline": 9}', "version 9"),
                           ('{"tare_baseline": 1, "figures": [1]}', "byte 33: a figure is not an object"),
                           ('{"tare_baseline": 1, "figures": [{"name": "x", "value": "y"}]}',
                            "byte 56: expected a number")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ValueError, match=sentence):
            tare.load_baseline(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="bad.json: byte 0"):
        tare.load_baseline(tmp_path / "bad.json")
    empty = steady(profiled)
    empty["figures"] = []
    with pytest.raises(ValueError, match="nothing to compare"):
        tare.detect_regressions(empty, profiled.results)
    with pytest.raises(TypeError):
        tare.detect_regressions(1, profiled.results)
    with pytest.raises(ValueError, match="threshold"):
        tare.detect_regressions(profiled.results, profiled.results, threshold=-1)


def test_the_trend_over_runs(profiled, tmp_path):
    runs = [steady(profiled, 1 + 0.01 * at, when_ns=1000 - at) for at in reversed(range(12))]
    trend = tare.model_trend(runs)
    assert trend.percent_per_run < -0.5 and trend.high < 0 and "% a run" in str(trend)
    for at in range(16):
        (tmp_path / f"{at}.json").write_text(json.dumps(
            steady(profiled, (1 if at < 8 else 1.5) * (1 + 0.0001 * (at % 3)), when_ns=at)))
    jumped = tare.model_trend(tmp_path)
    assert [one["at"] for one in jumped.changes] == [8] and "at run 9" in str(jumped)
    assert "have no trend" in str(tare.model_trend([profiled.results]))
    with pytest.raises(ValueError, match="no run has"):
        tare.model_trend(runs, "model.colour")
    with pytest.raises(NotADirectoryError):
        tare.model_trend(tmp_path / "none")


def test_capacity(profiled):
    rate = profiled.results["throughput"]["samples_per_second"]
    rate = rate if rate == rate else profiled.results["throughput"]["requests_per_second"]
    plan = profiled.plan_capacity(9.9 * rate, utilization=0.5)
    assert plan.replicas == 20 and plan.utilization == pytest.approx(0.495) and plan.waiting_ms > 0
    assert plan.memory_bytes == 20 * profiled.results["memory"]["peak"] and "an estimate" in str(plan)
    with pytest.raises(ValueError, match="no measured configuration"):
        profiled.plan_capacity(1.0, latency_ms=1e-9)
    for bad in ({"requests_per_second": 0}, {"requests_per_second": 1, "utilization": 2}):
        with pytest.raises(ValueError):
            profiled.plan_capacity(**bad)


# ---- the command ---------------------------------------------------------------------------------------------------

def test_the_commands_usage(bench):
    import sys
    told = bench.call(sys.executable, "-m", "tare", "profile", "--help")
    assert "--model-path" in told.out and "example" in told.out
    done = bench.call(sys.executable, "-m", "tare", "profile", "--output-dir", "out", status=2)
    assert "--model-path" in done.err
    done = bench.call(sys.executable, "-m", "tare", "profile", "--model-path", "x", "--output-dir", "out",
                      "--threshold", "latency:fast", status=2)
    assert "latency:fast" in done.err and "usage" not in done.out
    done = bench.call(sys.executable, "-m", "tare", "profile", "--model-path", "x", "--output-dir", "out", status=3)
    assert done.err == ("tare profile: there is no model x: an ONNX file, a TorchScript or torch.export file, or a "
                        "Hugging Face folder (nothing is downloaded)\n")
    assert not (bench.folder / "out").exists()


def simulated_waiting(busy, batch, gamma, batches=60_000):
    """Mean wait of a full batch for one server whose runs have mean 1 and squared variation 1 / gamma (0: constant):
    Lindley's recursion, request by request."""
    import random
    chance = random.Random(5)
    waited = total = 0.0
    for _ in range(batches):
        total += waited
        run = 1.0 if gamma is None else chance.gammavariate(gamma, 1 / gamma)
        comes = sum(chance.expovariate(batch * busy) for _ in range(batch))
        waited = max(0.0, waited + run - comes)
    return total / batches


@pytest.mark.parametrize("busy", [0.3, 0.5, 0.7, 0.85])
@pytest.mark.parametrize("batch, gamma", [(1, None), (1, 1.0), (1, 25.0), (4, 4.0), (8, 25.0), (8, None)])
def test_the_waiting_of_a_plan_is_that_of_a_simulation(busy, batch, gamma):
    from tare.seeds.model.check import waiting_of
    told, seen = waiting_of(busy, batch, 0.0 if gamma is None else 1 / gamma), simulated_waiting(busy, batch, gamma)
    assert abs(told - seen) < 0.12 * seen + 0.08  # in runs


def test_a_plan_prints_all_that_it_counts(profiled):
    rate = profiled.results["throughput"]["samples_per_second"]
    rate = rate if rate == rate else profiled.results["throughput"]["requests_per_second"]
    plan = profiled.plan_capacity(3 * rate)
    assert plan.response_ms == pytest.approx(plan.filling_ms + plan.waiting_ms + plan.latency_ms)
    per_replica = plan.requests_per_second / plan.replicas
    assert plan.filling_ms == pytest.approx(1e3 * (plan.batch_size - 1) / 2 / per_replica)
    text = str(plan)
    for part in (plan.response_ms, plan.filling_ms, plan.waiting_ms, plan.latency_ms):
        assert tare._core.unit(part * 1e6, "ns") in text
    with pytest.raises(ValueError, match="no measured configuration"):
        profiled.plan_capacity(3 * rate, latency_ms=0.99 * plan.response_ms)
    assert profiled.plan_capacity(3 * rate, latency_ms=1.01 * plan.response_ms) == plan
