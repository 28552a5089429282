"""What a person sees and types: the summary, views at the end of a run, attach, the status line, settings."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unicodedata

import pytest

from conftest import PATIENCE, TARE, VICTIMS
from waiting import until

BUSY = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in line)


def check_page(text):
    lines = text.splitlines()
    assert len(lines) < 60, text
    assert all(columns(line) <= 80 for line in lines), [line for line in lines if columns(line) > 80]


def in_terminal(bench, *words, env=None, until=None, width=80):
    """Runs a command on a terminal of its own; everything it wrote there, and its status."""
    master, slave = pty.openpty()
    import fcntl
    import struct
    import termios
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    process = bench.start(*words, env={"TERM": "xterm", **(env or {})}, stdin=slave, stdout=slave, stderr=slave,
                          start_new_session=True)
    os.close(slave)
    seen, deadline = b"", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(master, 65536)
        except OSError:  # the last one has closed it
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return process.wait(PATIENCE), seen.decode(errors="replace")


# ---- the summary -----------------------------------------------------------------------------------------
def test_a_program_that_knows_nothing_of_tare_gets_a_summary(bench):
    done = bench.tare("run", "-o", "t.tare", "--", sys.executable, "-c", BUSY.format(0.4) + "print('mine')")
    assert done.status == 0 and done.out == "mine\n"
    check_page(done.err)
    for word in ("Resource usage", "CPU ", "Memory ", "Findings", "CPU by process", "tare: ", "next: ",
                 "exit status 0", "tare: wrote t.tare"):
        assert word in done.err, word
    assert "\x1b" not in done.err


def test_report_shows_the_summary_of_the_run(bench):
    done = bench.run("kinds", "all", "120")
    check_page(done.err)
    report = bench.report("trace.tare").out
    check_page(report)
    assert report in done.err


def test_a_folded_page_stays_a_page(bench):
    for words in (("threads", "short", "50", "100"), ("nest", "deep", "100"), ("nest", "wrong", "5")):
        done = bench.tare("run", "-o", "big.tare", "-f", "--", VICTIMS / words[0], *words[1:])
        check_page(done.err)


def test_how_it_ended_is_told_and_kept(bench):
    done = bench.tare("run", "-o", "a.tare", "--", "sh", "-c", "exit 3")
    assert done.status == 3 and "exit status 3" in done.err
    done = bench.tare("run", "-o", "b.tare", "--", "sh", "-c", "kill -TERM $$")
    assert done.status == 128 + signal.SIGTERM and "signal 15" in done.err


def test_colours_on_a_terminal_only(bench):
    status, seen = in_terminal(bench, TARE, "run", "-o", "t.tare", "--", "true")
    assert status == 0 and "\x1b[1m" in seen
    status, seen = in_terminal(bench, TARE, "report", "t.tare", env={"NO_COLOR": "1"})
    assert status == 0 and "\x1b" not in seen and "Resource usage" in seen


# ---- views ------------------------------------------------------------------------------------------------
def test_views_are_written_with_the_run(bench):
    done = bench.tare("run", "-q", "-o", "t.tare", "--html", "t.html", "--json", "t.json", "--csv", "tables",
                      "--chrome", "t.chrome.json", "--perfetto", "t.pftrace", "--", VICTIMS / "kinds", "all", "50")
    assert done.status == 0 and done.err == ""
    report = json.loads((bench.folder / "t.json").read_text())
    assert report["run"]["spans"] > 0 and report == bench.json("t.tare")
    assert (bench.folder / "t.html").read_text().lstrip().lower().startswith("<!doctype html")
    assert json.loads((bench.folder / "t.chrome.json").read_text())
    assert (bench.folder / "tables" / "spans.csv").exists() and (bench.folder / "t.pftrace").stat().st_size > 0


def test_a_view_that_cannot_be_written_stops_before_the_program(bench):
    done = bench.tare("run", "--html", "no/such/folder.html", "--", "sh", "-c", "echo ran")
    assert done.status == 125 and done.out == "" and "no/such/folder.html" in done.err
    done = bench.tare("run", "-q", "-o", "t.tare", "--json", "/dev/full", "--", "sh", "-c", "echo ran; exit 4")
    assert done.status == 4 and done.out == "ran\n" and "No space left" in done.err


def test_a_page_on_a_terminal_goes_beside_the_trace(bench):
    bench.run("kinds", "all", "20")
    status, seen = in_terminal(bench, TARE, "report", "--html", "trace.tare")
    assert status == 0 and "wrote trace.html" in seen and (bench.folder / "trace.html").exists()
    before = (bench.folder / "trace.html").read_bytes()
    status, seen = in_terminal(bench, TARE, "report", "--html", "trace.tare")
    assert status == 2 and "trace.html' already exists" in seen
    assert (bench.folder / "trace.html").read_bytes() == before
    assert bench.report("trace.tare", "--html").out.lstrip().lower().startswith("<!doctype html")


def test_json_tells_of_samples(bench):
    bench.tare("run", "-q", "-o", "t.tare", "--interval", "20ms", "--", sys.executable, "-c", BUSY.format(0.5))
    report = bench.json("t.tare")
    assert report["tare"]["interval_ns"] == 20_000_000 and report["tare"]["sampler_cpu_ns"] > 0
    assert report["usage"]["cpu_seconds"] >= 0.5 and report["usage"]["rss_peak_bytes"] > 1e6
    rows = {(row["subject"], row["metric"]): row for row in report["metrics"]}
    rss = rows["tree", "memory.rss"]
    assert rss["unit"] == "bytes" and rss["kind"] == "gauge" and rss["samples"] > 3
    assert all(len(point) == 5 and point[2] <= point[3] <= point[4] for point in rss["points"])
    threads = [row for row in report["metrics"] if row["subject"] in ("thread", "cpu")]
    assert all(row["points"] is None for row in threads)
    threads = [row for row in bench.json("t.tare", "--all")["metrics"] if row["subject"] == "cpu"]
    assert any(row["points"] for row in threads)
    for row in report["metrics"]:
        assert row["samples"] > 0 or row["absent"], row
    for finding in report["findings"]:
        assert finding["severity"] in ("critical", "warning", "info") and finding["title"] and finding["id"]


def test_what_is_not_sampled_is_absent(bench):
    bench.tare("run", "-q", "-o", "t.tare", "--no-sampling", "--", "sleep", "0.1")
    report = bench.json("t.tare")
    assert report["metrics"] == [] and report["tare"]["interval_ns"] is None
    assert report["usage"]["tree_rss_max_bytes"] is None and report["usage"]["reasons"]["gpu_busy_mean"]
    bench.tare("run", "-q", "-o", "u.tare", "--disable", "process,system,power,nvml", "--", "sleep", "0.3")
    report = bench.json("u.tare")
    assert {row["subject"] for row in report["metrics"] if row["samples"]} <= {"container", "tare"}


# ---- attach -------------------------------------------------------------------------------------------------
def test_attach_until_interrupted(bench):
    target = bench.start(sys.executable, "-c", BUSY.format(60))
    attach = bench.start(TARE, "attach", "-o", "a.tare", "--json", "a.json", "--interval", "20ms", target.pid)
    try:
        trace = bench.folder / "a.tare"
        until(lambda: trace.exists() and trace.stat().st_size >= 3000, "it has recorded")
        attach.send_signal(signal.SIGINT)
        out, err = attach.communicate(timeout=PATIENCE)
        assert attach.returncode == 0, err
        assert target.poll() is None, "it runs on"
    finally:
        target.kill()
        target.communicate()
    check_page(err)
    assert out == "" and f"attached to {target.pid}" in err and "Resource usage" in err
    report = json.loads((bench.folder / "a.json").read_text())
    assert report["run"]["attached"] == target.pid and report["usage"]["cpu_seconds"] > 0


def test_attach_ends_with_the_process(bench):
    target = bench.start("sleep", "1")
    done = bench.tare("attach", "-q", "-o", "a.tare", target.pid)
    target.communicate()
    assert done.status == 0 and done.err == ""
    assert bench.json("a.tare")["run"]["attached"] == target.pid


def test_attach_to_nothing(bench):
    target = bench.start("true")
    target.communicate()
    done = bench.tare("attach", target.pid)
    assert done.status == 3 and f"no process {target.pid}" in done.err
    assert not list(bench.folder.glob("*.tare"))
    assert bench.tare("attach", "train").status == 2
    assert bench.tare("attach").status == 2


def test_attach_to_a_kernel_thread(bench):
    try:
        with open("/proc/2/comm") as file:
            kernel = file.read().strip() == "kthreadd"
    except OSError:
        kernel = False
    if not kernel:
        pytest.skip("no thread of the kernel is to be seen here")
    done = bench.tare("attach", "2")
    assert done.status == 3 and "kernel" in done.err


# ---- the status line ---------------------------------------------------------------------------------------
def test_the_status_line_lives_on_a_terminal_and_goes_away(bench):
    status, seen = in_terminal(bench, TARE, "run", "-q", "--live", "-o", "t.tare", "--", "sleep", "1")
    assert status == 0
    lines = re.findall(r"\rtare: [^\r\n]*\x1b\[K", seen)
    assert len(lines) >= 2 and "memory" in lines[-1] and "CPU" in lines[-1]
    assert seen.endswith("\r\x1b[K")


def test_no_terminal_no_status_line(bench):
    done = bench.tare("run", "-q", "--live", "-o", "t.tare", "--", "sleep", "0.5")
    assert done.status == 0 and done.err == ""


# ---- settings ----------------------------------------------------------------------------------------------
def test_settings_from_files_and_variables(bench):
    def interval(*words, env=None):
        done = bench.tare("run", "-q", "-o", "t.tare", "-f", *words, "--", "true", env=env)
        assert done.status == 0, done.err
        return bench.json("t.tare")["tare"]["interval_ns"]

    assert interval() == 100_000_000
    (bench.folder / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.tare]\ninterval = "40ms"\n')
    assert interval() == 40_000_000
    (bench.folder / "tare.toml").write_text('interval = "30ms"\n')
    assert interval() == 30_000_000
    assert interval(env={"TARE_INTERVAL": "20ms"}) == 20_000_000
    assert interval("--interval", "10ms", env={"TARE_INTERVAL": "20ms"}) == 10_000_000
    (bench.folder / "tare.toml").write_text("\nintervall = 3\n")
    done = bench.tare("run", "--", "true")
    assert done.status == 2 and "tare.toml:2: unknown setting 'intervall'; did you mean 'interval'?" in done.err


# ---- what was left behind ------------------------------------------------------------------------------------
def test_the_next_run_tells_of_a_recording_that_was_cut_off(bench):
    run = bench.start(TARE, "run", "-q", "-o", "cut.tare", "--", "sleep", "60", start_new_session=True)
    deadline = time.monotonic() + PATIENCE
    folder = None
    while time.monotonic() < deadline and not folder:
        if (bench.folder / "cut.tare").exists():
            maps = open(f"/proc/{run.pid}/maps").read()
            found = re.search(r"(/\S*/tare-\d+-\w{6})/session", maps)
            folder = found and found.group(1)
        time.sleep(0.05)
    assert folder
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    done = bench.tare("run", "-o", "next.tare", "--", "true")
    assert done.status == 0 and "interrupted" in done.err and "tare report /" in done.err
    assert bench.tare("report", folder).status == 0 and os.path.exists(folder)
    assert folder in bench.tare("clean", folder).out and not os.path.exists(folder)


# ---- rules ----------------------------------------------------------------------------------------------------
def test_rules_of_your_own(bench):
    (bench.folder / "own.rules").write_text(
        'rule many-spans\n  table run\n  when spans > 10\n  say "there are {spans} spans"\n  severity critical\n')
    done = bench.tare("run", "-o", "t.tare", "--rules", "own.rules", "--", VICTIMS / "kinds", "all", "50")
    assert done.status == 0 and re.search(r"^critical  there are \S+ spans", done.err, re.M), done.err
    found = bench.json("t.tare", "--rules", "own.rules")["findings"][0]
    assert found["id"] == "many-spans" and found["source"].startswith("own.rules:1")
