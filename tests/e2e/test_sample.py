"""What is seen from outside: CPU time, memory and files of a process tree, beside what the kernel says itself."""
import collections
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

from conftest import BUILD, SANITIZER, TARE, VICTIMS
from waiting import came_true

SERIES = BUILD / "tests" / "tool" / "series"
TREE, PROCESS, THREAD, OURS = 6, 7, 8, 12
Series = collections.namedtuple("Series", "id metric subject key owner label absent")

plain_build = pytest.mark.skipif(SANITIZER != "none", reason="figures of the plain build")


class Samples:
    """A trace's series and values, and what its first and last blocks say."""

    def __init__(self, bench, trace):
        done = bench.call(SERIES, trace)
        assert done.status == 0, done.err
        self.facts, self.series, self.values = {}, [], collections.defaultdict(list)
        for line in done.out.splitlines():
            key, *words = line.split("\t")
            if key == "series":
                self.series.append(Series(int(words[0]), words[1], *map(int, words[2:5]), *words[5:7]))
            elif key == "value":
                self.values[int(words[0])].append((int(words[1]), int(words[2])))
            else:
                self.facts[key] = words[0]

    def of(self, metric, subject, **more):
        """The one such series."""
        found = [series for series in self.series if (series.metric, series.subject) == (metric, subject)
                 and all(getattr(series, key) == value for key, value in more.items())]
        assert len(found) == 1, (metric, subject, more, found)
        return found[0]

    def last(self, metric, subject, **more):
        return self.values[self.of(metric, subject, **more).id][-1][1]

    def all_values(self, metric, subject, **more):
        return [value for _, value in self.values[self.of(metric, subject, **more).id]]

    def cpu_us(self, subject, **more):
        return (self.last("cpu.user", subject, **more) + self.last("cpu.system", subject, **more)) / 1000


def uses(bench, *words, options=(), **more):
    done = bench.run("uses", *words, options=options, **more)
    return done, Samples(bench, done.trace)


def near(value, expected, share, absolute=0):
    return abs(value - expected) <= share * expected + absolute


def test_cpu_time_is_the_kernels(bench):
    done, samples = uses(bench, "spin", 800)
    pid = done.fact("pid")
    assert near(samples.cpu_us(PROCESS, key=pid), done.fact("cpu_us"), 0.03, 3000)
    assert near(samples.cpu_us(TREE), done.fact("cpu_us"), 0.03, 13000)
    child = int(samples.facts["child_user"]) + int(samples.facts["child_system"])
    assert near(child / 1000, done.fact("cpu_us"), 0.03, 3000)


def test_totals_never_shrink(bench):
    _, samples = uses(bench, "many", 40, 10)
    totals = [series for series in samples.series if series.metric.startswith(("cpu.", "io.", "disk.", "faults."))]
    assert len(totals) >= 20
    for series in totals:
        values = [value for _, value in samples.values[series.id]]
        assert values == sorted(values), series


def test_a_spike_between_ticks_is_in_the_peak(bench):
    """200 MB for 5 ms: no gauge sees it, the high-water mark does."""
    done, samples = uses(bench, "spike", 200, 5)
    pid, peak = done.fact("pid"), done.fact("peak_kb")
    assert peak > 200 * 1024
    assert near(samples.last("memory.rss_peak", PROCESS, key=pid), peak * 1024, 0, 256 * 1024)
    assert near(int(samples.facts["child_peak"]), peak * 1024, 0, 256 * 1024)


def test_a_spike_at_the_very_end_is_in_the_childs_peak(bench):
    done, samples = uses(bench, "burst", 200)
    assert done.fact("peak_kb") > 200 * 1024
    assert near(int(samples.facts["child_peak"]), done.fact("peak_kb") * 1024, 0, 256 * 1024)


