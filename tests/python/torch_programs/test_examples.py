"""The scripts in examples/ that each hide one problem: under plain `tare run` the first finding names it, and the
line."""
import pathlib
import re
import shutil
import sys

import pytest
import tare

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
pytest.importorskip("torch", reason="torch is not installed for this Python")

# script: (finding, first and last line that it may name). Where the program stands is looked at between two of the
# interpreter's instructions, at safe points: inside a loop of Python that may be a line beside the one that takes the
# time.
HIDDEN = {
    "torch_slow_loader": ("loader-bound", "time.sleep(0.005)", "time.sleep(0.005)"),
    "torch_slow_transform": ("loader-bound", "rows = image.tolist()", "return torch.tensor(rows)"),
    "torch_many_threads": ("torch-threads", "torch.set_num_threads(", "torch.set_num_threads("),
    "torch_kept_losses": ("kept-losses", "history.append(loss)", "history.append(loss)"),
    "torch_tiny_operators": ("small-operators", "for index in range(", "columns.append(state)"),
}


def line_of(script, text):
    lines = script.read_text(encoding="utf-8").splitlines()
    number, = [number for number, line in enumerate(lines, 1) if text in line]
    return number


@pytest.mark.parametrize("name", HIDDEN)
def test_the_first_finding_names_it(bench, name):
    finding, first_text, last_text = HIDDEN[name]
    folder = bench.folder / "tare" / "torch"  # a program's own folder may have the name of a package
    folder.mkdir(parents=True)
    script = pathlib.Path(shutil.copy(EXAMPLES / (name + ".py"), folder))
    trace = bench.folder / "trace.tare"
    bench.call(bench.command, "run", "-q", "-o", trace, "--", sys.executable, script, hooked=True)
    findings = [one for one in tare.report(trace).findings if one.id != "shared-machine"]  # other tests run beside it
    assert findings[0].id == finding, [(one.id, one.title) for one in findings]
    words = findings[0].title + " " + findings[0].evidence
    named = [int(line) for line in re.findall(r"(?:^|[\s/])" + re.escape(script.name) + r":(\d+)", words)]
    assert named and line_of(script, first_text) <= named[0] <= line_of(script, last_text), words
