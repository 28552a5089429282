"""What a killed recording left: it is read without being changed, saved without harming anything, and stays until
somebody removes it."""
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import stat
import struct
import subprocess
import time

import pytest

import traces
from conftest import as_user
from e2e_conftest import PATIENCE, SANITIZER, TARE, VICTIMS, parse_events
from format_reader import Stacks
from waiting import read_page, until


class Killed:
    """A run of the ticker whose collector (and then the program) was killed after it had recorded for a while."""

    def __init__(self, bench, name="t.tare", least=300, program=True, words=(), prefix=()):
        self.bench, self.trace, self.ledger = bench, bench.folder / name, bench.folder / (name + ".ledger")
        self.process = bench.start(*prefix, TARE, "run", "-q", *words, "-o", self.trace, "--", VICTIMS / "ticker",
                                   self.ledger, 200, 120000, start_new_session=True)
        self.session = pathlib.Path(self.process.stdout.readline().split()[1])
        self.target = int(self.process.stdout.readline().split()[1])
        until(lambda: self.written() >= least, "it has recorded")
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        if program:
            self.end_program()

    def end_program(self):
        os.kill(self.target, signal.SIGKILL)
        until(lambda: not alive(self.target), "it has ended")
        self.process.stdout.close()
        self.process.stderr.close()

    def written(self):
        return self.ledger.stat().st_size // 16 if self.ledger.exists() else 0

    def counted(self, trace=None):
        events = self.bench.events(trace or self.trace)
        return [int(event.extras["value"]) for event in events if event.kind == "counter"]

    def has_all(self, seen):
        """Each once, in order; the last may have been recorded and not been written down any more."""
        return seen == list(range(1, len(seen) + 1)) and len(seen) - self.written() in (0, 1)

    def rings(self):
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in self.session.iterdir() if path.suffix == ".ring" or path.name == "session"}


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_reading_leaves_rings_and_session_as_they_are(bench):
    killed = Killed(bench)
    before = killed.rings()
    assert len(before) == 2
    for _ in range(3):
        bench.report(killed.trace)
        bench.report(killed.session)
    assert killed.rings() == before
    assert killed.has_all(killed.counted())


def test_every_copy_of_the_trace_gets_all_of_it(bench):
    killed = Killed(bench)
    copy = bench.folder / "copy.tare"
    shutil.copy(killed.trace, copy)
    assert killed.counted(copy) == killed.counted() and killed.has_all(killed.counted())


def test_a_renamed_trace_is_finished_and_the_run_that_took_its_name_is_not_touched(bench):
    killed = Killed(bench)
    renamed = bench.folder / "renamed.tare"
    killed.trace.rename(renamed)
    bench.tare("run", "-q", "-o", killed.trace, "--", VICTIMS / "ticker", bench.folder / "other.ledger", 1000, 20)
    finished = killed.trace.read_bytes()
    told = bench.report(renamed).err
    assert f"it belongs to another file; `tare clean --all {killed.session}` removes it" in told, told
    assert killed.has_all(killed.counted(renamed))
    assert killed.trace.read_bytes() == finished
    assert f"kept {killed.session}" in bench.tare("clean", killed.session).out
    done = bench.report(killed.session, status=3)  # the session names a file that is another run's by now
    assert "is not the trace of" in done.err and killed.trace.read_bytes() == finished


def test_a_folder_of_another_session_is_not_mixed_in(bench):
    """The trace names a session folder that is there, and is another run's."""
    first, second = Killed(bench, "a.tare"), Killed(bench, "b.tare")
    data = first.trace.read_bytes()
    at, kind, payload = next(traces.blocks(data))
    assert kind == traces.RUN
    swapped = bench.folder / "swapped.tare"
    head = traces.seal(kind, traces.with_fields(payload, f7=str(second.session).encode()))
    swapped.write_bytes(data[:at] + head + data[at + traces.HEADER.size + len(payload):])
    before = swapped.read_bytes()
    done = bench.report(swapped)
    assert "is not the trace of" in done.err and swapped.read_bytes() == before
    assert second.has_all(second.counted())


