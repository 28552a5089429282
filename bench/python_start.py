# python_start: what the start-up hook adds to an interpreter's start, and what `import tare` takes.
# One process, under `tare run`, starting interpreters in turn with the hook and without.
# Must not know what the hook does.
"""usage: python bench/python_start.py"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

import rows
from figures import TARE, Figure, interval

ROUNDS = 10 if rows.QUICK else 60


def start_ms(env, code):
    """(elapsed, CPU) of an interpreter that runs this and ends."""
    from_ns = time.perf_counter_ns()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], env)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"python -c '{code}': wait status {status}")
    return (time.perf_counter_ns() - from_ns) / 1e6, (used.ru_utime + used.ru_stime) * 1e3


def inside():
    """Below `tare run`: pairs of starts, elapsed and CPU with the hook, without, and with `import tare`."""
    env = dict(os.environ)
    hook, *others = env.get("PYTHONPATH", "").split(os.pathsep)
    if not hook.endswith("_hook"):
        sys.exit("no start-up hook: is the package installed beside this tare?")
    bare = {**env, "PYTHONPATH": os.pathsep.join(others)}
    for _ in range(ROUNDS):
        print(*start_ms(env, "pass"), *start_ms(bare, "pass"), *start_ms(bare, "import tare"))


def main():
    if sys.argv[1:] == ["inside"]:
        return inside()
    added = Figure("start-up hook, added to an interpreter's start", "ms", 3)
    added_cpu = Figure("  CPU time of that", "ms", 3)
    imported = Figure("import tare, CPU time", "ms", 5)
    command = os.path.join(os.path.dirname(sys.executable), "tare")
    command = command if os.path.exists(command) else TARE
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([command, "run", "-q", "-o", os.path.join(folder, "start.tare"), "--", sys.executable,
                               os.path.abspath(__file__), "inside"], stdout=subprocess.PIPE, text=True)
    rounds = [list(map(float, line.split())) for line in done.stdout.splitlines()]
    if done.returncode or not rounds:
        added.reason = added_cpu.reason = imported.reason = f"exit status {done.returncode}"
    else:
        differences = [row[0] - row[2] for row in rounds]
        low_high = interval(differences)
        added.add(statistics.median(differences), f"of {statistics.median(row[2] for row in rounds):.1f} ms"
                  + (f"; 95 % {low_high[0]:.2f} .. {low_high[1]:.2f}" if low_high else ""))
        added_cpu.add(statistics.median(row[1] - row[3] for row in rounds))
        imported.add(statistics.median(row[5] - row[3] for row in rounds))
    rows.show([added, added_cpu, imported])


if __name__ == "__main__":
    main()
