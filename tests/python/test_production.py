"""Regressions against a baseline, requests in production, and what stands out."""
import json
import threading
import types
import warnings
from datetime import datetime, timedelta

import pytest

import tare
from tare import _engine


@pytest.fixture
def baseline(tmp_path):
    def write(content):
        path = tmp_path / "baseline.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path
    return write


# ---- regressions ---------------------------------------------------------------------------------------------------

class Detector(tare.PerformanceRegressionDetector):
    def __init__(self, path):
        self.alerts = []
        super().__init__(path)

    def alert_regression(self, operation_name, baseline_time, current_time):
        self.alerts.append((operation_name, baseline_time, current_time))


def test_a_regression_is_told(baseline):
    detector = Detector(baseline({"training": {"wall_time_s": 1e-9}, "other": {"wall_time_s": 1e9}}))
    with detector.check_regression("training") as check:
        assert isinstance(check.ratio, tare.Missing)
    assert check.regressed and check.ratio > 1.2 and check.observations == 1
    assert check.significance == "no significance: a single observation" and check.significant is None
    assert detector.alerts == [("training", 1e-9, check.current_s)]
    with detector.check_regression("other", threshold=0) as check:
        pass
    assert not check.regressed and 0 < check.ratio < 1 and len(detector.alerts) == 1
    assert "no significance" in str(check)


def test_nothing_is_checked_when_the_block_raises(baseline):
    detector = Detector(baseline({"training": {"wall_time_s": 1e-9}}))
    with pytest.raises(ZeroDivisionError):
        with detector.check_regression("training") as check:
            1 / 0
    assert detector.alerts == [] and not check.regressed and check.observations == 0


def test_many_observations_have_a_significance(baseline):
    detector = Detector(baseline({"slow": {"wall_time_s": 1e-9}, "fast": {"wall_time_s": 1e9}}))
    for _ in range(8):
        with detector.check_regression("slow") as slow, detector.check_regression("fast") as fast:
            pass
    assert slow.significant is True and "above the limit" in slow.significance
    assert fast.significant is False and "not above" in fast.significance


def test_the_rule_of_tare_check_where_the_baseline_has_its_times(baseline):
    times = [1e-9 * (1 + i / 1000) for i in range(20)]
    detector = Detector(baseline({"slow": {"wall_time_s": 1e-9, "times_s": times},
                                  "fast": {"wall_time_s": 1e9, "times_s": [x * 1e18 for x in times]}}))
    seen = []
    for _ in range(6):
        with detector.check_regression("slow") as slow, detector.check_regression("fast") as fast:
            pass
        seen.append(slow.significant)
    assert seen[0] is None and slow.significant is True and fast.significant is False
    assert slow.significance.startswith("6 observations against 20 of the baseline: the median changed by +")
    assert "significant (p = " in slow.significance


def test_a_baseline_of_the_command(baseline):
    figures = [{"name": "span:inference", "unit": "ns", "value": 2e9, "samples": [1e9, 2e9, 3e9]},
               {"name": "run.elapsed", "unit": "ns", "value": 5e9},
               {"name": "run.peak_rss", "unit": "bytes", "value": 7},
               {"name": "span:absent", "unit": "ns", "value": None}]
    detector = Detector(baseline({"tare_baseline": 1, "figures": figures}))
    assert detector.baseline == {"inference": {"wall_time_s": 2.0, "observations": 3, "times_s": [1.0, 2.0, 3.0]},
                                 "run.elapsed": {"wall_time_s": 5.0, "observations": 1, "times_s": []}}
    with detector.check_regression("inference") as check:
        pass
    assert not check.regressed


def test_the_decision():
    base, slower = [100 + i / 10 for i in range(10)], [120 + i / 10 for i in range(10)]
    verdict, why, change, p = _engine.decide(base, slower)
    assert (verdict, why) == ("worse", "significant") and 0.19 < change < 0.21 and p < 0.001
    assert _engine.decide(base, slower, better="higher")[0] == "better"
    assert _engine.decide(base, slower, better="neither")[0] == "different"
    assert _engine.decide(base, slower, gate=0.5)[:2] == ("same", "below the minimum change")
    assert _engine.decide(base, slower, floor=50)[:2] == ("same", "too small to matter")
    assert _engine.decide(100, 120.0)[0] == "inconclusive"
    assert _engine.decide(100, 101, gate=0, exact=True)[0] == "worse"
    assert _engine.decide([], [1.0])[0] == "inconclusive"
    for words, error in (((base, "x"), TypeError), ((base,), TypeError), ((base, None), TypeError),
                         ((1, 10 ** 400), OverflowError), ((base, slower, "more"), ValueError),
                         ((base, slower, "lower", -1), ValueError),
                         ((base, slower, "lower", float("nan")), ValueError)):
        with pytest.raises(error):
            _engine.decide(*words)