@pytest.mark.parametrize("part", ["header", "payload", "names"])
def test_a_flipped_bit_costs_a_block_and_truncates_nothing(bench, part):
    killed = Killed(bench, least=6000)
    data = bytearray(killed.trace.read_bytes())
    found = [(at, kind) for at, kind, _ in traces.blocks(bytes(data))]
    kind = traces.NAMES if part == "names" else traces.EVENTS
    at = [at for at, of in found if of == kind][0]
    data[at + (9 if part == "header" else traces.HEADER.size + 5)] ^= 16
    killed.trace.write_bytes(data)
    told = bench.report(killed.trace).err
    assert f"the file is damaged; `tare clean --all {killed.session}` removes it" in told, told
    after = killed.trace.read_bytes()
    assert after[:len(data)] == bytes(data), "only appended to"
    seen = killed.counted()
    assert seen[-1] >= killed.written() and seen == sorted(set(seen))
    report = bench.json(killed.trace)
    assert report["run"]["damaged_blocks"] >= 1
    names = {span["name"] for span in report["spans"]}
    assert "tick" in names or part == "names"
    assert not names - {"tick", "all of it"} or part == "names", names


@pytest.mark.parametrize("damage", ["run block", "emptied"])
def test_events_in_memory_get_a_new_file_where_the_trace_lost_its_session(bench, damage):
    killed = Killed(bench, least=3000)
    data = bytearray(killed.trace.read_bytes())
    if damage == "run block":
        data[40] ^= 1
    killed.trace.write_bytes(b"" if damage == "emptied" else data)
    before, rings = killed.trace.read_bytes(), killed.rings()
    recovered = bench.folder / (killed.trace.stem + ".recovered.tare")
    told = bench.report(killed.session).err
    assert str(recovered) in told and killed.trace.read_bytes() == before and killed.rings() == rings
    seen = killed.counted(recovered)
    assert seen and seen == list(range(seen[0], seen[-1] + 1)) and seen[-1] >= killed.written()
    assert stat.S_IMODE(recovered.stat().st_mode) == 0o600
    once = recovered.read_bytes()
    bench.report(killed.session)
    assert recovered.read_bytes() == once
    assert f"removed {killed.session}" in bench.tare("clean", killed.session).out
    assert killed.counted(recovered) == seen and killed.trace.read_bytes() == before


@pytest.mark.parametrize("torn", [0, 5], ids=["whole", "torn"])
def test_a_trace_that_ends_with_sampled_stacks_is_completed_after_them(bench, torn):
    killed, other = Killed(bench), bench.folder / "stacks.tare"
    subprocess.run([TARE.parent / "tests" / "tool" / "stacks", other, "3"], check=True, stdout=subprocess.DEVNULL)
    stacks = other.read_bytes()
    (at, _, _), *_, (last, kind, _) = [block for block in traces.blocks(stacks) if block[1] >= traces.STACKS]
    assert kind == traces.STACK_SAMPLES
    kept = killed.trace.read_bytes() + stacks[at:last if torn else len(stacks)]
    killed.trace.write_bytes(killed.trace.read_bytes() + stacks[at:len(stacks) - torn])
    bench.report(killed.trace)
    after = killed.trace.read_bytes()
    assert after[:len(kept)] == kept and after[len(kept):len(kept) + 4] == traces.MAGIC
    assert killed.has_all(killed.counted()) and bench.json(killed.trace)["run"]["damaged_blocks"] == 0
    before = Stacks(stacks).samples_of_blocks
    assert Stacks(after).samples_of_blocks == (before[:-1] if torn else before)


def test_names_keep_their_numbers_when_a_block_of_names_is_lost(bench):
    killed = Killed(bench, least=6000)
    data = bytearray(killed.trace.read_bytes())
    for at, kind, _ in list(traces.blocks(bytes(data))):
        if kind == traces.NAMES:
            data[at + traces.HEADER.size + 3] ^= 1
    killed.trace.write_bytes(data)
    bench.report(killed.trace)
    kinds = {(event.kind, event.name) for event in bench.events(killed.trace)}
    assert ("counter", "tick") not in kinds and ("begin", "n") not in kinds, kinds


