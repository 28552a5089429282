"""What a run used, against the kernel's own account: wait4, getrusage and /proc of the program itself."""
import json
import os
import re

from truth import Figure, absolute, at_most, bracketed, exact, relative

WAIT4 = "`wait4()` of the program, by the process that started it, and that one's `getrusage()`"
IO = "`/proc/self/io` of the program, by construction 200 MB and more"
FIGURES = [
    Figure("run:usage.cpu_seconds", "CPU time of all processes", WAIT4, bracketed(0.10)),
    Figure("run:usage.user_seconds", "CPU time in user code", WAIT4, absolute(0.3, "s")),
    Figure("run:usage.system_seconds", "CPU time in the kernel", WAIT4, absolute(0.3, "s")),
    Figure("run:usage.cores_mean", "CPU time over elapsed time", WAIT4, relative(0.10)),
    Figure("run:usage.cores_max", "most cores in use", "`sched_getaffinity()`, 5 % for the kernel's ticks", at_most),
    Figure("run:usage.cores_allowed", "cores available to the job", "`sched_getaffinity()`", exact),
    Figure("run:usage.rss_peak_bytes", "peak memory of the largest process", "`ru_maxrss` of `wait4()`",
           relative(0.01)),
    Figure("run:usage.tree_rss_max_bytes", "most memory of all processes at a sample",
           "between what the program holds and the peaks of both processes", bracketed(0.02)),
    Figure("run:usage.memory_allowed_bytes", "memory limit", "`MemTotal` of `/proc/meminfo`", at_most),
    Figure("run:usage.io_read_bytes", "bytes read by calls", IO, bracketed(0.02)),
    Figure("run:usage.io_write_bytes", "bytes written by calls", IO, bracketed(0.02)),
    Figure("run:usage.disk_read_bytes", "bytes read from disks", "`/proc/self/io` of the program", bracketed(0.02)),
    Figure("run:usage.disk_write_bytes", "bytes written to disks", "`/proc/self/io` of the program", bracketed(0.02)),
    Figure("run:usage.switches_voluntary", "times a thread waited",
           "`wait4()`; the program's own count of sleeps at least", bracketed(0.05)),
    Figure("run:usage.switches_forced", "times a thread was preempted", "`wait4()`", bracketed(0.05)),
    Figure("run:usage.faults_major", "page faults that waited for a disk", "`wait4()`", bracketed(0.05)),
    Figure("run:usage.threads_max", "threads at once", "the program's own count", exact),
    Figure("run:usage.processes_max", "processes at once", "the program's own count", exact),
    Figure("run:usage.net_received_bytes", "bytes received by the machine", "`/proc/net/dev` around the run", at_most),
    Figure("run:usage.net_sent_bytes", "bytes sent by the machine", "`/proc/net/dev` around the run", at_most),
    Figure("run:processes[].cpu_seconds", "CPU time of a process while it was sampled", WAIT4, bracketed(0.02)),
    Figure("run:processes[].memory_peak_bytes", "peak memory of a process", "`ru_maxrss` of `wait4()`", relative(0.01)),
    Figure("run:processes[].disk_read_bytes", "bytes that a process read from disks",
           "`/proc/self/io` of the program", at_most),
    Figure("run:processes[].disk_write_bytes", "bytes that a process wrote to disks",
           "`/proc/self/io` of the program", bracketed(0.02)),
    Figure("run:metrics[].total", "growth of a total between its first and last sample", WAIT4, at_most),
    Figure("run:metrics[].max", "largest value of a gauge", "the program's own memory and threads", bracketed(0.02)),
]
HELD = 200 << 20
PROGRAM = """
import json, os, resource, sys, threading, time

def own():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    io = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
    return {"pid": os.getpid(), "waits": usage.ru_nvcsw, "forced": usage.ru_nivcsw, "major": usage.ru_majflt,
            **{name: int(value) for name, value in io.items()}}

begun = own()
until = time.process_time() + 1.5
while time.process_time() < until:
    sum(range(2000))
zero, null = os.open("/dev/zero", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
block = bytes(1 << 20)
for _ in range(200):
    os.read(zero, 1 << 20)
    os.write(null, block)
with open(sys.argv[1], "wb") as file:
    for _ in range(16):
        file.write(block)
    os.fsync(file.fileno())
held = bytearray(b"x") * (%d)
done = threading.Event()
threads = [threading.Thread(target=done.wait) for _ in range(5)]
for thread in threads: thread.start()
for _ in range(100): time.sleep(0.002)
told = own()
time.sleep(2.5)  # until it is sampled, on a busy machine, too
print(json.dumps(told), flush=True)
done.set()
""" % HELD
LAUNCHER = """
import json, os, resource, subprocess, sys
child = subprocess.Popen([sys.executable, sys.argv[1], sys.argv[2]], stdout=subprocess.PIPE)
told = json.loads(child.stdout.readline())
_, status, used = os.wait4(child.pid, 0)
mine = resource.getrusage(resource.RUSAGE_SELF)
fields = ("ru_utime", "ru_stime", "ru_maxrss", "ru_nvcsw", "ru_nivcsw", "ru_majflt")
io = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
print(json.dumps({"status": status, "told": told, "child": [getattr(used, name) for name in fields],
                  "mine": [getattr(mine, name) for name in fields], "io": {k: int(v) for k, v in io.items()}}))
"""


