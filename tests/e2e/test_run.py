"""`tare run` and its surroundings: statuses, signals, names, rights, full disks, limits, leftovers."""
import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

import pytest

from conftest import PATIENCE, TARE, VICTIMS, names_of, scaled

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts, another user")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


# ---- exit status ----

@pytest.mark.parametrize("status", [0, 1, 2, 3, 77, 125, 126, 127, 128, 137, 255])
def test_the_programs_status_comes_through(bench, status):
    bench.run("rough", "exit", status, status=status)
    assert bench.json(bench.folder / "trace.tare")["run"]["exit_status"] == status


@pytest.mark.parametrize("words, status, said", [
    ([], 2, "command"),
    (["--"], 2, "command"),
    (["./x"], 2, "--"),
    (["-o", "f.tare", "./x", "arg"], 2, "--"),
    (["--colour", "--", "true"], 2, "--colour"),
    (["--max-size", "lots", "--", "true"], 2, "lots"),
    (["--last", "5parsecs", "--", "true"], 2, "5parsecs"),
    (["-o", "", "--", "true"], 2, "empty"),
    (["--", "./none"], 127, "./none"),
    (["--", "no-such-program-anywhere"], 127, "PATH"),
    (["--", "./plain.txt"], 126, "not executable"),
    (["--", "."], 126, "directory"),
])
def test_wrong_usage_and_missing_programs(bench, words, status, said):
    (bench.folder / "plain.txt").write_text("no program\n")
    done = bench.tare("run", *words)
    assert done.status == status, (done.status, done.err)
    assert said in done.err and done.out == ""
    assert sorted(path.name for path in bench.folder.iterdir()) == ["plain.txt", "tmp"], "nothing is left"
    assert list(bench.temporary.iterdir()) == []


# ---- input and output ----

def test_a_pipe_through_tare(bench):
    text = "".join(f"line {i}\n" for i in range(20000))
    done = bench.tare("run", "--", "cat", text_in=text)
    assert done.status == 0 and done.out == text


def test_standard_output_is_the_programs_alone(bench):
    done = bench.tare("run", "--", "echo", "mine")
    assert done.out == "mine\n" and "tare" in done.err
    quiet = bench.tare("run", "--quiet", "--", "echo", "mine")
    assert (quiet.out, quiet.err) == ("mine\n", "")


def test_closed_descriptors(bench):
    command = f"exec '{TARE}' run -q -o t.tare -- '{VICTIMS}/nest' loop 100 <&- >&- 2>&-"
    assert bench.call("sh", "-c", command).status == 0
    assert names_of(bench.events(bench.folder / "t.tare"))["outer"] == 100


def test_a_report_into_a_closed_pipe(bench):
    trace = bench.run("nest", "loop", 5000).trace
    command = f"'{TARE}' report --events '{trace}' | head -n 3; exit ${{PIPESTATUS[0]}}"
    done = bench.call("bash", "-c", command)
    assert done.status == 0 and len(done.out.splitlines()) == 3 and done.err == ""


# ---- signals ----

SIGNALS = """
import signal, sys, time
count = 0
def on(number, frame):
    global count
    count += 1
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, on)
print("ready", flush=True)
until = time.monotonic() + 20
while count == 0 and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.3)
print("count", count, flush=True)
sys.exit(40 + count)
"""


def start_catcher(bench, **options):
    process = bench.start(TARE, "run", "-q", "-o", "t.tare", "--", sys.executable, "-c", SIGNALS,
                          start_new_session=True, **options)
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process):
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                                    signal.SIGUSR2])
def test_a_signal_to_tare_reaches_the_program(bench, number):
    process = start_catcher(bench)
    process.send_signal(number)
    assert finish(process)[:2] == (41, "count 1\n")


