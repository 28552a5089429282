"""Figures of Python objects that no other file has: Result and Aggregate of blocks, and what ModelProfiler tells beside
latencies, parameters and FLOPs."""
import json
import math
import statistics

import pytest
from truth import Figure, absolute, at_most, bracketed, exact, relative

CLOCK = "`time.perf_counter()` in the program, just inside and just outside of the block"
CALLS = "`time.perf_counter()` at the begin and the end of each call of the model"
HAND = "arithmetic by hand"
MIB = 1 << 20
BLOCK = {
    "cpu_s": ("CPU time of its thread", "`time.thread_time()`, just inside and just outside", bracketed(0.02)),
    "process_cpu_s": ("CPU time of the process meanwhile", "`time.process_time()`, just inside and just outside",
                      bracketed(0.02)),
    "process_cpu_percent": ("the same over its time", "both clocks, just inside and just outside", bracketed(0.02)),
    "self_s": ("time outside of inner blocks", CLOCK, bracketed(0.02)),
    "excluded_s": ("other measurements inside it", "the program makes none", exact),
    "rss_delta": ("memory that it added", "touched pages of `mmap`", absolute(2 * MIB, "bytes")),
    "rss_peak": ("most memory in it", "VmHWM of /proc/self/status", absolute(2 * MIB, "bytes")),
    "samples": ("samples it worked on", "the program's own count", exact),
    "throughput": ("samples a second", "the program's own count and clock", bracketed(0.02)),
}
RESULT = {
    "wall_s": ("how long it took", CLOCK, bracketed(0.02)),
    "started": ("when it began", "`time.time()` around it, 2 ms for its slewing", bracketed()),
    "depth": ("blocks around it", "the program's own nesting", exact),
    "own_s": ("of it: measuring inner blocks", "the clock around the inner block, less that inside of it", at_most),
    "rss_before": ("memory at its begin", "VmRSS of /proc/self/status", absolute(2 * MIB, "bytes")),
    "rss_after": ("memory at its end", "VmRSS of /proc/self/status", absolute(2 * MIB, "bytes")),
}
AGGREGATE = {
    "count": ("blocks of the name", "the program's own count", exact),
    "failed": ("of these: left by an exception", "the program's own count", exact),
    "unkept": ("of these: only added up", "the program's own count", exact),
    "total_s": ("their time", CLOCK, bracketed(0.02)),
    "mean_s": ("their mean", CLOCK, bracketed(0.02)),
    "min_s": ("the shortest", CLOCK, bracketed(0.02)),
    "max_s": ("the longest", CLOCK, bracketed(0.02)),
    "p50_s": ("their median", CLOCK + ", sorted", bracketed(0.07)),
    "p95_s": ("their 95th percentile", CLOCK + ", sorted", bracketed(0.07)),
    "p99_s": ("their 99th percentile", CLOCK + ", sorted", bracketed(0.07)),
}
MODEL = {
    "warmup.runs": ("runs before the timed ones", "calls until the first timed one, by its duration", at_most),
    "warmup.first_ms": ("the first run", CALLS, bracketed()),
    "warmup.seconds": ("all of them", CALLS, bracketed()),
    "latency.samples[]": ("each timed run", CALLS, bracketed()),
    "latency.intervals.p50.low": ("95 % interval of the median",
                                  "order statistics that the binomial distribution tells", exact),
    "latency.intervals.p50.high": ("95 % interval of the median",
                                   "order statistics that the binomial distribution tells", exact),
    "latency.outliers.mild": ("runs beyond Tukey's inner fences", "quartiles by `statistics.quantiles()`", exact),
    "latency.outliers.severe": ("runs beyond Tukey's outer fences", "quartiles by `statistics.quantiles()`", exact),
    "throughput.rates[]": ("runs a second, of each window", CALLS, bracketed(0.05)),
    "throughput.windows": ("how many windows", "length of the list", exact),
    "throughput.runs_per_window": ("runs of each", "calls of the model, all windows together", at_most),
    "throughput.interval.low": ("95 % interval of the median rate, in samples", "order statistics, by hand",
                                relative(1e-9)),
    "throughput.interval.high": ("95 % interval of the median rate, in samples", "order statistics, by hand",
                                 relative(1e-9)),
    "compute.flops_per_parameter_byte": ("FLOPs over parameter bytes", HAND, relative(1e-9)),
    "model.activation_bytes": ("most that tensors of a run take at a time", HAND, exact),
    "model.precision.executed.operators.fp32": ("operators that multiply, in float32", HAND, exact),
    "model.precision.executed.casts": ("casts of a run", "the model has none", exact),
    "memory.per_sample": ("activations of one sample", HAND, exact),
    "memory.before": ("memory before the runs", "VmRSS of /proc/self/status", absolute(32 * MIB, "bytes")),
    "memory.added": ("the peak beyond that", "difference by hand", exact),
    "memory.peak": ("most memory", "VmHWM of /proc/self/status behind the runs", at_most),
    "memory.process_peak": ("most memory of the process", "VmHWM of /proc/self/status behind the runs", at_most),
    "memory.average": ("mean memory", "between the memory before and the peak", bracketed(0.001)),
    "memory.process_average": ("mean memory of the process", "between the memory before and the peak",
                               bracketed(0.001)),
    "cpu.cpus": ("CPUs that may be used", "`os.sched_getaffinity()`", exact),
    "cpu.process_percent": ("CPU time over wall time", "`time.process_time()` and the clock, at each call",
                            absolute(10, "points")),
    "cpu.parallelism": ("the same as a number of CPUs", "`time.process_time()` and the clock, at each call",
                        absolute(0.1, "CPUs")),
    "cpu.waits_per_run": ("times that a run blocks", "one `time.sleep()` a run", bracketed(0.5)),
    "cpu.page_faults_per_run": ("page faults of a run", "fresh pages that a run touches", bracketed(0.5)),
    "io.read_calls_bytes": ("bytes of read calls", "what the runs read from /dev/zero, twice what they write",
                            absolute(65536, "bytes")),
    "io.write_calls_bytes": ("bytes of write calls", "whole runs, each of which writes 1000 to /dev/null",
                             absolute(100, "bytes")),
    "machine.cpus": ("CPUs of the machine", "`os.cpu_count()`", exact),
    "machine.memory_bytes": ("memory of the machine", "MemTotal of /proc/meminfo", exact),
}
FIGURES = ([Figure("python:Result." + key, *row) for key, row in {**BLOCK, **RESULT}.items()] +
           [Figure("python:Aggregate." + key, *row) for key, row in {**BLOCK, **AGGREGATE}.items()] +
           [Figure("python:ModelProfiler." + key, *row) for key, row in MODEL.items()])

