# sampling: what being looked at costs a program that knows nothing of tare, and whether what is seen is right.
# One process; programs are not pinned, as users do not pin theirs.
# Must not know how tare works inside: it runs programs and reads `tare report --json`.
"""Figures of samplers, peaks and pages."""
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from figures import CPUS, TARE, Void, interval, peak_of, plain, program, report

CALM = 2.0  # percent
ROUNDS_AT_MOST = 2


def figures(figure, recorder, quick):
    """(figures, what measures them), in order."""
    rounds = 3 if quick else 7
    cpu, forks = (300, 300) if quick else (2000, 3000)
    costs = [
        (figure("default `tare run`, CPU-bound on one thread, added", "%", 1),
         program("busy", "cpu", cpu, 1)),
        (figure("default `tare run`, CPU-bound on every CPU, added", "%", 1),
         program("busy", "cpu", cpu, len(CPUS))),
        (figure("default `tare run`, fork-heavy, added", "%", 1), program("busy", "forks", forks)),
    ]
    work = [([one], lambda one=one, command=command: added(one, recorder, command, rounds)) for one, command in costs]
    peaks = [
        (figure("peak RSS, a spike of 5 ms, against the kernel's", "x", 1, within=0.005),
         program("busy", "spike", 200, 5)),
        (figure("peak RSS, of a descendant, against the kernel's", "x", 1, within=0.005),
         program("busy", "descendant", 200, 300)),
    ]
    work += [([one], lambda one=one, command=command: peak(one, recorder, command, 2 if quick else 7))
             for one, command in peaks]
    shares = [(figure(f"samplers' share of a core, {threads} thread{'s' if threads > 1 else ''}", "%", 0.5), threads)
              for threads in (1, 100)]
    work += [([one], lambda one=one, threads=threads: share(one, recorder, threads, 2 if quick else 10,
                                                            1 if quick else 3)) for one, threads in shares]
    pages = [figure("page of 10 million spans", "s", 3), figure("  most memory while it is made", "MiB", 256 << 20),
             figure("  its size", "MiB")]
    work += [(pages, lambda: page(pages, recorder, 1000000 if quick else 10000000, 1 if quick else 5))]
    shown = figure("page of a million spans, ready in Chromium", "ms", 1000)
    return work + [([shown], lambda: ready(shown, recorder, 1 if quick else 7))]


def seconds_of(command):
    from_s = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return time.monotonic() - from_s


def added(figure, recorder, command, rounds):
    """The whole command under `tare run`, summary included, against itself bare: before, between and after take
    turns. The two bare ones against each other are the machine's own noise; a round in which they differ by more
    than CALM says nothing of one percent and is left out, as long as that leaves enough of them."""
    recorded = [TARE, "run", "-f", "-o", recorder.path("added"), "--", *command]
    seen = []  # (bare against bare, recorded against bare, bare seconds)
    calm = []
    while len(calm) < rounds and len(seen) < ROUNDS_AT_MOST * rounds:
        at = len(seen) % 3
        order = [command, command]
        order.insert(at, recorded)
        times = [seconds_of(one) for one in order]
        mine = times.pop(at)
        seen.append((100 * (times[1] / times[0] - 1), 100 * (mine / statistics.mean(times) - 1), times[0]))
        calm = [one for one in seen if abs(one[0]) <= CALM]
    enough = len(calm) >= min(rounds, 6)
    kept = calm if enough else seen
    for one in kept:
        figure.add(one[1])
    noise = [one[0] for one in seen]
    figure.note = (f"{told(figure.values)}; {len(calm)} of {len(seen)} rounds were "
                   f"calm{'' if enough else ', all kept'}, bare {statistics.median(one[2] for one in seen):.2f} s, all "
                   f"rounds against themselves {told(noise)}")


def told(values):
    bounds = interval(values)
    return f"95 % interval {bounds[0]:.2f} .. {bounds[1]:.2f} %" if bounds else "too few for an interval"


def peak(figure, recorder, command, times):
    for _ in range(times):
        output, _ = recorder.once(command, "peak", apart=False)
        kernel = int(output)
        used = report(recorder.path("peak"))["usage"]
        if used["rss_peak_bytes"] is None:
            raise Void("the report has no peak")
        figure.add(used["rss_peak_bytes"] / kernel, f"{kernel / 1048576:.1f} MiB by the kernel"
                   + (", told as at least" if used["rss_peak_at_least"] else ""))


def share(figure, recorder, threads, seconds, times):
    for _ in range(times):
        recorder.once(program("busy", "sleepers", threads, seconds), "share", apart=False)
        found = report(recorder.path("share"))
        own = found["tare"]
        if own["sampler_cpu_ns"] is None:
            raise Void("the report does not say what sampling cost")
        asked, longest = own["interval_ns"] / 1e6, own["longest_interval_ns"] / 1e6
        figure.add(100 * own["sampler_cpu_ns"] / found["run"]["elapsed_ns"],
                   f"every {asked:.0f} ms, longest interval {longest:.0f} ms")


def page(pages, recorder, spans, times):
    seconds, memory, size = pages
    recorder.whole(program("flood", "nested", spans, 8000000, CPUS[0]), "page")
    out = os.path.join(recorder.folder, "page.html")
    for _ in range(times):
        command = [TARE, "report", "--html", "-o", out, recorder.path("page")]
        seconds.add(seconds_of(command), f"{spans / 1e6:.0f} M spans")
        memory.add(peak_of(command, "VmHWM"), "resident")
        size.add(os.path.getsize(out))


def ready(figure, recorder, times):
    """From the start of loading to the end of the page's script, as the page itself measures it."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        raise Void("there is no Chromium")
    recorder.whole(program("flood", "nested", 1000000, 8000000, CPUS[0]), "shown")
    out = os.path.join(recorder.folder, "shown.html")
    seconds_of([TARE, "report", "--html", "-o", out, recorder.path("shown")])
    command = [browser, "--headless", "--disable-gpu", "--user-data-dir=" + os.path.join(recorder.folder, "browser"),
               *(["--no-sandbox"] if os.getuid() == 0 else []), "--dump-dom", "file://" + out]
    for _ in range(times):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120)
        found = re.search(r'<html[^>]* data-ready="(\d+)"', done.stdout)
        if not found:
            raise Void("the page did not say that it is ready")
        figure.add(float(found.group(1)), f"{os.path.getsize(out) / 1048576:.2f} MiB")
