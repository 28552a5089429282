"""Processes that go on when their parents have ended are waited for, or told of."""
from e2e_conftest import TARE, VICTIMS


def test_a_daemon_that_has_not_recorded_yet_is_told_of(bench):
    done = bench.run("limits", "daemon", 20000, options=["-q"])
    report = bench.json(done.trace)
    assert report["run"]["spans"] == 10
    assert "1 process that the command started still ran when the recording ended" in " ".join(report["notes"])


def test_a_child_that_still_records_when_a_session_stops_is_told_of(bench):
    done = bench.call(VICTIMS / "limits", "outlived", env={"TARE_HELPER": str(TARE)})
    assert done.status == 0 and done.fact("stopped") == 1
    report = bench.json(bench.folder / "own.tare")
    assert report["run"]["spans"] == 15 and report["run"]["left_running"] == 1
    assert "still running when the recording ended" in " ".join(report["notes"])
