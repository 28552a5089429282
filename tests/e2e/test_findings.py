"""Findings of real programs: each rule has one that provokes it, where this machine allows, and one that must not."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT, TARE, VICTIMS
from test_container import Group, inside

MIB = 1 << 20
CORES = len(os.sched_getaffinity(0))
TROUBLE = VICTIMS / "trouble"


class Found:
    def __init__(self, report):
        self.report = report
        self.all = report["findings"]
        self.ids = [finding["id"] for finding in self.all]
        check_findings(report)

    def __getitem__(self, name):
        assert name in self.ids, self.told()
        return self.all[self.ids.index(name)]

    def __contains__(self, name):
        return name in self.ids

    def figure(self, name, figure):
        return {each["name"]: each["value"] for each in self[name]["figures"]}[figure]

    def told(self):
        return [(finding["severity"], finding["title"], finding["evidence"]) for finding in self.all]

    def metric(self, metric, subject):
        """Rows of a metric that have values."""
        return [row for row in self.report["metrics"]
                if row["metric"] == metric and row["subject"] == subject and row["samples"]]


def check_findings(report):
    """What holds for the findings of any run."""
    severities = {"critical": 3, "warning": 2, "info": 1}
    pairs, rules = ((ROOT / "src/analyze/findings" / name).read_text() for name in ("rules.c", "rules.h"))
    known = set(re.findall(r'^    R\("([a-z0-9-]+)", (?:true|false), (?:true|false), ', rules, re.M))
    for finding in report["findings"]:
        assert finding["title"] and finding["evidence"] and finding["gain_how"], finding
        assert finding["severity"] in severities
        assert finding["gain"] is None or 0 <= finding["gain"] <= 1, finding
        assert "n/a" not in finding["title"] + finding["evidence"], finding
        assert finding["source"] or (finding["id"] in known and finding["advice"]), finding
        if finding["from_ns"] is not None:
            assert 0 <= finding["from_ns"] <= finding["to_ns"] <= report["run"]["elapsed_ns"] + 1e6, finding
    order = [severities[finding["severity"]] for finding in report["findings"]]
    causes = re.findall(r'^    \{"([a-z-]+)", "([a-z-]+)", false\},', pairs, re.M)
    ids = [finding["id"] for finding in report["findings"]]
    if not any(cause in ids and symptom in ids for cause, symptom in causes):
        assert order == sorted(order, reverse=True), "worst first"


@pytest.fixture
def favoured(request):
    """A control group that gets the CPUs before all others, where one can be made: other work on the machine must
    not decide what is found."""
    try:
        group = Group("cpu")
        group.favour()
    except (pytest.skip.Exception, OSError):
        yield None
        return
    yield group
    group.remove()


def run(bench, group, *words, status=0, options=(), report=()):
    command = [TARE, "run", "--quiet", "-o", "t.tare", "-f", *options, "--", *words]
    done = inside(bench, group, *command) if group else bench.call(*command)
    assert done.status == status, (done.status, done.out[-2000:], done.err[-2000:])
    return Found(bench.json("t.tare", *report))


def quiet_or_skip(found):
    if "shared-machine" in found:
        pytest.skip("others use this machine: " + found["shared-machine"]["evidence"])


# ---- memory ----

def test_a_leak_is_the_first_thing_told(bench, favoured):
    found = run(bench, favoured, TROUBLE, "leak", 3000, 80)
    assert found.ids[0] == "memory-growth", found.told()
    growth = found["memory-growth"]
    assert "trouble" in growth["evidence"] and "confidence" in growth["evidence"]
    low, slope, high = (found.figure("memory-growth", name) for name in ("slope_low", "slope", "slope_high"))
    assert 0 < low <= slope <= high < 120 * MIB
    assert found.figure("memory-growth", "time_to_limit") > 0
    assert growth["gain"] is None


@pytest.mark.parametrize("words", [("once", 2500, 300), ("sawtooth", 3000, 300), ("rest", 2500)])
def test_memory_that_does_not_grow(bench, favoured, words):
    found = run(bench, favoured, TROUBLE, *words)
    assert "memory-growth" not in found, found.told()
    assert "memory-high" not in found and "killed-oom" not in found


def test_a_leak_in_python(bench, favoured):
    script = ("import time\nkept = []\nend = time.monotonic() + 3\n"
              "while time.monotonic() < end: kept.append(bytearray(b'x') * 1000000); time.sleep(0.01)")
    found = run(bench, favoured, sys.executable, "-c", script)
    assert found.ids[0] == "memory-growth", found.told()


@pytest.fixture
def limited(request):
    group = Group("memory")
    yield group
    group.remove()


def test_killed_for_want_of_memory(bench, limited):
    limited.limit_memory(150 * MIB)
    found = run(bench, limited, TROUBLE, "leak", 20000, 100, status=137)
    assert found.report["run"]["oom_killed"]
    assert found.ids[0] == "killed-oom", found.told()
    killed = found["killed-oom"]
    assert killed["severity"] == "critical" and "trouble" in killed["evidence"]
    assert found.figure("killed-oom", "allowed") == 150 * MIB
    assert found.figure("killed-oom", "largest") > 75 * MIB
    assert not {"memory-high", "ended-by-signal", "exit-status"} & set(found.ids), "told once"


def test_memory_near_its_limit(bench, limited):
    limited.limit_memory(200 * MIB)
    found = run(bench, limited, TROUBLE, "once", 1500, 182)
    assert found["memory-high"]["severity"] in ("warning", "critical"), found.told()
    assert 0.9 < found.figure("memory-high", "share") <= 1
    assert "killed-oom" not in found


def test_memory_far_from_its_limit(bench, limited):
    limited.limit_memory(200 * MIB)
    found = run(bench, limited, TROUBLE, "once", 1500, 80)
    assert "memory-high" not in found and "killed-oom" not in found, found.told()


def tried(*command):
    """What a command that only root may run said, or None when it went well."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    except OSError as why:
        return str(why)
    return None if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


