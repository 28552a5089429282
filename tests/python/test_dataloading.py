"""DataLoadingProfiler on real loaders. What a sleep takes is known from below: none is shorter than it was told."""
import math
import random
import warnings

import pytest

import tare
from torch_parts import DataLoader, Slow, Spin, labelled, torch

SEED_KEYS = {"total_batches", "avg_loading_time", "avg_preprocessing_time", "throughput", "variance"}


def profile(loader, count=50, **settings):
    return tare.DataLoadingProfiler(tare.ProfilingConfig(**settings)).profile_dataloader(loader, count)


def test_the_keys_and_the_counts():
    stats = profile(labelled(count=40, batch=8), 3)
    assert SEED_KEYS <= stats.keys()
    assert stats["total_batches"] == 3 and stats["requested_batches"] == 3
    assert stats["total_samples"] == 24 and stats["samples_per_batch"] == 8
    assert stats["bytes_per_batch"] == 8 * (16 * 4 + 8)
    assert stats["throughput"] == pytest.approx(1 / stats["avg_loading_time"])
    assert stats["samples_per_second"] == pytest.approx(8 * stats["throughput"])
    assert stats["min"] <= stats["p50"] <= stats["p95"] <= stats["max"]
    assert stats["std"] ** 2 == pytest.approx(stats["variance"])


def test_fewer_batches_than_asked_for_are_told():
    stats = profile(labelled(count=16, batch=8), 50)
    assert stats["total_batches"] == 2
    assert "the loader has 2 batches; 50 were requested" in stats["notes"]


def test_one_batch_has_no_deviation():
    stats = profile(labelled(count=8, batch=8), 5)
    assert isinstance(stats["std"], tare.Missing) and isinstance(stats["variance"], tare.Missing)
    assert stats["avg_loading_time"] == stats["first_batch_time"]


def test_loading_and_its_preprocessing_are_told_apart():
    spin = Spin(0.003)
    stats = profile(DataLoader(Slow(16, read_s=0.002, transform=spin), batch_size=4))
    assert stats["preprocessing_parts"] == ["collate", "transform"]
    assert stats["avg_preprocessing_time"] >= 4 * 0.003
    assert stats["avg_loading_time"] >= 4 * 0.005
    assert stats["avg_preprocessing_time"] < stats["avg_loading_time"]


def test_transforms_below_a_subset_are_seen():
    spin = Spin(0.002)
    subset = torch.utils.data.Subset(Slow(16, transform=spin), range(8))
    stats = profile(DataLoader(subset, batch_size=4))
    assert stats["avg_preprocessing_time"] >= 4 * 0.002


def test_workers_preprocessing_is_measured_where_it_happens():
    stats = profile(DataLoader(Slow(24, transform=Spin(0.002)), batch_size=4, num_workers=2))
    assert stats["avg_preprocessing_time"] >= 4 * 0.002
    assert any("an estimate" in note for note in stats["notes"])


def test_the_loader_is_left_as_it_was():
    spin = Spin(0)
    loader = DataLoader(Slow(12, transform=spin), batch_size=4, num_workers=1, persistent_workers=True)
    collate = loader.collate_fn
    profile(loader)
    assert loader.collate_fn is collate and loader.dataset.transform is spin and loader._iterator is None


def test_a_loader_that_raises_is_left_as_it_was():
    def broken(value):
        raise OSError("the disk is gone")
    loader = DataLoader(Slow(4, transform=broken), batch_size=2)
    with pytest.raises(OSError, match="the disk is gone"):
        profile(loader)
    assert loader.dataset.transform is broken and not hasattr(loader.collate_fn, "_sums")


def test_running_workers_cannot_be_inspected():
    loader = DataLoader(Slow(8), batch_size=4, num_workers=1, persistent_workers=True)
    list(loader)
    stats = profile(loader)
    assert "running before" in stats["avg_preprocessing_time"].reason
    assert loader._iterator is not None


def test_random_numbers_come_as_if_nothing_was_loaded():
    generator = torch.Generator().manual_seed(5)
    loader = labelled(shuffle=True, generator=generator)
    states = torch.get_rng_state(), generator.get_state(), random.getstate()
    profile(loader, 3)
    assert torch.equal(states[0], torch.get_rng_state()) and torch.equal(states[1], generator.get_state())
    assert states[2] == random.getstate()


def test_any_iterable_of_batches():
    stats = profile([[1, 2], [3, 4], [5, 6]])
    assert stats["total_batches"] == 3
    assert "DataLoader" in stats["avg_preprocessing_time"].reason
    assert isinstance(stats["samples_per_second"], tare.Missing) and stats["settings"] == {}


def test_preprocessing_switched_off():
    assert profile(labelled(), profile_preprocessing=False)["avg_preprocessing_time"].reason == \
        "profile_preprocessing is off"


@pytest.mark.parametrize("loader, count, error, words", [
    (7, 5, TypeError, "not int"), ("batches", 5, TypeError, "not str"), (None, 5, TypeError, "not NoneType"),
    ([], 5, ValueError, "no batches"), ([1], 0, ValueError, "1 or more"), ([1], 2.5, TypeError, "not float"),
    ([1], True, TypeError, "not bool"), ([1], -3, ValueError, "1 or more")])
def test_bad_input_gets_a_sentence(loader, count, error, words):
    with pytest.raises(error, match=words):
        profile(loader, count)


# ---- bottlenecks ---------------------------------------------------------------------------------------------------

def bottlenecks(**stats):
    return tare.DataLoadingProfiler().identify_bottlenecks(stats)


