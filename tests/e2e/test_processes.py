"""Every way of becoming another process, sessions of a program's own, plugins, those that cannot join."""
import os
import shutil
import subprocess

import pytest

from conftest import VICTIMS, by_thread, check_nesting, names_of
from waiting import came_true

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")


def joined(report):
    return [process for process in report["processes"] if process["joined"]]


@pytest.mark.parametrize("mode", ["fork", "_Fork", "clone"])
def test_a_forked_child_has_a_stream_of_its_own(bench, mode):
    done = bench.run("forks", mode)
    events = bench.events(done.trace)
    check_nesting(events)
    assert names_of(events) == {"around fork": 1, "child": 20, "parent": 10}
    pids = {name: {event.pid for event in events if event.name == name} for name in ("child", "parent")}
    assert len(pids["child"]) == len(pids["parent"]) == 1 and pids["child"] != pids["parent"]
    children = [process for process in joined(bench.json(done.trace)) if str(process["pid"]) in pids["child"]]
    assert [str(process["parent_pid"]) for process in children] == list(pids["parent"])


@pytest.mark.parametrize("mode, names", [
    ("exec", {"parent": 10, "child": 20, "plain": 30}),
    ("vfork", {"parent": 20, "plain": 30}),
    ("vfork-record", {"parent": 20, "between": 1, "plain": 30}),
    ("spawn", {"parent": 10, "plain": 30}),
    ("inplace", {"before": 15, "plain": 30}),
])
def test_another_program(bench, mode, names):
    done = bench.run("forks", mode)
    # Two programs of one process are two streams, and the file may have them in either order.
    events = sorted(bench.events(done.trace), key=lambda event: event.ns)
    check_nesting(events)
    assert names_of(events) == names
    assert bench.json(done.trace)["run"]["dropped_spans"] == 0


def test_exec_in_place_is_a_process_of_its_own(bench):
    report = bench.json(bench.run("forks", "inplace").trace)
    assert sorted(process["spans"] for process in joined(report)) == [15, 30]
    assert len({process["pid"] for process in joined(report)}) == 1


def test_a_daemon_is_waited_for(bench):
    done = bench.run("forks", "daemon")
    assert names_of(bench.events(done.trace)) == {"parent": 10, "daemon": 20}
    assert "waiting" in done.err


