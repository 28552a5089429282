"""Programs and commands at their limits end as they would without Tare, and what is missing is told."""
import os
import resource

import pytest

from e2e_conftest import SANITIZER, TARE, VICTIMS

MIB = 1 << 20
PLAIN = pytest.mark.skipif(SANITIZER != "none", reason="a sanitizer needs terabytes of address space")
# A limit that each program can live with, and one that is nearly nothing; both limits of a process are set to it.
LIMITS = {
    "CORE": [0], "CPU": [20], "DATA": [64 * MIB, 512 * MIB], "FSIZE": [512, 64 << 10, MIB, 2 * MIB, 16 * MIB],
    "MEMLOCK": [0], "MSGQUEUE": [0], "NICE": [0], "NOFILE": [16, 64], "NPROC": [4096], "RSS": [MIB], "RTPRIO": [0],
    "RTTIME": [1000000], "SIGPENDING": [0, 4], "STACK": [64 << 10, 256 << 10], "AS": [96 * MIB, 512000 << 10],
}
OWN = "tare run: "


def limited(name, value, soft_only=False):
    number = getattr(resource, "RLIMIT_" + name)

    def apply():
        hard = resource.getrlimit(number)[1] if soft_only else value
        resource.setrlimit(number, (value, hard))
    return apply


def notes_of(bench, trace):
    return " ".join(bench.json(trace)["notes"])


CASES = [pytest.param(name, value, soft, id=f"{name}-{value}{'-soft' if soft else ''}",
                      marks=[PLAIN] if name in ("AS", "DATA", "STACK") else [])
         for name, values in LIMITS.items() for value in values for soft in (False, True)]


@pytest.mark.parametrize("name, value, soft", CASES)
def test_a_program_ends_as_without_tare_under_every_limit(bench, name, value, soft):
    if not hasattr(resource, "RLIMIT_" + name):
        pytest.skip("this Python does not know the limit")
    victim = [VICTIMS / "limits", "spans", 1000, 5]
    alone = bench.call(*victim, preexec_fn=limited(name, value, soft))
    done = bench.tare("run", "-q", "-o", "trace.tare", "--", *victim, preexec_fn=limited(name, value, soft))
    if done.status == 125:
        assert done.err.startswith(OWN) and done.out == "", "it says why, and the program has not run"
        assert not (bench.folder / "trace.tare").exists()
        return
    assert (done.status, done.out) == (alone.status, alone.out), done.err
    report = bench.json(bench.folder / "trace.tare")
    if report["run"]["spans"] != 1000:
        assert report["notes"], "what is missing is told"


def test_a_program_sees_the_limits_it_was_started_with(bench):
    def apply():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    alone = bench.call(VICTIMS / "limits", "state", preexec_fn=apply)
    done = bench.run("limits", "state", options=["-q"], preexec_fn=apply)
    assert done.out == alone.out


@pytest.mark.parametrize("blocks", [0, 1, 64])
def test_a_report_that_may_not_be_written_is_an_error_and_not_a_signal(bench, blocks):
    done = bench.run("limits", "spans", 1000, options=["-q"])
    for form in ("html", "json", "chrome", "perfetto"):
        wrote = bench.call(TARE, "report", f"--{form}", "-o", f"out.{form}", done.trace,
                           preexec_fn=limited("FSIZE", blocks * 1024))
        assert wrote.status in (0, 1), (form, wrote.status, wrote.err)
        assert wrote.status == 0 or "File too large" in wrote.err, (form, wrote.err)
        assert not list(bench.folder.glob(f"out.{form}.*"))


def test_a_ring_that_may_not_be_made_has_its_reason_in_the_report(bench):
    done = bench.run("limits", "spans", 1000, options=["-q"], preexec_fn=limited("FSIZE", MIB))
    notes = notes_of(bench, done.trace)
    assert "1 process could not join" in notes and "ulimit -f" in notes and "no space" not in notes


@PLAIN
def test_spans_are_kept_in_little_address_space(bench):
    done = bench.run("limits", "spans", 50000, options=["-q"], preexec_fn=limited("AS", 500000 << 10))
    assert bench.json(done.trace)["run"]["spans"] == 50000


