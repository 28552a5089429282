"""Recorder, Result, Aggregate and Missing: the blocks measured in C."""
import asyncio
import contextvars
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import threading
import time

import pytest

import tare
from memory_of_blocks import MB, SANITIZED, run, touch
from tare import _core
from waiting import until

# ---- one block -----------------------------------------------------------------------------------------------------

def test_a_block_and_its_child():
    recorder = tare.Recorder()
    before = time.time()
    with recorder.block("outer", samples=32):
        with recorder.block("inner"):
            sum(range(10000))
    outer = recorder.last()
    inner, kept = recorder.results()
    assert kept is outer and [inner.name, outer.name] == ["inner", "outer"]
    assert (inner.parent, inner.depth, outer.parent, outer.depth) == ("outer", 1, None, 0)
    assert 0 < inner.wall_s < outer.wall_s
    assert inner.self_s == inner.wall_s
    assert outer.self_s + inner.wall_s + outer.own_s == pytest.approx(outer.wall_s, abs=2e-9)
    assert before <= outer.started <= inner.started <= time.time()
    assert outer.thread == threading.get_ident() and outer.task is None
    assert not outer.failed and outer.samples == 32
    assert outer.throughput == pytest.approx(32 / outer.wall_s)
    assert isinstance(inner.throughput, tare.Missing) and "samples" in inner.throughput.reason


def test_cpu_time_is_the_threads():
    recorder = tare.Recorder(memory=False)
    stop = threading.Event()
    other = threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)])
    other.start()
    with recorder.block("waits"):
        while time.process_time() < 0.001:
            pass
        time.sleep(0.1)
    stop.set()
    other.join()
    result = recorder.last()
    assert 0 <= result.cpu_s <= result.process_cpu_s
    assert result.cpu_s < result.wall_s


def test_cpu_time_of_short_blocks_is_possible():
    recorder, cpus = tare.Recorder(), os.cpu_count()
    stop = threading.Event()
    others = [threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(stop.is_set, True)]) for _ in range(2)]
    for other in others:
        other.start()
    for number in range(2000):
        with recorder.block("short"):
            sum(range(number % 50))
    stop.set()
    for other in others:
        other.join()
    for result in recorder.results():
        assert 0 <= result.cpu_s <= result.wall_s
        assert result.cpu_s <= result.process_cpu_s <= cpus * result.wall_s + 1e-9
        if result.wall_s < 0.05:
            assert isinstance(result.process_cpu_percent, tare.Missing)
            assert "50 ms" in result.process_cpu_percent.reason
        else:
            assert result.process_cpu_percent <= 100 * cpus
    sums = recorder.aggregate("short")
    assert sums.cpu_s <= sums.total_s
    assert isinstance(sums.process_cpu_percent, tare.Missing) or sums.process_cpu_percent <= 100 * cpus


def test_what_is_excluded_is_in_no_time():
    recorder, outside = tare.Recorder(), tare.Recorder()
    with outside.block("around"), recorder.block("outer"):
        with recorder.block("inner"):
            begun, cpu = time.perf_counter_ns(), time.thread_time_ns()
            while time.perf_counter_ns() - begun < 20_000_000:
                pass
            told = time.perf_counter_ns() - begun
            _core.exclude(told, time.thread_time_ns() - cpu)
            sum(range(1000))
    inner, outer = recorder.results()
    for result in (inner, outer, outside.last()):
        assert 0.02 <= result.excluded_s <= told / 1e9 + result.wall_s
        assert result.cpu_s < 0.01 and result.self_s <= result.wall_s
    assert outer.self_s + inner.wall_s + outer.own_s == pytest.approx(outer.wall_s, abs=2e-9)
    assert recorder.aggregate("outer").excluded_s == outer.excluded_s
    _core.exclude(-5, -5)
    with recorder.block("after"):
        _core.exclude(10 ** 15, 0)  # no block has more than it lasted
    assert 0 <= recorder.last().wall_s < 1


def test_an_exception_passes_and_marks_the_block():
    recorder = tare.Recorder()
    with pytest.raises(ZeroDivisionError):
        with recorder.block("fails"):
            1 / 0
    assert recorder.last().failed
    with recorder.block("fails"):
        pass
    sums = recorder.aggregate("fails")
    assert (sums.count, sums.failed) == (2, 1)


