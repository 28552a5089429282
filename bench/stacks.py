# stacks: what sampling call stacks costs the program and the sampler, and whether what it says is right.
# One process; programs are not pinned. The machine may be busy: costs are CPU time, and variants take turns.
# Must not know how tare works inside: it runs programs and reads `tare report --json`.
"""Figures of stack sampling, beside other samplers."""
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import time

from figures import BUILD, TARE, Void, plain, report
from stack_peers import PROGRAM, Attached, Austin, Perf, PySpy, Tare, Target, cpu_s, python, scalene, thread_cpu_s

THREADS = ("tare stacks", "tare reader")  # those that sample
SHARES = ("half", "third", "some", "little")
SHORT = ("calls", "loops", "library")
WAITING = ("sleeps", "receives", "waits", "works")
TORCH = os.environ.get("TARE_PYTHON", next((path for path in (
    os.path.join(BUILD, "python", "venv", "bin", "python"),
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "python", "venv", "bin", "python"))
    if os.path.exists(path)), "python3"))


def figures(figure, recorder, quick):
    """(figures, what measures them), in order."""
    work = []
    for hz in (100, 1000):
        mine = [figure(f"stacks: CPU per sample, 33 frames, {hz} Hz", "µs"),
                figure("  py-spy --nonblocking, of it", "x", 20, at_least=True),
                figure("  py-spy, of it", "x", 20, at_least=True), figure("  Austin 3.7, of it", "x")]
        work.append((mine, lambda mine=mine, hz=hz: per_sample(mine, recorder, hz, 4 if quick else 10,
                                                               1 if quick else 3)))
    for hz, limit in ((100, 0.5), (1000, 1)):
        mine = [figure(f"stacks: slow-down of a CPU-bound program, {hz} Hz", "%", limit),
                figure("  by wall time without that in which it waited for a CPU", "%")]
        work.append((mine, lambda mine=mine, hz=hz: slow_down(mine, recorder, Tare(), hz, 24 if quick else 120)))
    for hz, limit in ((100, 0.5), (1000, 1)):
        held = figure(f"stacks: a program of very short functions kept from its CPU, {hz} Hz", "%", limit)
        work.append(([held], lambda held=held, hz=hz: kept_off(held, recorder, hz, 5 if quick else 20)))
    ticks = figure("stacks: ticks missed at 10 kHz, one thread", "%", 1)
    work.append(([ticks], lambda: missed(ticks, recorder, 1 if quick else 3)))
    for name, functions, limit in (("shares", SHARES, 0.5), ("short", SHORT, 0.5)):
        what = "known shares (50/30/15/5 %)" if name == "shares" else "functions of 50 ns, loops and C"
        mine = figure(f"stacks: error of {what}, above that of sampling", "points", limit)
        work.append(([mine], lambda mine=mine, name=name, functions=functions: error_of(
            mine, recorder, Tare(), name, functions, 1000, 6 if quick else 20)))
    by_line = figure("stacks: lines, away from line_profiler's, above the error of sampling", "points", 2)
    waiting = figure("stacks: shares of waiting, above the error of sampling", "points", 2)
    start = [figure("stacks: attach to the first stack", "ms", 50), figure("  CPU time of that", "ms")]
    size = figure("stacks: file growth, 8 threads with torch, 100 Hz", "KB/s", 20)
    mixed = figure("stacks: Python and native, torch training, 100 Hz, with the collector", "%", 2)
    return work + [
        ([by_line], lambda: lines(by_line, recorder, 6 if quick else 20)),
        ([waiting], lambda: error_of(waiting, recorder, Tare(), "waiting", WAITING, 200, 6 if quick else 20)),
        (start, lambda: first(start, 7 if quick else 25)),
        ([size], lambda: growth(size, recorder, 8 if quick else 20)),
        ([mixed], lambda: native(mixed, recorder, 2 if quick else 8)),
    ]


# ---- cost ----------------------------------------------------------------------------------------------------

def cost_of(profiler, recorder, hz, seconds):
    """Seconds of CPU per sample in its steady state: of the process, of Tare's sampling threads; the share of the
    samples that were taken."""
    target = Target("deep", seconds + 2)
    out = recorder.path("stacks")
    try:
        target.go()
        attached = Attached(profiler, target, hz, out)
        begun, own = time.monotonic(), cpu_s(attached.pid)
        thread = thread_cpu_s(attached.pid, *THREADS)[0]
        time.sleep(seconds - 2)
        taken, own = time.monotonic() - begun, cpu_s(attached.pid) - own
        thread = thread_cpu_s(attached.pid, *THREADS)[0] - thread
        whole = time.monotonic() - begun + 1.5
        attached.end()
        samples = profiler.read(out, "deep").samples * taken / whole
        if samples < 0.3 * hz * taken:
            raise Void(f"{profiler.name} took {samples:.0f} samples in {taken:.1f} s")
        return own / samples, thread / samples, samples / (hz * taken)
    finally:
        target.process.kill()
        target.end()