def test_the_duration_ends_at_the_last_event_not_when_it_is_read(bench):
    killed = Killed(bench)
    ledger = killed.ledger.read_bytes()
    first, last = (struct.unpack_from("=QQ", ledger, at)[1] for at in (0, len(ledger) - 16))
    time.sleep(2)
    run = bench.json(killed.trace)["run"]
    assert run["salvaged"]
    assert (last - first) * 0.95 <= run["elapsed_ns"] < (last - first) + 1.5e9
    ended = max(event.ns for event in bench.events(killed.trace))
    assert run["elapsed_ns"] >= ended * 0.999


def test_the_same_command_again_has_what_was_recorded_since(bench):
    killed = Killed(bench, program=False)
    try:
        done = bench.report(killed.trace)
        assert "is still running" in done.err
        before = killed.counted()
        until(lambda: killed.written() >= before[-1] + 500, "it records on")
        assert killed.counted()[-1] >= before[-1] + 500, "read again by the trace's name"
    finally:
        killed.end_program()
    assert killed.has_all(killed.counted())
    assert bench.report(killed.trace).err == "", "nothing more to save"


def test_a_ring_that_cannot_be_read_is_kept_and_told_of(bench):
    killed = Killed(bench)
    ring = next(killed.session.glob("*.ring"))
    with open(ring, "r+b") as file:
        file.seek(12)
        file.write(b"\xff\xff\xff\xff")
    damaged = ring.read_bytes()
    done = bench.report(killed.trace)
    assert "could not be read" in done.err and str(killed.session) in done.err
    assert ring.read_bytes() == damaged
    size = killed.trace.stat().st_size
    for what in (killed.trace, killed.session, killed.trace, killed.session):  # it may be read one day
        assert "1 process's memory could not be read" in bench.report(what).out
        assert killed.trace.stat().st_size == size
        assert "kept" in bench.tare("clean", killed.session).out and ring.exists()


@pytest.mark.skipif(SANITIZER != "none", reason="a sanitizer needs terabytes of address space")
def test_rings_that_a_run_could_not_read_are_had_by_the_command_it_names(bench):
    """A collector without address space for its rings, and with so much that it can say how the program ended. The
    program has enough."""
    for mib in range(6, 24):
        done = bench.tare("run", "-q", "-f", "-o", "t.tare", "--", "sh", "-c",
                          f"ulimit -Sv unlimited; exec '{VICTIMS}/limits' spans 1000 5",
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS,
                                                                (mib << 20, resource.RLIM_INFINITY)))
        if done.status != 5 or "was kept; tare report can read it" not in done.err:
            continue
        session = pathlib.Path(done.err.partition("session folder ")[2].split()[0])
        read = bench.tare("report", "--json", "t.tare")
        assert "1,000 spans that were still in memory" in read.err, read.err
        report = json.loads(read.out)
        assert report["run"]["spans"] == 1000 and report["run"]["finished"]
        assert not any("could not be read" in note for note in report["notes"])
        size = (bench.folder / "t.tare").stat().st_size
        assert bench.report("t.tare").err == "" and (bench.folder / "t.tare").stat().st_size == size
        assert f"removed {session}" in bench.tare("clean", session).out
        if "recording was interrupted" not in read.err:
            break
    else:
        pytest.fail("no limit was so low that it left its folder and so high that it wrote an end")
    assert report["run"]["exit_status"] == 5 and not report["run"]["salvaged"]


def test_a_full_disk_keeps_the_evidence(bench):
    killed = Killed(bench)
    before, rings = killed.trace.read_bytes(), killed.rings()
    limited = bench.call("sh", "-c", f"ulimit -f {len(before) // 512 + 1}; trap '' XFSZ; "
                         f"exec '{TARE}' report '{killed.trace}'")
    assert "could not be saved" in limited.err, limited.err
    assert killed.rings() == rings and killed.trace.read_bytes()[:len(before)] == before
    assert killed.has_all(killed.counted())


