"""What ModelProfiler tells of CPU, disks, network, heap and warm-up, and what few figures of other Python classes no
other file has: against the kernel's counts, clocks around known work, and the files of a made-up machine."""
import json
import os
import statistics
import subprocess

import pytest
from test_python_figures import limits_of, stretch_of
from truth import Figure, absolute, bracketed, exact

THREAD = "`getrusage(RUSAGE_THREAD)` of the thread that runs the model, at each call"
FILES = "files of a made-up machine"
WITHIN = "`time.perf_counter()` inside of the loader's methods, and from one to the next"
MODEL = "python:ModelProfiler."
LOADER, PRODUCTION = "python:DataLoadingProfiler.", "python:ProductionProfiler."
DISK_NOW = "python:PerformanceProfiler.get_current_system_stats.disk_io_percent"
FIGURES = [
    Figure(MODEL + "cpu.preempted_percent", "runnable, but other work had the CPU",
           "the clock less CPU time less sleeps of a known length, beside a process that is busy on the same CPU",
           bracketed(0.15)),
    Figure(MODEL + "cpu.waiting_percent", "neither running nor runnable", "sleeps of a known length and the clock",
           bracketed(0.2)),
    Figure(MODEL + "cpu.preemptions_per_run", "times that a run is preempted", "ru_nivcsw of " + THREAD,
           bracketed(0.15)),
    Figure(MODEL + "cpu.disk_faults_per_run", "page faults of a run that read from a disk", "ru_majflt of " + THREAD,
           bracketed(0.05)),
    Figure(MODEL + "cpu.machine_percent", "how busy the machine's CPUs are", FILES, absolute(0.001, "points")),
    Figure(MODEL + "io.disk_read_bytes", "bytes read from disks", "`/proc/self/io`, read at each call",
           bracketed(0.02)),
    Figure(MODEL + "io.disk_written_bytes", "bytes written to disks", "`/proc/self/io`, read at each call",
           bracketed(0.02)),
    Figure(MODEL + "io.iowait_percent", "CPUs idle while a disk works", FILES, absolute(0.001, "points")),
    Figure(MODEL + "io.network_received_bytes", "received by all interfaces but the loopback", FILES, exact),
    Figure(MODEL + "io.network_sent_bytes", "sent by all interfaces but the loopback", FILES, exact),
    Figure(MODEL + "latency.gc.collections", "garbage collections in the timed runs",
           "`gc.callbacks` of the program, at each call", bracketed()),
    Figure(MODEL + "memory.fragmentation", "share of the C library's heap that is free",
           "`malloc_info()` in the last of the runs; every second one of 16,384 blocks is freed", absolute(0.03)),
    Figure(MODEL + "warmup.variation", "standard deviation over mean of its steady runs",
           "`statistics.stdev()` of the program's own clock, wherever steady runs begin", bracketed(0.05)),
    Figure(DISK_NOW, "how long the busiest disk worked since it was last asked", FILES + " and the program's clock",
           bracketed()),
    Figure(PRODUCTION + "cpu_percent", "how busy the machine's CPUs were", FILES, absolute(0.001, "points")),
    Figure(PRODUCTION + "user_facing_latency", "the latency as it was given", "the program's own number", exact),
    Figure(LOADER + "requested_batches", "batches asked for", "the program's own number", exact),
    Figure(LOADER + "startup_time", "time until the iterator is there", WITHIN, bracketed(0.02)),
    Figure(LOADER + "total_time", "startup and all waits", WITHIN, bracketed(0.02)),
    Figure(LOADER + "avg_preprocessing_time", "collating and transforms of a batch",
           "`time.perf_counter()` in these functions, and in the dataset around its transform", bracketed(0.05)),
]

# A model whose work is `work()`: `calls` has what `read()` tells at the begin and at the end of each call.
NET = """
import ctypes, gc, json, mmap, os, resource, subprocess, sys, time, torch, tare
torch.set_num_threads(1)
calls, null = [], os.open("/dev/null", os.O_WRONLY)

class Net(torch.nn.Linear):
    def forward(self, x):
        begin = read()
        os.write(null, b"x" * 1000)
        work()
        out = super().forward(x)
        calls.append((begin, read()))
        return out

def profiled(**options):
    model = Net(16, 4).eval()
    found = tare.ModelProfiler(model).profile(torch.ones(4, 16), **options)
    return [calls, {name: found[name] for name in ("warmup", "latency", "throughput", "memory", "cpu", "io")}]
"""