def test_an_interrupt_at_the_terminal_reaches_the_program_once(bench):
    """As a terminal sends it: from the kernel, to the whole foreground group."""
    master, slave = os.openpty()
    command = [TARE, "run", "-q", "-o", "t.tare", "--", sys.executable, "-c", SIGNALS]
    script = ("import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
              " os.execv(sys.argv[1], sys.argv[1:])")
    process = subprocess.Popen([sys.executable, "-c", script, *map(str, command)], cwd=bench.folder,
                               env=bench.env(), stdin=slave, stdout=subprocess.PIPE, text=True)
    os.close(slave)
    assert process.stdout.readline() == "ready\n"
    os.write(master, b"\x03")
    assert finish(process)[:2] == (41, "count 1\n")
    os.close(master)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_a_program_that_dies_of_a_signal(bench, number):
    process = bench.start(TARE, "run", "-q", "-o", "t.tare", "--", "sh", "-c",
                          "ulimit -c 0; echo; exec sleep 20", start_new_session=True)
    process.stdout.readline()
    process.send_signal(number)
    assert finish(process)[0] == 128 + number
    assert bench.json(bench.folder / "t.tare")["run"]["signal"] == number


def test_blocked_and_ignored_signals_stay_so(bench):
    script = "import signal; print(signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN," \
             " sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"

    def prepare():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    plain = bench.call(sys.executable, "-c", script, preexec_fn=prepare)
    under = bench.tare("run", "-q", "--", sys.executable, "-c", script, preexec_fn=prepare)
    assert "True" in plain.out and under.out == plain.out


# ---- names of outputs ----

NAMES = [
    (["./x"], "x.tare"),
    (["python3", "train.py"], "train.tare"),
    (["python3", "-u", "sub/train.py", "--lr", "0.1"], "train.tare"),
    (["python3", "-m", "pkg.mod"], "pkg.mod.tare"),
    (["python3", "-c", "pass"], "python3.tare"),
    (["env", "A=1", "./x"], "x.tare"),
    (["env", "-u", "HOME", "A=1", "./x"], "x.tare"),
    (["env", "A=1", "python3", "train.py"], "train.tare"),
    (["timeout", "5", "./x"], "x.tare"),
    (["timeout", "-k", "2", "5", "./x"], "x.tare"),
    (["nice", "-n", "5", "./x"], "x.tare"),
    (["nohup", "./x"], "x.tare"),
    (["stdbuf", "-oL", "./x"], "x.tare"),
    (["bash", "job.sh"], "job.tare"),
    (["sh", "-c", "true"], "sh.tare"),
    (["./archive.v2"], "archive.v2.tare"),
]


@pytest.mark.parametrize("command, name", NAMES, ids=[" ".join(command) for command, _ in NAMES])
def test_the_trace_is_named_after_the_script(bench, command, name):
    for program in ("x", "archive.v2"):
        (bench.folder / program).write_text("#!/bin/sh\nexit 0\n")
        (bench.folder / program).chmod(0o755)
    for folder in (bench.folder, bench.folder / "sub"):
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text("pass\n")
    (bench.folder / "job.sh").write_text("true\n")
    (bench.folder / "pkg").mkdir()
    (bench.folder / "pkg" / "mod.py").write_text("pass\n")
    done = bench.tare("run", "--", *command)
    assert done.status == 0, done.err
    assert [path.name for path in bench.folder.glob("*.tare")] == [name]


def test_nothing_is_overwritten(bench):
    for _ in range(3):
        assert bench.tare("run", "-q", "--", "true").status == 0
    names = sorted(path.name for path in bench.folder.glob("*.tare"))
    assert names == ["true.2.tare", "true.3.tare", "true.tare"]
    for _ in range(2):
        assert bench.tare("run", "-q", "-o", "a.tare", "--", "true").status == 0
    before = (bench.folder / "a.tare").read_bytes()
    assert (bench.folder / "a.2.tare").exists()
    assert bench.tare("run", "-q", "-f", "-o", "a.tare", "--", VICTIMS / "nest", "loop", 5).status == 0
    assert (bench.folder / "a.tare").read_bytes() != before and not (bench.folder / "a.3.tare").exists()


