"""`tare compare`: runs, reports and baselines side by side, and two commands run in turn."""
import json
import re
import signal
import subprocess

import pytest

from conftest import PATIENCE, TARE, VICTIMS
from test_cli import check_page, columns
from waiting import until


def figure(name, samples, **more):
    return {"name": name, "unit": "ns", "better": "lower", "exact": False,
            "value": sorted(samples)[len(samples) // 2], "total": sum(samples), "n": len(samples), "per": "call",
            "each": 1, "samples": samples, **more}


def baseline(path, figures, **more):
    path.write_text(json.dumps({"tare_baseline": 1, "kind": "run", "command": "train", "host": "h", "runs": 1,
                                "notes": [], **more, "figures": figures}))
    return path


def noisy(value, n=30):
    return [1e6 * value * (1 + 0.002 * (i * 7 % 11)) for i in range(n)]


def compare(bench, *words, status=0):
    done = bench.tare("compare", *words)
    assert done.status == status, (done.status, done.out[-2000:], done.err[-2000:])
    return done


def rows(bench, *words):
    told = json.loads(compare(bench, *words, "--json").out)
    return told, {row["name"]: row for row in told["figures"]}


@pytest.fixture
def trace(bench):
    return bench.run("phased", "20").trace


def test_runs_of_a_model_are_no_runs_of_a_program(bench, tmp_path):
    """Latencies of one report follow each other: they are tested by blocks, and not held against one value a report."""
    def report(name, value):
        return baseline(tmp_path / name, [figure("model.latency", noisy(value, 400), per="run")], kind="model")
    _, by_name = rows(bench, report("a.json", 1e6), report("b.json", 1.3e6))
    latency = by_name["model.latency"]
    assert (latency["per"], latency["baseline_samples"], latency["verdict"]) == ("call", 20, "worse")
    several = [report(f"{i}.json", 1e6) for i in range(5)]
    told, by_name = rows(bench, "--baseline", *several, "--candidate", tmp_path / "b.json")
    assert by_name["model.latency"]["verdict"] == "inconclusive" and by_name["model.latency"]["effect"] == 1
    assert "outside of the range of the others in model.latency (+30" in told["answer"]
    assert "by chance 2 of 6 figures do" in told["answer"]
    assert not any("one run per side" in one for one in told["warnings"])


def test_more_runs_on_one_side_do_not_change_the_mean(bench, tmp_path):
    def run(i):
        return baseline(tmp_path / f"{i}.json", [figure("step", [x * (1 + i / 1000) for x in noisy(1e6)])])
    runs = [run(i) for i in range(12)]
    told, by_name = rows(bench, "--baseline", *runs[::3], "--candidate", *[one for one in runs if one not in runs[::3]])
    assert by_name["step"]["verdict"] == "same" and not any("the mean is not" in one for one in told["warnings"])


# ---- files -------------------------------------------------------------------------------------------------
def test_a_run_and_itself_do_not_differ(bench, trace):
    text = compare(bench, trace, trace).out
    assert "No significant change" in text
    assert "one run per side" in text
    check_page(text)
    told, by_name = rows(bench, trace, trace)
    assert told["schema"] == {"name": "tare-compare", "version": 1, "minor": 1}
    assert told["counts"]["worse"] == told["counts"]["better"] == told["counts"]["different"] == 0
    assert "step" in by_name and any(name.startswith("span:") for name in by_name)
    assert by_name["step"]["verdict"] == "same" and by_name["step"]["change"] == 0
    assert by_name["run.elapsed"]["verdict"] == "inconclusive"  # one value a side
    assert not told["only_baseline"] and not told["only_candidate"]


def test_a_change_is_found_with_its_size(bench, tmp_path):
    def side(path, step, inner, only, **more):
        return baseline(path, [figure("step", noisy(step)), figure("span:a/b", noisy(inner)), figure(only, noisy(5)),
                               figure("span:c", noisy(9))], **more)
    base = side(tmp_path / "base.json", 100, 50, "span:old", revision="abc")
    head = side(tmp_path / "head.json", 130, 40, "span:new", revision="def", machine="2")
    told, by_name = rows(bench, base, head)
    assert by_name["step"]["verdict"] == "worse" and abs(by_name["step"]["change"] - 0.3) < 0.01
    assert by_name["step"]["low"] < 0.3 < by_name["step"]["high"] and by_name["step"]["p_adjusted"] < 0.001
    assert by_name["span:a/b"]["verdict"] == "better" and by_name["span:a/b"]["cost"] < 0
    assert by_name["span:c"]["verdict"] == "same"
    assert [row["name"] for row in told["only_baseline"]] == ["span:old"]
    assert [row["name"] for row in told["only_candidate"]] == ["span:new"]
    assert any("different revisions" in warning for warning in told["warnings"])
    text = compare(bench, base, head).out
    check_page(text)
    assert "step is worse" in text and "Candidate only" in text
    assert "No significant change" in compare(bench, "--min-change", "50%", base, head).out


def test_several_runs_a_side_are_one_value_each(bench, tmp_path):
    for side, level in (("base", 100), ("head", 110)):
        (tmp_path / side).mkdir()
        for i in range(6):
            baseline(tmp_path / side / f"{i}.json", [figure("step", noisy(level + i / 10))], machine="m")
    told, by_name = rows(bench, tmp_path / "base", tmp_path / "head")
    assert told["baseline"]["runs"] == 6
    assert by_name["step"]["baseline_samples"] == 6 and by_name["step"]["per"] == "run"
    assert by_name["step"]["verdict"] == "worse"
    assert not any("one run per side" in warning for warning in told["warnings"])
    files = sorted(str(path) for path in (tmp_path / "base").iterdir())
    same, _ = rows(bench, "--baseline", *files, "--all", "--candidate", tmp_path / "head")
    assert same["figures"] == told["figures"]


def test_a_report_of_a_model_and_exact_figures(bench, tmp_path):
    def report(path, flops):
        path.write_text(json.dumps({"layers": [1, {"figures": 2}], "figures": {
            "tare_baseline": 1, "kind": "model", "figures": [
                {"name": "model.flops", "unit": "", "better": "lower", "exact": True, "value": flops, "total": None,
                 "n": 1}]}}))
        return path
    told, by_name = rows(bench, report(tmp_path / "a.json", 4089184256), report(tmp_path / "b.json", 4089184257))
    assert told["baseline"]["kind"] == "model"
    assert by_name["model.flops"]["verdict"] == "worse" and by_name["model.flops"]["exact"]


def test_an_unfinished_and_a_damaged_trace_are_told(bench, trace, tmp_path):
    whole = trace.read_bytes()
    (tmp_path / "torn.tare").write_bytes(whole[:len(whole) * 2 // 3])
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0x10
    (tmp_path / "damaged.tare").write_bytes(bytes(damaged))
    told, by_name = rows(bench, trace, tmp_path / "torn.tare")
    assert any(warning.startswith("candidate: ") and ("unfinished" in warning or "ends inside" in warning)
               for warning in told["warnings"]), told["warnings"]
    assert "run.elapsed" not in by_name  # nobody knows how long it took
    told, _ = rows(bench, tmp_path / "damaged.tare", trace)
    assert any(warning.startswith("baseline: ") and "damaged" in warning for warning in told["warnings"])


def test_a_page_is_one_file(bench, trace):
    compare(bench, trace, trace, "--html", "-o", "page.html")
    page = (bench.folder / "page.html").read_text()
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert not re.search(r"(src|href)=\"(?!data:)", page)


@pytest.mark.parametrize("words, status, sentence", [
    ((), 2, "missing runs"),
    (("a",), 2, "missing runs"),
    (("a", "b", "c"), 2, "and -o FILE for the output"),
    (("--baseline", "a", "--candidate", "b", "--html", "c.html"), 2, "unexpected argument 'c.html'"),
    (("--baseline", "a"), 2, "must be used together"),
    (("--baseline", "a", "--baseline", "b"), 2, "is given twice"),
    (("--candidate", "--baseline", "b"), 2, "requires files"),
    (("--baseline", "a", "--candidate", "b", "--json", "c"), 2, "unexpected argument 'c'"),
    (("--json", "--html", "a", "b"), 2, "are mutually exclusive"),
    (("--min-change", "much", "a", "b"), 2, "not a percentage"),
    (("--rounds", "5", "a", "b"), 2, "requires --ab"),
    (("--ab", "true"), 2, "two quoted commands"),
    (("--ab", "true", ""), 2, "a command is empty"),
    (("--ab", "--rounds", "0", "true", "true"), 2, "whole number"),
    (("--ab", "--baseline", "x", "--quiet", "true", "true"), 2, "cannot be combined with files"),
    (("nowhere.tare", "nowhere.tare"), 3, "cannot read 'nowhere.tare'"),
    (("text.txt", "text.txt"), 3, "text.txt"),
    (("model.onnx", "model.onnx"), 3, "tare model --json model.onnx"),
    (("half.json", "half.json"), 3, "half.json"),
    (("other.json", "other.json"), 3, "no figures in it"),
    (("newer.json", "newer.json"), 3, "version 7"),
    (("empty", "empty"), 3, "no .tare or .json file"),
])
def test_bad_input_gets_a_sentence(bench, words, status, sentence):
    (bench.folder / "text.txt").write_text("hello\n" * 100)
    (bench.folder / "model.onnx").write_bytes(b"\x08\x07\x12\x04test" * 20)
    (bench.folder / "half.json").write_text('{"tare_baseline": 1, "figures": [{"name": ')
    (bench.folder / "other.json").write_text('{"traceEvents": [{"figures": 3}]}')
    (bench.folder / "newer.json").write_text('{"tare_baseline": 7, "figures": []}')
    (bench.folder / "empty").mkdir()
    done = compare(bench, *words, status=status)
    assert sentence in done.err and not done.out, (done.out, done.err)


def test_what_cannot_be_written_is_said(bench, trace):
    assert "nowhere" in compare(bench, trace, trace, "-o", "nowhere/x.txt", status=1).err


# ---- two commands in turn ------------------------------------------------------------------------------------
def test_two_commands_until_the_answer_is_clear(bench):
    told, by_name = rows(bench, "--ab", "--bare", "echo noise; sleep 0.01", "echo noise >&2; sleep 0.2")
    assert told["ab"]["clear"] and 8 <= told["ab"]["rounds"] <= 40
    assert told["ab"]["low"] > 0 and told["ab"]["p"] < 0.05 and "slower" in told["ab"]["answer"]
    assert by_name["run.elapsed"]["verdict"] == "worse"
    assert by_name["run.elapsed"]["baseline_samples"] == told["ab"]["rounds"]
    assert set(by_name) == {"run.elapsed", "run.cpu", "run.peak_rss"}
    assert not any("different commands" in warning for warning in told["warnings"])
    # Looking after every round is allowed for in one answer only, and that is said.
    assert "Only the answer for run.elapsed accounts for testing after every round" in told["answer"]
    assert not list(bench.temporary.iterdir())


def test_recorded_commands_have_their_spans(bench):
    program = f"{VICTIMS / 'phased'} 5"
    told, by_name = rows(bench, "--ab", program, program, "--rounds", "2", "--warmup", "0", "--keep", "kept")
    assert told["ab"]["rounds"] == 2 and not told["ab"]["clear"] and "too few rounds for a test" in told["ab"]["answer"]
    # Too few to be tested, and shown all the same.
    assert "step" in by_name and by_name["step"]["baseline_samples"] == 2
    assert by_name["step"]["verdict"] == "inconclusive" and by_name["step"]["per"] == "run"
    assert told["baseline"]["command"] == program
    assert sorted(path.name for path in (bench.folder / "kept").iterdir()) == [
        "baseline.001.tare", "baseline.002.tare", "candidate.001.tare", "candidate.002.tare"]
    assert "already contains traces" in compare(bench, "--ab", program, program, "--keep", "kept", status=2).err


def test_time_may_be_limited(bench):
    told, _ = rows(bench, "--ab", "--bare", "sleep 0.01", "sleep 0.01", "--max-time", "5ms", "--warmup", "0")
    assert told["ab"]["rounds"] == 1 and not told["ab"]["clear"]


def test_a_command_that_fails_ends_it(bench):
    done = compare(bench, "--ab", "--bare", "true", "echo so sorry; exit 3", "--warmup", "0", status=1)
    assert "status 3 in round 1" in done.err and "so sorry" in done.err
    done = compare(bench, "--ab", "--bare", "kill -9 $$", "true", "--warmup", "0", status=1)
    assert "signal 9" in done.err
    assert "status 4 in the warm-up" in compare(bench, "--ab", "--bare", "true", "exit 4", status=1).err
    assert not list(bench.temporary.iterdir())


def test_a_command_that_asks_for_a_terminal_is_not_waited_for(bench):
    """It is not in the terminal's foreground: reading from there stops it for good."""
    import os
    import pty
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(bench.folder)
        os.execve(TARE, [TARE, "compare", "--ab", "--bare", "--warmup", "0", "read answer < /dev/tty", "true"],
                  bench.env())
    said = b""
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 1, said
    assert b"reads from the terminal, which is not available here" in said, said
    assert not list(bench.temporary.iterdir())


def test_ctrl_c_shows_what_is_known(bench):
    log = bench.folder / "log"
    log.write_text("")
    # The sixth and later ones wait to be interrupted.
    command = f"echo >> {log}; [ $(wc -l < {log}) -le 5 ] || sleep 600"
    process = bench.start(TARE, "compare", "--ab", "--bare", "--warmup", "0", command, command)
    until(lambda: log.read_text().count("\n") >= 6, "the sixth has begun")
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 130, err
    assert "Inconclusive after 2 rounds (interrupted)" in out and "run.elapsed" in out
    assert all(columns(line) <= 80 for line in out.splitlines())
    assert not list(bench.temporary.iterdir())
