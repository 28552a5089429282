"""Steps and epochs: told by the program, found in a training loop without a DataLoader, and on two ranks."""
import json
import math
import statistics

import pytest
from truth import Figure, at_least, bracketed, exact

CLOCK = "`time.perf_counter_ns()` in the program, just inside and just outside of each step"
TIME = bracketed(0.005)
STEP = {
    "count": ("finished ones", "the program's own count", exact),
    "unfinished": ("begun and never ended", "the program's own count", exact),
    "job_count": ("steps of the job: of all ranks together counted once", "the program's own count", exact),
    "ranks": ("ranks that ran them", "the program's world size", exact),
    "total_ns": ("time in them", CLOCK, TIME),
    "min_ns": ("shortest", CLOCK, TIME),
    "max_ns": ("longest", CLOCK, TIME),
    "mean_ns": ("mean", CLOCK, TIME),
    "partial": ("steps that begin with their forward, without the loading by hand before it", "the program's own order",
                exact),
    "p50_ns": ("median", CLOCK + ", sorted", TIME),
    "p95_ns": ("95th percentile", CLOCK + ", sorted", TIME),
    "p99_ns": ("99th percentile", CLOCK + ", sorted", TIME),
    "first_ns": ("the first one", CLOCK, TIME),
    "rest_p50_ns": ("median of all but the first", CLOCK + ", sorted", TIME),
    "per_second": ("job's whole steps over the time in them; of ranks, which do a step together, over that of one",
                   CLOCK, TIME),
    "slowest[].index": ("which were slowest", "the program's own order", exact),
    "slowest[].duration_ns": ("how long these took", CLOCK, TIME),
    "slowest[].start_at_ns": ("when these began", CLOCK + ", and `time.time_ns()` beside it, 2 ms for its slewing",
                              TIME),
    "numbers[].count": ("values attached in steps", "the program's own count", exact),
    "numbers[].sum": ("their sum", "the program's own sum", exact),
    "numbers[].per_second": ("their sum over the time in steps; of all ranks together",
                             "the program's own sum and clock", TIME),
    "numbers[].inspected": ("steps whose shapes were taken (none here; see operators)", "the options given", exact),
}
FIGURES = [Figure("run:steps[]." + key, *row) for key, row in STEP.items()] + [
    Figure("run:steps[].p50_interval", "95 % interval of the median: probability that its ranks hold the median",
           "binomial distribution by hand, 0.95", at_least),
    Figure("run:steps[].p95_interval", "95 % interval of the 95th percentile, the same",
           "binomial distribution by hand, 0.95", at_least),
] + [Figure(f"run:steps[].{name}_interval.{end}_ns", f"{what} end of the 95 % interval of that percentile",
            CLOCK + ": the order statistic that the binomial distribution tells", TIME)
     for name in ("p50", "p95") for end, what in (("low", "lower"), ("high", "upper"))
] + [Figure("run:epochs[]." + key, *STEP[key]) for key in STEP if key != "slowest[].index"] + [
    Figure("run:findings[].figures[].value",
           "the numbers behind a finding: step-variance, operation, outside-model, straggler",
           CLOCK + ", and around its sleeps", bracketed(0.02)),
]

TOLD = """
import json, time, tare
clock = time.perf_counter_ns
steps, epochs, slept = [], [], []  # (begin outside, begin inside, end inside, end outside)

class timed:
    def __init__(self, to, begin, end):
        self.to, self.begin, self.end = to, begin, end
    def __enter__(self):
        self.outside = clock(); self.begin(); self.inside = clock()
    def __exit__(self, *_):
        inside = clock(); self.end(); self.to.append((self.outside, self.inside, inside, clock()))

for epoch in range(3):
    with timed(epochs, lambda: tare.epoch_begin(epoch), tare.epoch_end):
        for i in range(30):
            number = 30 * epoch + i
            with timed(steps, lambda: tare.step_begin(number), tare.step_end):
                # One slow step an epoch; samples in every step, pages in every fifth.
                before = clock()
                time.sleep(0.004 + 0.0001 * (number * 37 % 30) + 0.02 * (i == 7) + 0.004 * (number == 37))
                slept.append(clock() - before)
                with tare.span("work", samples=number):
                    pass
                if i % 5 == 0:
                    with tare.span("flush", pages=8):
                        pass
            time.sleep(0.001)
tare.step_begin(90)
print(json.dumps([steps, epochs, time.time_ns() - clock(), slept]))
"""


