"""`tare baseline save` and `tare check`: what fails, what does not, and what is told of it in every format."""
import json
import os
import random
import re
import subprocess
import textwrap
import xml.etree.ElementTree as xml

import pytest

from conftest import ROOT, TARE, VICTIMS, Bench
from test_cli import columns

NASTY = "span:a|b`<i>&\"'\x01\x1b[31m\n::error::x%0A,é" + "\\*_[x](y)"


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def noise(level, n=20, seed=1, spread=0.02):
    draw = random.Random(seed)
    return [level * (1 + spread * draw.gauss(0, 1)) for _ in range(n)]


def figure(name, samples, unit="ns", better="lower", per="run", **more):
    middle = sorted(samples)[len(samples) // 2]
    return {"name": name, "unit": unit, "better": better, "exact": False, "value": middle, "total": None,
            "n": len(samples), "per": per, "each": 1, "samples": samples, **more}


def exact(name, value, unit="", better="lower"):
    return {"name": name, "unit": unit, "better": better, "exact": True, "value": value, "total": None, "n": 1}


def write(bench, name, figures, **more):
    runs = max([len(one.get("samples", [])) for one in figures] or [1])
    about = {"tare_baseline": 1, "kind": "runs", "command": "train", "host": "a", "cpu_model": "X", "machine": "m1",
             "runs": runs, "notes": [], **more}
    (bench.folder / name).write_text(json.dumps({**about, "figures": figures}))
    return name


def check(bench, *words, status=0, **options):
    done = bench.tare("check", "--json", *words, **options)
    assert done.status == status, (done.status, done.out[-3000:], done.err[-2000:])
    answer = json.loads(done.out)
    assert answer["passed"] == (status == 0)
    answer["by_name"] = {row["name"]: row for row in answer["figures"]}
    return answer


def pair(bench, factor=1.0, **more):
    """A baseline and a head whose step takes `factor` times as long."""
    write(bench, "base.json", [figure("step", noise(1e7))])
    write(bench, "head.json", [figure("step", noise(1e7 * factor, seed=2))], **more)
    return "head.json", "--baseline", "base.json"


def test_real_runs(bench):
    """Runs as recorded, alone and several: figures come through, limits hold and break."""
    for i in range(5):
        done = bench.tare("run", "-q", "-o", f"{i}.tare", "--", VICTIMS / "phased", 30)
        assert done.status == 0, done.err
    traces = [f"{i}.tare" for i in range(5)]
    done = bench.tare("baseline", "save", *traces, "-o", "five.json")
    assert done.status == 0 and "of 5 runs are in five.json" in done.err
    saved = json.loads((bench.folder / "five.json").read_text())
    by_name = {one["name"]: one for one in saved["figures"]}
    assert saved["runs"] == 5 and len(by_name["step"]["samples"]) == 5 and len(by_name["run.elapsed"]["samples"]) == 5
    assert bench.tare("baseline", "save", "0.tare", "-q", "-o", "one.json").err == ""
    answer = check(bench, *traces, "-b", "five.json", "-t", "step:1h")
    assert answer["by_name"]["step"]["reason"] == "equal" and answer["other_machine"] is False
    assert answer["by_name"]["step"]["baseline_samples"] == answer["by_name"]["step"]["candidate_samples"] == 5
    for i in range(5):
        (bench.folder / "folder").mkdir(exist_ok=True)
        (bench.folder / f"{i}.tare").rename(bench.folder / "folder" / f"{i}.tare")
    assert check(bench, "folder", "-b", "five.json")["by_name"]["step"]["reason"] == "equal"  # and of folders
    assert check(bench, "folder", "-b", "folder")["baseline"]["runs"] == 5
    (bench.folder / "folder" / "0.tare").rename(bench.folder / "0.tare")
    answer = check(bench, "0.tare", "-b", "one.json", "-t", "step:1ns", status=1)
    assert answer["by_name"]["step"]["outcome"] == "failed" and answer["by_name"]["step"]["limit"] == 1
    assert answer["by_name"]["step"]["candidate_samples"] == 20
    answer = check(bench, "0.tare", "-t", "step:1h", "-t", "run.elapsed:1ns", status=1)  # no baseline
    assert [row["name"] for row in answer["figures"] if row["outcome"] == "failed"] == ["run.elapsed"]
    assert answer["baseline"] is None


def test_regression(bench):
    answer = check(bench, *pair(bench, 1.2), status=1)
    row = answer["by_name"]["step"]
    assert row["outcome"] == "failed" and row["reason"] == "significant" and row["p"] < 1e-6
    assert 0.17 < row["change"] < 0.23 and row["low"] < row["change"] < row["high"]
    assert row["effect"] == 1 and row["gate"] == 0.05
    done = bench.tare("check", "head.json", "--baseline", "base.json")
    assert done.status == 1
    assert re.search(r"^FAILED +step +10\.\d ms +1[12]\.\d ms +\+\d\d\.\d % +5 % +<0\.001$", done.out, re.M), done.out
    assert done.out.endswith("FAILED: 1 of 1 figure failed\n")
    quiet = bench.tare("check", "-q", "head.json", "--baseline", "base.json")
    assert (quiet.status, quiet.out, quiet.err) == (1, "", "")


def test_no_regression(bench):
    """Noise, a change within the gate, one that is better, one that is too few to tell."""
    assert check(bench, *pair(bench))["counts"]["failed"] == 0
    row = check(bench, *pair(bench, 1.03))["by_name"]["step"]
    assert row["reason"] == "below the minimum change" and row["p"] < 0.02
    assert check(bench, *pair(bench, 0.8))["by_name"]["step"]["outcome"] == "improved"
    write(bench, "single.json", [{**exact("step", 2e7, unit="ns"), "exact": False}])
    answer = check(bench, "single.json", "-b", "base.json")
    assert answer["by_name"]["step"]["outcome"] == "inconclusive" and answer["by_name"]["step"]["p"] is None
    few = pair(bench, 2)
    for name in ("base.json", "head.json"):
        whole = json.loads((bench.folder / name).read_text())
        whole["figures"][0]["samples"] = whole["figures"][0]["samples"][:3]
        (bench.folder / name).write_text(json.dumps({**whole, "runs": 3}))
    assert "5 runs per side are enough" in " ".join(check(bench, *few)["warnings"])


def test_floor_and_direction(bench):
    """What is too small to matter; what is better when it is higher; what nobody gates unless it is named."""
    def figures(latency, throughput, load, loss, seed):
        return [figure("model.latency", noise(latency, seed=seed)), figure("span:load", noise(load, seed=seed)),
                figure("model.throughput", noise(throughput, seed=seed), unit="samples/s", better="higher"),
                figure("counter:loss", noise(loss, seed=seed), unit="", better="neither")]
    write(bench, "base.json", figures(1000, 900, 1e6, 1, seed=1))
    write(bench, "head.json", figures(1900, 700, 2e6, 2, seed=3))
    answer = check(bench, "head.json", "-b", "base.json", status=1)
    assert {name: row["outcome"] for name, row in answer["by_name"].items()} == {
        "model.latency": "passed", "model.throughput": "failed", "span:load": "changed", "counter:loss": "changed"}
    assert answer["by_name"]["model.latency"]["reason"] == "too small to matter"
    answer = check(bench, "head.json", "-b", "base.json", "--all", "-t", "model.latency:5%,100ns", "-t",
                   "model.throughput:30%", "-t", "counter:*:50%", status=1)
    assert {name: row["outcome"] for name, row in answer["by_name"].items()} == {
        "model.latency": "failed", "model.throughput": "passed", "span:load": "failed", "counter:loss": "failed"}


def test_exact_figures(bench):
    write(bench, "base.json", [exact("model.flops", 4089184256), exact("model.parameters", 25557032)])
    write(bench, "head.json", [exact("model.flops", 4089184257), exact("model.parameters", 25557031)])
    answer = check(bench, "head.json", "-b", "base.json", status=1)
    assert answer["by_name"]["model.flops"]["outcome"] == "failed"
    assert answer["by_name"]["model.flops"]["reason"] == "exact figures differ"
    assert answer["by_name"]["model.parameters"]["outcome"] == "improved"
    assert check(bench, "head.json", "-b", "base.json", "-t", "model.*:1%")["counts"]["failed"] == 0


def test_another_machine(bench):
    """Warned of, and held to the wider gate."""
    answer = check(bench, *pair(bench, 1.08, machine="m2", host="b"))
    assert answer["other_machine"] and answer["gate"] == 0.10
    assert "another machine (a, X; this is b, X): the gate is 10 %" in answer["warnings"][0]
    assert check(bench, *pair(bench, 1.16, machine="m2"), status=1)["counts"]["failed"] == 1
    assert check(bench, *pair(bench, 1.08, machine="m2"), "--gate", "5%", status=1)["gate"] == 0.05
    answer = check(bench, *pair(bench, 1.08, machine=None))
    assert answer["other_machine"] and "not known whether" in answer["warnings"][0]
    answer = check(bench, *pair(bench, command="other"))
    assert not answer["other_machine"] and "of another command" in answer["warnings"][0]


def test_one_run_a_side(bench):
    """Its steps say nothing of how runs differ: the wider gate."""
    write(bench, "base.json", [figure("step", noise(1e7), per="step")], runs=1, kind="run")
    write(bench, "head.json", [figure("step", noise(1.08e7, seed=2), per="step")], runs=1, kind="run")
    answer = check(bench, "head.json", "-b", "base.json")
    assert answer["gate"] == 0.10 and not answer["other_machine"] and answer["by_name"]["step"]["p"] < 0.02
    write(bench, "head.json", [figure("step", noise(1.2e7, seed=2), per="step")], runs=1, kind="run")
    assert check(bench, "head.json", "-b", "base.json", status=1)["counts"]["failed"] == 1


def test_load_that_explains_a_change_fails_nothing(bench):
    """Equal runs on one CPU, one of them beside another process: its steps take twice as long, by nothing in the
    program."""
    def run(cpu_wait, level, seed):
        return [figure("step", noise(level, seed=seed), per="step"), {**exact("run.cpu", 2e8, "ns"), "exact": False},
                {**exact("run.cpu_wait", cpu_wait, "ns", "neither"), "exact": False}]
    write(bench, "base.json", run(0, 1e7, 1), runs=1, kind="run")
    write(bench, "head.json", run(1e7, 1.23e7, 2), runs=1, kind="run")
    check(bench, "head.json", "-b", "base.json", status=1)
    write(bench, "head.json", run(5e7, 1.23e7, 2), runs=1, kind="run")
    answer = check(bench, "head.json", "-b", "base.json")
    assert answer["by_name"]["step"]["verdict"] == "inconclusive" and "makes it 25 % slower" in answer["warnings"][0]
    assert "kept this run from the CPUs more than the baseline" in answer["warnings"][0]
    compared = json.loads(bench.tare("compare", "base.json", "head.json", "--json").out)
    assert "kept the candidate from the CPUs" in compared["warnings"][0] and compared["counts"]["worse"] == 0
    write(bench, "head.json", run(5e7, 1.8e7, 2), runs=1, kind="run")  # more than load explains
    check(bench, "head.json", "-b", "base.json", status=1)
    write(bench, "loaded.json", run(5e7, 1e7, 1), runs=1, kind="run")  # the baseline had the load
    write(bench, "head.json", run(0, 1.23e7, 2), runs=1, kind="run")
    check(bench, "head.json", "-b", "loaded.json", status=1)

    cpu = min(os.sched_getaffinity(0))
    for name, others in (("alone", 0), ("beside", 2)):
        burners = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
                   for _ in range(others)]
        try:
            done = bench.tare("run", "-q", "-o", name + ".tare", "--interval", "20ms", "--",
                              "taskset", "-c", cpu, VICTIMS / "phased", 25, 200)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        assert done.status == 0
    answer = check(bench, "beside.tare", "-b", "alone.tare")
    assert answer["by_name"]["step"]["verdict"] in ("same", "inconclusive"), answer["by_name"]["step"]
    elapsed, cpu, wait = (answer["by_name"]["run." + name]["candidate"] for name in ("elapsed", "cpu", "cpu_wait"))
    assert wait == pytest.approx(elapsed - cpu, rel=0.2)  # its one thread is always ready to run


