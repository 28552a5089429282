"""EpochPerformanceMonitor, and its switches in a trainer's YAML."""
import collections
import re
import time
import types
import warnings

import pytest

import tare
from tare import _core


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(_core, "gpu_memory", lambda device: "no NVIDIA driver")
    monkeypatch.setattr(_core, "gpu_used", lambda: False)


@pytest.fixture
def trace(monkeypatch):
    """What is told to the recorder."""
    calls = []
    for name in ("step_begin", "step_end", "epoch_begin", "epoch_end", "counter"):
        real = getattr(_core, name)
        monkeypatch.setattr(_core, name, lambda *given, _name=name, _real=real: (calls.append((_name, *given)),
                                                                                 _real(*given)))
    return calls


class Tensor:
    """A loss that counts how often it is read."""
    reads = 0

    def item(self):
        Tensor.reads += 1
        return 0.009458


def run(monitor, epochs=1, batches=4, seconds=(0.002,), loss=None):
    for _ in range(epochs):
        monitor.on_epoch_start()
        for index in range(batches):
            monitor.on_batch_start(index)
            time.sleep(seconds[index % len(seconds)])
            monitor.on_batch_end(index, loss)
        monitor.on_epoch_end()


def test_lines_are_those_of_the_guide(capsys):
    run(tare.EpochPerformanceMonitor(enabled=True, verbose_batches=2, device=0), loss=0.5)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"  Batch 0: 0\.\d{3}s, GPU n/a, CPU \d+\.\dMB, loss=0\.500000", lines[0])
    assert re.fullmatch(r"  Batch 1: 0\.\d{3}s, GPU n/a, CPU \d+\.\dMB, loss=0\.500000", lines[1])
    assert re.fullmatch(r"  Epoch end: \d\.\d{3}s total, GPU n/a, n/a reserved, peak n/a", lines[2])
    assert re.fullmatch(r"  Batch timing: avg=0\.\d{3}s, min=0\.\d{3}s, max=0\.\d{3}s", lines[3])
    assert len(lines) == 4


def test_a_tensor_is_read_for_verbose_batches_only(capsys):
    Tensor.reads = 0
    run(tare.EpochPerformanceMonitor(verbose_batches=2), batches=10, seconds=(0,), loss=Tensor())
    assert Tensor.reads == 2
    assert capsys.readouterr().out.count("loss=0.009458") == 2


def test_a_loss_that_is_no_number_does_not_stop_the_training(capsys):
    run(tare.EpochPerformanceMonitor(verbose_batches=1), loss="low")
    assert "loss=n/a" in capsys.readouterr().out


def test_statistics_have_the_guides_keys(capsys):
    monitor = tare.EpochPerformanceMonitor(verbose_batches=0)
    run(monitor, epochs=2, batches=3, seconds=(0.001, 0.004))
    stats = monitor.get_statistics()
    assert list(stats) == ["total_epoch_time", "avg_epoch_time", "total_batch_time", "avg_batch_time",
                           "min_batch_time", "max_batch_time", "num_batches", "num_epochs"]
    assert (stats["num_batches"], stats["num_epochs"]) == (6, 2)
    assert stats["total_epoch_time"] >= stats["total_batch_time"] >= 6 * 0.001
    assert stats["avg_epoch_time"] == pytest.approx(stats["total_epoch_time"] / 2)
    assert stats["avg_batch_time"] == pytest.approx(stats["total_batch_time"] / 6)
    assert 0.001 <= stats["min_batch_time"] < stats["max_batch_time"]
    assert stats["max_batch_time"] >= 0.004
    assert "Batch 0" not in capsys.readouterr().out


def test_what_was_not_measured_is_missing():
    stats = tare.EpochPerformanceMonitor().get_statistics()
    assert stats["avg_batch_time"].reason == "no batch has ended"
    assert stats["avg_epoch_time"].reason == "no epoch has ended"
    assert stats["num_batches"] == 0 and stats["total_batch_time"] == 0
    assert not stats["max_batch_time"] / stats["min_batch_time"] > 2.0


def test_disabled_does_nothing(capsys, trace):
    monitor = tare.EpochPerformanceMonitor(enabled=False)
    run(monitor, loss=Tensor())
    monitor.on_batch_end(3)  # not even this is wrong
    assert capsys.readouterr().out == "" and trace == []
    assert monitor.get_statistics()["avg_batch_time"].reason == "monitoring is disabled"
    assert monitor.bottlenecks() == []


def test_steps_and_epochs_go_into_the_trace(trace):
    run(tare.EpochPerformanceMonitor(verbose_batches=1), epochs=2, batches=2, seconds=(0,), loss=2.0)
    names = [call[:2] for call in trace]
    one = [("step_begin", 0), ("step_end",), ("counter", "loss"), ("step_begin", 1), ("step_end",), ("epoch_end",)]
    assert names == [("epoch_begin", 0), *one, ("epoch_begin", 1), *one]


def test_ends_without_a_begin_are_refused_and_the_monitor_goes_on(capsys):
    monitor = tare.EpochPerformanceMonitor()
    with pytest.raises(RuntimeError, match=r"on_batch_end\(3\) without its on_batch_start\(3\)"):
        monitor.on_batch_end(3)
    with pytest.raises(RuntimeError, match="on_epoch_end"):
        monitor.on_epoch_end()
    run(monitor)
    assert monitor.get_statistics()["num_batches"] == 4