def per_sample(mine, recorder, hz, seconds, rounds):
    ours, *theirs = mine
    for _ in range(rounds):
        process, thread, _ = cost_of(Tare(), recorder, hz, seconds)
        ours.add(1e6 * thread, f"of the sampling thread; of all of Tare {1e6 * process:.0f} µs")
        for one, profiler in zip(theirs, (PySpy("--nonblocking"), PySpy(), Austin())):
            try:
                each, _, share = cost_of(profiler, recorder, hz, seconds)
                one.add(each / thread, f"{1e6 * each:.0f} µs; {100 * share:.0f} % of its samples were taken")
            except Void as why:
                one.reason = str(why)


def windows(profiler, recorder, hz, seconds, length_s=1):
    """The program with the profiler at work and stopped, in turn: per window, chunks as (CPU time, time without that in
    which it was ready and had no CPU). A chunk has two samples at 100 Hz."""
    target = Target("deep", seconds + 4)
    edges = []
    try:
        target.go()
        attached = Attached(profiler, target, hz, recorder.path("stacks"))
        for number in range(round(seconds / length_s)):
            (attached.pause if number % 2 else attached.go_on)()
            edges.append(time.monotonic())
            time.sleep(length_s)
        attached.end()
        chunks = target.result()["chunks"]
    finally:
        target.process.kill()
        target.end()
    return [[(cpu, to - at - ready) for at, to, cpu, ready in chunks if at > begin + 0.01 and to < end]
            for begin, end in itertools.pairwise(edges)]


