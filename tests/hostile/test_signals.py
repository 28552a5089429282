"""Signals: dispositions a program inherits, handlers that never return, terminals that go away."""
import os
import pty
import signal
import time

import pytest

from e2e_conftest import PATIENCE, SANITIZER, TARE, VICTIMS
from waiting import until

HANDLED = [number for number in range(1, 65) if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33)]


def disposed(ignored=(), blocked=()):
    def apply():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    return apply


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("how", ["ignored", "blocked"])
def test_every_inherited_disposition_reaches_the_program(bench, how, half):
    """Half of all signals at a time, so that one that is lost or added shows."""
    some = [number for number in HANDLED if number % 2 == half]
    apply = disposed(**{how: some})
    alone = bench.call(VICTIMS / "limits", "state", preexec_fn=apply, restore_signals=False)
    done = bench.run("limits", "state", options=["-q"], preexec_fn=apply, restore_signals=False)
    assert done.out == alone.out
    words = [value for key in alone.facts if key.startswith("signal-") for value in alone.facts[key]]
    assert sum(how in word for word in words) >= len(some)


@pytest.mark.parametrize("number", HANDLED)
def test_a_run_ends_whatever_signal_is_ignored(bench, number):
    done = bench.run("limits", "spans", 100, 5, options=["-q", "--no-sampling"], status=5,
                     preexec_fn=disposed([number]), restore_signals=False)
    assert bench.json(done.trace)["run"]["spans"] == 100


def test_commands_that_start_others_work_with_children_ignored(bench):
    done = bench.tare("compare", "--ab", "--runs", "2", "true", "true", preexec_fn=disposed([signal.SIGCHLD]),
                      restore_signals=False)
    assert done.status in (0, 1, 2), done.err


@pytest.mark.parametrize("interval_us, what", [(20, "join"), (50, "spans"), (200, "names"), (2000, "spans")])
def test_handlers_that_never_return_lose_what_they_interrupt_and_no_more(bench, interval_us, what):
    done = bench.run("limits", "left", 150, interval_us if SANITIZER == "none" else 10 * interval_us, what,
                     options=["-q", "--buffer-size", "64M"])
    report = bench.json(done.trace)
    made = done.fact("made") + 100 + (what != "join")
    counted = report["run"]["spans"] + report["run"]["dropped_spans"]
    assert done.fact("jumps") > 10
    # A jump costs one span at most: it comes before its begin, or leaves the place of one event empty.
    assert made - done.fact("jumps") <= counted <= made + done.fact("jumps"), (made, counted, done.fact("jumps"))
    text = bench.report(done.trace, "--events").out
    last = text.count("\tbegin\tlast\t")
    assert last == 100 or last + report["run"]["dropped_spans"] >= 100, "it records on after all of them"
    assert "(name lost)" not in text


def test_a_terminal_that_goes_away_ends_the_program_of_a_session_leader(bench):
    leader, terminal = pty.openpty()
    process = bench.start(TARE, "run", "-q", "-o", "trace.tare", "--", VICTIMS / "limits", "hup", stdin=terminal,
                          start_new_session=True,
                          preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
    os.close(terminal)
    assert process.stdout.readline() == "ready 1\n"
    os.close(leader)  # hangs up
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (7, "hup 1\n"), err


def test_an_alarm_set_before_the_command_reaches_the_program(bench):
    """Without Tare, it would stay set over exec."""
    done = bench.tare("run", "-q", "-o", "trace.tare", "--", "sleep", "60",
                      preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 0.5))
    assert done.status == 128 + signal.SIGALRM


def test_stopping_a_session_does_not_wait_for_a_stopped_helper(bench):
    from_s = time.monotonic()
    done = bench.call(VICTIMS / "limits", "stopped-helper", env={"TARE_HELPER": str(TARE)})
    assert done.status == 0, done.err
    assert done.fact("started") == 1 and done.fact("helper") > 0
    assert done.fact("status") == 4 and time.monotonic() - from_s < PATIENCE
    until(lambda: '"finished":true' in bench.tare("report", "--json", "own.tare").out,
          "woken again, it finishes the file by itself", pause=0.1)
    assert bench.json(bench.folder / "own.tare")["run"]["spans"] == 10


def test_a_forked_child_does_not_end_its_parents_session(bench):
    done = bench.call(VICTIMS / "limits", "forked-stop", env={"TARE_HELPER": str(TARE)})
    assert done.status == 0 and done.fact("child") == 0 and done.fact("recording") == 1 and done.fact("stopped") == 1
    rows = {row["name"]: row["calls"] for row in bench.json(bench.folder / "own.tare")["spans"]}
    assert rows == {"before": 10, "child": 10, "after": 20}