def test_one_run_is_told_what_it_can_fail(bench):
    """A run has one elapsed time: no change of it can fail, and a user with one run is told."""
    def run(elapsed, steps):
        return [{**figure("run.elapsed", [elapsed]), "samples": [], "n": 1}, figure("step", steps, per="call")]
    write(bench, "base.json", run(1e9, noise(1e7)), runs=1, kind="run")
    write(bench, "head.json", run(9e9, noise(1e7, seed=2)), runs=1, kind="run")
    answer = check(bench, "head.json", "-b", "base.json")
    assert answer["by_name"]["run.elapsed"]["outcome"] == "inconclusive"
    told, = answer["warnings"]
    assert told.startswith("one run per side: 1 gated figure (run.elapsed) has a single value") and "5 runs" in told
    write(bench, "alone.json", run(9e9, noise(1e7))[:1], runs=1, kind="run")
    told, = check(bench, "alone.json", "-b", "base.json")["warnings"]
    assert "(run.elapsed) has a single value: no change can fail this check" in told
    told, = check(bench, "alone.json", "-b", "base.json", "-t", "run.elapsed:10s")["warnings"]
    assert "has a single value and cannot fail" in told
    write(bench, "many.json", [figure("run.elapsed", noise(1e9)), figure("step", noise(1e7))])
    told, = check(bench, "head.json", "-b", "many.json")["warnings"]
    assert told.startswith("one run against 20: changes of measured figures are inconclusive") and "--rerun" in told
    write(bench, "static.json", [exact("model.macs", 7)], runs=1, kind="model")
    assert check(bench, "static.json", "-b", "static.json")["warnings"] == []