@pytest.fixture
def swap(bench):
    """Room to swap out to: the machine's own, else a file for this test."""
    if len(pathlib.Path("/proc/swaps").read_text().splitlines()) > 1:
        yield
        return
    file = bench.folder / "swap"
    file.touch(0o600)
    with open(file, "r+b") as out:
        os.posix_fallocate(out.fileno(), 0, 256 * MIB)
    why = tried("mkswap", file) or tried("swapon", file)
    if why:
        pytest.skip("this machine has no swap, and none can be made: " + why)
    yield
    assert tried("swapoff", file) is None


def test_swapped_memory(bench, limited, swap):
    limited.set("memory.limit_in_bytes", "memory.max", 64 * MIB)
    found = run(bench, limited, TROUBLE, "once", 2000, 200)
    assert found.figure("swap", "swapped") > 16 * MIB
    assert "swapped out" in found["swap"]["title"] and "memory-growth" not in found, found.told()


def test_memory_that_need_not_be_swapped(bench, limited, swap):
    limited.set("memory.limit_in_bytes", "memory.max", 128 * MIB)
    found = run(bench, limited, TROUBLE, "once", 1500, 40)
    own = [row["max"] for row in found.metric("memory.swapped", "tree")]
    assert own == [] or own[0] < 16 * MIB
    assert "swap" not in found or "The machine swapped" in found["swap"]["title"], found.told()


# ---- CPU ----

@pytest.mark.skipif(CORES < 2, reason="needs two CPUs")
def test_one_thread_does_it_all(bench, favoured):
    found = run(bench, favoured, TROUBLE, "spin", 2000, 1)
    idle = sum(row["mean"] for metric in ("cpu.idle", "cpu.iowait") for row in found.metric(metric, "system"))
    if "one-core" not in found:  # others have the other cores, or even this one: spreading the work would gain nothing
        assert idle < 0.6 or found.report["usage"]["cores_mean"] < 0.85, (idle, found.told())
        pytest.skip(f"other processes leave {idle:.2f} cores idle")
    assert "trouble" in found["one-core"]["evidence"] and found["one-core"]["severity"] == "info"
    used, available = (found.figure("one-core", name) for name in ("cores", "cores_available"))
    assert available <= CORES and found["one-core"]["gain"] == pytest.approx(
        (1 - used / available) * found.figure("one-core", "held"))
    assert "DataLoader" not in found["one-core"]["advice"] and "Python" not in found["one-core"]["advice"]