@pytest.mark.skipif(SANITIZER != "none", reason="interposes what a sanitizer interposes")
@pytest.mark.parametrize("kind, every", [("memory", 7), ("call", 2)])
def test_what_could_not_be_saved_is_saved_by_the_next_command(bench, kind, every):
    """Allocations and system calls of `tare report` fail: whatever it wrote, the next one has all of it."""
    killed = Killed(bench)
    before, count = killed.trace.read_bytes(), bench.folder / "count"
    env = {"LD_PRELOAD": str(VICTIMS / "failing.so"), "TARE_FAIL": kind}
    bench.tare("report", "--events", killed.trace, env={**env, "TARE_FAIL_COUNT": str(count)})
    for at in range(1, int(count.read_text()) + 1, every):
        killed.trace.write_bytes(before)
        (killed.session / "saved").unlink(missing_ok=True)
        bench.tare("report", "--events", killed.trace, env={**env, "TARE_FAIL_AT": str(at)})
        assert killed.has_all(killed.counted()), at


def test_two_readers_at_once_save_it_once(bench):
    killed = Killed(bench, least=3000)
    readers = [bench.start(TARE, "report", "--events", killed.trace) for _ in range(6)]
    outs = [reader.communicate(timeout=PATIENCE) for reader in readers]
    assert all(reader.returncode == 0 for reader in readers), outs[0][1]
    assert sum("recording was interrupted" in err for _, err in outs) == 1, [err for _, err in outs]
    assert killed.has_all(killed.counted())


def age(folder, seconds=60):
    """A folder that is being made is left alone for some seconds."""
    past = time.time() - seconds
    os.utime(folder, (past, past))


def test_clean_saves_and_removes_what_it_is_told_to_and_nothing_else(bench):
    killed, other = Killed(bench, "a.tare"), Killed(bench, "b.tare")
    before, rings = killed.trace.read_bytes(), killed.rings()
    done = bench.tare("clean", "--dry-run", killed.session)
    assert f"would save {killed.session}" in done.out and str(killed.trace) in done.out, done.out + done.err
    assert killed.rings() == rings and killed.trace.read_bytes() == before
    assert "not the session folder" in bench.tare("clean", "/dev/shm").err
    done = bench.tare("clean", f"{killed.session}/")
    assert f"removed {killed.session}" in done.out and not killed.session.exists(), done.out + done.err
    assert f"saved in {killed.trace}" in done.out and other.session.exists()
    assert killed.has_all(killed.counted())
    bench.report(other.trace)
    assert f"would remove {other.session}" in bench.tare("clean", "--dry-run", other.session).out
    assert f"removed {other.session}" in bench.tare("clean", other.session).out and not other.session.exists()
    assert other.has_all(other.counted())


def test_clean_of_everything_takes_no_live_session(bench):
    """As a user who has no other session."""
    killed, live = Killed(bench, "a.tare"), Killed(bench, "b.tare", program=False)
    try:
        done = bench.tare("clean", "--dry-run")  # others on this machine may have sessions, too: nothing is removed
        assert f"would save {killed.session}" in done.out, done.out
        assert f"kept {live.session}" in done.out and "is still running" in line_of(done, live.session)
        assert "is still running" in bench.tare("clean", "--all", live.session).out and live.session.exists()
    finally:
        live.end_program()


class Apart:
    """A /dev/shm of one's own: other runs of this user neither see nor free what is in it."""

    def __init__(self, bench):
        self.bench = bench
        self.holder = bench.start("unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=200m tmpfs /dev/shm && "
                                  "echo mounted && exec sleep 600")
        if "mounted" not in self.holder.stdout.readline():
            self.close()
            pytest.skip("cannot mount here")
        self.prefix = ("nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", f"--wd={bench.folder}")

    def killed(self, name):
        killed = Killed(self.bench, name, prefix=self.prefix)
        killed.session = self.place(killed.session)
        return killed

    def place(self, path):
        return pathlib.Path(f"/proc/{self.holder.pid}/root{path}")

    def tare(self, *words):
        done = self.bench.call(*self.prefix, TARE, *words)
        assert done.status == 0, done.err
        return done

    def run(self, *options):
        return self.tare("run", *options, "--", VICTIMS / "ticker", self.bench.folder / "other.ledger", 1000, 20)

    def counted(self, killed):
        events = parse_events(self.tare("report", "--events", killed.trace).out)
        return [int(event.extras["value"]) for event in events if event.kind == "counter"]

    def close(self):
        self.holder.kill()
        self.holder.communicate(timeout=PATIENCE)