def quiet(windows, which):
    """The lower quartile over the chunks of these windows: others on the machine only make a chunk slower. All chunks
    have as many samples, so what a sample costs is in the fast ones, too."""
    values = sorted(chunk[which] for window in windows for chunk in window)
    return values[len(values) // 4]


def slow_down(mine, recorder, profiler, hz, seconds):
    """With the profiler against without; the interval by resampling of neighbouring windows."""
    found = windows(profiler, recorder, hz, seconds)
    pairs = [(a, b) for a, b in zip(found[::2], found[1::2]) if a and b]
    if len(pairs) < 3:
        raise Void("the program got too little CPU time")
    chance = random.Random(1)
    for which, one in enumerate(mine):
        def ratio(chosen, which=which):
            return 100 * (quiet([pair[0] for pair in chosen], which) / quiet([pair[1] for pair in chosen], which) - 1)
        again = sorted(ratio(chance.choices(pairs, k=len(pairs))) for _ in range(400))
        one.add(ratio(pairs))
        one.note = f"95 % interval {again[10]:.2f} .. {again[-11]:.2f} %"


def kept_off(figure, recorder, hz, seconds):
    """Reads of a program in the middle of calls run on its own CPU: it waits for as long as they take."""
    target, out = Target("short", 1000), recorder.path("stacks")
    try:
        target.go()
        attached = Attached(Tare(), target, hz, out)
        begun, busy = time.monotonic(), cpu_s(target.pid)
        before = thread_cpu_s(attached.pid, THREADS[1])[0]
        time.sleep(seconds)
        taken = thread_cpu_s(attached.pid, THREADS[1])[0] - before
        busy, begun = cpu_s(target.pid) - busy, time.monotonic() - begun
        attached.end()
    finally:
        target.process.kill()
        target.end()
    figure.add(100 * taken / busy, f"of its CPU time; {1e6 * taken / (hz * begun):.0f} µs for each sample asked for")


def missed(figure, recorder, rounds):
    for _ in range(rounds):
        target, out = Target("deep", 8), recorder.path("stacks")
        try:
            target.go()
            attached = Attached(Tare(), target, 10000, out, 5)
            cpu, ready = thread_cpu_s(attached.pid, THREADS[0])
            attached.end()
            main = next(row for row in report(out)["sampled_threads"] if row["main"])
        finally:
            target.process.kill()
            target.end()
        span = (main["to_ns"] - main["from_ns"]) / 1e9
        figure.add(100 * (1 - main["samples"] / (1e4 * span)),
                   f"{main['samples']} samples in {span:.2f} s; the sampler ran for {100 * cpu / 5:.0f} % and waited "
                   f"for a CPU for {100 * ready / 5:.2f} % of the time")


# ---- accuracy ------------------------------------------------------------------------------------------------

def sampled(profiler, recorder, name, hz, seconds, interpreter=None, options=()):
    """What the program measured and what the profiler saw of `in_turn`."""
    target, out = Target(name, seconds, interpreter, options), recorder.path("stacks")
    try:
        attached = Attached(profiler, target, hz, out, 0.7)
        target.go()
        truth = target.result()
        attached.end()
    finally:
        target.process.kill()
        target.end()
    return truth, profiler.read(out, "lines" if name == "lines" else "in_turn")


def largest(truth, seen, whole, samples):
    """Points: the largest difference, and the largest one above two standard errors of sampling."""
    raw, above = 0.0, 0.0
    for name, share in truth.items():
        away = abs(seen[name] / whole - share)
        raw = max(raw, away)
        above = max(above, away - 2 * (share * (1 - share) / samples) ** 0.5)
    return 100 * raw, 100 * above


def compare(truth, seen, functions):
    if not seen.samples:
        raise Void("it took no samples")
    named = {name: value for name, value in seen.functions.items() if name in functions}
    raw, above = largest(truth["shares"], {**dict.fromkeys(functions, 0), **named}, seen.whole, seen.samples)
    shown = ", ".join(f"{name} {100 * named.get(name, 0) / seen.whole:.1f} ({100 * truth['shares'][name]:.1f})"
                      for name in functions)
    return raw, above, f"largest {raw:.2f} points of {seen.samples} samples: {shown} %"


def error_of(figure, recorder, profiler, name, functions, hz, seconds):
    truth, seen = sampled(profiler, recorder, name, hz, seconds)
    _, above, note = compare(truth, seen, functions)
    out = recorder.path("stacks")
    if isinstance(profiler, Tare):
        main = next(row for row in report(out)["sampled_threads"] if row["main"])
        note += f"; without a stack {100 * main['no_stack_ns'] / main['wall_ns']:.2f} % of the time"
    figure.add(above, note)


def lines(figure, recorder, seconds):
    truth, seen = sampled(Tare(), recorder, "lines", 1000, seconds)
    measured = {int(line): share for line, share in truth["lines"].items()}
    found = {line: weight for (function, line), weight in seen.lines.items() if function == "lines"}
    raw, above = largest(measured, {**dict.fromkeys(measured, 0), **found}, seen.whole, seen.samples)
    figure.add(above, f"largest {raw:.2f} points of {seen.samples} samples, {len(measured)} lines")


# ---- start and file ------------------------------------------------------------------------------------------

def first(mine, times):
    wall, cpu = mine
    target = Target("deep", 300)
    try:
        target.go()
        for _ in range(times):
            begin = time.monotonic()
            process = subprocess.Popen([TARE, "attach", "--dump", str(target.pid)], stdout=subprocess.PIPE)
            process.stdout.readline()
            process.stdout.readline()
            taken = time.monotonic() - begin
            process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
            process.stdout.close()
            if status:
                raise Void("attach --dump failed")
            wall.add(1e3 * taken, "until the stack has been printed by attach --dump")
            cpu.add(1e3 * (used.ru_utime + used.ru_stime))
    finally:
        target.process.kill()
        target.end()


def growth(figure, recorder, seconds):
    size = []
    for options in ((), ("--no-stacks",)):
        target, out = Target("torch", seconds, TORCH), recorder.path("stacks")
        try:
            command = [TARE, "attach", "-q", "-f", "-o", out, "--no-history", str(target.pid),
                       *(options or ("--stacks", "100"))]
            attached = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            target.go()
            target.result()
            attached.send_signal(2)
            attached.wait()
            size.append(os.path.getsize(out))
        finally:
            target.process.kill()
            target.end()
    threads = len(report(recorder.path("stacks"))["sampled_threads"])
    figure.add((size[0] - size[1]) / seconds / 1e3,
               f"the whole file {size[0] / seconds / 1e3:.1f} KB/s, without stacks {size[1] / seconds / 1e3:.1f}"
               f"{'' if threads == 0 else '; stacks were sampled in both'}")


def native(figure, recorder, rounds):
    if "--native" not in plain([TARE, "run", "--help"]):
        raise Void("this version has no --native")
    out = recorder.path("stacks")
    for _ in range(rounds):
        cost = []
        for options in (None, ("--stacks", "100", "--native")):
            target = Target("torch", 6, TORCH)
            try:
                attached = options and subprocess.Popen([TARE, "attach", "-q", "-f", "-o", out, "--no-history",
                                                         *options, str(target.pid)], stderr=subprocess.DEVNULL)
                time.sleep(0.7)
                target.go()
                found = target.result()
                own = cpu_s(attached.pid) if attached else 0
                if attached:
                    attached.send_signal(2)
                    attached.wait()
                cost.append(((found["cpu"] + own) / found["steps"], own / found["cpu"]))
            finally:
                target.process.kill()
                target.end()
        figure.add(100 * (cost[1][0] / cost[0][0] - 1), f"CPU time of a step; the collector alone "
                                                         f"{100 * cost[1][1]:.2f} %")


# ---- the table of peers --------------------------------------------------------------------------------------

def modern_python():
    """CPython 3.12 or later, which can tell perf the names of functions."""
    folder = os.path.expanduser("~/.pyenv/versions")
    found = sorted(os.listdir(folder), reverse=True) if os.path.isdir(folder) else []
    for path in [os.path.join(folder, version, "bin", "python3") for version in found] + ["python3"]:
        asked = subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]) if shutil.which(
            path) else None
        if asked and asked.returncode == 0:
            return path
    raise Void("no CPython 3.12 or later")


