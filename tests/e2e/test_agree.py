"""`tare check` and `tare compare` on the same files: one decision, in every output, over many pairs drawn at random."""
import json
import math
import random
import re
import xml.etree.ElementTree

from conftest import scaled

NAMES = ["run.elapsed", "run.peak_rss", "step", "step.samples/s", "span:a/b", "span:c", "operator:aten::mm", "kernel:k",
         "counter:loss", "metric:memory.rss", "model.macs", "model.latency[batch=4]"]
VERDICTS = {"same", "better", "worse", "different", "inconclusive"}


def figure(draw, name, level, per):
    exact = name == "model.macs"
    n = 0 if exact else draw.choice([0, 1, 4, 5, 7, 10, 20, 60])
    spread = draw.choice([0, 0.002, 0.01, 0.03, 0.2])
    samples = [level * math.exp(draw.gauss(0, spread)) for _ in range(n)]
    made = {"name": name, "unit": "" if exact else "bytes" if "rss" in name else "ns",
            "better": "higher" if "/s" in name else "neither" if name[0] == "c" else "lower", "exact": exact,
            "value": None if n else round(level), "total": level, "n": max(n, 1)}
    if exact and draw.random() < 0.3:
        made["at_least"] = True
    return {**made, "per": per, "each": 1, "samples": samples} if n else made


def write(path, rows, runs, machine):
    for row in rows:
        if row["value"] is None:
            ordered = sorted(row["samples"])
            row["value"] = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    path.write_text(json.dumps({"tare_baseline": 1, "kind": "runs" if runs > 1 else "run", "machine": machine,
                                "command": "x", "runs": runs, "figures": rows}))


def pair(draw, folder):
    several = draw.random() < 0.6
    levels = {name: math.exp(draw.uniform(5, 20)) for name in NAMES}
    for side in ("base", "head"):
        runs = several if draw.random() < 0.93 else not several
        rows = [figure(draw, name, level * (draw.choice([1, 1.03, 1.06, 1.12, 1.3, 0.9]) if side == "head" else 1),
                       "run" if runs else "call") for name, level in levels.items() if draw.random() < 0.97]
        write(folder / f"{side}.json", rows, 6 if runs else 1, "m" if draw.random() < 0.8 else "other")


def columns(text, words):
    """Lines of a table by the figure's name, and the first word of each."""
    found = {}
    for line in text.splitlines():
        for name in NAMES:
            short = re.sub("^(span|operator|kernel|counter|metric):", "", name)
            if re.match(rf"\s*(\S+)\s+({re.escape(name)}|{re.escape(short)})( \(\S+\))?(\s|$)", line) and \
                    line.split()[0] in words:
                found[name] = line.split()[0]
    return found