@pytest.fixture
def apart(bench):
    if os.geteuid() != 0:
        pytest.skip("needs root to mount memory of its own")
    apart = Apart(bench)
    yield apart
    apart.close()


def test_a_run_removes_what_is_saved(apart):
    killed, other, gone = apart.killed("a.tare"), apart.killed("b.tare"), apart.killed("c.tare")
    apart.tare("report", killed.trace)
    age(killed.session)
    gone.trace.unlink()
    done = apart.run("-o", "d.tare")
    assert not killed.session.exists() and other.session.exists() and gone.session.exists()
    assert "a recording was interrupted: tare report" in done.err, done.err
    assert "1 killed recording (8" in done.err and "cannot be saved; tare clean shows why" in done.err, done.err
    assert gone.session.name not in done.err, "a command that does not work"


@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_a_run_saves_and_removes_what_is_old(apart, quiet):
    old, young, gone = apart.killed("a.tare"), apart.killed("b.tare"), apart.killed("c.tare")
    for killed in (old, gone):
        age(killed.session, 25 * 3600)
    gone.trace.unlink()
    done = apart.run(*quiet, "-o", "d.tare")
    assert not old.session.exists() and young.session.exists() and gone.session.exists()
    assert ("saved 1 killed recording to its trace and freed" in done.err) == (not quiet), done.err
    assert old.has_all(apart.counted(old)) and young.has_all(apart.counted(young))
    told = apart.tare("doctor").out
    assert "killed recordings" in told and "2 left " in told


def test_killed_recordings_do_not_fill_the_memory(apart):
    """Runs that are all killed never come to their end: the next one saves the oldest to their traces."""
    runs = [apart.killed(f"{i}.tare") for i in range(9)]
    held = sum(path.stat().st_blocks * 512 for path in apart.place("/dev/shm").rglob("*.ring"))
    assert (1 << 20) < held < 70 << 20, held  # a quarter of it, and the last one
    for killed in runs:
        assert killed.has_all(apart.counted(killed))


def test_what_was_saved_into_a_file_that_is_gone_is_not_saved(bench):
    killed = Killed(bench)
    bench.report(killed.trace)
    killed.trace.unlink()
    done = bench.tare("clean", killed.session)
    assert "kept" in done.out and "does not exist" in done.out and killed.session.exists(), done.out


def test_clean_leaves_a_session_whose_other_folder_is_not_a_sessions(bench):
    """The page names a folder for rings that do not fit; one that is changed may name any."""
    killed = Killed(bench)
    bench.report(killed.trace)
    precious = bench.folder / "precious"
    precious.mkdir(mode=0o700)
    (precious / "thesis.tex").write_text("mine")
    page = (killed.session / "session").read_bytes()
    at = page.index(os.fsencode(str(bench.temporary)))
    name = os.fsencode(str(precious)) + b"\0"
    (killed.session / "session").write_bytes(page[:at] + name + page[at + len(name):])
    for words in (["--dry-run"], [], ["--all"]):
        done = bench.tare("clean", *words, killed.session)
        assert done.status == 1 and "cannot remove" in done.err, done.out + done.err
    assert (killed.session / "session").exists() and (precious / "thesis.tex").exists()


@pytest.mark.parametrize("strange", ["file", "link", "folder", "mode"])
def test_clean_leaves_a_folder_that_is_not_provably_a_session(bench, strange):
    killed = Killed(bench)
    bench.report(killed.trace)
    precious = bench.folder / "precious"
    precious.write_text("mine")
    if strange == "file":
        (killed.session / "thesis.tex").write_text("mine")
    elif strange == "link":
        (killed.session / ("0" * 32 + ".ring")).symlink_to(precious)
    elif strange == "folder":
        (killed.session / "word-1").mkdir()
    else:
        killed.session.chmod(0o755)
    bench.tare("clean", killed.session)
    bench.tare("clean", "--all", killed.session)
    assert killed.session.exists() and precious.read_text() == "mine"
    assert (killed.session / "session").exists(), "nothing in it was touched"
    shutil.rmtree(killed.session)