def test_the_peak_of_a_descendant_that_outlives_a_tick(bench):
    done, samples = uses(bench, "child", 150, 400)
    peak = done.fact("child_peak_kb")
    assert near(samples.last("memory.rss_peak", PROCESS, key=done.fact("child")), peak * 1024, 0, 256 * 1024)
    assert samples.of("memory.rss_peak", PROCESS, key=done.fact("child")).absent == "ended"


def test_three_hundred_short_lived_children(bench):
    """Most are never seen alive; what they used is in the tree all the same."""
    done, samples = uses(bench, "many", 300, 4)
    assert done.fact("cpu_us") > 300 * 4000
    assert near(samples.cpu_us(TREE), done.fact("cpu_us"), 0.05, 20000)


def test_children_nobody_waits_for_stay_in_the_totals(bench):
    """The kernel gives their CPU time to nobody; what was seen of it is kept."""
    done, samples = uses(bench, "ignored", 3, 500)
    own = samples.cpu_us(PROCESS, key=done.fact("pid"))
    seen = sum(samples.cpu_us(PROCESS, key=series.key) for series in samples.series
               if series.metric == "cpu.user" and series.subject == PROCESS and series.key != done.fact("pid"))
    assert seen > 600000
    assert near(samples.cpu_us(TREE), own + seen, 0.02, 20000)


def test_an_orphan_is_found_and_counted(bench):
    done, samples = uses(bench, "orphan", 600)
    others = {series.key for series in samples.series if series.subject == PROCESS} - {done.fact("pid")}
    assert others
    assert samples.cpu_us(TREE) > 300000


def test_threads_have_series_of_their_own(bench):
    done, samples = uses(bench, "threads", 3, 400)
    spinners = [series for series in samples.series if series.subject == THREAD and series.label == "spinner"
                and series.metric == "cpu.user"]
    assert len(spinners) == 3
    assert all(series.owner == done.fact("pid") and series.absent == "ended" for series in spinners)
    assert max(samples.all_values("threads", PROCESS, key=done.fact("pid"))) == 4
    assert max(samples.all_values("threads.running", TREE)) >= 1


def test_bytes_written(bench):
    done, samples = uses(bench, "write", 8)
    assert samples.last("io.write", PROCESS, key=done.fact("pid")) >= 8 << 20
    assert samples.last("io.write", TREE) >= 8 << 20


# Writes two million bytes itself, and has a child write thirty million; says what the kernel counts of its own thread.
PARENT = """
import os, subprocess, sys, threading, time
done = threading.Event()
if sys.argv[1] == "threads":
    threading.Thread(target=done.wait).start()
with open("own", "wb", buffering=0) as file:
    file.write(bytes(2_000_000))
for _ in range(2):
    subprocess.run(["sh", "-c", "head -c 15000000 /dev/zero > child; sleep 0.4"], check=True)
time.sleep(0.4)
print("own=" + open(f"/proc/self/task/{os.getpid()}/io").read().split()[3], "pid=%d" % os.getpid())
done.set()
"""


@plain_build
@pytest.mark.parametrize("kind", ["one thread", "threads"])
def test_bytes_of_children_are_not_their_parents(bench, kind):
    """The kernel adds what a child wrote to whoever waits for it."""
    done = bench.tare("run", "-q", "-o", "trace.tare", "--", sys.executable, "-S", "-c", PARENT, kind)
    assert done.status == 0, done.err
    own, pid = map(int, re.search(r"own=(\d+) pid=(\d+)", done.out).groups())
    samples = Samples(bench, bench.folder / "trace.tare")
    tree = samples.last("io.write", TREE)
    assert tree >= 32_000_000 and 2_000_000 <= own < 2_100_000
    rows = [samples.values[one.id][-1][1] for one in samples.series
            if (one.metric, one.subject) == ("io.write", PROCESS) and samples.values[one.id]]
    assert sum(rows) <= tree
    shown = samples.last("io.write", PROCESS, key=pid)
    if kind == "one thread":
        assert own - 1000 <= shown <= own + 1000
    else:  # children that ended between two looks have their last bytes with it
        assert own - 1000 <= shown <= tree