def test_the_alert_warns_unless_overridden(baseline):
    detector = tare.PerformanceRegressionDetector(baseline({"x": {"wall_time_s": 1e-9}}))
    with pytest.warns(tare.PerformanceRegressionWarning, match="times its baseline"):
        with detector.check_regression("x"):
            pass
    zero = tare.PerformanceRegressionDetector(baseline({"x": {"wall_time_s": 0}}))
    with pytest.warns(tare.PerformanceRegressionWarning):
        with zero.check_regression("x") as check:
            pass
    assert isinstance(check.ratio, tare.Missing)


def test_load_baseline_may_be_overridden():
    class Mine(tare.PerformanceRegressionDetector):
        def load_baseline(self, path):
            return {path: {"wall_time_s": 1e9}}

    with Mine("from a database").check_regression("from a database") as check:
        pass
    assert not check.regressed


@pytest.mark.parametrize("content, words", [
    ("", "is empty"), (" \n", "is empty"), ("{", "is not JSON"), ("[" * 100000, "is not JSON"), ("[1]", "object"),
    ('{"version": 2, "x": {"wall_time_s": 1}}', "another version \\(2\\)"), ('{"x": 3}', "'x' has no"),
    ('{"x": {"wall_time_s": "1"}}', "'x' has no"), ('{"x": {"wall_time_s": -1}}', "'x' has no"),
    ('{"x": {"wall_time_s": 1, "times_s": 3}}', "not a list of seconds"),
    ('{"x": {"wall_time_s": 1, "times_s": [1, "2"]}}', "not a list of seconds"),
    ('{"tare_baseline": 2, "figures": []}', "baseline.json: a baseline of version 2"),
    ('{"tare_baseline": 1}', "no figures in it"),
    ('{"x": {"wall_time_s": NaN}}', "'x' has no"), ('{"x": {"wall_time_s": true}}', "'x' has no"),
])
def test_bad_baselines(baseline, content, words):
    with pytest.raises(ValueError, match=words):
        tare.PerformanceRegressionDetector(baseline(content))


def test_a_baseline_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no baseline"):
        tare.PerformanceRegressionDetector(tmp_path / "none.json")
    path = tmp_path / "binary.json"
    path.write_bytes(b"{\xff")
    with pytest.raises(ValueError, match="not text"):
        tare.PerformanceRegressionDetector(path)


def test_unknown_operations_and_thresholds(baseline):
    detector = Detector(baseline({"model_training": {"wall_time_s": 1}}))
    with pytest.raises(KeyError, match="did you mean 'model_training'"):
        with detector.check_regression("model_trainin"):
            pytest.fail("the block must not run")
    for threshold, error in ((-0.1, ValueError), ("0.2", TypeError), (float("nan"), ValueError)):
        with pytest.raises(error):
            with detector.check_regression("model_training", threshold):
                pytest.fail("the block must not run")


def test_a_baseline_is_written_and_read_again(tmp_path):
    path = tmp_path / "baseline.json"
    tare.save_baseline(path, {"x": [3.0, 1.0, 2.0]})
    detector = Detector(path)
    assert detector.baseline == {"x": {"wall_time_s": 2.0, "observations": 3, "times_s": [3.0, 1.0, 2.0]}}
    with detector.check_regression("x"):
        pass
    detector.save_baseline(path)
    assert Detector(path).baseline["x"]["observations"] == 1
    for wrong in ({}, {"x": []}, {"version": [1.0]}):
        with pytest.raises(ValueError):
            tare.save_baseline(path, wrong)


# ---- production ----------------------------------------------------------------------------------------------------

class Production(tare.ProductionProfiler):
    def __init__(self, **options):
        super().__init__(**options)
        self.alerts = []

    def alert_sla_violation(self, log_entry):
        self.alerts.append(log_entry["request_id"])


