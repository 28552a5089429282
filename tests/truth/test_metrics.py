"""The course of what was sampled: of a program that knows when it started threads, took memory and used the CPU."""
import json

from truth import Figure, bracketed

OWN = "the program's own threads, `VmRSS` and `getrusage()`"
WHEN = "`time.time_ns()` in the program"
FIGURES = [
    Figure("run:metrics[].samples", "how many samples there are",
           "time from the first to the last, over the longest time "
           "between samples and over that asked for", bracketed(0.05)),
    Figure("run:metrics[].first", "first value of a gauge", OWN, bracketed(0.02)),
    Figure("run:metrics[].last", "last value of a gauge", OWN, bracketed(0.02)),
    Figure("run:metrics[].min", "smallest value", OWN, bracketed(0.02)),
    Figure("run:metrics[].mean", "mean weighted by time; of a total its rate",
           OWN + ", and when they changed, less one "
           "interval", bracketed(0.02)),
    Figure("run:metrics[].max_at_ns", "when the largest value was sampled first", WHEN + ", and one interval later",
           bracketed()),
    Figure("run:metrics[].from_ns", "first sample", WHEN + " at its begin", bracketed()),
    Figure("run:metrics[].to_ns", "last sample", WHEN + " at its end, less one interval; end of the run", bracketed()),
    Figure("run:metrics[].points[][]", "time, duration, least, mean and largest value of each stretch",
           "the program's own threads, and the sum of all stretches", bracketed(1e-6)),
    Figure("run:usage.rss_peak_at_ns", "when memory was at its peak", WHEN + " around it, and one interval later",
           bracketed()),
]
HELD = 200 << 20
PROGRAM = """
import json, mmap, os, re, resource, sys, threading, time
told = {"begin": time.time_ns()}

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

time.sleep(1.2)
told["threads"] = [time.time_ns()]
for _ in range(5):
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
told["threads"].append(time.time_ns())
until = time.process_time() + 0.8
while time.process_time() < until:
    sum(range(2000))
told["memory"] = [time.time_ns()]
held = mmap.mmap(-1, %d)
for at in range(0, len(held), 4096):
    held[at] = 1
told["most"] = resident()
time.sleep(1.2)
held.close()
told["memory"].append(time.time_ns())
time.sleep(1.2)
used = resource.getrusage(resource.RUSAGE_SELF)
told.update(resident=resident(), user=used.ru_utime, end=time.time_ns())
print(json.dumps(told), flush=True)
os._exit(0)
""" % HELD


def test_metrics(truth, bench):
    done = bench.measured(PROGRAM)
    own, report = json.loads(done.out), done.json
    rows = {row["metric"]: row for row in report["metrics"] if row["subject"] == "tree" and row["samples"]}
    start, elapsed = report["run"]["start_realtime_ns"], report["run"]["elapsed_ns"]
    longest = report["tare"]["longest_interval_ns"] + 5e6  # and what the wall clock may be slewed by
    begin, end = own["begin"] - start, own["end"] - start
    threads, memory, user = rows["threads"], rows["memory.rss"], rows["cpu.user"]
    for row in (threads, memory, user):
        truth.check("run:metrics[].from_ns", row["from_ns"], (0, begin))
        truth.check("run:metrics[].to_ns", row["to_ns"], (end - longest, elapsed))
        lasts = row["to_ns"] - row["from_ns"]
        truth.check("run:metrics[].samples", row["samples"], (lasts / longest, lasts / 100e6 + 3))
        # Each stretch begins where the one before it ended.
        points = row["points"]
        truth.check("run:metrics[].points[][]", points[0][0], (row["from_ns"],) * 2)
        truth.check("run:metrics[].points[][]", [point[0] for point in points[1:]],
                    [(at + takes - 2, at + takes + 2) for at, takes, *_ in points[:-1]])
    # One thread, and from a moment on six of them.
    for key, true in (("first", 1), ("min", 1), ("last", 6)):
        truth.check("run:metrics[]." + key, threads[key], (true, true))
    before, after = (at - start for at in own["threads"])
    truth.check("run:metrics[].max_at_ns", threads["max_at_ns"], (before, after + longest))
    lasts, until = threads["to_ns"] - threads["from_ns"], threads["to_ns"]
    truth.check("run:metrics[].mean", threads["mean"],
                ((lasts + 5 * (until - after - longest)) / lasts, (lasts + 5 * (until - before)) / lasts))
    early = [point for point in threads["points"] if point[0] + point[1] < before]
    late = [point for point in threads["points"] if point[0] > after + longest]
    assert len(early) >= 3 and len(late) >= 3
    for points, n in ((early, 1), (late, 6)):
        truth.check("run:metrics[].points[][]", [value for point in points for value in point[2:]],
                    [(n, n)] * 3 * len(points))
    # Memory: taken and given back.
    taken, freed = (at - start for at in own["memory"])
    truth.check("run:metrics[].max_at_ns", memory["max_at_ns"], (taken, freed + longest))
    truth.check("run:usage.rss_peak_at_ns", report["usage"]["rss_peak_at_ns"], (taken, freed + longest))
    truth.check("run:metrics[].last", memory["last"], (own["resident"],) * 2)
    truth.check("run:metrics[].first", memory["first"], (4096, own["resident"]))
    truth.check("run:metrics[].min", memory["min"], (4096, own["resident"]))
    lasts = memory["to_ns"] - memory["from_ns"]
    held = (freed - taken) * HELD
    truth.check("run:metrics[].mean", memory["mean"],
                ((held - longest * HELD) / lasts, own["resident"] + (held + longest * HELD) / lasts))
    # CPU time: of a total, the mean is what it grew by over time.
    lasts = (user["to_ns"] - user["from_ns"]) / 1e9
    truth.check("run:metrics[].mean", user["mean"], (0.6 / lasts, (own["user"] + 0.05) / lasts))
    truth.check("run:metrics[].min", user["min"], (0, 0.5 / 1.2))  # it slept for more than a second