def test_first_and_last_blocks(bench):
    _, samples = uses(bench, "sleep", 10)
    assert samples.facts["kernel"].startswith("Linux ")
    assert samples.facts["interval"] == "100000000" and samples.facts["attached"] == "0"
    assert int(samples.facts["memory"]) > 1 << 28
    assert samples.facts["finished"] == "1" and samples.facts["oom_killed"] == "0"
    assert int(samples.facts["sampler_cpu"]) > 0


class Group:
    """A control group of this test's own, with a limit on memory; None where none can be made."""

    def __init__(self, limit):
        self.folder = None
        for place, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            folder = pathlib.Path(place) / f"tare-test-{os.getpid()}"
            try:
                folder.mkdir()
                (folder / file).write_text(str(limit))
                self.folder = folder
                return
            except OSError:
                if folder.exists():
                    folder.rmdir()

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))


@pytest.mark.skipif(SANITIZER != "none", reason="a sanitizer needs more memory than the limit")
def test_killed_for_want_of_memory(bench):
    group = Group(64 << 20)
    if not group.folder:
        pytest.skip("no control group for memory can be made here")
    try:
        done = bench.tare("run", "-q", "-o", "trace.tare", "--", VICTIMS / "uses", "spike", 500, 5,
                          preexec_fn=group.enter)
        if done.status == 1:
            pytest.skip("the limit was not applied")
        assert done.status == 137
        samples = Samples(bench, bench.folder / "trace.tare")
        assert samples.facts["oom_killed"] == "1"
        assert 16 << 20 < int(samples.facts["child_peak"]) < 80 << 20
    finally:
        assert came_true(lambda: not (group.folder / "cgroup.procs").read_text())
        group.folder.rmdir()


def test_killed_by_somebody_is_not_for_want_of_memory(bench):
    done = bench.tare("run", "-q", "-o", "trace.tare", "--", "sh", "-c", "kill -9 $$")
    assert done.status == 137
    assert Samples(bench, bench.folder / "trace.tare").facts["oom_killed"] == "0"


def test_gpus_are_told_of(bench):
    assert uses(bench, "sleep", 10)[1].facts["gpus"]


def git(bench, *words):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=bench.folder, check=True,
                   stdout=subprocess.DEVNULL)


def test_the_revision_of_the_working_directory(bench):
    git(bench, "init", "-q", "-b", "main", ".")
    git(bench, "commit", "-q", "--allow-empty", "-m", "one")
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=bench.folder, check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    assert uses(bench, "sleep", 1)[1].facts["revision"] == revision[:12] + " on main"
    git(bench, "pack-refs", "--all")
    (bench.folder / "below").mkdir()
    assert uses(bench, "sleep", 1)[1].facts["revision"] == revision[:12] + " on main"
    git(bench, "worktree", "add", "-q", "--detach", "tree")
    done = bench.tare("run", "-q", "-o", "t.tare", "--", "true", cwd=bench.folder / "tree")
    assert done.status == 0
    assert Samples(bench, bench.folder / "tree" / "t.tare").facts["revision"] == revision[:12] + ", detached"


def test_no_repository_no_revision(bench):
    assert "revision" not in uses(bench, "sleep", 1)[1].facts


@plain_build
def test_samplers_keep_to_their_budget(bench):
    """Of one core; with room for what a busy test machine does to caches."""
    _, samples = uses(bench, "threads", 40, 100)
    ticks = samples.values[samples.of("sample.interval", OURS).id]
    elapsed = ticks[-1][0] - ticks[0][0]
    assert int(samples.facts["sampler_cpu"]) < 0.02 * elapsed + 10_000_000


def test_rotation_keeps_series_and_drops_old_samples(bench):
    done, samples = uses(bench, "sleep", 3000, options=["--last", "1s"])
    rss = samples.values[samples.of("memory.rss", PROCESS, key=done.fact("pid")).id]
    assert rss and rss[0][0] > 500_000_000