def test_reused_and_reentered():
    recorder = tare.Recorder()
    block = recorder.block("again")
    with block, block:
        with block:
            pass
    assert [result.depth for result in recorder.results()] == [2, 1, 0]
    assert block.result is recorder.last()
    with pytest.raises(RuntimeError, match="without having been entered"):
        block.__exit__(None, None, None)
    with block:
        pass
    assert recorder.aggregate("again").count == 4


def test_samples_may_be_told_inside_and_counted_by_a_loader():
    recorder = tare.Recorder()
    with recorder.block("told") as block:
        block.samples = 7
    assert recorder.last().samples == 7
    with recorder.block("outer"), recorder.block("counted"):
        tare.count_samples(3)
        tare.count_samples(4)
    assert [result.samples for result in recorder.results()[1:]] == [7, 7]
    with recorder.block("given", samples=1):
        tare.count_samples(100)
    assert recorder.last().samples == 1
    for wrong, error in ((-1, ValueError), (math.nan, ValueError), (math.inf, ValueError), ("3", TypeError)):
        with pytest.raises(error):
            recorder.block("wrong", samples=wrong)


def test_as_a_decorator():
    recorder = tare.Recorder()

    @recorder.block("twice")
    def double(x):
        return 2 * x

    assert [double(x) for x in range(3)] == [0, 2, 4]
    assert recorder.aggregate("twice").count == 3


def test_a_short_block_has_no_more_cpu_time_of_the_process_than_its_thread_used():
    """The clock of the process takes longer to read than such a block takes."""
    recorder = tare.Recorder(keep=4000)
    for _ in range(4000):
        with recorder.block("short"):
            pass
    short = [result for result in recorder.results() if result.wall_s < 20e-6]
    assert len(short) > 1000
    assert all(result.process_cpu_s == result.cpu_s <= result.wall_s for result in short)


# ---- threads, tasks, generators, forks -----------------------------------------------------------------------------

def test_threads_have_lanes_of_their_own():
    recorder = tare.Recorder(memory=False)
    last = {}

    def work(number):
        for i in range(200):
            with recorder.block(f"outer{number}"), recorder.block("inner"):
                pass
        last[number] = recorder.last().name

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert last == {number: f"outer{number}" for number in range(8)}
    assert recorder.last() is None
    assert recorder.aggregate("inner").count == 1600
    for result in recorder.results("inner"):
        assert result.depth == 1
    assert {result.depth for number in range(8) for result in recorder.results(f"outer{number}")} == {0}


def test_tasks_have_lanes_of_their_own():
    recorder = tare.Recorder(memory=False)

    async def work(name):
        with recorder.block(name):
            await asyncio.sleep(0.002)
            with recorder.block("inner"):
                await asyncio.sleep(0.002)
        return recorder.last().name, recorder.last().task

    async def main():
        with recorder.block("main"):
            tasks = [asyncio.ensure_future(work(f"work{i}")) for i in range(5)]
            return [await task for task in tasks], [task.get_name() for task in tasks]

    results, names = asyncio.run(main())
    assert results == [(f"work{i}", name) for i, name in enumerate(names)]
    assert {result.parent for result in recorder.results("inner")} == {f"work{i}" for i in range(5)}
    assert {recorder.results(f"work{i}")[0].depth for i in range(5)} == {0}


def test_generators_leave_blocks_in_any_order():
    recorder = tare.Recorder(memory=False)

    def steps():
        with recorder.block("generator"):
            yield 1
            yield 2

    first = steps()
    next(first)
    with recorder.block("consumer"):
        second = steps()
        next(second)
        list(first)
    list(second)
    assert [result.name for result in recorder.results()] == ["generator", "consumer", "generator"]
    whole = sum(recorder.aggregate(name).self_s for name in recorder.names())
    results = recorder.results()
    span = max(result.started + result.wall_s for result in results) - min(result.started for result in results)
    assert whole <= span + 1e-3