STATUS = """
def status(name):
    with open("/proc/self/status") as text:
        return next(1024 * int(line.split()[1]) for line in text if line.startswith(name))
"""
BLOCKS = STATUS + """
import json, mmap, time, tare
recorder = tare.Recorder(keep=100)
clocks = (time.perf_counter, time.thread_time, time.process_time, time.time)
read = lambda: [clock() for clock in clocks]
told, data = [], []

def measured(at):
    before = read() + [status("VmRSS")]
    block = recorder.block("outer", aggregate=at == 9, samples=32)
    try:
        with block:
            inside = read()
            data.append(mmap.mmap(-1, 8 << 20))
            for page in range(0, 8 << 20, 4096):
                data[-1][page] = 1
            until = time.thread_time() + 0.03
            while time.thread_time() < until:
                pass
            around = read()
            with recorder.block("inner"):
                within = read()
                time.sleep(0.03)
                ended = read()
            left = read()
            if at == 5:
                raise KeyError
            end = read()
    except KeyError:
        end = read()
    after = read() + [status("VmRSS"), status("VmHWM")]
    told.append([before, inside, around, within, ended, left, end, after])

for at in range(10):
    measured(at)
rows = [{name: getattr(one, name) for name in dir(one) if not name.startswith("_")}
        for one in recorder.results("outer")]
inner = recorder.results("inner")[0].depth
sums = recorder.aggregate("outer")
sums = {name: getattr(sums, name) for name in dir(sums) if not name.startswith("_")}
print(json.dumps([told, rows, sums, inner], default=str))
"""


def spans_of(told, clock):
    """(shortest, longest) that each block can have been, by one of the clocks."""
    return [(row[6][clock] - row[1][clock], row[7][clock] - row[0][clock]) for row in told]