class Row:
    """A profiler in the table of docs/PERFORMANCE.md."""

    def __init__(self, profiler, hz=100, interpreter=None, options=()):
        self.profiler, self.hz, self.interpreter, self.options = profiler, hz, interpreter, options
        self.cells = []

    def error(self, recorder, name, functions, seconds):
        truth, seen = sampled(self.profiler, recorder, name, self.hz, seconds, self.interpreter, self.options)
        return f"{compare(truth, seen, functions)[0]:.1f}"

    def measure(self, recorder, quick):
        seconds = 5 if quick else 20
        slow = [Values(), Values()]

        def cost():
            try:
                each, thread, _ = cost_of(self.profiler, recorder, self.hz, 4 if quick else 10)
            except Void:
                return "–"
            return f"{1e6 * (thread or each):.0f}"

        def slowed():
            slow_down(slow, recorder, self.profiler, self.hz, 16 if quick else 60)
            return f"{statistics.median(slow[1].values):+.2f} ({slow[1].note.split('interval ')[-1]})"
        for work in (cost, slowed, lambda: self.error(recorder, "shares", SHARES, seconds),
                     lambda: self.error(recorder, "short", SHORT, seconds),
                     lambda: self.error(recorder, "waiting", WAITING, seconds)):
            try:
                self.cells.append(work())
            except Void as why:
                self.cells.append(f"– ({why})")


class Values:
    def __init__(self):
        self.values, self.note = [], ""

    def add(self, value):
        self.values.append(value)


def of_scalene(recorder, quick):
    """It runs inside the program: the program alone and under Scalene take turns."""
    alone, under = [], []
    out = os.path.join(recorder.folder, "result.json")
    for _ in range(2 if quick else 6):
        subprocess.run([python(), PROGRAM, "deep", "3", out], check=True)
        with open(out) as text:
            alone += [chunk[2] for chunk in json.load(text)["chunks"]]
        under += [chunk[2] for chunk in scalene("deep", 3, recorder.folder)[0]["chunks"]]
    slow = 100 * (sorted(under)[len(under) // 4] / sorted(alone)[len(alone) // 4] - 1)
    return ["in the program", f"{slow:+.2f}"]


def table(recorder, quick):
    """Markdown lines."""
    rows = [Row(Tare()), Row(PySpy()), Row(PySpy("--nonblocking")), Row(Austin())]
    try:
        rows.append(Row(Perf(), interpreter=modern_python(), options=("-X", "perf")))
    except Void:
        pass
    print("| 100 Hz | CPU per sample (µs) | slow-down (%) | known shares | short functions | waiting |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        row.measure(recorder, quick)
        print("| " + " | ".join([row.profiler.name, *row.cells]) + " |", flush=True)
    print("| " + " | ".join(["Scalene", *of_scalene(recorder, quick)]) + " |")


if __name__ == "__main__":
    import sys
    import tempfile
    from figures import Recorder
    with tempfile.TemporaryDirectory(prefix="tare-bench-") as place:
        table(Recorder(place), "--quick" in sys.argv)