def test_a_batch_that_is_left_is_not_counted(trace, capsys):
    monitor = tare.EpochPerformanceMonitor()
    monitor.on_epoch_start()
    for index in range(4):
        monitor.on_batch_start(index)
        if index % 2:
            continue
        monitor.on_batch_end(index)
    monitor.on_epoch_end()
    assert monitor.get_statistics()["num_batches"] == 2
    counts = collections.Counter(call[0] for call in trace)
    assert counts["step_begin"] == counts["step_end"] == 4 and counts["epoch_begin"] == counts["epoch_end"] == 1
    monitor.on_epoch_start()
    monitor.on_epoch_start()  # the first was left by an exception
    monitor.on_epoch_end()
    assert monitor.get_statistics()["num_epochs"] == 2
    counts = collections.Counter(call[0] for call in trace)
    assert counts["epoch_begin"] == counts["epoch_end"] == 3


@pytest.mark.parametrize("given, error", [
    ({"verbose_batches": -1}, ValueError), ({"verbose_batches": 2.5}, TypeError), ({"device": "tpu"}, ValueError)])
def test_bad_arguments(given, error):
    with pytest.raises(error):
        tare.EpochPerformanceMonitor(**given)


# ---- bottlenecks -------------------------------------------------------------------------------------------------

def found_of(batches, epoch_seconds):
    """What is found of batches and one epoch that took these seconds."""
    monitor = tare.EpochPerformanceMonitor()
    monitor._batches = types.SimpleNamespace(count=len(batches), total=sum(batches), first=batches[0],
                                             min=min(batches), max=max(batches), mean=sum(batches) / len(batches))
    monitor._epochs = types.SimpleNamespace(count=1, total=epoch_seconds, mean=epoch_seconds, open=False)
    return {one.kind: one for one in monitor.bottlenecks()}


def test_even_batches_are_no_bottleneck():
    assert found_of([1.0, 1.9, 1.2], 4.2) == {}


def test_high_variance_has_a_likely_cause():
    found = found_of([1.0, 4.0, 1.0, 4.0], 10.0)
    assert found["variance"].value == 4
    assert any("shapes" in advice for advice in found["variance"].advice)
    assert "first batch" not in found


def test_a_slow_first_batch():
    found = found_of([0.538, 0.185, 0.185], 0.91)
    assert "the first batch took 2.9 times the others" in found["first batch"].text


def test_time_between_batches():
    assert found_of([1.0, 1.0], 2.8) == {}
    found = found_of([1.0, 1.0], 4.0)
    assert found["loading"].value == 50 and "50.0 %" in str(found["loading"])
    assert any("num_workers" in advice for advice in found["loading"].advice)


# ---- YAML ---------------------------------------------------------------------------------------------------

YAML = """# conf/trainer/synthetic_with_memory.yaml
trainer_params:
  enable_memory_monitoring: true  # Enables both memory AND timing
  memory_monitor_batches: 7
  batch_size: 32
  num_workers: 4
"""


def test_switches_from_yaml(tmp_path):
    path = tmp_path / "trainer.yaml"
    path.write_text(YAML)
    monitor = tare.EpochPerformanceMonitor.from_config(path)
    assert monitor.enabled and monitor.verbose_batches == 7
    path.write_text(YAML.replace("true", "false"))
    assert not tare.EpochPerformanceMonitor.from_config(str(path)).enabled
    path.write_text("memory_monitor_batches: 3\nenable_memory_monitoring: yes\n")
    assert tare.EpochPerformanceMonitor.from_config(path).verbose_batches == 3
    path.write_text("")
    assert not tare.EpochPerformanceMonitor.from_config(path).enabled


@pytest.mark.parametrize("text, words", [
    ("enable_memory_monitorin: true", "did you mean 'enable_memory_monitoring'"),
    ("trainer_params:\n  memory_monitor_batch: 1", "did you mean 'memory_monitor_batches'"),
    ("enable_memory_monitoring: maybe", "enable_memory_monitoring must be true or false"),
    ("memory_monitor_batches: -1", "a whole number of 0 or more"),
    ("memory_monitor_batches: true", "a whole number of 0 or more"),
    ("trainer_params: 5", "trainer_params is a mapping"),
    ("trainer_params:\n\tbatch: 1", "trainer.yaml"),
    ("- 1\n- 2", "trainer.yaml"),
    ("a: [1\n", "trainer.yaml"),
    ("  a: 1\n b: 2", "trainer.yaml"),
])
def test_bad_yaml(tmp_path, text, words):
    path = tmp_path / "trainer.yaml"
    path.write_text(text)
    if words.startswith("did you mean"):
        with pytest.warns(UserWarning, match=re.escape(words)):
            assert not tare.EpochPerformanceMonitor.from_config(path).enabled
        return
    with pytest.raises(ValueError, match=re.escape(words)):
        tare.EpochPerformanceMonitor.from_config(path)


def test_from_a_mapping():
    monitor = tare.EpochPerformanceMonitor.from_config(
        {"trainer_params": {"enable_memory_monitoring": True, "epochs": 50}}, device=1)
    assert monitor.enabled and monitor.verbose_batches == 5 and monitor.device == 1
    with pytest.warns(UserWarning,
                      match="ignored, not a setting of the monitor: 'lr', 'memory_monitor_batchs'; did you "
                                         "mean 'memory_monitor_batches'"):
        monitor = tare.EpochPerformanceMonitor.from_config(
            {"lr": 1, "enable_memory_monitoring": True, "memory_monitor_batchs": 3})
    assert monitor.enabled and monitor.verbose_batches == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not tare.EpochPerformanceMonitor.from_config({"lr": 1}, strict=False).enabled
    with pytest.raises(FileNotFoundError):
        tare.EpochPerformanceMonitor.from_config("no such file.yaml")


def test_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARE_ENABLE_MEMORY_MONITORING", "1")
    monkeypatch.setenv("TARE_MEMORY_MONITOR_BATCHES", "9")
    monitor = tare.EpochPerformanceMonitor.from_config()
    assert monitor.enabled and monitor.verbose_batches == 9
