"""Processes that go on when their parents have ended are waited for, or told of."""
from e2e_conftest import TARE, VICTIMS


def test_a_daemon_that_has_not_recorded_yet_is_told_of(bench):
    done = bench.run("limits", "daemon", 20000, options=["-q"])
    report = bench.json(done.trace)
    assert report["run"]["spans"] == 10
    assert "1 process that the command started still ran when the recording ended" in " ".join(report["notes"])


def test_a_daemon_that_is_orphaned_before_the_first_sample_is_told_of(bench):
    """Also where the program that made it ended before anybody could look what it was: seldom, so more than once."""
    for _ in range(12):
        done = bench.run("limits", "daemon", 3000, 1, options=["-q", "--interval", "60s"])
        report = bench.json(done.trace)
        assert report["run"]["spans"] == 10
        assert "1 process that the command started still ran when the recording ended" in " ".join(report["notes"])


def test_daemons_of_another_session_are_not_ours(bench):
    """Of the same program at the same time, and only one of the two recorded has one."""
    other = bench.tare("run", "-q", "-o", "other.tare", "--", VICTIMS / "limits", "daemon", 20000, 1)
    assert other.status == 0, other.err
    done = bench.run("limits", "spans", 10, options=["-q"])
    assert "still ran when" not in " ".join(bench.json(done.trace)["notes"])


def test_a_child_that_still_records_when_a_session_stops_is_told_of(bench):
    done = bench.call(VICTIMS / "limits", "outlived", env={"TARE_HELPER": str(TARE)})
    assert done.status == 0 and done.fact("stopped") == 1
    report = bench.json(bench.folder / "own.tare")
    assert report["run"]["spans"] == 15 and report["run"]["left_running"] == 1
    assert "still running when the recording ended" in " ".join(report["notes"])