def test_reading_a_copy_does_not_make_the_session_saved(bench):
    killed = Killed(bench)
    copy = bench.folder / "copy.tare"
    shutil.copy(killed.trace, copy)
    assert killed.has_all(killed.counted(copy))
    bench.tare("run", "-q", "-o", "other.tare", "--", "true")
    bench.tare("run", "-o", "other.tare", "--", "true")
    assert killed.session.exists(), "a later run must not remove what only a copy has"
    killed.trace.unlink()
    assert f"kept {killed.session}" in bench.tare("clean", killed.session).out and killed.session.exists()


def test_a_damaged_trace_does_not_make_the_session_saved(bench):
    killed = Killed(bench, least=6000)
    data = bytearray(killed.trace.read_bytes())
    at = [at for at, kind, _ in traces.blocks(bytes(data)) if kind == traces.EVENTS][0]
    data[at + traces.HEADER.size + 5] ^= 16
    killed.trace.write_bytes(data)
    for _ in range(2):
        bench.report(killed.trace)
        assert f"kept {killed.session}" in bench.tare("clean", killed.session).out and killed.session.exists()


@pytest.mark.skipif(not shutil.which("cc") or SANITIZER != "none", reason="needs a C compiler, and preloads a library")
def test_a_run_killed_before_its_trace_has_its_name_is_found(bench):
    """With --force the old file stays until the program runs; the new one has another name till then."""
    (bench.folder / "kill.c").write_text("#include <signal.h>\n#include <unistd.h>\n"
                                         "int renameat(int a, const char *b, int c, const char *d)\n"
                                         "{ kill(getpid(), SIGKILL); return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", bench.folder / "kill.so", bench.folder / "kill.c"], check=True)
    trace, ledger = bench.folder / "t.tare", bench.folder / "ledger"
    bench.tare("run", "-q", "-o", trace, "--", VICTIMS / "ticker", ledger, 1000, 20)
    old = trace.read_bytes()
    ledger.unlink()
    process = bench.start(TARE, "run", "-q", "-f", "-o", trace, "--", VICTIMS / "ticker", ledger, 200, 60000,
                          env={"LD_PRELOAD": bench.folder / "kill.so"})
    session = pathlib.Path(process.stdout.readline().split()[1])
    target = int(process.stdout.readline().split()[1])
    process.wait(PATIENCE)
    until(lambda: ledger.exists() and ledger.stat().st_size >= 300 * 16, "it has recorded")
    os.kill(target, signal.SIGKILL)
    until(lambda: not alive(target), "it has ended")
    process.stdout.close()
    process.stderr.close()
    (first,) = bench.folder.glob("t.tare.*")
    seen = [int(event.extras["value"]) for event in bench.events(session) if event.kind == "counter"]
    assert seen == list(range(1, len(seen) + 1)) and len(seen) >= ledger.stat().st_size // 16
    done = bench.tare("clean", session)
    assert f"saved in {first}" in done.out and not session.exists(), done.out + done.err
    assert trace.read_bytes() == old and len(bench.events(first)) >= len(seen)


# ---- folders whose session page is damaged ----

def damage(session, how):
    page = session / "session"
    if how == "short":
        os.truncate(page, 100)
    elif how == "zeroed":
        page.write_bytes(bytes(page.stat().st_size))
    elif how == "magic":
        data = bytearray(page.read_bytes())
        data[0] ^= 1
        page.write_bytes(data)
    elif how == "fifo":  # never in /dev/shm: whoever looks at the sessions there would wait for ever
        assert not str(page).startswith("/dev/shm/")
        page.unlink()
        os.mkfifo(page)
    else:
        page.unlink()


@pytest.fixture
def killed(bench):
    """The page of which is going to be damaged: in a place where nobody else looks."""
    killed = Killed(bench)
    place = bench.temporary / killed.session.name
    shutil.copytree(killed.session, place, ignore=lambda *_: ["join"])
    shutil.rmtree(killed.session)
    killed.session = place
    yield killed
    shutil.rmtree(killed.session, ignore_errors=True)