def test_a_planted_link_is_not_followed(bench):
    precious = bench.folder / "precious"
    precious.write_text("keep me")
    (bench.folder / "true.tare").symlink_to(precious)
    (bench.folder / "true.2.tare").symlink_to(bench.folder / "dangling")
    assert bench.tare("run", "-q", "--", "true").status == 0
    assert precious.read_text() == "keep me" and not (bench.folder / "dangling").exists()
    assert bench.json(bench.folder / "true.3.tare")["run"]["finished"]


@pytest.mark.tsan
def test_twenty_runs_at_once(bench):
    runs = [bench.start(TARE, "run", "-q", "-o", "a.tare", "--", VICTIMS / "nest", "loop", i + 1)
            for i in range(20)]
    assert [finish(run)[0] for run in runs] == [0] * 20
    traces = sorted(bench.folder.glob("a*.tare"))
    assert len(traces) == 20
    loops = sorted(names_of(bench.events(trace))["outer"] for trace in traces)
    assert loops == list(range(1, 21))


# ---- rights ----

def test_who_may_read_what(bench):
    process = bench.start(TARE, "run", "-q", "-o", "t.tare", "--", VICTIMS / "rough", "sleep", 2000,
                          preexec_fn=lambda: os.umask(0o022))
    session = pathlib.Path(process.stdout.readline().split()[1])
    process.stdout.readline()
    assert mode_of(session) == 0o700
    files = {path.name: mode_of(path) for path in session.iterdir()}
    assert {"session", "join"} < set(files) and len(files) == 3
    assert all(files[name] == 0o600 for name in files if name != "join"), files
    assert all(mode_of(path) == 0o700 for path in bench.temporary.iterdir())
    process.terminate()
    finish(process)
    assert mode_of(bench.folder / "t.tare") == 0o600
    assert not session.exists() and list(bench.temporary.iterdir()) == []
    bench.tare("run", "-q", "--readable", "-o", "r.tare", "--", "true", preexec_fn=lambda: os.umask(0o022))
    assert mode_of(bench.folder / "r.tare") == 0o644


def test_nothing_is_left_behind(bench):
    done = bench.run("threads", "alive", 50)
    assert not os.path.exists(done.facts["session"][0])
    assert list(bench.temporary.iterdir()) == []


@ROOT_ONLY
def test_a_folder_that_cannot_be_written(bench):
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        for file in (TARE, *TARE.parent.glob("libtare-engine-*.so")):
            shutil.copy(file, place)
        before, program = sorted(os.listdir(place)), os.path.join(place, "tare")
        done = bench.call("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "run", "--",
                          "true", cwd=place)
        assert sorted(os.listdir(place)) == before
    assert done.status == 125 and "true.tare" in done.err and "ermission" in done.err


@pytest.mark.parametrize("output", ["/dev/full", "folder", "/nonexistent/x.tare", "/dev/null"])
def test_outputs_that_cannot_be(bench, output):
    (bench.folder / "folder").mkdir()
    done = bench.tare("run", "-f", "-o", output, "--", "echo", "ran")
    assert done.status == 125 and output in done.err and done.out == "", "said before the program starts"
    assert os.path.exists("/dev/null") and os.path.exists("/dev/full")
    assert list(bench.temporary.iterdir()) == []


# ---- little room ----

@pytest.fixture
def small_disk(bench):
    place = bench.folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", place]).returncode == 0
    if not mounted:
        pytest.skip("cannot mount here")
    yield place
    subprocess.run(["umount", "-l", place])


@ROOT_ONLY
def test_a_disk_that_fills_up(bench, small_disk):
    trace = small_disk / "t.tare"
    spans = scaled(3000000)
    done = bench.tare("run", "-o", trace, "--", VICTIMS / "flood", "pairs", spans)
    assert done.status == 0, "the program's own status"
    assert "No space left" in done.err and "could not be written" in done.err
    report = bench.json(trace)
    assert report["run"]["write_error"] and "No space" in report["run"]["write_error"]
    assert any("No space" in note for note in report["notes"])
    assert 0 < report["run"]["spans"] < spans, "what was there is kept"
    assert report["run"]["damaged_blocks"] == 0