def test_slow_loading():
    found = bottlenecks(total_batches=50, avg_loading_time=0.023, avg_preprocessing_time=0.005, throughput=45.2)
    assert len(found) == 1 and "Slow data loading: 23.0 ms" in found[0] and "workers" in found[0]
    assert bottlenecks(avg_loading_time=0.002) == []


def test_loading_is_compared_with_the_step():
    assert bottlenecks(avg_loading_time=0.023, compute_time=1.0, wait_percent=2.0) == []
    found = bottlenecks(avg_loading_time=0.004, compute_time=0.002, wait_percent=66.0)
    assert len(found) == 1 and "66 % of a training step" in found[0]
    assert bottlenecks(avg_loading_time=0.004, wait_percent=15.0) == []  # the limit of the finding loader-bound
    assert len(bottlenecks(avg_loading_time=0.004, wait_percent=15.1)) == 1


def test_preprocessing_and_spread_and_starts():
    assert any("Preprocessing is 75 %" in one for one in bottlenecks(avg_loading_time=0.008,
                                                                    avg_preprocessing_time=0.006))
    assert any("Uneven loading" in one for one in bottlenecks(p50=0.01, p95=0.05))
    assert bottlenecks(p50=0.0001, p95=0.0005) == []  # the slowest takes less than 1 ms
    assert any("Uneven loading" in one for one in bottlenecks(total_batches=50, min=0.008, p50=0.01, p95=0.013,
                                                              max=0.02))
    assert bottlenecks(total_batches=4, min=0.008, p50=0.01, p95=0.05, max=0.05) == []  # too few
    assert bottlenecks(total_batches=50, min=0.008, p50=0.01, p95=0.012, max=0.02) == []
    settings = {"num_workers": 2, "persistent_workers": False}
    found = bottlenecks(startup_time=1.5, first_batch_time=0.5, avg_loading_time=0.001, settings=settings)
    assert len(found) == 1 and "2.00 s until the first batch" in found[0]


def test_nothing_is_said_of_what_is_missing():
    gone = tare.Missing("not measured")
    assert bottlenecks() == [] and bottlenecks(avg_loading_time=gone, p50=gone, p95=gone, wait_percent=gone) == []
    assert bottlenecks(avg_loading_time="fast", p50=None) == []
    with pytest.raises(TypeError, match="profile_dataloader"):
        tare.DataLoadingProfiler().identify_bottlenecks([1])


# ---- keywords ------------------------------------------------------------------------------------------------------

def test_keywords_of_a_slow_loader(monkeypatch):
    from tare.seeds import dataloading
    monkeypatch.setattr(dataloading, "cpus", lambda: 8)
    monkeypatch.setattr(dataloading, "cuda_there", lambda: False)
    profiler, loader = tare.DataLoadingProfiler(), labelled()
    keywords = profiler.optimize_dataloader(loader, {"avg_loading_time": 0.05})
    assert keywords == {"num_workers": 8, "persistent_workers": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more workers than this machine has CPUs
        DataLoader(loader.dataset, batch_size=8, **keywords)
    # A step of 30 ms hides 50 ms of loading behind two workers, and one to spare.
    stats = {"avg_loading_time": 0.05, "compute_time": 0.03, "wait_percent": 60.0}
    assert profiler.optimize_dataloader(loader, stats)["num_workers"] == 3
    assert profiler.optimize_dataloader(loader, {"avg_loading_time": 0.0001}) == {}
    monkeypatch.setattr(dataloading, "cuda_there", lambda: True)
    assert profiler.optimize_dataloader(loader, {"avg_loading_time": 0.0001}) == {"pin_memory": True}


def test_keywords_that_help_are_measured_to_help():
    loader = DataLoader(Slow(24, read_s=0.02), batch_size=4)
    words = {"num_workers": 2, "persistent_workers": True}
    told = tare.DataLoadingProfiler().measure_keywords(loader, words, 6)
    assert told["original"] <= 1 / (4 * 0.02) and told["optimized"] > 0
    assert told["speedup"] == pytest.approx(told["optimized"] / told["original"])
    assert told["status"].startswith("rejected: measured not faster") or told["speedup"] > 1.05
    assert loader.num_workers == 0 and loader._iterator is None


def test_keywords_that_cannot_work_are_rejected():
    class Fragile(Slow):
        def __getitem__(self, index):
            if torch.utils.data.get_worker_info() is not None:
                raise RuntimeError("not in a worker")
            return super().__getitem__(index)
    told = tare.DataLoadingProfiler().measure_keywords(DataLoader(Fragile(8), batch_size=4), {"num_workers": 1}, 2)
    assert told["status"].startswith("rejected") and math.isnan(told["speedup"])

    class Special(DataLoader):
        pass
    told = tare.DataLoadingProfiler().measure_keywords(Special(Slow(8)), {"num_workers": 1}, 2)
    assert told["status"].startswith("not measured") and "Special" in told["speedup"].reason


def test_a_rebuilt_loader_gives_the_same_batches():
    from tare.seeds.dataloading import rebuilt
    for loader in (labelled(drop_last=True, count=44), labelled(batch=None),
                   DataLoader(Slow(8), batch_sampler=[[0, 3], [5, 1]])):
        assert [str(one) for one in rebuilt(loader, {"num_workers": 1})] == [str(one) for one in loader]


def test_cpus_of_this_process(bench):
    done = bench.python("""
        import os
        from tare.seeds import dataloading
        all_of_them = os.sched_getaffinity(0)
        print(1 <= dataloading.cpus() <= len(all_of_them))
        os.sched_setaffinity(0, {min(all_of_them)})
        print(dataloading.cpus())
    """)
    assert done.out.split() == ["True", "1"]