def line_of(done, session):
    (line,) = [line for line in (done.out + done.err).splitlines() if str(session) in line]
    return line


@pytest.mark.parametrize("how", ["short", "zeroed", "magic", "fifo", "missing"])
def test_clean_lists_what_is_damaged(bench, killed, how):
    damage(killed.session, how)
    age(killed.session)
    line = line_of(bench.tare("clean", killed.session, timeout=30), killed.session)
    assert line.startswith("kept ") and killed.session.exists(), line
    assert ("it has no session file" if how == "missing" else "damaged and cannot be saved: ") in line, line
    line = line_of(bench.tare("clean", "--all", "--dry-run", timeout=30), killed.session)
    assert line.startswith({"missing": "kept ", "fifo": "tare clean: cannot remove "}.get(how, "would remove ")), line
    # A run that ends names no command that would not work.
    done = bench.tare("run", "-o", "c.tare", "--", VICTIMS / "ticker", bench.folder / "other.ledger", 1000, 20)
    assert str(killed.session) not in done.err


@pytest.mark.parametrize("how", ["short", "magic", "missing"])
def test_clean_removes_what_is_damaged(killed, stranger, how):
    """As a user who has no other session: --all removes all of them."""
    name = f"/dev/shm/tare-{stranger[0]}-dAmAgE"
    theirs, ours = type(killed.session)(name), killed.session
    try:
        shutil.move(ours, theirs)
        damage(theirs, how)
        for path in (*theirs.iterdir(), theirs):
            os.chown(path, *stranger)
        age(theirs)
        done = as_user(stranger, [TARE, "clean", "--all"], env={"TMPDIR": "/tmp"})
        assert theirs.exists() == (how == "missing"), (done.stdout, done.stderr)
        assert f"{'kept' if how == 'missing' else 'removed'} {name}" in done.stdout, done.stdout
    finally:
        shutil.rmtree(theirs, ignore_errors=True)


@pytest.mark.parametrize("strange", ["file", "link", "mode"])
def test_clean_leaves_a_damaged_folder_that_is_not_provably_a_session(killed, stranger, strange):
    theirs = type(killed.session)(f"/dev/shm/tare-{stranger[0]}-sTrAnG")
    try:
        shutil.move(killed.session, theirs)
        damage(theirs, "short")
        if strange == "file":
            (theirs / "thesis.tex").write_text("mine")
        elif strange == "link":
            (theirs / ("0" * 32 + ".ring")).symlink_to("/etc/passwd")
        for path in (*theirs.iterdir(), theirs):
            os.chown(path, *stranger, follow_symlinks=False)
        if strange == "mode":
            theirs.chmod(0o750)
        age(theirs)
        before = sorted(path.name for path in theirs.iterdir())
        as_user(stranger, [TARE, "clean", "--all"], env={"TMPDIR": "/tmp"})
        assert sorted(path.name for path in theirs.iterdir()) == before
    finally:
        shutil.rmtree(theirs, ignore_errors=True)


def test_clean_leaves_the_page_of_a_collector_that_lives(bench):
    """Damaged or of another version: its collector holds the lock."""
    live = bench.start(TARE, "run", "-q", "-o", "live.tare", "--", VICTIMS / "ticker", bench.folder / "l", 1000, 100000,
                       start_new_session=True)
    try:
        session = None
        for _ in range(200):
            found = [path.parent for path in type(bench.folder)("/dev/shm").glob(f"tare-{os.geteuid()}-*/session")
                     if os.fsencode(str(bench.folder)) in read_page(path)]
            if found:
                (session,) = found
                break
            time.sleep(0.05)
        with open(session / "session", "r+b") as page:
            first = page.read(8)
            page.seek(0)
            page.write(bytes(8))
            page.flush()
            age(session)
            assert str(session) not in bench.tare("clean", "--all", "--dry-run").out
            page.seek(0)
            page.write(first)
    finally:
        os.killpg(live.pid, signal.SIGKILL)
        live.communicate(timeout=PATIENCE)
