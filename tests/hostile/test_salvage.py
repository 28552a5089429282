"""What a killed recording left: it is read without being changed, saved without harming anything, and stays until
somebody removes it."""
import hashlib
import os
import pathlib
import shutil
import signal
import struct
import time

import pytest

import traces
from conftest import as_user
from e2e_conftest import PATIENCE, TARE, VICTIMS


class Killed:
    """A run of the ticker whose collector (and then the program) was killed after it had recorded for a while."""

    def __init__(self, bench, name="t.tare", least=300, program=True, words=()):
        self.bench, self.trace, self.ledger = bench, bench.folder / name, bench.folder / (name + ".ledger")
        self.process = bench.start(TARE, "run", "-q", *words, "-o", self.trace, "--", VICTIMS / "ticker", self.ledger,
                                   200, 120000, start_new_session=True)
        self.session = pathlib.Path(self.process.stdout.readline().split()[1])
        self.target = int(self.process.stdout.readline().split()[1])
        while self.written() < least:
            time.sleep(0.01)
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        if program:
            self.end_program()

    def end_program(self):
        os.kill(self.target, signal.SIGKILL)
        while alive(self.target):
            time.sleep(0.01)
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
    assert killed.has_all(killed.counted(renamed))
    assert killed.trace.read_bytes() == finished
    done = bench.report(killed.session, status=3)  # the session names a file that is another run's by now
    assert "another run" in done.err and killed.trace.read_bytes() == finished


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
    assert "another run" in done.err and swapped.read_bytes() == before
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
    bench.report(killed.trace)
    after = killed.trace.read_bytes()
    assert after[:len(data)] == bytes(data), "only appended to"
    seen = killed.counted()
    assert seen[-1] >= killed.written() and seen == sorted(set(seen))
    report = bench.json(killed.trace)
    assert report["run"]["damaged_blocks"] >= 1
    names = {span["name"] for span in report["spans"]}
    assert "tick" in names or part == "names"
    assert not names - {"tick", "all of it"} or part == "names", names


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
        assert "still runs" in done.err
        before = killed.counted()
        while killed.written() < before[-1] + 500:
            time.sleep(0.01)
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
    assert "1 process's memory could not be read" in bench.report(killed.trace).out
    age(killed.session)
    assert "kept" in bench.tare("clean").out and ring.exists()


def test_a_full_disk_keeps_the_evidence(bench):
    killed = Killed(bench)
    before, rings = killed.trace.read_bytes(), killed.rings()
    limited = bench.call("sh", "-c", f"ulimit -f {len(before) // 512 + 1}; trap '' XFSZ; "
                         f"exec '{TARE}' report '{killed.trace}'")
    assert "could not be saved" in limited.err, limited.err
    assert killed.rings() == rings and killed.trace.read_bytes()[:len(before)] == before
    assert killed.has_all(killed.counted())


def test_two_readers_at_once_save_it_once(bench):
    killed = Killed(bench, least=3000)
    readers = [bench.start(TARE, "report", "--events", killed.trace) for _ in range(6)]
    outs = [reader.communicate(timeout=PATIENCE) for reader in readers]
    assert all(reader.returncode == 0 for reader in readers), outs[0][1]
    assert sum("cut off" in err for _, err in outs) == 1, [err for _, err in outs]
    assert killed.has_all(killed.counted())


def age(folder):
    """A folder that is being made is left alone for some seconds."""
    past = time.time() - 60
    os.utime(folder, (past, past))


def test_clean_removes_what_is_saved_and_nothing_else(bench):
    killed, other = Killed(bench, "a.tare"), Killed(bench, "b.tare")
    for session in (killed.session, other.session):
        age(session)
    done = bench.tare("clean")
    assert f"kept {killed.session}" in done.out and "not saved yet" in done.out, done.err
    bench.report(killed.trace)
    age(killed.session)
    assert f"would remove {killed.session}" in bench.tare("clean", "--dry-run").out and killed.session.exists()
    done = bench.tare("clean")
    assert f"removed {killed.session}" in done.out and not killed.session.exists()
    assert other.session.exists()
    assert killed.has_all(killed.counted())
    # Others on this machine may have sessions, too: not removed for real.
    assert f"would remove {other.session}" in bench.tare("clean", "--all", "--dry-run").out and other.session.exists()


def test_a_run_sweeps_what_is_saved(bench):
    killed, other = Killed(bench, "a.tare"), Killed(bench, "b.tare")
    bench.report(killed.trace)
    age(killed.session)
    age(other.session)
    done = bench.tare("run", "-o", "c.tare", "--", VICTIMS / "ticker", bench.folder / "other.ledger", 1000, 20)
    assert not killed.session.exists() and other.session.exists()
    assert "cut off" in done.err


def test_what_was_saved_into_a_file_that_is_gone_is_not_saved(bench):
    killed = Killed(bench)
    bench.report(killed.trace)
    killed.trace.unlink()
    age(killed.session)
    assert "not saved yet" in bench.tare("clean").out and killed.session.exists()


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
    age(killed.session)
    bench.tare("clean")
    assert killed.session.exists() and precious.read_text() == "mine"
    assert (killed.session / "session").exists(), "nothing in it was touched"
    shutil.rmtree(killed.session)


def test_reading_a_copy_does_not_make_the_session_saved(bench):
    killed = Killed(bench)
    copy = bench.folder / "copy.tare"
    shutil.copy(killed.trace, copy)
    assert killed.has_all(killed.counted(copy))
    age(killed.session)
    assert f"kept {killed.session}" in bench.tare("clean").out
    bench.tare("run", "-q", "-o", "other.tare", "--", "true")
    bench.tare("run", "-o", "other.tare", "--", "true")
    assert killed.session.exists(), "a later run must not remove what only a copy has"
    assert killed.has_all(killed.counted())


def test_a_damaged_trace_does_not_make_the_session_saved(bench):
    killed = Killed(bench, least=6000)
    data = bytearray(killed.trace.read_bytes())
    at = [at for at, kind, _ in traces.blocks(bytes(data)) if kind == traces.EVENTS][0]
    data[at + traces.HEADER.size + 5] ^= 16
    killed.trace.write_bytes(data)
    for _ in range(2):
        bench.report(killed.trace)
        age(killed.session)
        assert f"kept {killed.session}" in bench.tare("clean").out and killed.session.exists()


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
    elif how == "fifo":
        page.unlink()
        os.mkfifo(page)
    else:
        page.unlink()


@pytest.fixture
def killed(bench):
    """The page of which is going to be damaged: then the other tests do not know it for theirs."""
    killed = Killed(bench)
    yield killed
    shutil.rmtree(killed.session, ignore_errors=True)


def line_of(done, session):
    (line,) = [line for line in (done.out + done.err).splitlines() if str(session) in line]
    return line


@pytest.mark.parametrize("how", ["short", "zeroed", "magic", "fifo", "missing"])
def test_clean_lists_what_is_damaged(bench, killed, how):
    damage(killed.session, how)
    age(killed.session)
    line = line_of(bench.tare("clean", timeout=30), killed.session)
    assert line.startswith("kept ") and killed.session.exists(), line
    assert ("it has no session file" if how == "missing" else "damaged, nothing can be saved: ") in line, line
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
        ours.rename(theirs)
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
        killed.session.rename(theirs)
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
                     if os.fsencode(str(bench.folder)) in path.read_bytes()]
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
        live.communicate()
