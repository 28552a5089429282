# history: what keeping a run costs, and how long a history of 100,000 runs takes to look into.
# One process, and writers beside it. Must not know how tare works inside: it runs programs.
"""Figures of `tare history`."""
import concurrent.futures
import json
import os
import random
import statistics
import subprocess
import time

from figures import TARE, Void

WRITERS = 8

# The newest ones; what most runs have; what few have; what none has.
QUERIES = [["-n", "20"], ["--command", "train_7.py"], ["--command", "nothing is called so"], ["--tag", "nightly"],
         ["--host", "host3", "--since", "2024-01-01"], ["--revision", "00000000abc"],
         ["--tag", "nightly", "--host", "none"]]


def figures(figure, recorder, quick):
    """(figures, what measures them), in order."""
    queries = [figure("history of 100,000 runs: the slowest of seven lists and filters", "ms", 100),
             figure("  one figure in the course of 100,000 runs", "ms"), figure("  taking the 100,000 in", "s")]
    keeps = figure("keeping a run: added to `tare run -q -- true`", "ms", 3)
    writers = figure(f"{WRITERS} writers at once: runs lost", "", 0)
    count = 20000 if quick else 100000
    return [(queries, lambda: query(*queries, recorder, count, 3 if quick else 9)),
            ([keeps], lambda: keep(keeps, recorder, 10 if quick else 60)),
            ([writers], lambda: write(writers, recorder, 5 if quick else 25))]


def tare(*words, store, **options):
    """Elapsed milliseconds."""
    begin = time.monotonic()
    done = subprocess.run([TARE, *words], env={**os.environ, "TARE_STORE": store}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    taken = (time.monotonic() - begin) * 1e3
    if done.returncode != 0 or "not in the history" in done.stderr:
        raise Void(done.stderr.strip()[-200:])
    return taken, done.stdout


def lines(count):
    """Runs as `tare history export` writes them: 20 programs, 5 hosts, a revision for every 50 runs."""
    chance = random.Random(1)
    names = ["run.elapsed", "run.cpu", "run.peak_rss", "step", "span:train/forward"]
    for i in range(count):
        rows = [{"name": name, "unit": "ns", "better": "lower", "exact": False, "value": 1e6 * chance.uniform(0.9, 1.1),
                 "total": None, "n": 1} for name in names]
        run = {"id": f"{chance.getrandbits(128):032x}", "kind": "run", "when_ns": 1700000000000000000 + i * 600 * 10**9,
               "command": f"python3 train_{i % 20}.py --epochs 3", "directory": "/home/someone/project",
               "host": f"host{i % 5}", "machine": f"m{i % 5}", "cpu_model": "A CPU",
               "revision": f"{i // 50:012x} on main",
               "dirty": False, "status": 0, "signal": None, "elapsed_ns": 10**9, "trace": f"/home/someone/{i}.tare",
               "tags": ["nightly"] if i % 100 == 0 else []}
        yield json.dumps({"schema": {"name": "tare-history", "version": 1}, "run": run,
                          "figures": {"tare_baseline": 1, "kind": "run", "figures": rows}}) + "\n"


def query(slowest, trend, taking_in, recorder, count, times):
    store, path = recorder.path("runs") + ".db", recorder.path("runs") + ".jsonl"
    with open(path, "w") as out:
        out.writelines(lines(count))
    taking_in.add(tare("history", "import", path, store=store)[0] / 1e3, f"{count:,} runs of five figures")
    os.remove(path)
    worst, name = 0, ""
    for words in QUERIES:
        taken = statistics.median(tare("history", *words, store=store)[0] for _ in range(times))
        if taken > worst:
            worst, name = taken, " ".join(words)
    slowest.add(worst, f"{count:,} runs, {os.path.getsize(store) / 1e6:.0f} MB; {name}")
    taken, out = tare("history", "trend", "run.elapsed", "--command", "train_7", "--all-machines", "--json",
                      store=store)
    trend.add(taken, f"{len(json.loads(out)['trends'][0]['points']):,} points")


def keep(figure, recorder, pairs):
    store, trace = recorder.path("kept") + ".db", recorder.path("kept")
    run = lambda *options: tare("run", "-q", "-f", "-o", trace, *options, "--", "true", store=store)[0]
    run()  # the file is made
    added = []
    for _ in range(pairs):
        added.append(-run("--no-history") + run())
    figure.add(statistics.median(added),
               f"median of {pairs} pairs; a quarter above {statistics.quantiles(added)[2]:.1f}")


def write(figure, recorder, each):
    store = recorder.path("crowd") + ".db"

    def one(number):
        for i in range(each):
            tare("run", "-q", "-f", "-o", recorder.path(f"crowd{number}"), "--", "true", store=store)

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(one, range(WRITERS)))
    kept = len(json.loads(tare("history", "--json", "-n", "0", store=store)[1])["runs"])
    figure.add(WRITERS * each - kept, f"{kept} of {WRITERS * each} are there")