def spread(values, share):
    """Any common definition of a quantile lies between these two."""
    values = sorted(values)
    at = (len(values) - 1) * share
    return values[math.floor(at)], values[math.ceil(at)]


def check_durations(truth, table, row, low, high, quantiles=(), partial=0):
    """All but the total are of whole ones."""
    truth.check(f"run:{table}[].total_ns", row["total_ns"], (sum(low), sum(high)))
    truth.check(f"run:{table}[].first_ns", row["first_ns"], (low[0], high[0]))
    truth.check(f"run:{table}[].partial", row["partial"], partial)
    low, high = low[partial:], high[partial:]
    for key, of in (("min_ns", min), ("max_ns", max), ("mean_ns", statistics.mean)):
        truth.check(f"run:{table}[].{key}", row[key], (of(low), of(high)))
    for share, key in quantiles:
        truth.check(f"run:{table}[].{key}", row[key], (spread(low, share)[0], spread(high, share)[1]))


def coverage(durations, interval, share):
    """How likely the quantile lies between the two, by their ranks among all durations. The program's clock and the
    trace's differ by some microseconds: durations that are as close as that have one rank or the other."""
    values, near_ns = sorted(durations), 20_000
    n = len(values)
    low, high = ([at for at in range(n) if abs(values[at] - interval[key]) <= near_ns] or
                 [min(range(n), key=lambda at: abs(values[at] - interval[key]))] for key in ("low_ns", "high_ns"))
    ranks = low[0] + 1, high[-1] + 1
    return sum(math.comb(n, k) * share ** k * (1 - share) ** (n - k) for k in range(ranks[0], ranks[1]))


def ranks_of(n, share, missed=0.025):
    """Ranks of the narrowest interval that misses the quantile on either side with at most this probability."""
    below = [math.comb(n, k) * share ** k * (1 - share) ** (n - k) for k in range(n + 1)]
    low = max(rank for rank in range(1, n + 1) if sum(below[:rank]) <= missed)
    high = min(rank for rank in range(1, n + 1) if sum(below[rank:]) <= missed)
    return low, high


def figures_of(report, finding, title=""):
    [found] = [one for one in report["findings"] if one["id"] == finding and one["title"].startswith(title)]
    return {figure["name"]: figure["value"] for figure in found["figures"]}


def check_figures(truth, shown, **true):
    """True values are in billionths, as times are."""
    for name, (low, high) in true.items():
        truth.check("run:findings[].figures[].value", shown[name], (low / 1e9, high / 1e9))