@pytest.mark.parametrize("what, reason", [("remove", "no longer exists"), ("mode", "no permission")])
def test_a_session_folder_that_cannot_be_joined_has_its_own_sentence(bench, what, reason):
    if what == "mode" and os.geteuid() == 0:
        options = {"user": 65534, "group": 65534, "extra_groups": []}
        bench.folder.chmod(0o777)
        bench.temporary.chmod(0o777)
        for folder in bench.folder.parents:  # pytest's own are 0700
            if str(folder).startswith("/tmp/pytest"):
                folder.chmod(0o755)
    else:
        options = {}
    done = bench.tare("run", "-q", "--no-history", "-o", "trace.tare", "--", VICTIMS / "limits", "no-folder", what,
                      **options)
    assert done.status == 0, done.err
    report = bench.json(bench.folder / "trace.tare")
    notes = " ".join(report["notes"])
    assert reason in notes and "no space" not in notes, report["notes"]
    assert report["run"]["spans"] == 20
    if what == "remove":
        assert "was removed during the run" in notes


def test_spans_that_a_full_disk_did_not_take_are_in_the_report(bench):
    """A file system of 1 MiB, where one can be mounted; elsewhere a limit on the size of files does the same."""
    done = bench.tare("run", "-q", "--interval", "1s", "-o", "trace.tare", "--", VICTIMS / "flood", "pairs", 400000, 0,
                      1, preexec_fn=limited("FSIZE", 3 * MIB))
    assert done.status == 0, done.err
    report = bench.json(bench.folder / "trace.tare")
    kept, dropped = report["run"]["spans"], report["run"]["dropped_spans"]
    if kept + dropped < 400000:
        notes = " ".join(report["notes"])
        assert f"{400000 - kept - dropped} spans could not be written" in notes, (kept, dropped, report["notes"])


def test_a_forbidden_counter_is_not_read(bench):
    """PR_SET_TSC: reading the time-stamp counter is a SIGSEGV from then on, in clock_gettime, too."""
    done = bench.run("limits", "timed", options=["-q"])
    assert done.fact("tsc") == 1
    true = sum(int(ns) for ns in done.facts["ns"])
    row = next(row for row in bench.json(done.trace)["spans"] if row["name"] == "slow clock")
    assert row["calls"] == 5 and 0.9 * true <= row["total_ns"] <= 1.05 * true, (row["total_ns"], true)


@pytest.mark.parametrize("joins_there", [0, 1])
def test_spans_on_a_small_alternate_stack(bench, joins_there):
    """2 KiB more than the kernel's own frame takes."""
    done = bench.run("limits", "small-stack", 3000, joins_there, 2048 if SANITIZER == "none" else 65536,
                     options=["-q"])
    run = bench.json(done.trace)["run"]
    assert done.fact("stack") == 1
    assert run["spans"] + run["dropped_spans"] == done.fact("made")


def open_to_all(bench):
    bench.folder.chmod(0o777)
    bench.temporary.chmod(0o777)
    for folder in bench.folder.parents:  # pytest's own are 0700
        if str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)


@pytest.mark.parametrize("shell", [False, True])
def test_bytes_that_may_not_be_read_are_absent_and_not_zero(bench, stranger, shell):
    """PR_SET_DUMPABLE 0: the kernel tells nobody but root what the process read and wrote."""
    open_to_all(bench)
    victim = [VICTIMS / "limits", "undumpable", 500]
    words = ["sh", "-c", "exec \"$0\" \"$@\"", *victim] if shell else victim
    done = bench.tare("run", "--no-history", "-o", "trace.tare", "--", *words, user=stranger[0], group=stranger[1],
                      extra_groups=[])
    assert done.status == 0, done.err
    assert "read 0 B" not in done.err and "wrote 0 B" not in done.err, done.err
    usage = bench.json(bench.folder / "trace.tare")["usage"]
    for key in ("io_read_bytes", "io_write_bytes", "disk_read_bytes", "disk_write_bytes"):
        assert usage[key] is None, (key, usage[key])


def test_a_file_size_limit_is_named_as_the_reason(bench):
    done = bench.tare("run", "-q", "-o", "trace.tare", "--", "true", preexec_fn=limited("FSIZE", 1024))
    assert done.status == 125 and "No such file" not in done.err and "File too large" in done.err, done.err


@PLAIN
def test_reports_are_written_with_a_small_stack(bench):
    done = bench.run("limits", "spans", 1000, options=["-q"])
    for words in (["--all"], ["--html", "-o", "out.html"], ["--json"]):
        wrote = bench.call(TARE, "report", *words, done.trace, preexec_fn=limited("STACK", 64 << 10))
        assert wrote.status == 0, (words, wrote.status, wrote.err)
