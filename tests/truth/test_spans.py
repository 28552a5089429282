"""Spans, counters and marks of a program that counts and times its own calls."""
import json
import math
import statistics

from truth import Figure, absolute, bracketed, exact, relative

CLOCK = "`time.perf_counter_ns()` in the program, just inside and just outside of each call"
COUNT = "the program's own count"
TIME = bracketed(0.005)
FIGURES = [
    Figure("run:spans[].calls", "calls of a span", COUNT, exact),
    Figure("run:spans[].total_ns", "time between begin and end, all calls", CLOCK, TIME),
    Figure("run:spans[].min_ns", "shortest call", CLOCK, TIME),
    Figure("run:spans[].max_ns", "longest call", CLOCK, TIME),
    Figure("run:spans[].mean_ns", "mean of all calls", CLOCK, TIME),
    Figure("run:spans[].p50_ns", "median of all calls", CLOCK + ", sorted", TIME),
    Figure("run:spans[].p95_ns", "95th percentile of all calls", CLOCK + ", sorted", TIME),
    Figure("run:spans[].p99_ns", "99th percentile of all calls", CLOCK + ", sorted", TIME),
    Figure("run:spans[].self_ns", "total less the spans inside it, less the recorder's cost", CLOCK, TIME),
    Figure("run:spans[].raw_self_ns", "total less the spans inside it", CLOCK, TIME),
    Figure("run:spans[].self_share", "self time of that of all spans", "arithmetic on the program's own times",
           absolute(0.01)),
    Figure("run:spans[].run_share", "share of the duration of the run",
           "arithmetic on the program's own times and `run.elapsed_ns`, which has a row of its own", absolute(0.01)),
    Figure("run:spans[].share", "share of all top-level spans", "arithmetic on the program's own times",
           absolute(0.01)),
    Figure("run:spans[].numbers[].count", "values attached to a span", COUNT, exact),
    Figure("run:spans[].numbers[].sum", "sum of the values attached to a span", "the program's own sum", exact),
    Figure("run:spans[].numbers[].per_second", "that sum over the span's time", "the program's own sum and clock",
           TIME),
    Figure("run:spans[].numbers[].inspected", "steps that an estimate comes from: none, the sum is of all calls",
           "no shapes were asked for", exact),
    Figure("run:counters[].count", "values of a counter", COUNT, exact),
    Figure("run:counters[].first", "first value of a counter", "the program's own list", exact),
    Figure("run:counters[].last", "last value of a counter", "the program's own list", exact),
    Figure("run:counters[].min", "smallest value of a counter", "the program's own list", exact),
    Figure("run:counters[].max", "largest value of a counter", "the program's own list", exact),
    Figure("run:counters[].mean", "mean of a counter's values", "the program's own list", relative(1e-9)),
    Figure("run:marks[].count", "times a mark was set", COUNT, exact),
    Figure("run:run.spans", "spans in the trace", COUNT, exact),
    Figure("run:threads[].spans", "spans of a thread", COUNT, exact),
    Figure("run:threads[].busy_ns", "time of a thread's top-level spans", CLOCK, TIME),
    Figure("run:processes[].spans", "spans of a process", COUNT, exact),
    Figure("run:processes[].busy_ns", "time of a process's top-level spans", CLOCK, TIME),
]

PROGRAM = """
import json, time, tare

clock = time.perf_counter_ns
times = {"outer": [], "inner": [], "other": []}
values = []

def timed(name, work, **numbers):
    outside = clock()
    with tare.span(name, **numbers):
        inside = clock()
        work()
        inner = clock() - inside
    times[name].append((inner, clock() - outside))

for i in range(40):
    def inner():
        time.sleep(0.003 + 0.0005 * (i % 5))
    def outer():
        time.sleep(0.004)
        timed("inner", inner)
        timed("inner", inner)
    timed("outer", outer, samples=i + 1)
    timed("other", lambda: time.sleep(0.002))
    values.append((i * 7919) % 101 / 4)
    tare.counter("level", values[-1])
    if i % 8 == 0:
        tare.mark("tick")
print(json.dumps({**times, "values": values}))
"""


def quantiles(values, share):
    """Any common definition of a quantile lies between these two."""
    values = sorted(values)
    at = (len(values) - 1) * share
    return values[int(at)], values[min(math.ceil(at), len(values) - 1)]


def test_spans_counters_and_marks(truth, bench):
    done = bench.measured(PROGRAM)
    own = json.loads(done.out)
    report = done.json
    spans = {span["name"]: span for span in report["spans"]}
    low = {name: [one[0] for one in own[name]] for name in ("outer", "inner", "other")}
    high = {name: [one[1] for one in own[name]] for name in ("outer", "inner", "other")}
    for name in low:
        row = spans[name]
        truth.check("run:spans[].calls", row["calls"], len(low[name]))
        for key, of in (("total_ns", sum), ("min_ns", min), ("max_ns", max), ("mean_ns", statistics.mean)):
            truth.check("run:spans[]." + key, row[key], (of(low[name]), of(high[name])))
        for share, key in ((0.5, "p50_ns"), (0.95, "p95_ns"), (0.99, "p99_ns")):
            truth.check("run:spans[]." + key, row[key],
                        (quantiles(low[name], share)[0], quantiles(high[name], share)[1]))
    for key in ("self_ns", "raw_self_ns"):
        truth.check("run:spans[]." + key, spans["outer"][key],
                    (sum(low["outer"]) - sum(high["inner"]), sum(high["outer"]) - sum(low["inner"])))
        truth.check("run:spans[]." + key, spans["inner"][key], (sum(low["inner"]), sum(high["inner"])))
    everything = sum(low["outer"]) + sum(low["other"])
    truth.check("run:spans[].share", spans["outer"]["share"], sum(low["outer"]) / everything)
    truth.check("run:spans[].share", spans["inner"]["share"], sum(low["inner"]) / everything)
    truth.check("run:spans[].self_share", spans["inner"]["self_share"], sum(low["inner"]) / everything)
    truth.check("run:spans[].run_share", spans["outer"]["run_share"], sum(low["outer"]) / report["run"]["elapsed_ns"])
    [samples] = spans["outer"]["numbers"]
    truth.check("run:spans[].numbers[].count", samples["count"], 40)
    truth.check("run:spans[].numbers[].inspected", samples["inspected"], 0)
    truth.check("run:spans[].numbers[].sum", samples["sum"], 40 * 41 // 2)
    truth.check("run:spans[].numbers[].per_second", samples["per_second"],
                (820e9 / sum(high["outer"]), 820e9 / sum(low["outer"])))
    [counter] = [row for row in report["counters"] if row["name"] == "level"]
    values = own["values"]
    for key, true in (("count", len(values)), ("first", values[0]), ("last", values[-1]), ("min", min(values)),
                      ("max", max(values)), ("mean", statistics.mean(values))):
        truth.check("run:counters[]." + key, counter[key], true)
    [mark] = [row for row in report["marks"] if row["name"] == "tick"]
    truth.check("run:marks[].count", mark["count"], 5)
    truth.check("run:run.spans", report["run"]["spans"], 40 * 4)
    busy = (sum(low["outer"]) + sum(low["other"]), sum(high["outer"]) + sum(high["other"]))
    for table in ("threads", "processes"):
        [row] = [row for row in report[table] if row["spans"]]
        truth.check(f"run:{table}[].spans", row["spans"], 160)
        truth.check(f"run:{table}[].busy_ns", row["busy_ns"], busy)