class Profiled:
    """Where the calls belong, by the durations of the timed ones. The first value of read() is the clock."""

    def __init__(self, calls, found):
        self.calls, self.found = calls, found
        spans = [(begin[0], end[0]) for begin, end in calls]
        self.samples = [1e-3 * one for one in found["latency"]["samples"]]
        self.timed = stretch_of(spans, self.samples)
        self.spans = spans
        rates = found["throughput"]
        self.used = self.timed + len(self.samples) + rates["windows"] * rates["runs_per_window"]

    def between(self, first, count, at):
        """What a counter can have grown by in these calls: inside of them, and from the call before to the next one."""
        last = first + count - 1
        return (self.calls[last][1][at] - self.calls[first][0][at],
                self.calls[last + 1][0][at] - self.calls[first - 1][1][at])


def per_run(limits, runs):
    return tuple(one / runs for one in limits)


BUSY = NET + """
cpu = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
other = subprocess.Popen([sys.executable, "-c",
                          "import os\\nwhile os.getppid() == %d: sum(range(10000))" % os.getpid()])

def read():
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return time.perf_counter(), time.thread_time(), used.ru_nivcsw

def work():
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    time.sleep(0.02)

try:
    told = profiled(num_runs=5, warmup_runs=2)
finally:
    other.kill()
print(json.dumps(told))
"""