@pytest.mark.skipif(CORES < 2, reason="needs two CPUs")
@pytest.mark.parametrize("words", [("spin", 1500, CORES), ("rest", 1500)])
def test_more_threads_or_none(bench, favoured, words):
    assert "one-core" not in run(bench, favoured, TROUBLE, *words)


def test_all_of_the_cpu(bench, favoured):
    found = run(bench, favoured, TROUBLE, "spin", 2000, CORES)
    if "cpu-high" not in found:
        quiet_or_skip(found)
    assert found.figure("cpu-high", "share") > 0.85


def test_an_idle_program_is_not_cpu_bound(bench, favoured):
    found = run(bench, favoured, TROUBLE, "rest", 1500)
    assert not {"cpu-high", "threads-oversubscribed", "cpu-throttled"} & set(found.ids), found.told()


def test_more_threads_than_cores(bench, favoured):
    found = run(bench, favoured, TROUBLE, "spin", 2000, 4 * CORES)
    assert found.figure("threads-oversubscribed", "threads_running") > 1.5 * CORES
    assert f"OMP_NUM_THREADS={CORES}" in found["threads-oversubscribed"]["advice"]


def test_as_many_threads_as_cores(bench, favoured):
    assert "threads-oversubscribed" not in run(bench, favoured, TROUBLE, "spin", 1500, CORES)


@pytest.fixture
def slowed(request):
    group = Group("cpu")
    yield group
    group.remove()


def test_held_back_by_a_limit(bench, slowed):
    slowed.favour() # else others hold it back, and the limit does not
    slowed.limit_cpu(20)
    found = run(bench, slowed, TROUBLE, "spin", 2500, 1)
    assert found.ids[0] == "cpu-throttled", found.told()
    assert found["cpu-throttled"]["severity"] == "warning"
    # What others took from it, the limit did not.
    assert found["cpu-throttled"]["gain"] > (0.05 if "shared-machine" in found else 0.3), found.told()
    assert found.figure("cpu-throttled", "cores_allowed") == pytest.approx(0.2)
    assert "cpu-high" not in found and "shared-machine" not in found


def test_a_limit_that_is_not_hit(bench, slowed):
    slowed.limit_cpu(50)
    assert "cpu-throttled" not in run(bench, slowed, TROUBLE, "rest", 1500)


def beside_others(bench, group):
    others = [subprocess.Popen([TROUBLE, "spin", "60000", "1"]) for _ in range(3 * CORES)]
    try:
        return run(bench, group, TROUBLE, "spin", 2000, 1)
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_others_on_the_machine(bench, slowed):
    """The program gets what others leave: next to nothing. So does the collector, and it may see too little of it to
    say so: one run of four in which it does is enough."""
    slowed.set("cpu.shares", "cpu.weight", 2 if slowed.version == 1 else 1)
    why = set()
    for _ in range(4):
        found = beside_others(bench, slowed)
        looks = [row["samples"] for row in found.metric("threads.running", "tree")]
        if not found.metric("pressure.cpu", "system") and not found.metric("pressure.cpu", "container"):
            pytest.skip("this kernel keeps no account of pressure")
        if not looks or looks[0] < 8:
            why.add("the collector was kept from looking")
        elif found.report["usage"]["cores_mean"] > 0.6:
            why.add("this machine's scheduler gave it a CPU all the same")
        elif "shared-machine" in found.ids:
            assert found["shared-machine"]["gain"] > 0.2, found.told()
            return
        else:
            why.add("")
    if "" not in why:
        pytest.skip("; ".join(sorted(why)))
    pytest.fail(f"not found: {found.told()}")


# ---- disks ----

def test_waiting_for_a_disk(bench, favoured):
    found = run(bench, favoured, TROUBLE, "sync", 2500, 1)
    waits = [row["mean"] for row in found.metric("threads.disk_wait", "tree")]
    if not waits or waits[0] < 0.42: # the rule's own limit is 0.4 of the time
        pytest.skip(f"this disk does not keep a program waiting: {waits} threads on average")
    assert "disk-bound" in found, found.told()
    assert found["disk-bound"]["gain"] >= 0.2 and "fsync" in found["disk-bound"]["advice"]
    assert found.ids.index("disk-bound") < min((found.ids.index(late) for late in ("iowait", "disk-busy")
                                                if late in found), default=99)


