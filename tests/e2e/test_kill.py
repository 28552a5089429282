"""SIGKILL at random moments, of the program, of the collector, of both: what is left opens, all is there."""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time

import pytest

from conftest import PATIENCE, SANITIZER, TARE, VICTIMS, Bench, by_thread, check_nesting
from waiting import until

KILLS = 200 if SANITIZER == "none" else 40
SEED = int(os.environ.get("TARE_SEED", random.SystemRandom().randrange(1 << 32)))
WHOM = ["program", "collector", "group"]


@pytest.fixture(autouse=True, scope="module")
def adopt_orphans():
    """Programs whose collector was killed become children of this process, which can then wait for them."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(36, 1, 0, 0, 0) == 0  # PR_SET_CHILD_SUBREAPER
    yield
    libc.prctl(36, 0, 0, 0, 0)


def ledger(path):
    data = path.read_bytes() if path.exists() else b""
    return [struct.unpack_from("=QQ", data, at) for at in range(0, len(data) - 15, 16)]


class Killed:
    """One run of the ticker, killed after `delay` seconds of its own life."""

    def __init__(self, bench, whom, delay, gap_us, reap=True):
        self.bench, self.whom = bench, whom
        self.trace, self.ledger = bench.folder / "t.tare", bench.folder / "ledger"
        self.process = bench.start(TARE, "run", "-q", "-o", self.trace, "--", VICTIMS / "ticker", self.ledger,
                                   gap_us, 60000, stdout=subprocess.PIPE, start_new_session=True)
        self.session = pathlib.Path(self.process.stdout.readline().split()[1])
        self.target = int(self.process.stdout.readline().split()[1])
        time.sleep(delay)
        {"program": self.kill_program, "collector": self.kill_collector, "group": self.kill_group}[whom]()
        if whom != "program" and reap:
            os.waitpid(self.target, 0)
        elif whom != "program":
            os.waitid(os.P_PID, self.target, os.WEXITED | os.WNOWAIT)

    def close(self):
        self.process.stdout.close()
        self.process.stderr.close()

    def kill_program(self):
        os.kill(self.target, signal.SIGKILL)
        self.killed_ns = time.monotonic_ns()
        assert self.process.wait(PATIENCE) == 137
        assert not self.session.exists()

    def kill_group(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.killed_ns = time.monotonic_ns()
        self.process.wait(PATIENCE)

    def kill_collector(self):
        """The program runs on for a while; then it goes, too."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        time.sleep(0.02)
        os.kill(self.target, signal.SIGKILL)
        self.killed_ns = time.monotonic_ns()

    def check(self, by_folder):
        """Opens what is left, by the trace's name or by the session's folder."""
        left = self.session if by_folder and self.whom != "program" else self.trace
        done = self.bench.tare("report", "--events", left)
        assert done.status == 0, done.err
        if self.whom != "program":
            assert "recording was interrupted" in done.err
        # Reading removes nothing: tests/hostile/test_salvage.py.
        assert self.session.exists() == (self.whom != "program")
        assert (list(self.bench.temporary.iterdir()) == []) == (self.whom == "program")
        report = json.loads(self.bench.report(self.trace, "--json").out)
        assert report["run"]["salvaged"] == (self.whom != "program")
        assert report["run"]["dropped_spans"] == 0 and report["run"]["damaged_blocks"] == 0
        self.check_events(self.bench.events(self.trace))

    def check_events(self, events):
        seen = [int(event.extras["value"]) for event in events if event.kind == "counter"]
        assert seen == list(range(1, len(seen) + 1)), "each once, in order, none missing"
        written = ledger(self.ledger)
        old = [n for n, ns in written if ns <= self.killed_ns - 50_000_000]
        assert not old or seen and seen[-1] >= old[-1], "nothing older than 50 ms is missing"
        # Stronger, and true of shared memory: what the program knew to be recorded is there.
        assert not written or seen and seen[-1] >= written[-1][0]
        for lines in by_thread(events).values():
            kinds = [event.kind for event in lines]
            opened = kinds.count("begin") - kinds.count("end")
            check_nesting(lines, left_open=opened)
            assert opened in (0, 1, 2)