def test_one_cpu_and_other_work(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    calls, found = json.loads(bench.python(BUSY).out)
    at, cpu = Profiled(calls, found), found["cpu"]
    runs = found["io"]["write_calls_bytes"] // 1000
    assert 2 <= runs < len(calls) - at.used
    wall, busy = at.between(at.used, runs, 0), at.between(at.used, runs, 1)
    truth.check(MODEL + "cpu.preempted_percent", cpu["preempted_percent"],
                tuple(100 * (one - busy[0] - 0.02 * runs) / wall[1] for one in wall))
    assert cpu["preempted_percent"] > 10, cpu  # the other process has its share
    truth.check(MODEL + "cpu.waiting_percent", cpu["waiting_percent"],
                (100 * 0.02 * runs / wall[1], 100 * 0.02 * runs / wall[0]))
    truth.check(MODEL + "cpu.preemptions_per_run", cpu["preemptions_per_run"],
                per_run(at.between(at.used, runs, 2), runs))


DISKS = NET + """
SIZE, PAGES = 1 << 17, 16

def written(name, size):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.pwrite(file, os.urandom(size), 0)
    os.fsync(file)
    return file

data, out, mapped = written("data", SIZE), written("out", SIZE // 2), written("mapped", PAGES << 16)
view = mmap.mmap(mapped, PAGES << 16, access=mmap.ACCESS_READ)
view.madvise(mmap.MADV_RANDOM)

def read():
    with open("/proc/self/io") as text:
        io = dict(line.split(": ") for line in text.read().splitlines())
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return time.perf_counter(), used.ru_majflt, int(io["read_bytes"]), int(io["write_bytes"])

def work():
    os.pwrite(out, bytes(SIZE // 2), 0)
    os.fdatasync(out)
    os.posix_fadvise(data, 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(data, SIZE, 0)
    view.madvise(mmap.MADV_DONTNEED)
    os.posix_fadvise(mapped, 0, 0, os.POSIX_FADV_DONTNEED)
    for page in range(PAGES):
        view[page << 16]

print(json.dumps(profiled(num_runs=5, warmup_runs=2)))
"""


def test_disks(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    calls, found = json.loads(bench.python(DISKS).out)
    at, io = Profiled(calls, found), found["io"]
    runs = io["write_calls_bytes"] // (1000 + (1 << 16))
    assert 2 <= runs < len(calls) - at.used
    for name, column in (("disk_read_bytes", 2), ("disk_written_bytes", 3)):
        truth.check(MODEL + "io." + name, io[name], at.between(at.used, runs, column))
    truth.check(MODEL + "cpu.disk_faults_per_run", found["cpu"]["disk_faults_per_run"],
                per_run(at.between(at.used, runs, 1), runs))
    if calls[at.used][1][2] > calls[at.used][0][2]:  # else the folder is in memory
        assert io["disk_read_bytes"] >= runs << 17 and io["disk_written_bytes"] >= runs << 16
        assert 16 <= found["cpu"]["disk_faults_per_run"] < 24


# The machine's files, opened from a folder instead.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>

static int opened(const char *name, const char *path, int flags, mode_t mode)
{
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    static const char *const files[][2] = {{"/proc/stat", "stat"}, {"/proc/diskstats", "diskstats"},
                                           {"/proc/self/net/dev", "dev"}, {"/proc/net/dev", "dev"}};
    for (int i = 0; i < 4; i++)
        if (strcmp(path, files[i][0]) == 0)
            path = files[i][1];
    return next(path, flags, mode);
}

#define OPEN(name) int name(const char *path, int flags, ...) \\
{ va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \\
  return opened(#name, path, flags, mode); }
OPEN(open)
OPEN(open64)
"""
MADE = """
files = {name: os.open(name, os.O_RDWR | os.O_CREAT) for name in ("stat", "diskstats", "dev")}

def tell(name, text):
    return os.pwrite(files[name], text.encode(), 0)  # of the same length each time
"""
MACHINE = NET + MADE + """
import re
now, collected, shares = 0, 0, []
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
libc.open_memstream.restype = ctypes.c_void_p
libc.malloc_info.argtypes, libc.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
blocks = [libc.malloc(4000) for _ in range(16384)]
for block in blocks[::2]:
    libc.free(block)

def free_share():
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    stream = libc.open_memstream(ctypes.byref(text), ctypes.byref(size))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    info = ctypes.string_at(text, size.value).decode()
    libc.free(text)
    whole = info[info.rindex("</heap>"):]  # the totals come behind the arenas
    free = sum(int(one) for one in re.findall(r'<total type="(?:fast|rest)" count="[0-9]+" size="([0-9]+)"/>', whole))
    return free / int(re.search(r'<system type="current" size="([0-9]+)"/>', whole)[1])

def count(phase, details):
    global collected
    collected += phase == "stop"
gc.callbacks.append(count)

def read():
    return time.perf_counter(), collected

def machine():
    row = "%6s: %012d 0 0 0 0 0 0 0 %012d 0 0 0 0 0 0 0\\n"
    return (tell("stat", "cpu  %012d 0 %012d %012d %012d 0 0 0 0 0\\n" % (2 * now, now, 5 * now, 2 * now)) +
            tell("dev", "Inter-| Receive | Transmit\\n face |bytes packets |bytes packets\\n" +
                 row % ("lo", 7777 * now, 7777 * now) +
                 row % ("eth0", 3000 * now, 500 * now) + row % ("wlan0", 30 * now, 5 * now)))

def work():
    global now
    now += 1
    machine()
    shares.append(free_share())
    time.sleep(0.002 * (3 + now % 3 * 2))  # 6, 10 and 14 ms
    if now % 4 == 0:
        gc.collect(0)

size = machine()
told = profiled(num_runs=20, warmup_runs=30)
print(json.dumps([size, shares, *told]))
"""


def made_up(bench, code):
    """The script, on a machine whose files are in its folder."""
    source, library = bench.folder / "shim.c", bench.folder / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    loaded = [*os.environ.get("LD_PRELOAD", "").split(), str(library)]
    return json.loads(bench.python(code, env={"LD_PRELOAD": " ".join(loaded)}).out)


def test_a_made_up_machine(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    size, free, calls, found = made_up(bench, MACHINE)
    at, io, warmup = Profiled(calls, found), found["io"], found["warmup"]
    runs = io["write_calls_bytes"] // (1000 + size)
    assert 2 <= runs < len(calls) - at.used
    truth.check(MODEL + "cpu.machine_percent", found["cpu"]["machine_percent"], 30.0)
    truth.check(MODEL + "io.iowait_percent", io["iowait_percent"], 20.0)
    truth.check(MODEL + "io.network_received_bytes", io["network_received_bytes"], 3030 * runs)
    truth.check(MODEL + "io.network_sent_bytes", io["network_sent_bytes"], 505 * runs)
    limits = at.between(at.timed, 20, 1)
    assert limits[0] >= 5
    truth.check(MODEL + "latency.gc.collections", found["latency"]["gc"]["collections"], limits)
    truth.check(MODEL + "memory.fragmentation", found["memory"]["fragmentation"], free[at.used + runs - 1])
    assert free[at.used] > 0.1
    spans = [limits_of(at.spans, one)[0] for one in range(at.timed - warmup["runs"], at.timed)]
    each = [statistics.stdev(spans[first:]) / statistics.mean(spans[first:]) for first in range(len(spans) // 2)]
    truth.check(MODEL + "warmup.variation", warmup["variation"], (min(each), max(each)))
    assert min(each) > 0.1


REQUEST = """
import json, os, time, tare
""" + MADE + """
def machine(now):
    tell("stat", "cpu  %012d 0 %012d %012d %012d 0 0 0 0 0\\n" % (2 * now, now, 5 * now, 2 * now))

machine(0)
production = tare.ProductionProfiler()
with production.profile_request(7):
    time.sleep(0.1)
    machine(40)
print(json.dumps(production.log_metrics(7, 0.125)))
"""


def test_a_request(truth, bench):
    entry = made_up(bench, REQUEST)
    truth.check(PRODUCTION + "cpu_percent", entry["cpu_percent"], 30.0)
    truth.check(PRODUCTION + "user_facing_latency", entry["user_facing_latency"], 0.125)


LOADING = """
import json, time, torch, tare
clock, spans = time.perf_counter, {"iter": [], "next": [], "transform": [], "around": [], "collate": []}

def timed(name, seconds):
    begin = clock()
    time.sleep(seconds)
    spans[name].append((begin, clock()))

class Loader:
    def __iter__(self):
        timed("iter", 0.05)
        return self
    def __next__(self):
        if len(spans["next"]) == 12:
            raise StopIteration
        timed("next", 0.004)
        return torch.ones(4, 8)

class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = lambda x: timed("transform", 0.002) or x
    def __len__(self):
        return 40
    def __getitem__(self, at):
        time.sleep(0.002)  # loading
        begin = clock()
        out = self.transform(torch.ones(8))
        spans["around"].append((begin, clock()))
        return out

def collate(rows):
    timed("collate", 0.005)
    return torch.stack(rows)

outside = clock()
told = [tare.DataLoadingProfiler().profile_dataloader(Loader(), 20)]
ended = clock()
loader = torch.utils.data.DataLoader(Data(), batch_size=4, collate_fn=collate)
told.append(tare.DataLoadingProfiler().profile_dataloader(loader, 8))
keys = ("requested_batches", "total_batches", "startup_time", "total_time", "avg_preprocessing_time")
print(json.dumps([outside, ended, spans, [{key: one[key] for key in keys} for one in told]]))
"""


def test_loading(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    outside, ended, spans, (plain, torch) = json.loads(bench.python(LOADING).out)
    sums = {name: sum(end - begin for begin, end in each) for name, each in spans.items()}
    truth.check(LOADER + "requested_batches", [plain["requested_batches"], torch["requested_batches"]], [20, 8])
    truth.check(LOADER + "startup_time", plain["startup_time"], (sums["iter"], spans["next"][0][0] - outside))
    truth.check(LOADER + "total_time", plain["total_time"], (sums["iter"] + sums["next"], ended - outside))
    assert torch["total_batches"] == len(spans["collate"]) == 8
    truth.check(LOADER + "avg_preprocessing_time", torch["avg_preprocessing_time"],
                ((sums["transform"] + sums["collate"]) / 8, (sums["around"] + sums["collate"]) / 8))


DISK = """
import json, os, time, tare
""" + MADE + """
def disks(busy):
    row = " 254 0 %s 1 1 8 1 1 1 8 1 0 %012d 9 0 0 0 0 0 0\\n"
    tell("diskstats", row % ("loop0", 9 * busy) + row % ("vda", busy) + row % ("vda1", 3 * busy)
         + row % ("sdb", busy // 2))

disks(1000)
told, profiler = [], tare.PerformanceProfiler()
time.sleep(0.15)  # it may have been asked before; what is asked within 100 ms goes back to that
outside = time.perf_counter()
profiler.get_current_system_stats()
inside = time.perf_counter()
for busy in (1120, 1140, 1300):
    time.sleep(0.3)
    disks(busy)
    end = time.perf_counter()
    shown = profiler.get_current_system_stats().disk_io_percent
    now = time.perf_counter()
    told.append((shown, end - inside, now - outside))
    outside, inside = end, now
print(json.dumps(told))
"""


def test_the_busiest_disk(truth, bench):
    for busy, (shown, inside, outside) in zip((120, 20, 160), made_up(bench, DISK)):
        truth.check(DISK_NOW, shown, (0.1 * busy / outside, 0.1 * busy / inside))