def test_blocks(truth, bench):
    done = bench.python(BLOCKS)
    told, rows, sums, inner = json.loads(done.out)
    walls, cpus, everyone = (spans_of(told, clock) for clock in range(3))
    selves = [(row[6][0] - row[1][0] - (row[5][0] - row[2][0]), row[7][0] - row[0][0] - (row[4][0] - row[3][0]))
              for row in told]
    for at, row in enumerate(rows):
        def check(name, true):
            truth.check("python:Result." + name, row[name], true)
        check("wall_s", walls[at])
        check("cpu_s", cpus[at])
        check("process_cpu_s", everyone[at])
        check("process_cpu_percent", (100 * everyone[at][0] / walls[at][1], 100 * everyone[at][1] / walls[at][0]))
        check("self_s", selves[at])
        check("started", (told[at][0][3] - 0.002, told[at][1][3] + 0.002))
        check("throughput", (32 / walls[at][1], 32 / walls[at][0]))
        check("rss_before", told[at][0][4])
        check("rss_after", told[at][7][4])
        check("rss_delta", 8 * MIB)
        check("rss_peak", told[at][7][5])
        for name, true in (("excluded_s", 0), ("samples", 32), ("depth", 0)):
            check(name, true)
        _, _, around, within, ended, left, *_ = [one[0] for one in told[at]]
        check("own_s", left - around - (ended - within))
    truth.check("python:Result.depth", inner, 1)

    def check(name, true):
        truth.check("python:Aggregate." + name, sums[name], true)

    def of(function, pairs):
        return tuple(function(sorted(one[side] for one in pairs)) for side in (0, 1))
    for name, true in (("count", 10), ("failed", 1), ("unkept", 1), ("samples", 320), ("excluded_s", 0)):
        check(name, true)
    for name, pairs in (("total_s", walls), ("cpu_s", cpus), ("process_cpu_s", everyone), ("self_s", selves)):
        check(name, of(sum, pairs))
    check("mean_s", of(lambda all: sum(all) / 10, walls))
    check("min_s", of(min, walls))
    check("max_s", of(max, walls))
    for name, share in (("p50_s", 0.5), ("p95_s", 0.95), ("p99_s", 0.99)):
        at = 9 * share
        check(name, (of(lambda all: all[math.floor(at)], walls)[0], of(lambda all: all[math.ceil(at)], walls)[1]))
    check("throughput", tuple(320 / one for one in reversed(of(sum, walls))))
    all_cpu, all_wall = of(sum, everyone), of(sum, walls)
    check("process_cpu_percent", (100 * all_cpu[0] / all_wall[1], 100 * all_cpu[1] / all_wall[0]))
    check("rss_delta", 80 * MIB)
    check("rss_peak", told[-1][7][5])


PROFILED = STATUS + """
import json, mmap, os, time, torch, tare
torch.set_num_threads(1)
calls = []

class Net(torch.nn.Sequential):
    def forward(self, x):
        begin, cpu = time.perf_counter(), time.process_time()
        time.sleep(0.004)
        os.write(null, b"x" * 1000)
        os.read(zero, 2000)
        with mmap.mmap(-1, 1 << 20) as fresh:
            for page in range(0, 64 << 12, 4096):
                fresh[page] = 1
        out = super().forward(x)
        calls.append((begin, time.perf_counter(), cpu, time.process_time()))
        return out

null, zero = os.open("/dev/null", os.O_WRONLY), os.open("/dev/zero", os.O_RDONLY)
model = Net(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()
model(torch.ones(4, 16))
calls.clear()
before = status("VmRSS")
found = tare.ModelProfiler(model).profile(torch.ones(4, 16), num_runs=40)
print(json.dumps([calls, before, status("VmHWM"), found["warmup"], found["latency"], found["throughput"],
                  found["compute"],
                  found["model"], found["memory"], found["cpu"], found["io"], found["machine"],
                  len(os.sched_getaffinity(0)), os.cpu_count()], default=str))
"""


def ranks_of(n, share=0.5, missed=0.025):
    """Ranks of the narrowest interval that misses the quantile on either side with at most this probability."""
    below = [math.comb(n, k) * share ** k * (1 - share) ** (n - k) for k in range(n + 1)]
    low = max(rank for rank in range(1, n + 1) if sum(below[:rank]) <= missed)
    high = min(rank for rank in range(1, n + 1) if sum(below[rank:]) <= missed)
    return low, high


def limits_of(calls, at):
    """Shortest and longest that a timed call can have been: itself, and from the end of the one before to the next
    begin."""
    return calls[at][1] - calls[at][0], calls[at + 1][0] - calls[at - 1][1]


def stretch_of(calls, durations):
    """The first of the calls that were timed: as many in a row that fit what was shown."""
    for at in range(1, len(calls) - len(durations)):
        limits = [limits_of(calls, at + i) for i in range(len(durations))]
        if all(low <= shown <= high for shown, (low, high) in zip(durations, limits)):
            return at
    raise AssertionError("no stretch of calls fits the samples")