def test_steps_that_the_program_tells(truth, bench):
    done = bench.measured(TOLD)
    steps, epochs, wall, slept = json.loads(done.out)
    start = done.json["run"]["start_realtime_ns"] - wall  # of the run, on the program's clock
    [row], [epoch] = done.json["steps"], done.json["epochs"]
    low, high = [c - b for _, b, c, _ in steps], [d - a for a, _, _, d in steps]
    for key, true in (("count", 90), ("unfinished", 1), ("job_count", 90), ("ranks", 0)):
        truth.check("run:steps[]." + key, row[key], true)
    check_durations(truth, "steps", row, low, high, ((0.5, "p50_ns"), (0.95, "p95_ns"), (0.99, "p99_ns")))
    truth.check("run:steps[].rest_p50_ns", row["rest_p50_ns"], (spread(low[1:], 0.5)[0], spread(high[1:], 0.5)[1]))
    truth.check("run:steps[].per_second", row["per_second"],
                (90e9 / sum(high), 90e9 / sum(low)))
    truth.check("run:steps[].slowest[].index", row["slowest"][0]["index"], max(range(90), key=lambda at: high[at]))
    for slow in row["slowest"]:
        truth.check("run:steps[].slowest[].duration_ns", slow["duration_ns"], (low[slow["index"]], high[slow["index"]]))
        truth.check("run:steps[].slowest[].start_at_ns", slow["start_at_ns"],
                    (steps[slow["index"]][0] - start - 2e6, steps[slow["index"]][1] - start + 2e6))
    for key, share in (("p50_interval", 0.5), ("p95_interval", 0.95)):
        truth.check("run:steps[]." + key, coverage(high, row[key], share), 0.95)
        for end, rank in zip(("low_ns", "high_ns"), ranks_of(90, share)):
            truth.check(f"run:steps[].{key}.{end}", row[key][end], (sorted(low)[rank - 1], sorted(high)[rank - 1]))
    # Findings are of steady state, behind steps that warmed up, if any did.
    begin = done.json["phases"]["warm_up_steps"]
    fast, slow = (min(low[begin:]), min(high[begin:])), (max(low[begin:]), max(high[begin:]))
    variance = figures_of(done.json, "step-variance")
    check_figures(truth, variance, fastest=fast, slowest=slow, ratio=(slow[0] / fast[1] * 1e9, slow[1] / fast[0] * 1e9),
                  tail=[1e9 * spread(low[begin:], 0.95)[0] / spread(high[begin:], 0.5)[1],
                        1e9 * spread(high[begin:], 0.95)[1] / spread(low[begin:], 0.5)[0]])
    whole = (steps[-1][2] - steps[begin][1], steps[-1][3] - steps[begin][0])
    operation = figures_of(done.json, "operation", "step ")  # on a busy machine there is one of epochs, too
    check_figures(truth, operation, self=(sum(slept[begin:]), sum(high[begin:])), calls=[(90 - begin) * 1e9] * 2,
                  share=(1e9 * sum(slept[begin:]) / whole[1], 1e9 * sum(high[begin:]) / whole[0]))
    pages, samples = row["numbers"]
    assert (pages["name"], samples["name"]) == ("pages", "samples")
    for number, values in ((pages, [8] * 18), (samples, list(range(90)))):
        truth.check("run:steps[].numbers[].count", number["count"], len(values))
        truth.check("run:steps[].numbers[].sum", number["sum"], sum(values))
        truth.check("run:steps[].numbers[].inspected", number["inspected"], 0)
        truth.check("run:steps[].numbers[].per_second", number["per_second"],
                    (1e9 * sum(values) / sum(high), 1e9 * sum(values) / sum(low)))
    low, high = [c - b for _, b, c, _ in epochs], [d - a for a, _, _, d in epochs]
    for key, true in (("count", 3), ("unfinished", 0), ("job_count", 3), ("ranks", 0)):
        truth.check("run:epochs[]." + key, epoch[key], true)
    check_durations(truth, "epochs", epoch, low, high, ((0.5, "p50_ns"), (0.95, "p95_ns"), (0.99, "p99_ns")))
    truth.check("run:epochs[].rest_p50_ns", epoch["rest_p50_ns"], (spread(low[1:], 0.5)[0], spread(high[1:], 0.5)[1]))
    assert sorted(slow["index"] for slow in epoch["slowest"]) == [0, 1, 2]
    for slow in epoch["slowest"]:
        begin, begun = epochs[slow["index"]][:2]
        truth.check("run:epochs[].slowest[].duration_ns", slow["duration_ns"],
                    (low[slow["index"]], high[slow["index"]]))
        truth.check("run:epochs[].slowest[].start_at_ns", slow["start_at_ns"],
                    (begin - start - 2e6, begun - start + 2e6))
    truth.check("run:epochs[].per_second", epoch["per_second"],
                (3e9 / sum(high), 3e9 / sum(low)))
    truth.check("run:epochs[].numbers[].count", [number["count"] for number in epoch["numbers"]], [18, 90])
    truth.check("run:epochs[].numbers[].inspected", [number["inspected"] for number in epoch["numbers"]], [0, 0])
    truth.check("run:epochs[].numbers[].sum", [number["sum"] for number in epoch["numbers"]], [8 * 18, 90 * 89 // 2])
    truth.check("run:epochs[].numbers[].per_second", epoch["numbers"][0]["per_second"],
                (1e9 * 8 * 18 / sum(high), 1e9 * 8 * 18 / sum(low)))


# A step is from the end of one optimizer step to that of the next: each lies between two readings of the clock around
# opt.step(). The first begins with its forward.
LOOP = """
import json, os, sys, time, torch, tare
clock = time.perf_counter_ns
torch.set_num_threads(1)

def loop(rank, load, steps):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    if rank is not None:
        model = torch.nn.parallel.DistributedDataParallel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    times, slept = [], []
    for i in range(steps):
        before = clock()
        time.sleep(load)
        slept.append(clock() - before)
        x = torch.randn(16, 64)
        before = clock()
        loss = model(x).sum()
        if not times:
            times.append((before, clock()))
        with tare.span("note", samples=16):
            pass
        opt.zero_grad()
        loss.backward()
        before = clock()
        opt.step()
        times.append((before, clock()))
    time.sleep(0.1)  # none of a step
    return times, slept
"""


def bounds(times):
    """Shortest and longest that each step can have been."""
    return [b - a for (_, a), (b, _) in zip(times, times[1:])], [b - a for (a, _), (_, b) in zip(times, times[1:])]


def test_steps_without_a_loader(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(LOOP + "\nprint(json.dumps(loop(None, 0.05, 25)))\n")
    times, slept = json.loads(done.out)
    low, high = bounds(times)
    [row] = done.json["steps"]
    truth.check("run:steps[].count", row["count"], 25)
    truth.check("run:steps[].unfinished", row["unfinished"], 0)
    # The first one begins with its forward, without what was loaded for it: durations and rates are of the whole ones.
    check_durations(truth, "steps", row, low, high, ((0.5, "p50_ns"), (0.95, "p95_ns")), partial=1)
    truth.check("run:steps[].per_second", row["per_second"], (24e9 / sum(high[1:]), 24e9 / sum(low[1:])))
    [samples] = row["numbers"]
    truth.check("run:steps[].numbers[].sum", samples["sum"], 16 * 25)
    truth.check("run:steps[].numbers[].per_second", samples["per_second"],
                (24e9 * 16 / sum(high[1:]), 24e9 * 16 / sum(low[1:])))
    [found] = [finding for finding in done.json["findings"] if finding["id"] == "outside-model"]
    assert "load" not in found["title"]
    # The first step begins with its forward: what the program slept before is none of it.
    begin = done.json["phases"]["warm_up_steps"]
    outside = (sum(slept[max(begin, 1):]), sum(high[begin:]))
    check_figures(truth, figures_of(done.json, "outside-model"), outside=outside,
                  share=(1e9 * outside[0] / sum(high[begin:]), 1e9))
    # Steps follow upon one another: their time is that of steady state, and all that is outside of it could be saved.
    assert found["gain"] == pytest.approx(figures_of(done.json, "outside-model")["share"], rel=0.02)


# Batches are asked for between two readings of the clock: before next(), and where the dataset is first asked. Before
# it trains, the program looks at a batch, and goes through the loader once. Evaluations and checkpoints lie between
# epochs.
EPOCHS = """
import json, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
clock = time.perf_counter_ns
asked = []

class Slow(Dataset):
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if not asked[-1][1]:
            asked[-1][1] = clock()
        time.sleep(0.0005)
        return torch.ones(16), torch.zeros(4)

class Held(Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        time.sleep(0.003)  # held out
        return torch.ones(16), torch.zeros(4)

asked.append([0, 1])
train, test = DataLoader(Slow(64), batch_size=8, shuffle=True), DataLoader(Held(), batch_size=8)
x, y = next(iter(train))
for _ in train:
    continue
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
state = torch.zeros(1 << 22)
asked.clear()
saves, evaluated, steps = [], [], 0
for epoch in range(10):
    model.train()
    batches = iter(train)
    while True:
        asked.append([clock(), 0])
        batch = next(batches, None)
        if batch is None:
            asked[-1] += [clock(), "end"]
            break
        x, y = batch
        opt.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        opt.step()
        steps += 1
    model.eval()
    with torch.no_grad():
        for x, y in test:
            model(x)
    before = clock()
    torch.save(state, "checkpoint.pt")
    saves.append(clock() - before)
    evaluated.append(clock())
print(json.dumps([asked, saves, steps, evaluated[-1] - asked[0][0]]))
"""


def lengths_of(asked):
    """Shortest and longest that each step can have been: from the request for its batch to the next request."""
    low, high = [], []
    for (begin, first, *_), (end, after, *stop) in zip(asked, asked[1:]):
        if first:  # the request that found no more has asked no dataset
            low.append(end - first)
            high.append((stop[0] if stop else after) - begin)
    return low, high


def test_every_step_and_every_sample_of_a_loader(truth, bench):
    """Ten epochs of 64 samples, with evaluations and checkpoints between them."""
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(EPOCHS)
    asked, saves, steps, lasted = json.loads(done.out)
    low, high = lengths_of(asked)
    assert steps == len(low) == 80
    [row], [epoch] = done.json["steps"], done.json["epochs"]
    truth.check("run:steps[].count", row["count"], 80)
    truth.check("run:steps[].unfinished", row["unfinished"], 0)
    truth.check("run:epochs[].count", epoch["count"], 10)
    check_durations(truth, "steps", row, low, high, ((0.5, "p50_ns"), (0.95, "p95_ns")))
    truth.check("run:steps[].per_second", row["per_second"], (80e9 / sum(high), 80e9 / sum(low)))
    [samples] = row["numbers"]
    truth.check("run:steps[].numbers[].count", samples["count"], 80)
    truth.check("run:steps[].numbers[].sum", samples["sum"], 640)
    truth.check("run:steps[].numbers[].per_second", samples["per_second"], (640e9 / sum(high), 640e9 / sum(low)))
    # The same in every output: samples/s is steps/s times the batch.
    assert samples["per_second"] == pytest.approx(8 * row["per_second"], rel=1e-9)
    compared = json.loads(bench.call(bench.command, "compare", "--json", done.trace, done.trace).out)
    [rate] = [one for one in compared["figures"] if one["name"] == "step.samples/s"]
    assert rate["baseline"] == pytest.approx(samples["per_second"], rel=1e-9)
    # The tree has the steps that there were, and nothing of the batches that were only looked at.
    rows = [one for one in done.json["spans"] if one["kind"] in ("step", "epoch")]
    assert sorted((one["name"], one["calls"]) for one in rows) == [("epoch", 10), ("step", 80)]
    # Evaluation and checkpoint after the last step are steady state. Steps that warmed up are not.
    steady, begin = done.json["phases"]["steady_state"], done.json["phases"]["warm_up_steps"]
    assert steady["to_ns"] - steady["from_ns"] >= 0.98 * (lasted - sum(high[:begin]))
    figures = figures_of(done.json, "checkpoints")
    whole = steady["to_ns"] - steady["from_ns"]
    check_figures(truth, figures, saves=[10e9] * 2, saving=(0.9 * sum(saves), sum(saves)),
                  share=(0.9e9 * sum(saves) / whole, 1e9 * sum(saves) / whole))
    [found] = [finding for finding in done.json["findings"] if finding["id"] == "checkpoints"]
    line = EPOCHS.split("\n").index('    torch.save(state, "checkpoint.pt")') + 1
    assert f"script.py:{line}" in found["title"]
    # The dataset that is evaluated on takes longer, and is not the one that training waits for.
    [found] = [finding for finding in done.json["findings"] if finding["id"] == "loader-bound"]
    line = EPOCHS.split("\n").index("        time.sleep(0.003)  # held out") + 1
    assert "script.py:" in found["evidence"] and f"script.py:{line}" not in found["evidence"]


# A loop that asks for the next batch before it trains on the one it has, as frameworks do.
AHEAD = """
import json, torch
from torch.utils.data import DataLoader, IterableDataset
torch.set_num_threads(1)

class Stream(IterableDataset):
    def __iter__(self):
        return iter([torch.ones(16)] * 64)

def ahead(loader):
    batches = iter(loader)
    batch = next(batches)
    while batch is not None:
        following = next(batches, None)
        yield batch
        batch = following

model, teacher = torch.nn.Linear(16, 4), torch.nn.Linear(16, 4).eval()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Stream(), batch_size=8)
steps = 0
for epoch in range(10):
    for x in ahead(loader):
        with torch.no_grad():
            y = teacher(x)
        torch.nn.functional.mse_loss(model(x), y).backward()
        opt.step()
        opt.zero_grad()
        steps += 1
print(steps)
"""


def test_steps_of_a_loop_that_reads_ahead(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(AHEAD)
    [row] = done.json["steps"]
    truth.check("run:steps[].count", row["count"], int(done.out))
    [samples] = row["numbers"]
    truth.check("run:steps[].numbers[].sum", samples["sum"], 640)
    assert samples["per_second"] == pytest.approx(8 * row["per_second"], rel=1e-9)
    rows = [one for one in done.json["spans"] if one["kind"] == "step"]
    assert sum(one["calls"] for one in rows) == row["count"]


# Two workers that are started anew for each of many short epochs, and load for a small part of their time; each batch
# is timed in the worker.
IDLE = """
import json, os, sys, time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
clock = time.perf_counter_ns

class Quick(Dataset):
    def __len__(self):
        return 6
    def __getitems__(self, indexes):
        before = clock()
        time.sleep(0.002)
        batch = [torch.ones(16)] * len(indexes)
        with open(os.path.join(sys.argv[1], "%d.load" % os.getpid()), "a") as out:
            out.write("%d\\n" % (clock() - before))
        return batch
    def __getitem__(self, i):
        return self.__getitems__([i])[0]

model = torch.nn.Linear(16, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(Quick(), batch_size=1, num_workers=2)
for epoch in range(12):
    for x in loader:
        opt.zero_grad()
        model(x).sum().backward()
        opt.step()
"""


def test_workers_that_have_time_left(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(IDLE, str(bench.folder))
    took = [int(line) for file in bench.folder.glob("*.load") for line in file.read_text().split()]
    [row] = done.json["steps"]
    truth.check("run:steps[].count", row["count"], 72)
    [found] = [finding for finding in done.json["findings"] if finding["id"] == "loader-bound"]
    figures = figures_of(done.json, "loader-bound")
    true = sum(took) / (2 * row["total_ns"])
    assert 0.7 * true < figures["workers_busy"] < 2 * true + 0.1  # with what torch does around the dataset
    if figures["workers_busy"] < 0.7:  # else something else kept them busy, and more of them may help
        assert "workers_to_try" not in figures or figures["workers_to_try"] is None
        assert "persistent_workers=True" in found["advice"] and "num_workers=" not in found["advice"]


STREAM = """
import json, time, torch
from torch.utils.data import DataLoader, IterableDataset
torch.set_num_threads(1)

class Slow(IterableDataset):
    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds
    def __iter__(self):
        for _ in range(self.n):
            time.sleep(self.seconds)
            yield torch.ones(64)

model = torch.nn.Linear(64, 64)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
asked = []
batches = iter(DataLoader(Slow(120, 0.005), batch_size=4))
while True:
    before = time.monotonic()
    batch = next(batches, None)
    after = time.monotonic()
    if batch is None:
        break
    asked.append((before, after))
    opt.zero_grad()
    model(batch).sum().backward()
    opt.step()
    if len(asked) == 15:
        model.eval()
        with torch.no_grad():
            for other in DataLoader(Slow(20, 0.1), batch_size=4):
                model(other)
        model.train()
print(json.dumps(asked))
"""


def test_steps_of_a_loader_without_a_length(truth, bench):
    """A step has its own batch in it, and nothing of an evaluation that takes longer than all of them."""
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(STREAM)
    asked = json.loads(done.out)
    row = next(row for row in done.json["steps"] if row["name"] == "step")
    truth.check("run:steps[].count", row["count"], len(asked))
    gaps = sorted(b[0] - a[0] for a, b in zip(asked, asked[1:]))
    assert 0.02e9 <= row["rest_p50_ns"] <= 2e9 * gaps[len(gaps) // 2]
    waited = sum(after - before for before, after in asked[1:])
    assert row["total_ns"] >= 0.95e9 * waited
    [found] = [finding for finding in done.json["findings"] if finding["id"] == "loader-bound"]
    [waiting] = [figure["value"] for figure in found["figures"] if figure["name"] == "waiting"]
    assert waiting <= 1.05 * sum(after - before for before, after in asked)


RANKS = LOOP + """
import torch.distributed as dist, torch.multiprocessing as mp

def work(rank, folder):
    dist.init_process_group("gloo", init_method="file://" + folder + "/meet", rank=rank, world_size=2)
    told = loop(rank, 0.04 if rank == 1 else 0.002, 20)
    with open(folder + "/%d.json" % rank, "w") as out:
        json.dump(told, out)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1],), nprocs=2)
"""


def test_rates_of_two_ranks_are_the_jobs(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(RANKS, str(bench.folder))
    times, slept = zip(*[json.loads((bench.folder / f"{rank}.json").read_text()) for rank in (0, 1)])
    [row] = done.json["steps"]
    for key, true in (("count", 40), ("job_count", 20), ("ranks", 2), ("unfinished", 0)):
        truth.check("run:steps[]." + key, row[key], true)
    longest = max(t[-1][1] for t in times) - min(t[0][0] for t in times)
    whole = (max(t[-1][1] for t in times) - min(t[1][0] for t in times),  # the first ones lack what was loaded for them
             max(t[-1][0] for t in times) - min(t[1][1] for t in times))
    truth.check("run:steps[].per_second", row["per_second"], (19e9 / whole[0], 19e9 / whole[1]))
    [samples] = row["numbers"]
    truth.check("run:steps[].numbers[].sum", samples["sum"], 2 * 20 * 16)
    # Steps of a rank follow upon one another, so that the time in them is that from its first to its last.
    truth.check("run:steps[].numbers[].per_second", samples["per_second"],
                tuple(2 * 16 * 19e9 / time for time in whole))
    # Rank 1 loads for 40 ms, and the other one waits for it in the backward pass.
    begin = done.json["phases"]["warm_up_steps"]
    figures = figures_of(done.json, "straggler")
    fewest = 20 - max(begin, 1)
    check_figures(truth, figures, rank=[1e9, 1e9], own=(sum(slept[1][max(begin, 1):]) / 20, longest / fewest),
                  others=(sum(slept[0][max(begin, 1):]) / 20, longest / fewest))
    assert figures["others"] < figures["own"] - 0.02
    # What would be saved, of steady state: torch's import and the processes' start are none of it.
    [straggler] = [finding for finding in done.json["findings"] if finding["id"] == "straggler"]
    steady = done.json["phases"]["steady_state"]
    lasts = (steady["to_ns"] - steady["from_ns"]) / 1e9
    assert lasts < 0.8 * done.json["run"]["elapsed_ns"] / 1e9
    lost = (figures["own"] - figures["others"]) * 20
    backward = max(lasts - figures["own"] * 20, 0)  # at most: they may become shorter, too
    assert 0.75 * lost / lasts < straggler["gain"] <= min((1.12 * lost + backward) / lasts, 1)  # others wake up sooner


# Nobody sees the end of the last update by hand: what the program does afterwards is no part of a step.
BY_HAND = """
import json, time, torch
torch.set_num_threads(1)
model = torch.nn.Linear(16, 4)
begins = []
for _ in range(20):
    time.sleep(0.02)
    begins.append(time.perf_counter_ns())
    model(torch.ones(8, 16)).sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    model.zero_grad()
time.sleep(1)
print(json.dumps(begins))
"""


def test_a_loop_without_an_optimizer_and_what_follows_it(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(BY_HAND)
    begins = json.loads(done.out)
    [row] = done.json["steps"]
    truth.check("run:steps[].count", row["count"], 19)
    truth.check("run:steps[].unfinished", row["unfinished"], 0)
    whole = begins[-1] - begins[1]  # of the first one nobody knows how long it took
    longest = max(end - begin for begin, end in zip(begins, begins[1:]))
    assert abs(row["per_second"] - 18e9 / whole) < 0.02 * 18e9 / whole
    assert row["max_ns"] < 1.02 * longest


# What a collate_fn returns need not begin with the batch: each loop counts its samples itself.
BATCHES = """
import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler
torch.set_num_threads(1)
model = torch.nn.Linear(8, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
pairs = [(torch.randn(3, 4 + i % 3, 8), i % 4) for i in range(44)]

class Stream(IterableDataset):
    def __iter__(self):
        return iter(pairs)

class Whole(torch.utils.data.Dataset):
    def __getitem__(self, indexes):
        return torch.zeros(2, len(indexes))

def detection(batch):
    return tuple(zip(*batch))

def packed(batch):
    return torch.cat([x.reshape(-1) for x, _ in batch]), torch.tensor([y for _, y in batch])

def sequence_first(batch):
    return torch.zeros(3, len(batch), 8), torch.tensor([y for _, y in batch])

def ragged():
    for at in (3, 1, 7):
        yield list(range(at))

class Ragged:
    def __iter__(self):
        return ragged()

if __name__ == "__main__":
    samples = 0
    loaders = [(DataLoader(pairs, batch_size=8, collate_fn=detection), 44),
               (DataLoader(pairs, batch_size=8, collate_fn=list), 44),
               (DataLoader(pairs, batch_size=8, collate_fn=packed, num_workers=2), 44),
               (DataLoader(pairs, batch_size=8, collate_fn=sequence_first, drop_last=True), 40),
               (DataLoader(pairs, batch_sampler=Ragged(), collate_fn=packed), 11),
               (DataLoader(Stream(), batch_size=8, collate_fn=packed), 44),
               (DataLoader(Whole(), sampler=BatchSampler(SequentialSampler(range(44)), 8, False), batch_size=None), 44),
               (DataLoader([torch.zeros(6, 8)] * 5, batch_size=None), 30)]
    again = DataLoader(pairs, batch_size=8, collate_fn=packed, num_workers=1, persistent_workers=True)
    for loader, n in loaders + [(again, 44), (again, 44)]:
        samples += n
        for _ in loader:
            opt.zero_grad()
            model(torch.randn(2, 8)).sum().backward()
            opt.step()
    print(samples)
"""


def test_samples_of_batches_of_any_shape(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(BATCHES)
    [row] = done.json["steps"]
    truth.check("run:steps[].count", row["count"], 6 + 6 + 6 + 5 + 3 + 6 + 6 + 5 + 6 + 6)
    [samples] = row["numbers"]
    truth.check("run:steps[].numbers[].sum", samples["sum"], int(done.out))


CLOSURE = """
import json, time, torch
from torch.utils.data import DataLoader
torch.set_num_threads(1)
clock = time.perf_counter_ns
model = torch.nn.Linear(16, 4)
data = [torch.randn(16) for _ in range(40)]
closed = [0, 0]

def train(opt, x, named):
    def closure():
        before = clock()
        opt.zero_grad()
        time.sleep(0.01)
        loss = model(x).square().sum()
        loss.backward()
        closed[0] += clock() - before
        closed[1] += 1
        return loss
    opt.step(closure=closure) if named else opt.step(closure)

for opt in (torch.optim.SGD(model.parameters(), lr=0.001), torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)):
    for i, x in enumerate(DataLoader(data, batch_size=4)):
        train(opt, x, i % 2)
print(json.dumps(closed))
"""


def test_a_closure_is_no_time_of_the_optimizer(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(CLOSURE)
    closed, calls = json.loads(done.out)
    [row] = done.json["steps"]
    truth.check("run:steps[].count", row["count"], 20)
    rows = done.json["spans"]
    phases = {name: [one for one in rows if one["kind"] == "phase" and one["name"] == name]
              for name in ("data", "forward", "backward", "optimizer")}
    for name in ("forward", "backward"):
        [one] = phases[name]
        assert rows[one["parent"]]["kind"] == "step"
        assert one["calls"] == calls
    [optimizer] = phases["optimizer"]
    assert optimizer["total_ns"] <= row["total_ns"] - closed
    assert sum(one["total_ns"] for of in phases.values() for one in of) <= row["total_ns"]
    assert not [one for one in done.json["findings"] if one["id"] == "unfused-optimizer"]


NEVER_STEPS = """
import sys, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(8)])
one_by_one = torch.optim.Adam(model.parameters(), lr=0.001)
opt = torch.optim.LBFGS(model.parameters(), max_iter=2) if sys.argv[1] == "idle" else one_by_one

def closure():
    opt.zero_grad()
    loss = model(torch.ones(4, 32)).square().sum()
    loss.backward()
    return loss

for _ in range(60):
    opt.step(closure)
"""


@pytest.mark.parametrize("way", ["idle", "used"])
def test_an_optimizer_that_never_steps_takes_no_time(bench, way):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(NEVER_STEPS, way)
    found = [one for one in done.json["findings"] if one["id"] == "unfused-optimizer"]
    assert len(found) == (way == "used")


# Workers have their first batches ready before the program asks for one, so that it waits for nothing but their start
# and end. The first of all may be part of startup.
RESTARTS = """
import json, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.ones(400, 16)), num_workers=2)
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
took, clock = [], time.perf_counter
for epoch in range(12):
    before = clock()
    batches = iter(loader)
    started = clock() - before
    time.sleep(0.1)
    for _ in range(4):
        (batch,) = next(batches)
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        time.sleep(0.01)
    before = clock()
    del batches
    took.append(started + clock() - before)
print(json.dumps(took))
"""


def test_workers_that_are_started_anew(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(RESTARTS)
    took = json.loads(done.out)
    figures = figures_of(done.json, "worker-restarts")
    begin = max(done.json["phases"]["warm_up_steps"] // 4, 1)
    starting = (1e9 * sum(took[begin + 1:]), 1e9 * sum(took[begin - 1:]))
    phase = done.json["phases"]["steady_state"]
    steady = (phase["to_ns"] - phase["from_ns"]) / 1e9
    check_figures(truth, figures, starting=starting, share=(starting[0] / steady, starting[1] / steady))
