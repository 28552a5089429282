# rows: what the Python benchmarks print: a table for people, or lines that bench/run reads.
# One process. Must not know what is measured.
"""Figures of bench/python_*.py; each is a program of its own, run by the interpreter that has the package."""
import json
import os

from figures import Figure

QUICK = os.environ.get("TARE_BENCH_QUICK") == "1"
AS_ROWS = os.environ.get("TARE_BENCH_ROWS") == "1"  # set by bench/run
MARK = "figure\t"


def show(figures):
    """Prints the figures, each with all of its values."""
    if AS_ROWS:
        for one in figures:
            print(MARK + json.dumps(vars(one)))
        return
    width = max(len(one.name) for one in figures)
    for one in figures:
        name, value, limit, verdict, note = one.cells()
        print(f"{name:<{width}}  {value:>14}  {limit:>18}  {verdict:<4}  {note}".rstrip())


def read(text):
    """(the figures in a program's output, the lines that are none)."""
    figures, others = [], []
    for line in text.splitlines():
        if not line.startswith(MARK):
            others.append(line)
            continue
        row = json.loads(line[len(MARK):])
        one = Figure(row["name"], row["unit"], row["limit"], row["at_least"], row["within"])
        one.values, one.note, one.reason = row["values"], row["note"], row["reason"]
        figures.append(one)
    return figures, others