def test_a_block_left_on_another_thread():
    recorder = tare.Recorder()
    block = recorder.block("moved")
    thread = threading.Thread(target=block.__enter__)
    thread.start()
    thread.join()
    block.__exit__(None, None, None)
    result = block.result
    assert result.wall_s > 0 and result.thread != threading.get_ident()
    assert isinstance(result.cpu_s, tare.Missing) and "another thread" in result.cpu_s.reason


def test_another_context_is_not_another_thread():
    recorder = tare.Recorder(memory=False)
    with recorder.block("outer"):
        contextvars.copy_context().run(lambda: recorder.block("inner").__enter__().__exit__(None, None, None))
    assert recorder.results("inner")[0].parent == "outer"


def test_a_forked_child_reads_its_own_memory():
    recorder = tare.Recorder()
    with recorder.block("before"):
        pass
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            data = touch(64 * MB)
            with recorder.block("child"):
                pass
            truth = int(open(f"/proc/{os.getpid()}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            os.write(write, json.dumps([recorder.last().rss_before, truth, len(data)]).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    seen, truth, size = json.loads(os.read(read, 1000))
    assert abs(seen - truth) < 16 * MB and seen > size


def test_blocks_join_the_trace(tmp_path, tare_command):
    trace = tmp_path / "run.tare"
    run(f"""
import tare
recorder = tare.Recorder()
tare.start({str(trace)!r}, helper={tare_command!r})
for i in range(4500):  # more names than have sums of their own
    with recorder.block(f"request_{{i}}"):
        pass
for _ in range(3):
    with recorder.block("in the trace", samples=5):
        pass
tare.stop()
""")
    done = subprocess.run([tare_command, "report", "--json", str(trace)], stdout=subprocess.PIPE, check=True)
    spans = {span["name"]: span for span in json.loads(done.stdout)["spans"]}
    assert spans["in the trace"]["calls"] == 3
    assert spans["request_4499"]["calls"] == 1


# ---- sums ----------------------------------------------------------------------------------------------------------

def test_aggregates_agree_with_the_results():
    recorder = tare.Recorder(memory=False)
    for i in range(500):
        with recorder.block("x", samples=2):
            sum(range(i))
    times = sorted(result.wall_s for result in recorder.results())
    sums = recorder.aggregate("x")
    assert sums.count == 500 and sums.samples == 1000
    assert sums.total_s == pytest.approx(sum(times))
    assert sums.mean_s == pytest.approx(statistics.fmean(times))
    assert (sums.min_s, sums.max_s) == (times[0], times[-1])
    for value, q in ((sums.p50_s, 0.50), (sums.p95_s, 0.95), (sums.p99_s, 0.99)):
        assert value == pytest.approx(times[math.ceil(q * 500) - 1], rel=0.01)
    assert sums.throughput == pytest.approx(1000 / sums.total_s)


def test_aggregate_only_blocks_are_not_kept():
    recorder = tare.Recorder()
    for _ in range(10):
        with recorder.block("batch", aggregate=True):
            pass
    assert recorder.results() == []
    assert recorder.last().aggregate and recorder.last().name == "batch"
    sums = recorder.aggregate("batch")
    assert (sums.count, sums.unkept) == (10, 10)


def test_the_newest_are_kept_oldest_first():
    recorder = tare.Recorder(memory=False, cpu=False, keep=100)
    for i in range(250):
        with recorder.block(f"block{i}"):
            pass
        assert recorder.results()[-1].name == f"block{i}"
    assert [result.name for result in recorder.results()] == [f"block{i}" for i in range(150, 250)]
    none = tare.Recorder(keep=0)
    with none.block("x"):
        pass
    assert none.results() == [] and none.aggregate("x").count == 1


def test_names_are_bounded():
    recorder = tare.Recorder(memory=False, cpu=False, keep=10)
    for i in range(6000):
        with recorder.block(f"request_{i}"):
            pass
    names = recorder.names()
    assert len(names) == 4097 and names[-1] == "(other names)"
    assert recorder.aggregate("(other names)").count == 6000 - 4096
    assert recorder.aggregate("request_5999").count == 1  # still kept
    with pytest.raises(KeyError):
        recorder.aggregate("request_5000")


def test_clear_forgets_and_open_blocks_go_on():
    recorder = tare.Recorder()
    with recorder.block("old"):
        pass
    with recorder.block("open"):
        recorder.clear()
        assert recorder.names() == [] and recorder.results() == [] and recorder.last() is None
    assert recorder.names() == ["open"] and recorder.aggregate("open").count == 1


def test_disabled_measures_nothing():
    recorder = tare.Recorder(enabled=False)
    with recorder.block("x") as block:
        pass
    assert recorder.block("y") is block
    assert recorder.names() == [] and recorder.last() is None and not recorder.enabled


def test_own_cost_is_told():
    recorder = tare.Recorder()
    assert recorder.own_s == 0
    with recorder.block("x"):
        pass
    assert recorder.own_s > 0


@pytest.mark.parametrize("call, error", [
    (lambda r: r.block(), TypeError), (lambda r: r.block(3), TypeError), (lambda r: r.block("x", nme=1), TypeError),
    (lambda r: r.block("x", name="x"), TypeError), (lambda r: r.block("x", False, 1, 2), TypeError),
    (lambda r: r.aggregate("unknown"), KeyError), (lambda r: r.aggregate(1), TypeError),
    (lambda r: r.results(5), TypeError), (lambda r: tare.Recorder(keep=-1), ValueError),
    (lambda r: tare.Recorder(keep="many"), TypeError), (lambda r: r.block("\ud800"), UnicodeError),
])
def test_bad_input(call, error):
    recorder = tare.Recorder()
    with pytest.raises(error):
        call(recorder)
    with recorder.block("still works"):
        pass
    assert recorder.names() == ["still works"]


def test_nothing_leaks():
    def work():
        for i in range(300):
            recorder = tare.Recorder(keep=20)
            for j in range(40):
                with recorder.block(f"name{j}"):
                    with recorder.block("inner", aggregate=True):
                        pass
            recorder.clear()

    work()
    gc.collect()
    before, blocks = _core.rss(), sys.getallocatedblocks()
    for _ in range(5):
        work()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    assert SANITIZED or _core.rss() - before < 8 * MB


def test_a_recorder_that_holds_its_own_block_is_collected():
    class Mine(tare.Recorder):
        pass

    gone = []
    mine = Mine()
    mine.block_of_its_own = mine.block("x")
    import weakref
    weakref.finalize(mine, gone.append, 1)
    del mine
    gc.collect()
    assert gone == [1]


# ---- the machine ---------------------------------------------------------------------------------------------------

def test_the_machine_around_a_block():
    recorder = tare.Recorder(system=_core.MACHINE_CPU | _core.MACHINE_MEMORY | _core.MACHINE_NETWORK)
    with recorder.block("long"):
        time.sleep(0.12)
    result = recorder.last()
    assert 0 <= result.cpu_percent <= 100 and 0 <= result.iowait_percent <= 100
    assert 0 < result.memory_percent <= 100
    assert result.received >= 0 and result.sent >= 0
    assert isinstance(result.disk_percent, tare.Missing)
    with recorder.block("short"):
        pass
    assert isinstance(recorder.last().cpu_percent, tare.Missing)
    assert "50 ms" in recorder.last().cpu_percent.reason


def test_the_sampler_runs_without_the_interpreter():
    sampler = _core.Sampler(0.01, _core.MACHINE_RSS | _core.MACHINE_CPU)
    begun = time.monotonic_ns()
    sampler.acquire()
    sorted(range(3_000_000), key=lambda x: -x)  # minutes of C code would do the same
    until(lambda: sampler.count >= 10, "ten samples")
    sampler.release()
    summary = sampler.summary(begun)
    assert summary["rss"]["count"] == len(sampler.series(begun)["rss"]) == sampler.count >= 10
    assert summary["rss"]["max"] >= summary["rss"]["average"] >= summary["rss"]["min"] > 0
    assert summary["gpu_memory"]["count"] == 0 and math.isnan(summary["gpu_memory"]["mean"])
    count = sampler.count
    time.sleep(0.05)
    assert sampler.count == count  # nobody wants it
    for interval in (0, -1, math.nan, 1e9):
        with pytest.raises(ValueError):
            _core.Sampler(interval, 1)