def test_model(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.python(PROFILED)
    (calls, before, highest, warmup, latency, rates, compute, model, memory, cpu, io, machine, allowed,
     cpus) = json.loads(done.out)

    def check(name, shown, true):
        truth.check("python:ModelProfiler." + name, shown, true)
    samples = [1e-3 * one for one in latency["samples"]]
    at = stretch_of(calls, samples)
    check("warmup.runs", warmup["runs"], at)
    first = at - warmup["runs"]  # the timed runs follow upon it
    check("warmup.first_ms", warmup["first_ms"], tuple(1e3 * one for one in limits_of(calls, first)))
    check("warmup.seconds", warmup["seconds"],
          (sum(end - begin for begin, end, *_ in calls[first:at]), calls[at][0] - calls[first - 1][1]))
    check("latency.samples[]", samples, [limits_of(calls, at + i) for i in range(40)])
    low, high = ranks_of(40)
    check("latency.intervals.p50.low", latency["intervals"]["p50"]["low"], sorted(latency["samples"])[low - 1])
    check("latency.intervals.p50.high", latency["intervals"]["p50"]["high"], sorted(latency["samples"])[high - 1])
    first, _, third = statistics.quantiles(latency["samples"], n=4, method="inclusive")
    beyond = [max(first - one, one - third) / (third - first) for one in latency["samples"]]
    check("latency.outliers.mild", latency["outliers"]["mild"], sum(1.5 < one <= 3 for one in beyond))
    check("latency.outliers.severe", latency["outliers"]["severe"], sum(one > 3 for one in beyond))
    each = [end - begin for begin, end, *_ in calls]
    check("throughput.rates[]", rates["rates"], [(0.5 / max(each), 1 / min(each))] * len(rates["rates"]))
    check("throughput.windows", rates["windows"], len(rates["rates"]))
    check("throughput.runs_per_window", rates["runs_per_window"], (len(calls) - at - 40) / rates["windows"])
    low, high = ranks_of(rates["windows"])
    check("throughput.interval.low", rates["interval"]["low"], 4 * sorted(rates["rates"])[low - 1])
    check("throughput.interval.high", rates["interval"]["high"], 4 * sorted(rates["rates"])[high - 1])
    parameters = 16 * 16 + 16 + 16 * 4 + 4
    check("compute.flops_per_parameter_byte", compute["flops_per_parameter_byte"],
          2 * 4 * (16 * 16 + 16 * 4) / (4 * parameters))
    check("model.activation_bytes", model["activation_bytes"], 2 * 4 * 16 * 4)
    check("model.precision.executed.operators.fp32", model["precision"]["executed"]["operators"]["fp32"], 2)
    check("model.precision.executed.casts", model["precision"]["executed"]["casts"], 0)
    check("memory.per_sample", memory["per_sample"], 2 * 16 * 4)
    check("memory.before", memory["before"], before)
    check("memory.added", memory["added"], memory["peak"] - memory["before"])
    for name in ("peak", "process_peak"):
        check("memory." + name, memory[name], highest)
    for name in ("average", "process_average"):
        check("memory." + name, memory[name], (memory["before"], memory["peak"]))
    check("cpu.cpus", cpu["cpus"], allowed)
    least = rates["windows"] * rates["runs_per_window"]
    inside = calls[at:at + 40 + least]  # the timed runs and the windows; other measurements follow
    share = sum(end - begin for *_, begin, end in inside) / sum(end - begin for begin, end, *_ in inside)
    check("cpu.process_percent", cpu["process_percent"], 100 * share)
    check("cpu.parallelism", cpu["parallelism"], share)
    check("cpu.waits_per_run", cpu["waits_per_run"], (1, 1))
    check("cpu.page_faults_per_run", cpu["page_faults_per_run"], (64, 70))
    # Of the runs in which usage is sampled: whole runs, and what the samples themselves read and write.
    runs = io["write_calls_bytes"] // 1000
    assert 2 <= runs <= len(calls) - at - 40 - least
    check("io.write_calls_bytes", io["write_calls_bytes"], 1000 * runs)
    check("io.read_calls_bytes", io["read_calls_bytes"], 2 * 1000 * runs)
    check("machine.cpus", machine["cpus"], cpus)
    with open("/proc/meminfo") as text:
        check("machine.memory_bytes", machine["memory_bytes"], 1024 * int(text.readline().split()[1]))