def disk_below(folder):
    """major:minor of the whole disk that a folder lies on; skipped where there is none."""
    device = os.stat(folder).st_dev
    name = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not name.exists():
        pytest.skip("the temporary folder lies on no disk")
    disk = name.resolve()
    return ((disk.parent if (disk / "partition").exists() else disk) / "dev").read_text().strip(), disk.name


@pytest.fixture
def throttled(bench):
    """A control group that may read 1 MiB a second from the disk below the test's folder."""
    disk, _ = disk_below(bench.folder)
    group = Group("io" if any("io" in each.read_text().split() for each in
                              pathlib.Path("/sys/fs/cgroup").glob("cgroup.subtree_control")) else "blkio")
    try:
        limit = f"{disk} {MIB}" if group.version == 1 else f"{disk} rbps={MIB}"
        group.set("blkio.throttle.read_bps_device", "io.max", limit)
    except OSError as why:
        group.remove()
        pytest.skip(f"this kernel slows no disk: {why}")
    yield group
    group.remove()


def reading(bench, group, ms, threads):
    with open(bench.folder / "read", "wb") as out:
        out.write(os.urandom(8 * MIB))
        os.fsync(out.fileno())
    done = inside(bench, group, TARE, "run", "--quiet", "-o", "t.tare", "-f", "--", TROUBLE, "read", ms, threads) \
        if group else bench.call(TARE, "run", "--quiet", "-o", "t.tare", "-f", "--", TROUBLE, "read", ms, threads)
    if done.status == 97:
        pytest.skip("the temporary folder's file system reads nothing past its caches")
    assert done.status == 0, done.err
    return Found(bench.json("t.tare"))


def test_waiting_for_a_slow_disk(bench, throttled):
    found = reading(bench, throttled, 3000, 4)
    assert found["disk-bound"]["gain"] > 0.4 and "Read ahead" in found["disk-bound"]["advice"], found.told()
    assert found.figure("disk-bound", "read") < 16 * MIB


def test_cpus_that_idle_for_a_disk(bench, throttled):
    found = reading(bench, throttled, 2500, 8)
    idle = sum(share_of_machine(found, part) for part in ("cpu.idle", "cpu.iowait"))
    if idle < 0.5:
        pytest.skip(f"others use the CPUs, which were idle only {idle:.0%} of the time: no iowait to be seen")
    assert found.figure("iowait", "iowait") > 0.2


def test_a_disk_that_can_do_no_more(bench, favoured):
    _, name = disk_below(bench.folder)
    found = reading(bench, favoured, 2000, 8)
    rows = [row for row in found.metric("disk.busy", "disk") if row["label"] == name]
    if not rows or rows[0]["mean"] < 0.92:
        pytest.skip(f"this disk had nothing to do part of the time: busy {[row['mean'] for row in rows]}")
    assert found.figure("disk-busy", "busy") > 0.8
    assert found["disk-busy"]["severity"] in ("info", "warning") and name in found["disk-busy"]["title"]


# ---- network ----

def on_own_network(bench, frames):
    """The program that sends, on a network of its own. Its device drops what nobody redirected to it."""
    setup = "ip link add tare0 type ifb && ip link set tare0 up"
    why = tried("unshare", "-n", "sh", "-c", setup)
    if why:
        pytest.skip("no network device can be made: " + why)
    script = f'{setup} && exec "$@"'
    done = bench.call("unshare", "-n", "sh", "-c", script, "sh", TARE, "run", "--quiet", "-o", "t.tare", "-f", "--",
                      TROUBLE, "send", 2000, frames)
    assert done.status == 0, done.err
    return Found(bench.json("t.tare"))


def test_packets_that_get_lost(bench):
    found = on_own_network(bench, 2000)
    assert "tare0" in found["network-errors"]["title"]
    assert found.figure("network-errors", "errors") >= 100


def test_a_few_lost_packets_are_no_news(bench):
    found = on_own_network(bench, 40)
    assert any(row["label"] == "tare0" and row["total"] > 0 for row in found.metric("net.errors", "network"))
    assert "network-errors" not in found, found.told()


def test_writing_without_waiting(bench, favoured):
    assert "disk-bound" not in run(bench, favoured, TROUBLE, "sync", 1500, 0)


def share_of_machine(found, metric):
    parts = ["cpu.user", "cpu.system", "cpu.idle", "cpu.iowait", "cpu.steal"]
    totals = {part: sum(row["total"] for row in found.metric(part, "system")) for part in parts}
    return totals[metric] / sum(totals.values()) if sum(totals.values()) else 0


