"""Figures and their independent truths: what a figure means, what it is compared with, and how far off it may be.

A test file of this folder lists its figures in FIGURES and calls `truth.check(path, shown, true)` for each of them;
docs/TRUTH.md is made from these rows (tools/truth). A path begins with the output that shows the figure:
run: (tare report --json), model: (tare model --json), compare:, check:, history:, python: (class.field), profiler:.
`[]` stands for any row of a table.
"""
import json
import math
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEN = pathlib.Path(os.environ.get("TARE_TRUTH_SEEN", ROOT / "build" / "truth"))


class Bound:
    """How far a figure may be from the truth. `deviation` is what docs/TRUTH.md shows the worst of."""

    def __init__(self, words, deviation, holds, show):
        self.words, self.deviation, self.holds, self.show = words, deviation, holds, show


def _percent(value):
    return "%.3g %%" % (100 * value) if math.isfinite(value) else "infinite"


def _plain(value):
    return "%.3g" % value


def relative(share):
    """|shown - true| <= share * |true|; what only differs in a last digit around 0 does not differ"""
    def deviation(shown, true):
        if abs(shown - true) <= 1e-15:
            return 0.0
        return abs(shown - true) / abs(true) if true else math.inf

    return Bound("%g %%" % (100 * share), deviation, lambda shown, true: deviation(shown, true) <= share, _percent)


def absolute(distance, unit=""):
    """|shown - true| <= distance"""
    words = ("%g %s" % (distance, unit)).strip()
    return Bound(words, lambda shown, true: abs(shown - true), lambda shown, true: abs(shown - true) <= distance,
                 lambda value: ("%.3g %s" % (value, unit)).strip())


exact = Bound("exact", lambda shown, true: 0.0 if shown == true else math.inf, lambda shown, true: shown == true,
              lambda value: "0" if value == 0 else "differs")
at_least = Bound("at least the truth", lambda shown, true: max(true - shown, 0), lambda shown, true: shown >= true,
                 _plain)
at_most = Bound("at most the truth", lambda shown, true: max(shown - true, 0), lambda shown, true: shown <= true,
                _plain)


def bracketed(share=0.0):
    """true is (low, high), such as times read inside and outside of what is measured: on a busy machine anything may
    happen between two readings of a clock. Beyond the nearer one by at most this share."""
    def deviation(shown, true):
        low, high = true
        assert low <= high, true
        edge = min(max(shown, low), high)
        return abs(shown - edge) / abs(edge) if edge and shown != edge else float(shown != edge)

    return Bound("between the two" + (", %g %%" % (100 * share) if share else ""), deviation,
                 lambda shown, true: deviation(shown, true) <= share, _percent)


class Figure:
    """One row of docs/TRUTH.md."""

    def __init__(self, path, meaning, source, bound):
        assert path.partition(":")[0] in OUTPUTS and path.partition(":")[2], path
        assert isinstance(bound, Bound), (path, "bound is relative(…), absolute(…), exact, at_least or at_most")
        self.path, self.meaning, self.source, self.bound = path, meaning, source, bound

    def row(self):
        return {"path": self.path, "meaning": self.meaning, "source": self.source, "bound": self.bound.words}


OUTPUTS = ("run", "model", "compare", "check", "history", "doctor", "python", "profiler")


class Truth:
    """The figures of one test file, and how far from their truths they were."""

    def __init__(self, name, figures):
        self.name = name
        self.figures = {figure.path: figure for figure in figures}
        assert len(self.figures) == len(figures), "a figure is listed twice in " + name
        self.worst = {}

    def check(self, path, shown, true):
        """Asserts the figure's bound and keeps the deviation. Values may be lists of the same length."""
        assert path in self.figures, f"{path} has no row in FIGURES of {self.name}"
        bound = self.figures[path].bound
        pairs = list(zip(shown, true)) if isinstance(shown, (list, tuple)) else [(shown, true)]
        assert pairs and (not isinstance(shown, (list, tuple)) or len(shown) == len(true)), (path, shown, true)
        for one, other in pairs:
            assert one is not None and other is not None, f"{path}: shown {one}, true {other}"
            numbers = [value for value in (one, *(other if isinstance(other, tuple) else (other,)))
                       if isinstance(value, (int, float))]
            assert all(map(math.isfinite, numbers)), f"{path}: shown {one}, true {other}"
            assert bound.holds(one, other), f"{path}: shown {one}, true {other}, bound {bound.words}"
            self.worst[path] = max(self.worst.get(path, 0.0), bound.deviation(one, other))

    def unchecked(self):
        return sorted(set(self.figures) - set(self.worst))

    def save(self):
        """Keeps the worst of all runs of this build folder."""
        SEEN.mkdir(parents=True, exist_ok=True)
        file = SEEN / (self.name + ".json")
        try:
            before = {row["path"]: row for row in json.loads(file.read_text())}
        except (OSError, ValueError):
            before = {}
        rows = []
        for path, figure in self.figures.items():
            row = figure.row()
            old = before.get(path, {})
            same = all(old.get(key) == value for key, value in row.items())
            known = [value for value in (self.worst.get(path), old.get("worst") if same else None) if value is not None]
            row["worst"] = max(known) if known else None
            row["shown"] = figure.bound.show(row["worst"]) if known else None
            rows.append(row)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(rows, indent=1))
        part.replace(file)


def documented():
    """{path: row} of docs/TRUTH.md, without what was seen."""
    rows = {}
    file = ROOT / "docs" / "TRUTH.md"
    for line in file.read_text().splitlines() if file.exists() else ():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 5:
            rows[cells[0].strip("`")] = {"meaning": cells[1], "source": cells[2], "bound": cells[3]}
    return rows