def test_a_file_size_limit(bench):
    command = f"trap '' XFSZ; ulimit -f 300; exec '{TARE}' run -o t.tare -- '{VICTIMS}/names' 30000"
    done = bench.call("bash", "-c", command)
    # The ring itself may not be made either: then nothing is recorded and the report says why.
    report = bench.json(bench.folder / "t.tare")
    assert done.status == 0
    refused = sum(report["run"]["refused_processes"].values())
    assert report["notes"] and (report["run"]["write_error"] or refused)


@ROOT_ONLY
def test_shared_memory_that_cannot_be_written(bench):
    """In a mount namespace whose /dev/shm is read-only the session goes to the temporary folder."""
    command = (f"mount -t tmpfs -o ro none /dev/shm && exec '{TARE}' run -q -o t.tare --"
               f" '{VICTIMS}/nest' loop 100")
    done = bench.call("unshare", "--mount", "--propagation", "private", "sh", "-c", command)
    assert done.status == 0, done.err
    assert done.facts["session"][0].startswith(str(bench.temporary))
    assert names_of(bench.events(bench.folder / "t.tare"))["outer"] == 100
    assert list(bench.temporary.iterdir()) == []


@ROOT_ONLY
def test_small_shared_memory_uses_the_temporary_folder(bench):
    command = (f"mount -t tmpfs -o size=16m none /dev/shm && exec '{TARE}' run -q -o t.tare --"
               f" '{VICTIMS}/nest' loop 100")
    done = bench.call("unshare", "--mount", "--propagation", "private", "sh", "-c", command)
    assert done.status == 0, done.err
    assert names_of(bench.events(bench.folder / "t.tare"))["outer"] == 100
    assert list(bench.temporary.iterdir()) == []


# ---- limits ----

def test_max_size_holds_at_every_moment(bench):
    limit, trace = 1 << 20, bench.folder / "t.tare"
    process = bench.start(TARE, "run", "-q", "-o", trace, "--max-size", "1M", "--", VICTIMS / "ticker",
                          bench.folder / "ledger", 0, scaled(3000, 1500))
    largest, deadline = 0, time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        sizes = [path.stat().st_size for path in bench.folder.glob("t.tare*") if path.exists()]
        largest = max(largest, sum(sizes))
        time.sleep(0.002)
    finish(process)
    assert process.returncode == 0
    assert limit // 4 < largest <= limit
    report = bench.json(trace)
    assert report["run"]["rotated_spans"] > 0 and report["notes"]
    seen = [int(event.extras["value"]) for event in bench.events(trace) if event.kind == "counter"]
    last = len((bench.folder / "ledger").read_bytes()) // 16
    assert seen == list(range(seen[0], seen[0] + len(seen))), "what is kept has no holes"
    assert seen[-1] == last and seen[0] > 1, "the newest is kept, the oldest went"
    run = report["run"]
    assert run["spans"] + run["rotated_spans"] + run["dropped_spans"] == last + 1


def test_last_keeps_the_end(bench):
    trace = bench.folder / "t.tare"
    done = bench.tare("run", "-q", "-o", trace, "--last", "2s", "--", VICTIMS / "ticker",
                      bench.folder / "ledger", 1000, 5000)
    assert done.status == 0
    events = bench.events(trace)
    seen = [int(event.extras["value"]) for event in events if event.kind == "counter"]
    data = (bench.folder / "ledger").read_bytes()
    times = dict(struct.unpack_from("=QQ", data, at) for at in range(0, len(data), 16))
    last = max(times)
    assert seen[-1] == last and seen == list(range(seen[0], last + 1))
    kept_s = (times[last] - times[seen[0]]) / 1e9
    assert 1.9 < kept_s < 4, "two seconds, and at most a block and some more"
    assert bench.json(trace)["run"]["rotated_spans"] > 0


def test_help_is_there(bench):
    for words in (["--help"], ["run", "--help"], ["report", "--help"]):
        done = bench.tare(*words)
        assert done.status == 0 and "usage" in done.out.lower() and done.err == ""