def test_findings_on_the_machine_agree_with_its_figures(bench, favoured):
    """Heat and broken memory cannot be made; whether there is any trouble of the machine, the figures say."""
    found = run(bench, favoured, TROUBLE, "sync", 1500, 1)
    assert ("iowait" in found) == (share_of_machine(found, "cpu.iowait") > 0.2)
    assert ("cpu-hot" in found) == any(row["total"] > 0 for row in found.metric("throttle.events", "system"))
    assert ("network-errors" in found) == any(row["total"] >= 100 and row["mean"] >= 1
                                              for row in found.metric("net.errors", "network"))
    if share_of_machine(found, "cpu.steal") > 0.1:
        assert "shared-machine" in found
    if "disk-busy" in found:
        assert max(row["mean"] for row in found.metric("disk.busy", "disk")) > 0.4
    if not found.metric("memory.used", "gpu_process"):
        assert not [name for name in found.ids if name.startswith("gpu-")]


# ---- GPU ----

def on_gpu(bench, mode):
    try:
        import torch
    except ImportError:
        pytest.skip("needs torch")
    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    return run(bench, None, sys.executable, ROOT / "tests" / "e2e" / "gpu_trouble.py", mode, 8)


def test_a_gpu_that_waits(bench):
    assert on_gpu(bench, "half").figure("gpu-underused", "busy") < 0.7


def test_a_gpu_with_gaps(bench):
    found = on_gpu(bench, "gaps")
    assert found.figure("gpu-idle-gaps", "gaps") >= 1, found.told()
    assert found.ids.index("gpu-idle-gaps") < found.ids.index("gpu-underused")


def test_a_busy_gpu(bench):
    found = on_gpu(bench, "full")
    assert not [name for name in found.ids if name in ("gpu-idle-gaps", "gpu-underused", "one-core")], found.told()


# ---- spans and steps ----

def train(bench, group, steps, load=10, forward=10, backward=10, first=0, slow=0, every=0):
    return run(bench, group, TROUBLE, "train", steps, load, forward, backward, first, slow, every)


def test_loading_takes_most(bench, favoured):
    found = train(bench, favoured, 10, load=80)
    assert found.ids[0] == "data-loading", found.told()
    share = found.figure("data-loading", "share")
    assert 0.5 < share < 0.95 and 0.3 < found["data-loading"]["gain"] <= share
    assert not any(each["id"] == "operation" and "data_loading" in each["title"] for each in found.all), "told once"


def test_loading_takes_little(bench, favoured):
    assert "data-loading" not in train(bench, favoured, 10, load=5, forward=60, backward=40)


def test_forward_and_backward(bench, favoured):
    found = train(bench, favoured, 10, load=5, forward=90)
    assert found.figure("forward", "share") > 0.5 and "backward" not in found
    found = train(bench, favoured, 10, load=5, backward=90)
    assert found.figure("backward", "share") > 0.4 and "forward" not in found
    assert found["backward"]["severity"] == "info"


def test_a_slow_first_step(bench, favoured):
    found = train(bench, favoured, 10, first=600)
    assert found.figure("slow-first-step", "first") > 0.6 > found.figure("slow-first-step", "median")
    assert found["slow-first-step"]["from_ns"] is not None


def test_slow_steps_at_equal_distances(bench, favoured):
    found = train(bench, favoured, 30, slow=300, every=10)
    assert found.figure("step-variance", "ratio") > 2
    assert "every 10 steps" in found["step-variance"]["evidence"], found.told()


def test_equal_steps(bench, favoured):
    found = train(bench, favoured, 10, load=60, forward=60, backward=60)
    step, = found.report["steps"]
    if max(each["duration_ns"] for each in step["slowest"]) > 1.5 * step["min_ns"]:
        pytest.skip("this machine did not let the steps be equal")
    assert "step-variance" not in found and "slow-first-step" not in found, found.told()


def test_one_operation_takes_most(bench, favoured):
    found = run(bench, favoured, TROUBLE, "operations", 800, 60, 60, 60, 60, 60, 60, 60)
    operation = found["operation"]
    assert "tokenize" in operation["title"] and operation["severity"] == "info"
    assert 0.4 < operation["gain"] < 0.8


