"""Time between steps, in which a program evaluates and collects data, the counter of its threads, and a fact."""
import json

import pytest
from truth import Figure, bracketed, exact

FOUND = "run:findings[].figures[].value, outside-steps "
CLOCK = "`time.perf_counter_ns()` in the program, around what lies between two steps and in the steps next to it"
FIGURES = [
    Figure(FOUND + "outside", "time between the first and the last step that is in none", CLOCK, bracketed(0.02)),
    Figure(FOUND + "share", "its share of the time between the first and the last step", CLOCK, bracketed(0.02)),
    Figure(FOUND + "forward", "of it: models computed without training", CLOCK + ", around each call of the model",
           bracketed(0.02)),
    Figure("run:counters[].max, python.threads", "Python threads that ran beside the one that trains",
           "threads that the program starts", exact),
    Figure("run:facts[].value", "value that a hook read, here of torch.set_num_threads", "the program's own call",
           exact),
    Figure("run:facts[].count", "times that it was recorded", "the program's own call", exact),
]

# An evaluation after each eighth step; the last one is behind the last step. A step lasts from one request for a batch
# to the next; the program reads its clock before and behind these.
LOOP = """
import json, threading, time, torch
torch.set_num_threads(1)
clock = time.perf_counter_ns

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(16, 4)
    def forward(self, x):
        begin = clock()
        if not self.training:
            time.sleep(0.004)
        out = self.body(x)
        inside.append(clock() - begin)
        return out

stop = threading.Event()
for _ in range(2):
    threading.Thread(target=stop.wait, daemon=True).start()
model = Net()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.ones(8, 16)
loader = torch.utils.data.DataLoader(torch.ones(64, 16), batch_size=8)
begins, gaps, inside, around = [], [], [], []
asked = clock()
for epoch in range(6):
    model.train()
    for batch in loader:
        begins.append((asked, clock()))
        opt.zero_grad()
        model(batch).sum().backward()
        time.sleep(0.002)
        opt.step()
        asked = clock()
    left, ended = asked, clock()
    inside.clear()
    time.sleep(0.003)
    model.eval()
    with torch.no_grad():
        for _ in range(5):
            begin = clock()
            model(x)
            around.append(clock() - begin)
    asked = clock()
    gaps.append((ended, left, asked, sum(inside), sum(around)))
    around.clear()
stop.set()
print(json.dumps([begins, gaps]))
"""


def test_time_outside_steps(truth, bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(LOOP, report=["--all"])
    begins, gaps = json.loads(done.out)
    [found] = [one for one in done.json["findings"] if one["id"] == "outside-steps"]
    shown = {figure["name"]: figure["value"] for figure in found["figures"]}
    starts = [begins[8 * epoch] for epoch in range(1, 6)]  # of the steps behind the gaps
    low = sum(after - ended for (ended, _, after, *_), _ in zip(gaps, starts))
    high = sum(came - left for (_, left, *_), (_, came) in zip(gaps, starts))
    truth.check(FOUND + "outside", shown["outside"], (low / 1e9, high / 1e9))
    truth.check(FOUND + "forward", shown["forward"],
                (sum(gap[3] for gap in gaps[:5]) / 1e9, sum(gap[4] for gap in gaps[:5]) / 1e9))
    asked, came = begins[done.json["phases"]["warm_up_steps"]]
    truth.check(FOUND + "share", shown["share"], (low / (gaps[-1][0] - asked), high / (gaps[-1][1] - came)))
    [threads] = [one for one in done.json["counters"] if one["name"] == "python.threads"]
    truth.check("run:counters[].max, python.threads", threads["max"], 2)
    [setting] = [one for one in done.json["facts"] if one["key"] == "torch.set_num_threads"]
    truth.check("run:facts[].value", setting["value"], 1)
    truth.check("run:facts[].count", setting["count"], 1)


# As torchrun: the process that starts the ranks has imported torch, has threads, and trains nothing.
LAUNCHER = """
import subprocess, sys, threading, time, torch
threading.Thread(target=threading.Event().wait, daemon=True).start()
rank = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
while rank.poll() is None:
    time.sleep(0.001)
sys.exit(rank.returncode)
"""
RANK = """
import time, torch
model = torch.nn.Linear(16, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    time.sleep(0.03)
    opt.zero_grad()
    model(torch.ones(8, 16)).sum().backward()
    opt.step()
"""


def test_threads_of_a_launcher_load_nothing(bench):
    pytest.importorskip("torch", reason="torch is not installed for this Python")
    done = bench.measured(LAUNCHER, RANK)
    assert max([one["max"] for one in done.json["counters"] if one["name"] == "python.threads"], default=0) == 0
    [found] = [one for one in done.json["findings"] if one["id"] == "outside-model"]
    assert "load the next batch while the model computes" in found["advice"]
