"""Few file descriptors, and more processes than descriptors."""
import pathlib
import resource

import pytest

from e2e_conftest import SANITIZER, TARE, VICTIMS, scaled


def descriptors(n, hard=None):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard or n))


def sessions():
    return set(pathlib.Path("/dev/shm").glob("tare-*")) | set(pathlib.Path("/tmp").glob("tare-*-*"))


@pytest.mark.parametrize("n", range(3, 65))
def test_every_number_of_descriptors(bench, n):
    """The program runs and its status is its own, or it does not run: 125 and a sentence."""
    done = bench.tare("run", "-q", "--no-history", "-o", "trace.tare", "--", VICTIMS / "limits", "spans", 500, 5,
                      preexec_fn=descriptors(n), timeout=60)
    if "error while loading shared libraries" in done.err:
        assert n < 8 and done.status == 127  # it has not even begun
        return
    trace = bench.folder / "trace.tare"
    if done.status == 125:
        assert n < 10, "so many are enough"
        assert done.err.startswith("tare run: ") and "open files" in done.err and done.out == ""
        assert not trace.exists() and not list(bench.temporary.iterdir())
        return
    assert done.status == 5 and done.fact("made") == 500, done.err
    report = bench.json(trace)
    assert report["run"]["spans"] == 500 or report["notes"], "what is missing is told"


@pytest.mark.parametrize("n", [3, 4, 5, 6, 8, 12])
def test_reading_with_few_descriptors(bench, n):
    done = bench.run("limits", "spans", 500, options=["-q"])
    read = bench.call(TARE, "report", "--json", done.trace, preexec_fn=descriptors(n))
    if "error while loading" in read.err:
        return
    assert read.status in (0, 1) and (read.status == 0 or read.err.startswith("tare report: ")), read.err


def test_processes_outnumber_descriptors(bench):
    processes = 150 if SANITIZER == "none" else 40
    spans = scaled(200)
    done = bench.run("limits", "crowd", processes, spans, options=["-q", "--buffer-size", "1M"],
                     preexec_fn=descriptors(processes * 64 // 150))
    report = bench.json(done.trace)
    assert done.fact("failed") == 0 and done.fact("made") == processes * spans
    assert report["run"]["spans"] + report["run"]["dropped_spans"] == done.fact("made"), report["notes"]
    assert len([row for row in report["processes"] if row["joined"]]) == processes


def test_a_process_without_descriptors_has_its_reason_in_the_report(bench):
    done = bench.run("rough", "no-files", options=["-q"])
    notes = " ".join(bench.json(done.trace)["notes"])
    assert "ulimit -n" in notes and "no space" not in notes


@pytest.mark.parametrize("n", [12, 13, 14, 15, 16, 18, 20, 24])
def test_a_ring_that_grows_is_read_with_few_descriptors(bench, n):
    """The collector keeps no descriptor of it, and has to open it once more."""
    done = bench.tare("run", "-q", "--no-history", "-o", "trace.tare", "--", VICTIMS / "unheard", scaled(400000),
                      preexec_fn=descriptors(n), timeout=120)
    report = bench.json(bench.folder / "trace.tare")
    assert report["run"]["spans"] + report["run"]["dropped_spans"] == done.fact("made"), report["processes"]