def network():
    rows = [line.split() for line in open("/proc/net/dev", encoding="ascii").read().replace(":", ": ").splitlines()[2:]]
    return [sum(int(row[at]) for row in rows if row[0] != "lo:") for at in (1, 9)]


def test_usage(truth, bench):
    program, before = bench.folder / "program.py", network()
    program.write_text(PROGRAM)
    done = bench.measured(LAUNCHER, program, bench.folder / "data")
    after, own, usage = network(), json.loads(done.out), done.json["usage"]
    user, system, peak, waits, forced, major = own["child"]
    user_own, system_own, peak_own, waits_own, forced_own, major_own = own["mine"]
    told, io = own["told"], own["io"]
    cpu = user + system + user_own + system_own
    truth.check("run:usage.cpu_seconds", usage["cpu_seconds"], (cpu, cpu + 0.3))  # the launcher's end
    truth.check("run:usage.user_seconds", usage["user_seconds"], user + user_own)
    truth.check("run:usage.system_seconds", usage["system_seconds"], system + system_own)
    truth.check("run:usage.cores_mean", usage["cores_mean"],
                usage["cpu_seconds"] / (done.json["run"]["elapsed_ns"] / 1e9))
    cpus = len(os.sched_getaffinity(0))
    truth.check("run:usage.cores_max", usage["cores_max"], 1.05 * cpus)
    truth.check("run:usage.cores_allowed", usage["cores_allowed"], cpus)
    truth.check("run:usage.rss_peak_bytes", usage["rss_peak_bytes"], peak * 1024)
    truth.check("run:usage.tree_rss_max_bytes", usage["tree_rss_max_bytes"], (HELD, (peak + peak_own) * 1024))
    machine = int(re.search(r"MemTotal: +(\d+)", open("/proc/meminfo", encoding="ascii").read())[1]) * 1024
    truth.check("run:usage.memory_allowed_bytes", usage["memory_allowed_bytes"], machine)
    for shown, name in (("io_read_bytes", "rchar"), ("io_write_bytes", "wchar"), ("disk_read_bytes", "read_bytes"),
                        ("disk_write_bytes", "write_bytes")):
        truth.check("run:usage." + shown, usage[shown], (told[name], told[name] + io[name] + (2 << 20)))
    for shown, name, least, most in (("switches_voluntary", "waits", told["waits"], waits + waits_own),
                                     ("switches_forced", "forced", told["forced"], forced + forced_own),
                                     ("faults_major", "major", told["major"], major + major_own)):
        truth.check("run:usage." + shown, usage[shown], (least, max(most, least) + 20))
    assert usage["switches_voluntary"] >= 100
    truth.check("run:usage.threads_max", usage["threads_max"], 1 + 6)
    truth.check("run:usage.processes_max", usage["processes_max"], 2)
    for at, name in enumerate(("net_received_bytes", "net_sent_bytes")):
        if usage[name] is not None:
            truth.check("run:usage." + name, usage[name], after[at] - before[at])
        else:  # a machine without a network
            truth.check("run:usage." + name, 0, after[at] - before[at])
    [process] = [row for row in done.json["processes"] if row["pid"] == told["pid"]]
    truth.check("run:processes[].cpu_seconds", process["cpu_seconds"], (1.0, user + system))  # of 1.5 s
    truth.check("run:processes[].memory_peak_bytes", process["memory_peak_bytes"], peak * 1024)
    truth.check("run:processes[].disk_read_bytes", process["disk_read_bytes"], told["read_bytes"] + (2 << 20))
    truth.check("run:processes[].disk_write_bytes", process["disk_write_bytes"],
                (told["write_bytes"] - (1 << 20), told["write_bytes"] + (2 << 20)))
    rows = {(row["metric"], row["subject"]): row for row in done.json["metrics"] if row["samples"]}
    truth.check("run:metrics[].total", rows["cpu.user", "tree"]["total"], user + user_own + 0.3)
    truth.check("run:metrics[].max", rows["memory.rss", "tree"]["max"], (HELD, (peak + peak_own) * 1024))
    truth.check("run:metrics[].max", rows["threads", "tree"]["max"], (7, 7))
