"""Startup, steady state and shutdown of programs that time their own imports and steps."""
import json

import pytest

from truth import Figure, absolute, bracketed, exact

CLOCK = "`time.monotonic_ns()` in the program, just inside and just outside"
FIGURES = [
    Figure("run:phases.startup.to_ns", "end of startup", "duration of steady state, shutdown and the run: arithmetic",
           absolute(2e6, "ns")),
    Figure("run:phases.steady_state.from_ns", "begin of steady state", "end of startup", exact),
    Figure("run:phases.steady_state.to_ns", "end of steady state, from its begin on", CLOCK, bracketed(0.005)),
    Figure("run:phases.shutdown.from_ns", "begin of shutdown", "end of steady state", exact),
    Figure("run:phases.shutdown.to_ns", "end of shutdown", "end of the run", absolute(2, "ns")),
    Figure("run:phases.startup.from_ns", "begin of startup", "begin of the run", exact),
    Figure("run:phases.interpreter_ns", "until the interpreter was ready", "the rest of startup: arithmetic",
           absolute(2e6, "ns")),
    Figure("run:phases.imports_ns", "importing", CLOCK, bracketed(0.01)),
    Figure("run:phases.preparation_ns", "before the first step, without imports", CLOCK, bracketed(0.05)),
    Figure("run:phases.warm_up_ns", "warm-up steps", CLOCK, bracketed(0.01)),
    Figure("run:phases.warm_up_steps", "number of warm-up steps", "the program's own count", exact),
    Figure("run:phases.imports[].total_ns", "importing one module", CLOCK, bracketed(0.01)),
    Figure("run:phases.imports[].from_ns", "begin of the first import of a module, from that of another on", CLOCK,
           bracketed(0.01)),
]
SLOW = "import time\nbegin = time.monotonic_ns()\ntime.sleep({})\nend = time.monotonic_ns()\n"
PROGRAM = """
import json, time
clock = time.monotonic_ns
out = {"imports": []}
before = clock()
import slow_one
middle = clock()
import slow_two
after = clock()
out["imports"] = [(before, slow_one.begin, slow_one.end, middle), (middle, slow_two.begin, slow_two.end, after)]
import tare
ready = clock()
time.sleep(0.3)
out["preparation"] = (ready, clock())
steps = []
for i in range(20):
    outside = clock()
    tare.step_begin(i)
    inside = clock()
    time.sleep(0.4 if i < 2 else 0.05)
    end = clock()
    tare.step_end()
    steps.append((outside, inside, end, clock()))
time.sleep(0.25)
out["steps"] = steps
print(json.dumps(out))
"""


def test_phases_by_steps(truth, bench):
    (bench.folder / "slow_one.py").write_text(SLOW.format(0.4))
    (bench.folder / "slow_two.py").write_text(SLOW.format(0.2))
    done = bench.measured(PROGRAM)
    own, phases, run = json.loads(done.out), done.json["phases"], done.json["run"]
    steps, startup, steady, shutdown = own["steps"], *(phases[name] for name in ("startup", "steady_state", "shutdown"))
    truth.check("run:phases.warm_up_steps", phases["warm_up_steps"], 2)
    truth.check("run:phases.startup.from_ns", startup["from_ns"], 0)
    truth.check("run:phases.steady_state.from_ns", steady["from_ns"], startup["to_ns"])
    first, last = steps[2], steps[-1]
    truth.check("run:phases.steady_state.to_ns", steady["to_ns"] - steady["from_ns"],
                (last[2] - first[1], last[3] - first[0]))
    truth.check("run:phases.shutdown.from_ns", shutdown["from_ns"], steady["to_ns"])
    truth.check("run:phases.shutdown.to_ns", shutdown["to_ns"], run["elapsed_ns"])
    assert shutdown["to_ns"] - shutdown["from_ns"] >= 0.25e9 * 0.99
    truth.check("run:phases.startup.to_ns", startup["to_ns"],
                run["elapsed_ns"] - (steady["to_ns"] - steady["from_ns"]) - (shutdown["to_ns"] - shutdown["from_ns"]))
    truth.check("run:phases.warm_up_ns", phases["warm_up_ns"], (steps[1][2] - steps[0][1], steps[2][0] - steps[0][0] +
                                                                 steps[2][1] - steps[2][0]))
    rows = {row["module"]: row for row in phases["imports"]}
    for name, (before, begin, end, after) in zip(("slow_one", "slow_two"), own["imports"]):
        truth.check("run:phases.imports[].total_ns", rows[name]["total_ns"], (end - begin, after - before))
    one, two = own["imports"]
    truth.check("run:phases.imports[].from_ns", rows["slow_two"]["from_ns"] - rows["slow_one"]["from_ns"],
                (two[0] - one[1], two[1] - one[0]))
    # Others are imports of the package itself and of modules that take a millisecond on a busy machine.
    others = sum(row["total_ns"] for name, row in rows.items() if name not in ("slow_one", "slow_two"))
    truth.check("run:phases.imports_ns", phases["imports_ns"], (one[2] - one[1] + two[2] - two[1],
                                                                one[3] - one[0] + two[3] - two[0] + others))
    ready, prepared = own["preparation"]
    truth.check("run:phases.preparation_ns", phases["preparation_ns"], (0.3e9, phases["startup"]["to_ns"] - 0.6e9))
    assert prepared - ready <= phases["preparation_ns"] * 1.01
    truth.check("run:phases.interpreter_ns", phases["interpreter_ns"], startup["to_ns"] - sum(
        phases[name] for name in ("imports_ns", "preparation_ns", "warm_up_ns")))


def test_a_run_that_only_imports(truth, bench):
    (bench.folder / "slow_one.py").write_text(SLOW.format(1.5))
    done = bench.measured("import slow_one")
    found = {finding["id"]: finding for finding in done.json["findings"]}
    assert "startup" in found, found
    assert "imports" in found["startup"]["title"] and "slow_one" in found["startup"]["evidence"]
    assert not {"one-core", "memory-growth", "cpu-high", "operation", "loader-bound"} & set(found), found
    assert done.json["phases"]["shutdown"]["from_ns"] is not None
    assert all(finding["severity"] == "info" for finding in found.values()), found


@pytest.mark.parametrize("code", [
    "import time\ntime.sleep(2)",
    "print('hello')",
    "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: sum(range(10000))",
    "from concurrent.futures import ProcessPoolExecutor\nimport time\ndef work(n):\n"
    "    time.sleep(0.1)\n    return n\n"
    "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as pool: print(sum(pool.map(work, range(20))))",
])
def test_healthy_programs_get_no_warnings(bench, code):
    done = bench.measured(code)
    assert [one for one in done.json["findings"] if one["severity"] != "info"] == []
    for one in done.json["findings"]:
        assert "DataLoader" not in one["advice"] and "torch" not in one["advice"], one