def one(folder, whom, seed):
    dice = random.Random(seed)
    folder.mkdir()
    killed = Killed(Bench(folder), whom, dice.uniform(0, 0.12), dice.choice([50, 200, 1000]))
    try:
        killed.check(by_folder=dice.random() < 0.5)
    finally:
        killed.close()


@pytest.mark.parametrize("whom", WHOM)
def test_killed_at_random_moments(tmp_path, whom):
    times = KILLS // len(WHOM) + 1
    failures = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = {pool.submit(one, tmp_path / str(i), whom, SEED + i): SEED + i for i in range(times)}
        for job in concurrent.futures.as_completed(jobs):
            if job.exception():
                failures.append((jobs[job], repr(job.exception())[:600]))
    assert not failures, f"{len(failures)} of {times} failed (TARE_SEED={SEED}): {failures[:3]}"


@pytest.mark.parametrize("descriptors", [None, 7, 10])
def test_a_program_that_lives_on_can_be_read_again(bench, descriptors):
    """The collector is dead, the program is not: its folder stays until it is, however few files may be open."""
    ledger_path, trace = bench.folder / "ledger", bench.folder / "t.tare"
    process = bench.start(TARE, "run", "-q", "-o", trace, "--", VICTIMS / "ticker", ledger_path, 1000, 60000,
                          start_new_session=True)
    session = pathlib.Path(process.stdout.readline().split()[1])
    target = int(process.stdout.readline().split()[1])
    until(lambda: ledger_path.exists() and ledger(ledger_path), "it has recorded")
    process.kill()
    process.wait(PATIENCE)
    try:
        first = ledger(ledger_path)[-1][0]
        few = ["prlimit", f"--nofile={descriptors}"] if descriptors else []
        done = bench.call(*few, TARE, "report", "--events", session)
        assert done.status == 0 and "is still running" in done.err and session.exists()
        seen = [int(event.extras["value"]) for event in bench.events(trace) if event.kind == "counter"]
        assert seen[-1] >= first and seen == list(range(1, len(seen) + 1))
        time.sleep(0.05)
    finally:
        os.kill(target, signal.SIGKILL)
        os.waitpid(target, 0)
    last = ledger(ledger_path)[-1][0]
    assert last > first
    bench.report(session, "--events")
    seen = [int(event.extras["value"]) for event in bench.events(trace) if event.kind == "counter"]
    assert seen == list(range(1, len(seen) + 1)) and seen[-1] >= last
    assert session.exists()
    process.stdout.close()
    process.stderr.close()


def test_a_zombie_does_not_run(bench):
    """In a container whose first process never waits, what was killed stays a zombie for good."""
    killed = Killed(bench, "collector", 0.02, 1000, reap=False)
    try:
        killed.check(by_folder=True)
    finally:
        os.waitpid(killed.target, 0)
        killed.close()


def test_a_session_that_is_alive_is_left_alone(bench):
    process = bench.start(TARE, "run", "-q", "-o", "t.tare", "--", VICTIMS / "rough", "sleep", 3000)
    session = pathlib.Path(process.stdout.readline().split()[1])
    process.stdout.readline()
    done = bench.report(session, "--events")
    assert "still being recorded" in done.err
    assert session.exists()
    done = bench.report(bench.folder / "t.tare", "--events")
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM and not session.exists()


@pytest.mark.parametrize("what", ["empty", "file", "foreign"])
def test_a_folder_that_is_no_session_gets_a_sentence(bench, what):
    folder = bench.folder / "folder"
    folder.mkdir(mode=0o700)
    if what != "empty":
        (folder / "session").write_bytes(b"x" * (10 if what == "file" else 100000))
    done = bench.report(folder, status=3)
    assert str(folder) in done.err and len(done.err.splitlines()) == 1
    assert folder.exists()
