"""`--force` never costs a trace: not the old one before the new one records, nor that of a run that overlaps."""
import hashlib
import resource

import pytest

from e2e_conftest import PATIENCE, TARE, VICTIMS


def ticker(bench, ledger, milliseconds):
    return [VICTIMS / "ticker", bench.folder / ledger, 1000, milliseconds]


def has_all(bench, trace, ledger):
    """Whether the trace has what this run wrote into its ledger: the count and no other run's."""
    seen = sum(event.kind == "counter" for event in bench.events(bench.folder / trace))
    written = (bench.folder / ledger).stat().st_size // 16
    return written >= 1 and seen == written  # on a busy machine a short run may have written one


@pytest.fixture
def old(bench):
    made = bench.tare("run", "-q", "-o", "prec.tare", "--", *ticker(bench, "old.ledger", 20))
    assert made.status == 0, made.err
    trace = bench.folder / "prec.tare"
    return trace, hashlib.sha256(trace.read_bytes()).hexdigest()


def is_untouched(bench, old):
    trace, digest = old
    assert hashlib.sha256(trace.read_bytes()).hexdigest() == digest
    assert sorted(path.name for path in bench.folder.glob("prec*")) == ["prec.tare"], "nothing is left beside it"


@pytest.mark.parametrize("command", [["./no-such-program"], ["no-such-program"], ["/"]])
def test_a_program_that_cannot_be_launched_leaves_the_old_trace(bench, old, command):
    done = bench.tare("run", "-f", "-o", "prec.tare", "--", *command)
    assert done.status in (126, 127), done.err
    is_untouched(bench, old)


@pytest.mark.parametrize("limit", [("FSIZE", 512), ("FSIZE", 1024), ("NOFILE", 5)])
def test_a_run_that_cannot_begin_leaves_the_old_trace(bench, old, limit):
    name, value = limit
    number = getattr(resource, "RLIMIT_" + name)
    done = bench.tare("run", "-f", "-o", "prec.tare", "--", "true",
                      preexec_fn=lambda: resource.setrlimit(number, (value, value)))
    assert done.status == 125, (done.status, done.err)
    is_untouched(bench, old)


def test_an_import_that_fails_leaves_the_old_trace(bench, old):
    (bench.folder / "bad.json").write_text('{"traceEvents": [{"ph": "X", "name": "a"')
    done = bench.tare("import", "-f", "-o", "prec.tare", "bad.json")
    assert done.status != 0
    is_untouched(bench, old)


def test_a_run_replaces_the_old_trace_once_its_program_runs(bench, old):
    done = bench.tare("run", "-f", "-o", "prec.tare", "--", *ticker(bench, "new.ledger", 50))
    assert done.status == 0 and "wrote prec.tare" in done.err, done.err
    assert has_all(bench, "prec.tare", "new.ledger")
    assert sorted(path.name for path in bench.folder.glob("prec*")) == ["prec.tare"]


@pytest.mark.parametrize("words", [[], ["--max-size", "64K"], ["--last", "10s"]])
def test_of_two_runs_on_one_name_neither_is_lost(bench, words):
    first = bench.start(TARE, "run", "-f", *words, "-o", "two.tare", "--", *ticker(bench, "a.ledger", 2500))
    first.stdout.readline()
    second = bench.tare("run", "-f", *words, "-o", "two.tare", "--", *ticker(bench, "b.ledger", 100))
    assert second.status == 0 and "wrote two.tare" in second.err, second.err
    _, err = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0
    assert "two.tare was replaced by another file" in err and "saved as two.2.tare" in err, err
    assert "wrote two.2.tare" in err and "wrote two.tare" not in err
    assert has_all(bench, "two.2.tare", "a.ledger") and has_all(bench, "two.tare", "b.ledger")
    assert len(bench.tare("history", "export").out.splitlines()) == 2


def test_a_removed_output_folder_is_told_of_and_the_report_is_still_shown(bench):
    (bench.folder / "gone").mkdir()
    done = bench.tare("run", "-o", "gone/t.tare", "--", "sh", "-c",
                      f"rm -r gone; exec '{VICTIMS}/ticker' '{bench.folder}/ledger' 1000 50")
    assert done.status == 0
    assert "gone/t.tare was removed during the run" in done.err and "could not be saved" in done.err, done.err
    assert "tare: wrote" not in done.err and "all of it" in done.err, "the summary is of this run"


def test_a_removed_trace_is_saved_again(bench):
    done = bench.tare("run", "-o", "t.tare", "--", "sh", "-c",
                      f"rm t.tare; exec '{VICTIMS}/ticker' '{bench.folder}/ledger' 1000 50")
    assert "t.tare was removed during the run" in done.err, done.err
    assert has_all(bench, "t.tare", "ledger")


def test_a_renamed_trace_is_found(bench):
    done = bench.tare("run", "-o", "t.tare", "--", "sh", "-c",
                      f"mv t.tare kept.tare; exec '{VICTIMS}/ticker' '{bench.folder}/ledger' 1000 50")
    assert "was renamed during the run" in done.err and "kept.tare" in done.err, done.err
    assert has_all(bench, "kept.tare", "ledger") and not (bench.folder / "t.tare").exists()


def test_views_of_a_replaced_trace_are_of_this_run(bench):
    done = bench.tare("run", "-q", "-o", "t.tare", "--json", "t.json", "--", "sh", "-c",
                      f"mv t.tare /tmp/nowhere-{bench.folder.name}; : > t.tare; rm /tmp/nowhere-{bench.folder.name};"
                      f"exec '{VICTIMS}/ticker' '{bench.folder}/ledger' 1000 50")
    assert "replaced" in done.err, done.err
    assert '"tick"' in (bench.folder / "t.json").read_text()
    assert (bench.folder / "t.tare").read_bytes() == b"", "what is not ours is not touched"
    assert has_all(bench, "t.2.tare", "ledger")
