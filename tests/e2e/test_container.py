"""Limits, throttling and kills of a real control group, as `tare run` sees them; skipped where none can be made."""
import collections
import os
import pathlib
import subprocess

import pytest

from conftest import BUILD, TARE

CONTAINER = "5"  # the subject's number in the file
MIB = 1 << 20
BUSY = "import time\nend = time.monotonic() + 1.6\nwhile time.monotonic() < end: pass"

Series = collections.namedtuple("Series", "label absent values")


def mounts():
    """(version, its options, its root, where) of every mounted hierarchy."""
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ")[:3]
        if kind in ("cgroup", "cgroup2"):
            yield (2 if kind == "cgroup2" else 1), options.split(","), before.split(" ")[3], before.split(" ")[4]


def own_path(controller):
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return None


def parent_of(controller):
    """(version, folder) below which a group with this controller can be made. One of version 2 can only stand
    at the top: a group with processes of its own hands out no controllers."""
    for version, options, root, where in mounts():
        if version == 1 and controller in options and own_path(controller):
            path = own_path(controller)
            return 1, pathlib.Path(where + (path if root == "/" else ""))
        if version == 2 and controller in pathlib.Path(where, "cgroup.subtree_control").read_text().split():
            return 2, pathlib.Path(where)
    return None


class Group:
    def __init__(self, controller):
        found = parent_of(controller)
        if not found:
            pytest.skip(f"no control group with {controller} can be made: it is not mounted, or not handed down")
        self.version, parent = found
        self.folder = parent / f"tare-test-{os.getpid()}"
        try:
            self.folder.mkdir()
        except OSError as why:
            pytest.skip(f"no control group can be made: {why}")

    def set(self, version_1, version_2, value):
        (self.folder / (version_1 if self.version == 1 else version_2)).write_text(str(value))

    def favour(self):
        """It gets the CPUs before all others: what else runs on the machine decides less of what is seen."""
        self.set("cpu.shares", "cpu.weight", 262144 if self.version == 1 else 10000)

    def limit_cpu(self, percent):
        if self.version == 1:
            self.set("cpu.cfs_period_us", None, 100000)
        self.set("cpu.cfs_quota_us", "cpu.max", percent * 1000)

    def limit_memory(self, size):
        self.set("memory.limit_in_bytes", "memory.max", size)
        swap = self.folder / "memory.swap.max"
        if swap.exists():
            swap.write_text("0")

    def remove(self):
        for _ in range(100):
            try:
                return self.folder.rmdir()
            except OSError:  # the last process is still on its way out
                subprocess.run(["sleep", "0.05"], check=True)


@pytest.fixture
def group(request):
    made = Group(request.param)
    yield made
    made.remove()


def with_group(controller):
    return pytest.mark.parametrize("group", [controller], indirect=True)


def inside(bench, group, *command):
    """Runs a command that is in the group from its first instruction on."""
    script = f'echo $$ > "{group.folder}/cgroup.procs" && exec "$@"'
    return bench.call("sh", "-c", script, "sh", *command)


def series_of(bench, trace):
    """The container's series by metric; where there are several, the last one told of."""
    done = bench.call(BUILD / "tests" / "tool" / "series", trace)
    assert done.status == 0, done.err
    values, found = collections.defaultdict(list), {}
    lines = [line.split("\t") for line in done.out.splitlines()]
    for fields in lines:
        if fields[0] == "value":
            values[fields[1]].append(int(fields[3]))
    for fields in lines:
        if fields[0] == "series" and fields[3] == CONTAINER:
            found[fields[2]] = Series(fields[6], fields[7], values[fields[1]])
    return found


@with_group("cpu")
def test_throttling(bench, group):
    group.favour()
    group.limit_cpu(20)
    done = inside(bench, group, TARE, "run", "-o", "t.tare", "--", "python3", "-c", BUSY)
    assert done.status == 0, done.err
    seen = series_of(bench, "t.tare")
    assert seen["cpu.limit"].label.endswith(group.folder.name)
    assert set(seen["cpu.limit"].values) == {200}
    throttled, periods = seen["cpu.throttled_periods"].values, seen["cpu.periods"].values
    assert throttled[-1] > throttled[0] and periods[-1] - periods[0] >= throttled[-1] - throttled[0]
    assert seen["cpu.throttled"].values[-1] > seen["cpu.throttled"].values[0]
    # What the group's own counter says at the end is what the last sample said, or later.
    stat = dict(line.split() for line in (group.folder / "cpu.stat").read_text().splitlines())
    assert int(stat["nr_throttled"]) >= throttled[-1]


@with_group("cpu")
def test_no_limit_no_throttling(bench, group):
    done = inside(bench, group, TARE, "run", "-o", "t.tare", "--", "python3", "-c", "pass")
    assert done.status == 0, done.err
    seen = series_of(bench, "t.tare")
    assert seen["cpu.limit"].values[-1] == 1000 * len(os.sched_getaffinity(0))
    assert not any(seen["cpu.throttled_periods"].values)


@with_group("cpu")
def test_a_program_that_moves(bench, group):
    group.limit_cpu(30)
    script = f'echo $$ > "{group.folder}/cgroup.procs"; exec python3 -c "$1"'
    done = bench.tare("run", "-o", "t.tare", "--", "sh", "-c", script, "sh", BUSY)
    assert done.status == 0, done.err
    seen = series_of(bench, "t.tare")
    assert seen["cpu.limit"].label.endswith(group.folder.name)
    assert seen["cpu.limit"].values[-1] == 300


@with_group("memory")
def test_memory_limit(bench, group):
    group.limit_memory(200 * MIB)
    script = "import time; kept = bytearray(b'x') * (64 << 20); time.sleep(0.6)"
    done = inside(bench, group, TARE, "run", "-o", "t.tare", "--", "python3", "-c", script)
    assert done.status == 0, done.err
    seen = series_of(bench, "t.tare")
    assert set(seen["memory.limit"].values) == {200 * MIB}
    assert 64 * MIB <= max(seen["memory.used"].values) <= 200 * MIB
    assert max(seen["memory.anon"].values) >= 64 * MIB
    if not seen["memory.peak"].absent:
        assert seen["memory.peak"].values[-1] >= max(seen["memory.used"].values)
    assert seen["oom.kills"].values[-1] == 0


@with_group("memory")
def test_killed_for_memory(bench, group):
    group.limit_memory(120 * MIB)
    script = "kept = []\nwhile True: kept.append(bytearray(b'x') * (4 << 20))"
    done = inside(bench, group, TARE, "run", "-o", "t.tare", "--", "python3", "-c", script)
    assert done.status == 137, (done.status, done.err)
    seen = series_of(bench, "t.tare")
    assert seen["oom.kills"].values[-1] == 1
    assert seen["oom.kills"].values[0] == 0
    assert set(seen["memory.limit"].values) == {120 * MIB}