def test_no_operation_stands_out(bench, favoured):
    found = run(bench, favoured, TROUBLE, "operations", *[100] * 8)
    if max(span["self_ns"] for span in found.report["spans"]) > 160e6:
        pytest.skip("this machine did not let the spans be equal")
    assert "operation" not in found, found.told()


def test_dropped_spans(bench):
    found = run(bench, None, VICTIMS / "flood", "stop", 100000, 2, options=["--buffer-size", "1M"])
    assert found.figure("spans-dropped", "dropped") == found.report["run"]["dropped_spans"] > 0
    assert found.ids[0] == "spans-dropped", found.told()


def test_no_dropped_spans(bench):
    assert "spans-dropped" not in run(bench, None, VICTIMS / "nest", "loop", 1000)


# ---- ends ----

def test_ends(bench):
    found = run(bench, None, "sh", "-c", "kill -SEGV $$", status=139)
    assert found.ids == ["ended-by-signal"] and "SIGSEGV" in found.all[0]["title"]
    found = run(bench, None, "sh", "-c", "exit 3", status=3)
    assert found.ids == ["exit-status"] and "3" in found.all[0]["title"]


@pytest.mark.parametrize("command", [["true"], ["sleep", "0.3"], [sys.executable, "-c", "print(1)"]])
def test_a_short_program_has_nothing_to_tell(bench, command):
    assert run(bench, None, *command).all == []


def test_without_samples_only_spans_speak(bench):
    found = run(bench, None, TROUBLE, "operations", 400, *[20] * 7, options=["--no-sampling"])
    assert found.ids == ["operation"], found.told()


# ---- rules of the user's own ----

RULES = """
rule long-tokenize
  table spans where name = "tokenize"
  when total_ns > 100ms and self_share > 10%
  say "{name} took {total_ns}"
  advice "less of it"
  severity critical

rule never
  table usage when gpu_busy_mean > 0 and gpu_busy_mean < 0
  say "x"
"""


def test_rules_of_ones_own(bench):
    (bench.folder / "my.rules").write_text(RULES)
    found = run(bench, None, TROUBLE, "operations", 300, *[20] * 7, report=["--rules", "my.rules"])
    assert found.ids[0] == "long-tokenize" and "never" not in found
    mine = found["long-tokenize"]
    assert mine["source"].endswith("my.rules:2") and mine["severity"] == "critical" and mine["advice"] == "less of it"
    assert mine["title"].startswith("tokenize took ") and "self_share" in mine["evidence"]
    assert "operation" in found, "the built-in ones stay"


def test_wrong_rules_are_refused(bench):
    (bench.folder / "my.rules").write_text("rule a\n  table spans\n  when nmae = \"x\"\n")
    run(bench, None, "true")
    done = bench.report("t.tare", "--rules", "my.rules", status=3)
    assert "my.rules:3:8: the table spans has no column 'nmae'" in done.err and done.out == ""
    done = bench.report("t.tare", "--rules", "none.rules", status=3)
    assert "none.rules" in done.err


# ---- documentation ----

def test_every_rule_and_limit_is_documented():
    text = (ROOT / "docs/FINDINGS.md").read_text()
    pairs, rules = ((ROOT / "src/analyze/findings" / name).read_text() for name in ("rules.c", "rules.h"))
    ids = re.findall(r'^    R\("([a-z0-9-]+)", (?:true|false), (?:true|false), ', rules, re.M)
    assert len(ids) > 25
    for name in ids:
        assert f"| `{name}`" in text or f", `{name}` |" in text, name
    for cause, symptom, dropped in re.findall(r'^    \{"([a-z-]+)", "([a-z-]+)", (true|false)\},', pairs, re.M):
        row, = re.findall(rf"^\| `{cause}` \|(.*)\|(.*)\|$", text.split("## Order")[1].split("## Memory")[0], re.M)
        assert f"`{symptom}`" in row[dropped == "true"], (cause, symptom)
    rows = re.findall(r"^    L\((\w+), ([0-9.e]+)\)", rules, re.M)
    assert len(rows) > 40
    for name, value in rows:
        told = re.search(rf"`{name}`\s+([0-9.e]+)", text)
        assert told and float(told[1].rstrip(".")) == float(value), (name, value, told and told[1])