def test_no_wait_leaves_a_daemon(bench):
    done = bench.run("forks", "daemon", options=["--no-wait"], stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    assert names_of(bench.events(done.trace)) == {"parent": 10, "daemon": 5}
    assert bench.json(done.trace)["run"]["left_running"] == 1


def test_a_daemon_that_records_nothing_yet_is_not_waited_for(bench):
    done = bench.run("forks", "late-daemon", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert names_of(bench.events(done.trace)) == {"parent": 10}


@pytest.mark.tsan
def test_twenty_workers_and_their_children(bench):
    done = bench.run("forks", "workers", 20)
    events = bench.events(done.trace)
    check_nesting(events)
    expected = {f"rank {i}": i + 1 for i in range(20)}
    assert names_of(events) == {"parent": 10, "below": 10, **expected}
    assert len(joined(bench.json(done.trace))) == 31
    assert len({event.pid for event in events}) == 31


# ---- sessions without `tare run` ----

def own(bench, mode, **env):
    return bench.call(VICTIMS / "own", mode, env={"TARE_HELPER": str(VICTIMS.parents[1] / "tare"), **env})


@pytest.mark.tsan
def test_own_sessions_twice_with_a_fork_inside(bench):
    done = own(bench, "twice")
    assert done.status == 0
    for key in ("started", "busy", "recording", "stopped", "errno_kept"):
        assert done.facts[key] == ["1", "1"], key
    assert done.facts["idle"] == ["1"] and "errno_changed" not in done.facts
    assert done.facts["output"] == [str(bench.folder / f"own{i}.tare") for i in range(2)]
    for i, name in enumerate(("first", "second")):
        events = bench.events(bench.folder / f"own{i}.tare")
        assert names_of(events) == {name: 40, "open over the end": 1, "child": 25}
        report = bench.json(bench.folder / f"own{i}.tare")
        assert report["run"]["finished"] and len(joined(report)) == 2
    assert list(bench.temporary.iterdir()) == []


@pytest.mark.tsan
@pytest.mark.parametrize("mode, after", [("outlive", {"after": 5}), ("outlive-again", {"after": 5, "dived": 6})])
def test_scopes_that_outlive_their_session(bench, mode, after):
    done = own(bench, mode)
    assert done.status == 0
    assert done.facts["started"] == ["1", "1"] and done.facts["stopped"] == ["1", "1"]
    assert names_of(bench.events(bench.folder / "own0.tare")) == {"level": 5600}
    assert names_of(bench.events(bench.folder / "own1.tare")) == after
    assert bench.json(bench.folder / "own1.tare")["run"]["finished"]


def test_own_session_of_a_program_that_just_ends(bench):
    assert own(bench, "leave").status == 0
    trace = bench.folder / "left.tare"
    assert came_true(lambda: bench.json(trace)["run"]["finished"])
    assert names_of(bench.events(trace)) == {"left": 30}


def test_own_session_of_a_program_that_is_killed(bench):
    assert own(bench, "killed").status == -9
    trace = bench.folder / "killed.tare"
    assert came_true(lambda: bench.json(trace)["run"]["finished"])
    events = bench.events(trace)
    assert names_of(events) == {"doomed": 500, "open at the kill": 1}
    check_nesting(events, left_open=1)


def test_own_session_is_sampled_from_outside(bench):
    done = own(bench, "busy")
    assert done.facts["started"] == done.facts["stopped"] == ["1"]
    report = bench.json(bench.folder / "busy.tare")
    usage, told = report["usage"], done.fact("cpu_ns") / 1e9
    assert 0.5 * told < usage["cpu_seconds"] < 1.2 * told + 0.1, (usage["cpu_seconds"], told)
    assert usage["rss_peak_bytes"] > 64 << 20
    assert {"memory.rss", "cpu.user"} <= {metric["metric"] for metric in report["metrics"]}
    assert report["tare"]["interval_ns"] == 100_000_000
    assert "Resource usage" in bench.report(bench.folder / "busy.tare").out


def test_own_session_takes_the_settings_of_sampling(bench):
    assert own(bench, "busy", TARE_NO_SAMPLING="1").facts["started"] == ["1"]
    report = bench.json(bench.folder / "busy.tare")
    assert report["metrics"] == [] and names_of(bench.events(bench.folder / "busy.tare")) == {"work": 1}
    (bench.folder / "busy.tare").unlink()
    (bench.folder / "tare.toml").write_text("interval = \"20ms\"\n")
    assert own(bench, "busy").facts["started"] == ["1"]
    assert bench.json(bench.folder / "busy.tare")["tare"]["interval_ns"] == 20_000_000
    (bench.folder / "busy.tare").unlink()
    done = own(bench, "busy", TARE_INTERVAL="often")
    assert done.facts["started"] == ["0"] and not (bench.folder / "busy.tare").exists()
    assert "TARE_INTERVAL" in done.err and "often" in done.err


def test_a_session_that_cannot_start_says_why(bench):
    done = own(bench, "wrong")
    assert done.status == 0
    assert done.facts["size"] == ["2"] and done.facts["helper"] == ["10"]
    assert done.fact("folder") not in (0, 10), "not started, and not for want of the helper"
    assert done.facts["children"] == ["1"], "no child is left for the program's wait()"


# ---- plugins, and two copies of the library ----

def check_plugin(names, marks, times=5):
    assert names["plugin"] == times and names["plugin work"] == 20 * times
    assert names["step"] == times and names["plugin name"] == times
    assert marks == {"plugin mark": times}


def test_a_plugin_brings_the_library_and_goes(bench):
    done = bench.run("host_plain")
    assert done.facts["recording"] == ["5"]
    events = bench.events(done.trace)
    check_nesting(events)
    check_plugin(names_of(events), names_of(events, "mark"))


def test_two_copies_of_the_library_are_one_recorder(bench):
    done = bench.run("host_static")
    assert done.facts["recording"] == ["5"]
    events = bench.events(done.trace)
    check_nesting(events)
    names = names_of(events)
    check_plugin(names, names_of(events, "mark"))
    assert names["host"] == 1 and names["host work"] == 10
    assert len(by_thread(events)) == 1
    report = bench.json(done.trace)
    assert len(joined(report)) == 1
    under = [span for span in report["spans"] if span["name"] == "plugin work"]
    assert under[0]["path"] == ["host", "plugin", "plugin work"]
    assert report["aggregates"][0]["calls"] == 100


# ---- programs that make it hard ----

@pytest.mark.parametrize("mode, names", [
    ("close", {"before": 50, "after": 50}),
    ("close-first", {"after": 50}),
    ("chdir", {"elsewhere": 50}),
])
def test_closed_descriptors_and_another_folder_do_not_matter(bench, mode, names):
    done = bench.run("rough", mode)
    assert names_of(bench.events(done.trace)) == names
    assert not os.path.exists(done.facts["session"][0])


def test_a_process_without_descriptors_runs_on_unrecorded(bench):
    done = bench.run("rough", "no-files", env={"ASAN_OPTIONS": "detect_leaks=0"})  # which needs descriptors
    assert done.facts["done"] == ["1"]
    report = bench.json(done.trace)
    assert report["run"]["spans"] == 0
    assert sum(report["run"]["refused_processes"].values()) == 1
    assert report["notes"], "the report says that a process could not join"


@pytest.mark.parametrize("how, status", [("segv", 139), ("abort", 134), ("kill", 137)])
def test_a_crash_keeps_everything(bench, how, status):
    if how == "segv" and "ASAN_OPTIONS" in os.environ:
        env = {"ASAN_OPTIONS": os.environ["ASAN_OPTIONS"] + ":handle_segv=0"}
    else:
        env = {}
    done = bench.run("rough", "crash", how, status=status, env=env)
    events = bench.events(done.trace)
    check_nesting(events, left_open=1)
    assert names_of(events) == {"before the crash": 100, "crashing": 1}
    report = bench.json(done.trace)
    assert report["run"]["exit_status"] == status and report["run"]["signal"] == status - 128


def seen_only(report):
    return [process["not_joined"] for process in report["processes"] if not process["joined"]]


def test_a_cleared_environment_is_seen_with_its_reason(bench):
    trace = bench.folder / "x.tare"
    done = bench.tare("run", "-o", trace, "--", "env", "-i", VICTIMS / "rough", "sleep", "600")
    assert done.status == 0
    report = bench.json(trace)
    assert any("environment" in reason for reason in seen_only(report)), report["processes"]
    assert bench.events(trace) == []


@ROOT_ONLY
def test_another_user_is_seen_with_its_reason(bench):
    trace = bench.folder / "x.tare"
    victim = shutil.copy(VICTIMS / "rough", "/tmp/tare-e2e-%d" % os.getpid())
    os.chmod(victim, 0o755)
    try:
        done = bench.tare("run", "-o", trace, "--", "setpriv", "--reuid=65534", "--regid=65534",
                          "--clear-groups", victim, "sleep", "600")
    finally:
        os.remove(victim)
    assert done.status == 0 and "ready 1" in done.out
    report = bench.json(trace)
    assert any("another user" in reason for reason in seen_only(report)), report["processes"]
