# package: runs the benchmarks of the Python package, bench/python_*.py, by the interpreter that has it.
# One process. Must not know what they measure.
"""Figures of the Python package."""
import glob
import os
import subprocess

import rows
from figures import BUILD, Figure, Void

HERE = os.path.dirname(os.path.abspath(__file__))


def interpreter():
    """The one that has the package: TARE_PYTHON, or that of the tests."""
    path = os.environ.get("TARE_PYTHON", os.path.join(BUILD, "python", "venv", "bin", "python"))
    if os.path.exists(path):
        tried = subprocess.run([path, "-c", "import tare"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if tried.returncode == 0:
            return path
    raise Void("the Python package is not built: `tools/test python` builds and installs it")


def run(python, script, quick):
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env.update(TARE_BENCH_ROWS="1", TARE_BENCH_QUICK="1" if quick else "0", TARE_BUILD=BUILD)
    done = subprocess.run([python, script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    figures, others = rows.read(done.stdout)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        broken = Figure(os.path.basename(script), "")
        broken.reason = last
        figures.append(broken)
    return figures, others


def figures(quick):
    """(the figures of all of them, what they printed besides)."""
    try:
        python = interpreter()
    except Void as why:
        absent = Figure("the Python package", "")
        absent.reason = str(why)
        return [absent], []
    all_figures, printed = [], []
    for script in sorted(glob.glob(os.path.join(HERE, "python_*.py"))):
        mine, others = run(python, script, quick)
        all_figures += mine
        if others:
            printed += [os.path.basename(script) + ":"] + ["  " + line for line in others]
    return all_figures, printed