def blocks_of_samples(path):
    """Whole SAMPLES blocks in the file, by their headers."""
    data, at, n = path.read_bytes() if path.exists() else b"", 16, 0
    while at + 64 <= len(data):
        kind, payload = struct.unpack_from("<H2xI", data, at + 4)
        at += 64 + payload
        n += kind == 11 and at <= len(data)
    return n


def test_a_killed_collector_leaves_its_samples(bench):
    trace = bench.folder / "killed.tare"
    process = bench.start(TARE, "run", "-q", "-o", trace, "--", VICTIMS / "uses", "sleep", 60000,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert came_true(lambda: blocks_of_samples(trace) >= 2)
    process.kill()
    process.wait()
    samples = Samples(bench, trace)
    victim = samples.of("memory.rss", PROCESS, label="uses").key
    os.kill(victim, signal.SIGKILL)
    assert samples.facts["finished"] == "0"
    assert len(samples.all_values("memory.rss", TREE)) >= 5


# ---- attach ----

def test_attach_to_a_program_that_runs(bench):
    """It sleeps, then works; Tare comes late and sees the rest, until its end."""
    script = "import time\ntime.sleep(1)\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\n"
    (bench.folder / "job.py").write_text(script)
    job = bench.start(sys.executable, "job.py")
    done = bench.tare("attach", "-q", job.pid)
    assert done.status == 0, done.err
    assert job.wait() == 0
    samples = Samples(bench, bench.folder / "job.tare")
    assert samples.facts["attached"] == str(job.pid) and samples.facts["finished"] == "1"
    assert "child_user" not in samples.facts  # nobody tells a stranger
    cpu = samples.cpu_us(PROCESS, key=job.pid)
    assert 400_000 < cpu < 1_500_000
    assert samples.of("memory.rss", PROCESS, key=job.pid).absent == "ended"


def test_attach_ends_with_a_signal_and_leaves_the_program(bench):
    job = bench.start(VICTIMS / "uses", "sleep", 60000, stdout=subprocess.DEVNULL)
    trace = bench.folder / "uses.tare"
    tare = bench.start(TARE, "attach", "-q", job.pid)
    assert came_true(lambda: blocks_of_samples(trace) >= 1)
    tare.send_signal(signal.SIGINT)
    assert tare.wait(timeout=20) == 0
    assert job.poll() is None
    job.kill()
    job.wait()
    assert Samples(bench, trace).facts["finished"] == "1"


def test_attach_sees_children(bench):
    job = bench.start(VICTIMS / "uses", "child", 20, 1500)
    done = bench.tare("attach", "-q", job.pid)
    assert done.status == 0, done.err
    out, _ = job.communicate()
    child = int(next(line for line in out.splitlines() if line.startswith("child ")).split()[1])
    assert Samples(bench, bench.folder / "uses.tare").of("memory.rss", PROCESS, key=child).owner > 0


def test_attach_to_nobody(bench):
    gone = bench.start("true")
    gone.wait()
    done = bench.tare("attach", gone.pid)
    assert done.status == 3 and str(gone.pid) in done.err
    assert list(bench.folder.glob("*.tare")) == []


@plain_build
def test_shares_are_of_all_that_was_used(bench):
    """Processes that live shorter than the sampling interval are in no row of their own; their CPU time is in one for
    all."""
    burn = "import time\nwhile time.process_time() < 0.06: pass"
    script = "for i in 1 2 3 4 5 6 7 8; do %s -S -c '%s'; done" % (sys.executable, burn)
    bench.tare("run", "-q", "-f", "-o", "t.tare", "--interval", "1s", "--", "sh", "-c", script)
    text = bench.tare("report", "--all", "t.tare").out
    table = text.partition("CPU by process")[2].partition("\n\n")[0].splitlines()[1:]
    shares = [float(share) for line in table for share in re.findall(r"([\d.]+) %", line)[:1]
              if not line.startswith("  ")]
    assert any(line.startswith("(not sampled)") for line in table), table
    assert 99 < sum(shares) < 101, table