def test_requests_are_logged():
    production = Production()
    for request_id, latency in ((1, 0.5), (2, 2.0), (3, 2.5)):
        with production.profile_request(request_id):
            pass
        production.log_metrics(request_id, latency)
    assert production.alerts == [3]
    entry = production.metrics_log[0]
    assert entry["request_id"] == 1 and entry["user_facing_latency"] == 0.5
    assert entry["internal_latency"] > 0 and entry["memory_mb"] > 0 and "cpu_percent" in entry
    report = production.generate_hourly_report()
    assert report == {"requests_processed": 3, "average_latency": pytest.approx(5 / 3),
                      "p95_latency": pytest.approx(2.45), "sla_violations": 1}


def test_the_request_is_found_after_other_blocks():
    production = Production()
    with production.profile_request("a"):
        pass
    with production.profile_request("b"):
        with production.profiler.profile("inner"):
            pass
    entry = production.log_metrics("a", 0.1)
    assert entry["internal_latency"] == production.profiler.get_metrics("request_a").timing.wall_time_s
    entry = production.log_metrics("never seen", 0.1)
    assert entry["internal_latency"] is None and "never seen" in entry["memory_mb_reason"]
    for one in production.metrics_log:
        assert json.loads(json.dumps(one, allow_nan=False)) == one


def test_only_the_last_hour_counts():
    production = Production()
    report = production.generate_hourly_report()
    assert report["requests_processed"] == 0 and report["sla_violations"] == 0
    assert report["p95_latency"] is None and report["p95_latency_reason"] == "no request in the last hour"
    json.dumps(report, allow_nan=False)
    for age, latency in ((59, 1.0), (61, 100.0)):
        production.log_metrics(age, latency)
        production.metrics_log[-1]["timestamp"] = (datetime.now() - timedelta(minutes=age)).isoformat()
    assert production.generate_hourly_report()["average_latency"] == 1


def test_the_log_is_bounded_and_the_sla_is_a_choice():
    production = Production(sla_s=0.1, max_entries=10)
    for i in range(25):
        production.log_metrics(i, 0.2 if i == 20 else 0.1)
    assert [entry["request_id"] for entry in production.metrics_log] == list(range(15, 25))
    assert production.alerts == [20]
    for options in ({"sla_s": 0}, {"sla_s": "2"}, {"max_entries": 0}, {"max_entries": 1.5}):
        with pytest.raises(ValueError):
            Production(**options)
    for latency, error in ((-1, ValueError), (float("nan"), ValueError), ("1", TypeError), (None, TypeError)):
        with pytest.raises(error):
            production.log_metrics(1, latency)
    assert len(production.metrics_log) == 10


def test_the_violation_warns_unless_overridden():
    production = tare.ProductionProfiler()
    with pytest.warns(tare.SlaViolationWarning, match="request 7 took 3 s, the SLA is 2 s"):
        production.log_metrics(7, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        production.log_metrics(8, 2.0)


def test_many_threads_serve():
    production = Production()

    def serve(first):
        for i in range(first, first + 100):
            with production.profile_request(i):
                pass
            production.log_metrics(i, 0.1)

    threads = [threading.Thread(target=serve, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert production.generate_hourly_report()["requests_processed"] == 400
    assert all(entry["internal_latency"] > 0 for entry in production.metrics_log)


# ---- what stands out -----------------------------------------------------------------------------------------------

def results(ram=100.0, cpu=50.0, gpu=80.0, waiting=1.0):
    return types.SimpleNamespace(memory=types.SimpleNamespace(peak_ram_mb=ram),
                                 system=types.SimpleNamespace(cpu_percent=cpu, disk_io_wait_percent=waiting),
                                 compute=types.SimpleNamespace(gpu_utilization_percent=gpu))


@pytest.mark.parametrize("values, word", [
    ({"ram": 16001.0}, "memory"), ({"cpu": 95.5}, "CPU"), ({"gpu": 69.0}, "GPU"), ({"waiting": 21.0}, "I/O")])
def test_each_limit(values, word):
    issues = tare.diagnose_performance_issues(results(**values))
    assert len(issues) == 1 and word in issues[0]


def test_at_the_limits_and_without_values_there_is_no_issue():
    assert tare.diagnose_performance_issues(results(16000.0, 95.0, 70.0, 20.0)) == []
    missing = tare.Missing("no")
    assert tare.diagnose_performance_issues(results(missing, missing, missing, missing)) == []
    assert tare.diagnose_performance_issues(object()) == []
    assert len(tare.diagnose_performance_issues(results(50.0), ram_mb=10)) == 1


def test_issues_of_a_real_block():
    profiler = tare.PerformanceProfiler()
    with profiler.profile("x"):
        pass
    assert tare.diagnose_performance_issues(profiler.get_metrics(), ram_mb=1)[0].startswith("High memory")