def keep(bench, revisions, runs_of_each=3, level=lambda i: 1e7, branch="main", dirty=False, start=0, seed=5):
    """Runs in the history: revisions with a few runs each, whose level may drift."""
    draw = random.Random(seed)
    lines = []
    for i in range(revisions * runs_of_each):
        value = level(i // runs_of_each) * (1 + draw.gauss(0, 0.005))
        run = {"id": f"{start + i:08x}" + "2" * 24, "kind": "run", "when_ns": 10**18 + (start + i) * 60 * 10**9,
               "command": "train",
               "directory": "/w", "host": "h", "machine": "m", "cpu_model": "c", "dirty": dirty, "status": 0,
               "signal": None,
               "revision": f"{start + i // runs_of_each:012x} on {branch}", "elapsed_ns": int(value), "trace": "/t",
               "tags": []}
        rows = {"tare_baseline": 1, "kind": "run", "machine": "m", "command": "train", "figures": [
            {"name": "step", "unit": "ns", "better": "lower", "exact": False, "value": value, "total": None, "n": 1}]}
        lines.append(json.dumps({"schema": {"name": "tare-history", "version": 1}, "run": run, "figures": rows}))
    done = bench.tare("history", "import", text_in="\n".join(lines) + "\n")
    assert done.status == 0, done.err


def test_recent_runs_are_the_default(bench):
    def head(level, name="head.json"):
        write(bench, name, [figure("step", noise(level, n=3, spread=0.002))], machine="m", command="train", runs=3,
              when_ns=2 * 10**18, revision="ffffffffffff on branch")
    head(1e7)
    done = bench.tare("check", "head.json")
    assert done.status == 2 and "no baseline: the history has no earlier" in done.err  # no history yet
    keep(bench, 12, level=lambda i: 1e7 * (1 if i >= 2 else 3))        # the first two are out of the window
    keep(bench, 4, level=lambda i: 5e7, branch="feature", start=1000)  # not the default branch
    keep(bench, 2, level=lambda i: 5e7, dirty=True, start=2000)
    answer = check(bench, "head.json")
    row = answer["by_name"]["step"]
    assert (row["baseline_samples"], row["candidate_samples"], row["verdict"]) == (10, 3, "same")
    assert answer["baseline"]["name"] == "the last 10 revisions of the default branch in the history"
    head(1.2e7)
    assert check(bench, "head.json", status=1)["by_name"]["step"]["verdict"] == "worse"
    assert check(bench, "head.json", "--window", "4")["by_name"]["step"]["verdict"] == "inconclusive"
    assert bench.tare("check", "head.json", "--no-history").status == 2
    assert bench.tare("check", "head.json", "--window", "5", "-b", "head.json").status == 2


def test_a_drifting_machine(bench):
    """A machine that gets 1 % slower from revision to revision: recent runs move along; a baseline does not, and says
    so."""
    write(bench, "first.json", [figure("step", noise(1e7, n=6, spread=0.005))], machine="m", command="train", runs=6)
    keep(bench, 30, level=lambda i: 1e7 * 1.01**i)
    write(bench, "head.json", [figure("step", noise(1e7 * 1.01**30, n=5, spread=0.005))], machine="m", command="train",
          runs=5, when_ns=2 * 10**18, revision="ffffffffffff on main")
    fixed = check(bench, "head.json", "-b", "first.json", status=1)
    assert any("the baseline has drifted" in one and "step +" in one for one in fixed["warnings"])
    assert not any("drifted" in one
                   for one in check(bench, "head.json", "-b", "first.json", "--no-history", status=1)["warnings"])
    moving = check(bench, "head.json", "--window", "5")
    assert moving["passed"] and not moving["warnings"]
    write(bench, "fresh.json", [figure("step", noise(1e7 * 1.01**26, n=6, spread=0.005))], machine="m", command="train",
          runs=6)
    assert not any("drifted" in one for one in check(bench, "head.json", "-b", "fresh.json")["warnings"])


def test_what_a_trace_lacks_is_told(bench):
    pair(bench)
    write(bench, "head.json", [figure("step", noise(1e7))], notes=["it was killed"])
    done = bench.tare("check", "head.json", "-b", "base.json", "--rerun", "true")
    assert done.status == 0 and done.out.startswith("warning this run: it was killed\n\n"), done.out
    write(bench, "base.json", [figure("step", noise(1e7))], notes=["one", "two"])
    lines = bench.tare("check", "head.json", "-b", "base.json").out.splitlines()
    assert lines[:3] == ["warning this run: it was killed", "warning the baseline: one", "warning the baseline: two"]


def test_running_again_that_fails_is_no_pass(bench):
    """What was inconclusive and cannot be asked again: status 1, and every format says that it failed."""
    write(bench, "base.json", [figure("step", noise(1e7))])
    write(bench, "head.json", [{**figure("step", [2e7], per="call"), "samples": []}], runs=1)
    done = bench.tare("check", "head.json", "-b", "base.json", "--rerun", "exit 7", "--junit", "j.xml", "--github")
    assert done.status == 1 and "FAILED: 0 figures passed, 1 inconclusive; running again failed" in done.out
    assert any(line.startswith("::error title=head.json::") for line in done.out.splitlines())
    suites = xml.parse(bench.folder / "j.xml").getroot()
    assert suites.get("errors") == "1" and suites.find("testsuite/testcase/error").get("type") == "rerun"
    assert int(suites.get("tests")) == len(suites.findall("testsuite/testcase")) == 2
    answer = check(bench, "head.json", "-b", "base.json", "--rerun", "exit 7", status=1)
    assert any("exited with status 7" in one for one in answer["warnings"])


def test_junit_is_read_by_those_who_want_text_or_times(bench):
    words = pair(bench, 2)
    assert bench.tare("check", *words, "-t", "gone:5%", "--junit", "j.xml", "-q").status == 1
    suite = xml.parse(bench.folder / "j.xml").getroot().find("testsuite")
    for case in suite.findall("testcase"):
        assert float(case.get("time")) == 0
    failures = suite.findall("testcase/failure")
    assert len(failures) == 2 and all(one.text == one.get("message") for one in failures)
    write(bench, "none.json", [])
    assert bench.tare("check", "none.json", "-b", "none.json", "--junit", "n.xml", "-q").status == 1
    suites = xml.parse(bench.folder / "n.xml").getroot()
    assert (suites.get("tests"), suites.get("errors")) == ("1", "1")  # all green would be a lie


def test_markdown_stands_in_columns(bench):
    """A log shows it as it is, and a name in wide characters moves nothing."""
    names = ["step", "epoch", "step:訓練", "request:" + "x" * 200]
    write(bench, "base.json", [figure(name, noise(1e7)) for name in names])
    write(bench, "head.json", [figure(name, noise(2e7, seed=2)) for name in names])
    assert bench.tare("check", "head.json", "-b", "base.json", "-q", "--markdown", "m.md").status == 1
    lines = [line for line in (bench.folder / "m.md").read_text().splitlines() if line.startswith("|")]
    assert len(lines) == 6 and all(line.count("|") == 8 for line in lines)
    assert len({columns(line) for line in lines if "xxx" not in line}) == 1, "\n".join(lines)


def test_a_limit_on_what_only_the_baseline_has_fails_once(bench):
    pair(bench)
    write(bench, "wide.json", [figure("step", noise(1e7)), figure("epoch", noise(1e9))])
    answer = check(bench, "head.json", "-b", "wide.json", "-t", "epoch:1ns", status=1)
    failed = [row for row in answer["figures"] if row["outcome"] == "failed"]
    assert [(row["name"], row["reason"]) for row in failed] == [("epoch", "only the baseline has this figure")]


def test_a_baseline_through_a_pipe(bench):
    pair(bench)
    done = subprocess.run(["bash", "-c", f"'{TARE}' check head.json -b <(echo; cat base.json) -q"], cwd=bench.folder,
                          env=bench.env({}), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_settings_in_files(bench):
    """[check] of tare.toml before [tool.tare.check] of pyproject.toml, the command line before both."""
    words = pair(bench, 1.2)
    (bench.folder / "pyproject.toml").write_text('[tool.tare]\nwidth = 100\n[tool.tare.check]\nstep = "50%"\n')
    assert check(bench, *words)["by_name"]["step"]["gate"] == 0.5
    (bench.folder / "tare.toml").write_text('quiet = true\n[check]\nbaseline = "base.json"\n"st*" = "10%"\n')
    assert check(bench, "head.json", status=1)["by_name"]["step"]["gate"] == 0.1
    assert check(bench, "head.json", "-t", "step:40%")["by_name"]["step"]["gate"] == 0.4
    for text, sentence in (('[check]\nstep = "fast"\n', "tare.toml:2: step: 'fast' is not a limit"),
                           ("[check]\nstep = true\n", "tare.toml:2: step: a threshold must be a string"),
                           ("[check]\nbaseline = 3\n", 'tare.toml:2: baseline must be a string'),
                           ('[check]\ngate = "5ms"\n', "tare.toml:2: gate: '5ms' is not a percentage"),
                           ("[check]\nreruns = 0\n", "tare.toml:2: reruns: '0' is not a number from 1 to 100"),
                           ("[checks]\nstep = 1\n", "tare.toml:1: settings must be at the top")):
        (bench.folder / "tare.toml").write_text(text)
        done = bench.tare("check", *words)
        assert done.status == 2 and sentence in done.err, (text, done.err)
    (bench.folder / "tare.toml").write_text('[check]\nstep = "5%"\n')
    done = bench.tare("run", "-q", "-o", "x.tare", "--", "true")  # others pass the table over
    assert done.status == 0 and done.err == ""


@pytest.mark.parametrize("words, status, sentence", [
    ((), 2, "missing run"),
    (("head.json",), 2, "no baseline: the history has no earlier"),
    (("head.json", "-t", "step:5%"), 2, "no baseline: the history has no earlier"),
    (("head.json", "-b", ""), 2, "--baseline: the value is empty"),
    (("head.json", "-b", "base.json", "--threshold", "step"), 2, "'step' is not NAME:LIMIT"),
    (("head.json", "-b", "base.json", "--threshold", "step:5parsecs"), 2, "'5parsecs' is not a limit"),
    (("head.json", "-b", "base.json", "--threshold", "step:5MB"), 2,
     "'step' is in bytes, but step is a time: write it as 100ms"),
    (("head.json", "-b", "base.json", "--threshold", "step:5%,5MB"), 2,
     "'step' is in bytes, but step is a time: write it as 100ms"),
    (("head.json", "-b", "base.json", "--gate", "quick"), 2, "--gate: 'quick' is not a percentage"),
    (("head.json", "-b", "base.json", "--reruns", "2"), 2, "--reruns requires --rerun COMMAND"),
    (("head.json", "-b", "base.json", "--rerun", "true", "--reruns", "1000"), 2, "not a number from 1 to 100"),
    (("head.json", "-b", "base.json", "--", "ls"), 2, "unexpected --"),
    (("no.json", "-b", "base.json"), 3, "no.json"),
    (("head.json", "-b", "no.json"), 3, "no.json"),
    (("head.json", "-b", "broken.json"), 3, "broken.json"),
    (("head.json", "-b", "other.json"), 3, "other.json"),
    (("head.json", "-b", "list.json"), 3, "list.json"),
    (("head.json", "-b", "text.txt"), 3, "text.txt"),
    (("head.json", "-b", "newer.json"), 3, "version 2"),
    (("head.json", "-b", "."), 3, "."),
    (("head.json", "-b", "base.json", "-o", "no/where.txt"), 1, "no/where.txt"),
    (("head.json", "-b", "base.json", "--junit", "no/where.xml"), 1, "no/where.xml"),
])
def test_bad_input(bench, words, status, sentence):
    pair(bench)
    (bench.folder / "broken.json").write_text('{"tare_baseline": 1, "figures": [{"name": "st')
    (bench.folder / "other.json").write_text('{"answer": 42}')
    (bench.folder / "list.json").write_text("[1, 2]")
    (bench.folder / "text.txt").write_text("no trace and no baseline")
    (bench.folder / "newer.json").write_text('{"tare_baseline": 2, "figures": {"by": "name"}}')
    done = bench.tare("check", *words)
    assert done.status == status and sentence in done.err, (done.status, done.err)
    assert "Sanitizer" not in done.err


def test_baseline_command(bench):
    for words, status, sentence in (((), 2, "missing subcommand"), (("save",), 2, "missing runs"),
                                    (("save", "x.tare"), 2, "missing --output"),
                                    (("load", "x.tare", "-o", "y"), 2, "missing subcommand"),
                                    (("save", "x.tare", "-o", "y"), 3, "x.tare"),
                                    (("save", "--", "x"), 2, "unexpected --")):
        done = bench.tare("baseline", *words)
        assert done.status == status and sentence in done.err, (words, done.status, done.err)
    write(bench, "base.json", [figure("step", noise(1e7))])
    assert bench.tare("baseline", "save", "base.json", "-o", "no/y.json").status == 1
    assert not (bench.folder / "y").exists()
    assert bench.tare("baseline", "save", "base.json", "-o", "copy.json").status == 0  # reads what it writes
    assert check(bench, "copy.json", "-b", "base.json")["by_name"]["step"]["reason"] == "equal"


def test_figures_that_are_not_there(bench):
    """What a threshold asks for and nobody has must not pass; what vanished is told."""
    words = pair(bench)
    answer = check(bench, *words, "-t", "stepp:5%", status=1)
    assert answer["by_name"]["stepp"]["reason"] == "there is no such figure"
    assert check(bench, *words, "-t", "gpu*:1GB", status=1)["counts"]["failed"] == 1
    write(bench, "wide.json", [figure("step", noise(1e7)), figure("epoch", noise(1e9))])
    answer = check(bench, "head.json", "-b", "wide.json")
    assert answer["by_name"]["epoch"]["reason"] == "only the baseline has this figure"
    answer = check(bench, "wide.json", "-b", "head.json")
    assert answer["by_name"]["epoch"]["reason"] == "the baseline has no such figure"
    write(bench, "none.json", [])
    done = bench.tare("check", "none.json", "-b", "none.json")
    assert done.status == 1 and "FAILED: nothing was checked" in done.out  # a gate that sees nothing is no gate
    done = bench.tare("check", "wide.json", "-b", "none.json", "-t", "epoch:1h")
    assert done.status == 0 and "passed: 1 figure passed" in done.out


def test_outputs_are_escaped(bench):
    """XML that parses, annotations of one line each, a table that stays a table: whatever a figure is called."""
    write(bench, "base.json", [figure(NASTY, noise(1e7)), figure("step", noise(1e7))])
    write(bench, "head.json", [figure(NASTY, noise(2e7, seed=2)), figure("step", noise(1e7, seed=2))])
    summary = bench.folder / "summary.md"
    summary.write_text("before\n")
    done = bench.tare("check", "head.json", "-b", "base.json", "--all", "--junit", "j.xml", "--markdown", "m.md",
                      "--github", env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.status == 1
    suite = xml.parse(bench.folder / "j.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert NASTY.replace("\x01", "\ufffd").replace("\x1b", "\ufffd") in cases
    failure = suite.find("testcase/failure")
    assert failure.get("type") == "regression" and "significant" in failure.get("message")
    lines = [line for line in done.out.splitlines() if line.startswith("::")]
    assert len(lines) == 2 and lines[0].startswith("::error title=tare check%3A failed::span:a|b`<i>")
    assert "%250A" in lines[0] and "\x1b" not in lines[0] and "%0A::error" in lines[0]
    assert lines[1] == "::notice title=head.json::1 of 2 figures failed"
    assert "\x1b" not in done.out
    table = (bench.folder / "m.md").read_text()
    row = [line for line in table.splitlines() if "failed |" in line]
    assert len(row) == 1 and len(re.findall(r"(?<!\\)\|", row[0])) == 8 and "<i>" not in row[0], table
    assert summary.read_text() == "before\n" + table
    done = bench.tare("check", "head.json", "-b", "base.json", "--json", "--all", "--github")
    assert done.status == 1 and json.loads(done.out) and "::error" in done.err


def test_rerun(bench):
    """Asked twice: what a second run does not show is cleared, what it shows stays."""
    assert bench.tare("run", "-q", "-o", "one.tare", "--", VICTIMS / "phased", 30).status == 0
    assert bench.tare("baseline", "save", "one.tare", "-q", "-o", "one.json").status == 0
    saved = json.loads((bench.folder / "one.json").read_text())
    step = next(one for one in saved["figures"] if one["name"] == "step")

    def times(factor):
        samples = [x * factor for x in step["samples"]]
        return {**saved, "figures": [{**step, "value": step["value"] * factor, "samples": samples}]}
    (bench.folder / "slow.json").write_text(json.dumps(times(1000)))
    (bench.folder / "fast.json").write_text(json.dumps(times(0.001)))
    again = f"'{VICTIMS / 'phased'}' 30; echo said"
    gate = ("-t", "step:5000%")  # a busy machine must not fail it
    answer = check(bench, "slow.json", "-b", "one.json", *gate, status=1)
    assert not answer["rerun"]
    done = bench.tare("check", "slow.json", "-b", "one.json", *gate, "--rerun", again, "--json")
    answer = json.loads(done.out)
    assert done.status == 0 and answer["rerun"] and "said" in done.err
    step_row = next(row for row in answer["figures"] if row["name"] == "step")
    assert step_row["outcome"] == "cleared" and step_row["reason"] == "not confirmed by running it again"
    answer = check(bench, "one.tare", "-b", "fast.json", *gate, "--rerun", again, "--reruns", "2", status=1)
    assert answer["by_name"]["step"]["outcome"] == "failed"
    assert answer["by_name"]["step"]["reason"] == "confirmed by running it again"
    answer = check(bench, "one.tare", "-b", "one.json", *gate, "--rerun", "touch ran; false")
    assert not answer["rerun"] and not (bench.folder / "ran").exists()  # nothing failed, nothing is run
    done = bench.tare("check", "slow.json", "-b", "one.json", *gate, "--rerun", "exit 7")
    assert done.status == 1 and "the command exited with status 7" in done.out
    assert os.listdir(bench.temporary) == []


def test_rerun_of_several(bench):
    """Against a baseline of several runs, five more are made, and a single suspicious run is settled by them."""
    command = f"'{VICTIMS / 'phased'}' 5"
    for i in range(5):
        assert bench.tare("run", "-q", "-o", f"{i}.tare", "--", "/bin/sh", "-c", command).status == 0
    assert bench.tare("baseline", "save", *[f"{i}.tare" for i in range(5)], "-q", "-o", "five.json").status == 0
    saved = json.loads((bench.folder / "five.json").read_text())
    for one in saved["figures"]:
        one["samples"] = [x / 1000 for x in one["samples"]]
        one["value"] /= 1000
    (bench.folder / "fast.json").write_text(json.dumps(saved))
    assert check(bench, "0.tare", "-b", "fast.json")["by_name"]["step"]["outcome"] == "inconclusive"
    answer = check(bench, "0.tare", "-b", "fast.json", "--rerun", command, status=1)
    assert answer["by_name"]["step"]["outcome"] == "failed" and answer["by_name"]["step"]["candidate_samples"] == 5


def steps_of(example):
    """The scripts of a workflow by the names of their steps."""
    return {name: textwrap.dedent(script) for name, script in
            re.findall(r"- name: (.+)\n(?:        .+\n)*?        run: \|\n((?:          .*\n)+)", example)}


def test_the_example_for_github(bench):
    """Its scripts do what they say, with another program: nothing changed, so nothing fails; a limit does."""
    scripts = steps_of((ROOT / "examples" / "github-check.yml").read_text())
    for folder in ("base", "head", "bin"):
        (bench.folder / folder).mkdir()
    (bench.folder / "bin" / "tare").symlink_to(TARE)
    summary = bench.folder / "summary.md"
    env = {"PATH": f"{bench.folder / 'bin'}:{os.environ['PATH']}", "RUNS": "5",
           "PROGRAM": f"'{VICTIMS / 'phased'}' 5", "GITHUB_STEP_SUMMARY": str(summary)}
    (bench.folder / "head" / "tare.toml").write_text('[check]\ngate = "5000%"\n')  # the machine may be busy
    done = bench.call("bash", "-c", scripts["Measure"], env=env, cwd=bench.folder / "head")
    assert done.status == 0, done.err
    assert len(list((bench.folder / "head" / "runs").glob("*.tare"))) == 10
    check_it = scripts["Check"].replace("run.peak_rss:10%", "run.peak_rss:5000%")
    done = bench.call("bash", "-c", check_it, env=env, cwd=bench.folder / "head")
    assert done.status == 0 and "::notice" in done.out, (done.out, done.err)
    assert xml.parse(bench.folder / "head" / "runs" / "check.xml") and "passed" in summary.read_text()
    check_it = scripts["Check"].replace("run.peak_rss:10%", "run.elapsed:1ns")
    done = bench.call("bash", "-c", check_it, env=env, cwd=bench.folder / "head")
    assert done.status == 1 and "::error" in done.out
