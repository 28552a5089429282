"""The scripts in examples/ that each hide one problem: under plain `tare run` the first finding names it, and the line."""
import pathlib
import sys

import pytest
import tare

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
pytest.importorskip("torch", reason="torch is not installed for this Python")

HIDDEN = {  # script: (finding, the line that it has to name)
    "torch_slow_loader": ("loader-bound", "time.sleep(0.005)"),
    "torch_slow_transform": ("loader-bound", "rows[y][x] *="),
    "torch_many_threads": ("torch-threads", "torch.set_num_threads("),
    "torch_kept_losses": ("kept-losses", "history.append(loss)"),
    "torch_tiny_operators": ("small-operators", "state = state * self.weights[index]"),
}


def line_of(script, text):
    lines = script.read_text(encoding="utf-8").splitlines()
    number, = [number for number, line in enumerate(lines, 1) if text in line]
    return number


@pytest.mark.parametrize("name", HIDDEN)
def test_the_first_finding_names_it(bench, name):
    finding, text = HIDDEN[name]
    script = EXAMPLES / (name + ".py")
    trace = bench.folder / "trace.tare"
    bench.call(bench.command, "run", "-q", "-o", trace, "--", sys.executable, script, hooked=True)
    first = tare.report(trace).findings[0]
    assert first.id == finding, [(one.id, one.title) for one in tare.report(trace).findings]
    words = first.title + " " + first.evidence
    if name == "torch_slow_transform":  # one of the lines of that loop
        last = line_of(script, text)
        assert any(f"{script}:{line}," in words for line in range(last - 2, last + 1)), words
    else:
        assert f"{script}:{line_of(script, text)}" in words, words