def test_every_output_tells_the_same(bench):
    draw = random.Random(11)
    seen = set()
    rows_seen = 0
    for _ in range(scaled(25, 4)):
        pair(draw, bench.folder)
        settings = draw.choice([([], []), ([], []), (["--gate", "3%"], ["--min-change", "3%"])])
        words = ["base.json", "head.json", *settings[1]]
        compared = json.loads(bench.tare("compare", *words, "--json").out)
        checking = ["head.json", "--baseline", "base.json", "--all", *settings[0]]
        done = bench.tare("check", *checking, "--json", "--junit", "j.xml", "--markdown", "m.md", "--github")
        checked = json.loads(done.out)
        rows = {row["name"]: row for row in compared["figures"]}
        checks = {row["name"]: row for row in checked["figures"]}
        assert compared["min_change"] == checked["gate"]
        for name, row in rows.items():
            other = checks[name]
            rows_seen += 1
            seen.add(row["verdict"])
            assert row["verdict"] in VERDICTS and row["verdict"] == other["verdict"], (name, row, other)
            for key in ("baseline", "candidate", "change", "low", "high", "p"):
                assert row[key] == other[key], (name, key, row[key], other[key])
            assert (other["outcome"] == "failed") == (row["verdict"] == "worse"), (name, row, other)
            assert (other["outcome"] == "improved") == (row["verdict"] == "better")
            if row["change"] is not None and row["candidate"] is not None and row["baseline"]:
                assert math.isclose(row["change"], row["candidate"] / row["baseline"] - 1, rel_tol=1e-4, abs_tol=1e-5)
            if row["low"] is not None:
                assert row["low"] <= row["change"] <= row["high"]
        # the counts, the summary and the exit status
        for word in ("worse", "better", "different", "inconclusive", "same"):
            assert compared["counts"][word] == sum(row["verdict"] == word for row in rows.values())
        failed = {name for name, row in checks.items() if row["outcome"] == "failed"}
        assert (done.status == 1) == (not checked["passed"]) and checked["passed"] == (not failed)
        assert len(failed) == checked["counts"]["failed"]
        answer = compared["answer"]
        if sum(compared["counts"][word] for word in ("worse", "better", "different")):
            assert f"{compared['counts']['worse']} got worse, {compared['counts']['better']} better" in answer
        else:
            assert "got worse" not in answer and " is worse" not in answer
        named = re.match(r"(\S+) is (worse|better|different):", answer)
        assert not named or rows[named[1]]["verdict"] == named[2]
        # text
        marks = {"!": "worse", "+": "better", "~": "different", "=": "same", "?": "inconclusive"}
        for name, mark in columns(bench.tare("compare", *words, "--all", "--width", "120").out, marks).items():
            assert marks[mark] == rows[name]["verdict"]
        shown = bench.tare("check", *checking).out
        assert len(re.findall(r"^FAILED {2,}\S", shown, re.M)) == len(failed)  # a long name is cut
        table = columns(shown, {"FAILED", "passed", "inconclusive", "improved", "changed"})
        for name, word in table.items():
            assert word.lower() == checks[name]["outcome"]
        # the page
        page = bench.tare("compare", *words, "--html").out
        classes = re.findall(r'<tr class="(\w+)"><th scope="row" class="name">([^<]+)', page)
        assert len(classes) == len(rows)
        for verdict, name in classes:
            assert verdict == rows[name.strip()]["verdict"]
        # JUnit, Markdown, GitHub
        cases = xml.etree.ElementTree.parse(bench.folder / "j.xml").getroot().iter("testcase")
        assert {case.get("name") for case in cases if case.find("failure") is not None} == failed
        told = (bench.folder / "m.md").read_text()
        assert told.count("❌ failed") == len(failed) and ("check: passed" in told) == checked["passed"]
        assert done.err.count("::error title=tare check%3A failed::") == min(10, len(failed))
    assert seen == VERDICTS and rows_seen > 40  # else nothing was tried


def test_the_answer_of_ab_is_that_of_its_row(bench):
    """Two commands that may or may not differ, with few rounds: the row never says more than the answer."""
    for rounds, second in (("3", "sleep 0.4"), ("8", "sleep 0.03"), ("8", "sleep 0.01")):
        done = bench.tare("compare", "--ab", "--bare", "--warmup", "0", "--rounds", rounds, "sleep 0.01", second,
                          "--json")
        told = json.loads(done.out)
        row = next(one for one in told["figures"] if one["name"] == told["ab"]["figure"])
        assert told["ab"]["clear"] == (row["verdict"] != "inconclusive"), told["ab"]
        assert told["answer"].startswith("Inconclusive") == (row["verdict"] == "inconclusive")
        assert (row["change"], row["low"], row["high"], row["p"]) == tuple(
            told["ab"][key] for key in ("change", "low", "high", "p"))
        if rounds == "8" and second == "sleep 0.4":
            assert row["verdict"] == "worse" and told["ab"]["p"] == 2 / 2**8
        if rounds == "3":
            assert row["verdict"] == "inconclusive"
