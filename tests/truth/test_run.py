"""The run itself, its processes and threads, tracks, aggregates, and what recording cost: a C program that counts and
times its own events, and programs that end, overflow and leave spans open in known ways."""
import json
import os
import pathlib
import subprocess
import time

import pytest

from truth import Figure, at_most, bracketed, exact, relative

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNT = "the program's own count"
CLOCK = "`clock_gettime(CLOCK_MONOTONIC)` in the program, just inside and just outside"
WALL = "`time.time_ns()` in the program, just before and just after"
OUTSIDE = "monotonic clock inside the program and around `tare run`"
TIME = bracketed(0.005)
AGGREGATE = bracketed(0.07)
INSTANT = bracketed(0.005)
FIGURES = [
    Figure("doctor:works", "checks that found all they need", "the rows of the same output, counted", exact),
    Figure("doctor:partly", "checks that found some of it", "the rows of the same output, counted", exact),
    Figure("doctor:fails", "checks that found nothing", "the rows of the same output, counted", exact),
    Figure("run:run.elapsed_ns", "how long the run took", OUTSIDE, bracketed()),
    Figure("run:run.start_realtime_ns", "when it began", "`time.time_ns()` before `tare run` and in the program",
           bracketed()),
    Figure("run:run.cpus", "CPUs of the machine", "`os.cpu_count()`", exact),
    Figure("run:run.memory_bytes", "memory of the machine", "MemTotal of `/proc/meminfo`", exact),
    Figure("run:run.exit_status", "exit status of the program", "`sys.exit(7)` in the program", exact),
    Figure("run:run.signal", "signal that ended the program", "`os.kill(…, SIGTERM)` in the program", exact),
    Figure("run:run.dropped_spans", "spans that found no room", "spans made less spans read; the collector was stopped "
           "meanwhile", exact),
    Figure("run:run.rotated_spans", "spans removed by `--last`", "spans made less spans read", exact),
    Figure("run:run.damaged_spans", "spans in blocks that cannot be read",
           "spans made less spans read, a byte of the file "
           "flipped", exact),
    Figure("run:run.damaged_blocks", "blocks that cannot be read", "one byte flipped", exact),
    Figure("run:run.damaged_bytes", "bytes that cannot be read", "size of the file", at_most),
    Figure("run:tare.spans", "spans by begin and end", COUNT, exact),
    Figure("run:tare.chained_spans", "spans begun by the end of another", COUNT, exact),
    Figure("run:tare.marks", "marks", COUNT, exact),
    Figure("run:tare.counters", "values of counters", COUNT, exact),
    Figure("run:tare.numbers", "numbers attached to spans", COUNT, exact),
    Figure("run:tare.complete_spans", "complete spans", COUNT, exact),
    Figure("run:tare.aggregate_calls", "calls of aggregate spans", COUNT, exact),
    Figure("run:tare.aggregate_timed", "of these, timed ones", COUNT + "; one in 16 at random, 60 to 140 of 1,600",
           bracketed()),
    Figure("run:tare.pair_ns", "cost of a span", "a loop of empty spans against the same loop without, CPU time",
           relative(0.5)),
    Figure("run:tare.next_ns", "cost of a chained span",
           "a loop of chained spans against the same loop without, CPU time", relative(0.6)),
    Figure("run:tare.aggregate_ns", "cost of an aggregate span",
           "a loop of aggregate spans against the same loop without, "
           "CPU time", relative(0.6)),
    Figure("run:tare.inner_ns", "of a span's cost, the part inside it", "cost of a whole span, measured by a loop",
           at_most),
    Figure("run:tare.own_ns", "time that recording took", "events times their cost as measured by loops",
           relative(0.6)),
    Figure("run:tare.subtracted_ns", "recording time subtracted from self times", "sum of raw_self_ns less self_ns",
           relative(0.01)),
    Figure("run:tare.recorded_ns", "time from a thread's first to its last event", CLOCK, TIME),
    Figure("run:tare.share", "own_ns of recorded_ns", "arithmetic", relative(1e-6)),
    Figure("run:tare.collector_cpu_ns", "CPU time of the collector",
           "`wait4` of `tare run` less the program's own CPU time", at_most),
    Figure("run:tare.sampler_cpu_ns", "of that, sampling", "the collector's CPU time", at_most),
    Figure("run:tare.longest_interval_ns", "longest time between samples", "length of the run", at_most),
    Figure("run:threads[].events", "events of a thread", COUNT, exact),
    Figure("run:threads[].first_at_ns", "a thread's first event", CLOCK, INSTANT),
    Figure("run:threads[].last_at_ns", "a thread's last event", CLOCK, INSTANT),
    Figure("run:threads[].dropped_spans", "spans of a thread that found no room", "spans made less spans read", exact),
    Figure("run:processes[].threads", "threads of a process that recorded", COUNT, exact),
    Figure("run:processes[].dropped_spans", "spans of a process that found no room", "spans made less spans read",
           exact),
    Figure("run:processes[].joined_at_ns", "when a process began to record", CLOCK, INSTANT),
    Figure("run:processes[].left_at_ns", "when a process ended", OUTSIDE, INSTANT),
    Figure("run:marks[].first_at_ns", "first time of a mark", WALL, INSTANT),
    Figure("run:marks[].last_at_ns", "last time of a mark", WALL, INSTANT),
    Figure("run:counters[].first_at_ns", "first value of a counter", WALL, INSTANT),
    Figure("run:counters[].last_at_ns", "last value of a counter", WALL, INSTANT),
    Figure("run:tracks[].calls", "complete spans of a name on a track", COUNT, exact),
    Figure("run:tracks[].total_ns", "their time", "start and end as the program set them, in nanoseconds of its clock",
           TIME),
    Figure("run:tracks[].self_ns", "their time: they do not nest", "the same", TIME),
    Figure("run:tracks[].min_ns", "the shortest", "the same", TIME),
    Figure("run:tracks[].mean_ns", "their mean", "the same", TIME),
    Figure("run:tracks[].max_ns", "the longest", "the same", TIME),
    Figure("run:tracks[].p50_ns", "their median", "the same", TIME),
    Figure("run:tracks[].p95_ns", "their 95th percentile", "the same", TIME),
    Figure("run:tracks[].p99_ns", "their 99th percentile", "the same", TIME),
    Figure("run:tracks[].flows", "of these, parts of a flow", COUNT, exact),
    Figure("run:tracks[].children", "of these, with a parent", COUNT, exact),
    Figure("run:aggregates[].calls", "calls of an aggregate span", COUNT, exact),
    Figure("run:aggregates[].timed", "of these, timed ones", COUNT + "; one in 16 at random, 60 to 140 of 1,600",
           bracketed()),
    Figure("run:aggregates[].total_ns", "time of an aggregate span", CLOCK, TIME),
    Figure("run:aggregates[].min_ns", "its shortest call", CLOCK, TIME),
    Figure("run:aggregates[].mean_ns", "its mean", CLOCK, TIME),
    Figure("run:aggregates[].max_ns", "its longest call", CLOCK, TIME),
    Figure("run:aggregates[].p50_ns", "its median", CLOCK, AGGREGATE),
    Figure("run:aggregates[].p95_ns", "its 95th percentile", CLOCK, AGGREGATE),
    Figure("run:aggregates[].p99_ns", "its 99th percentile", CLOCK, AGGREGATE),
    Figure("run:spans[].still_open", "spans open at the end", "`os._exit()` inside two spans", exact),
    Figure("run:spans[].continued", "parts of calls that began elsewhere", "generators that the program leaves open",
           exact),
    Figure("run:spans[].left_open", "spans closed by the end of one around them", "one span begun and never ended",
           exact),
]

# Counts, times and costs of everything in tare.h, as this program itself counts and measures them.
C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tare.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
#define NS(clock) (1e9 * seconds(clock))

static void wait_ns(double ns)
{
    double until = NS(CLOCK_MONOTONIC) + ns;
    while (NS(CLOCK_MONOTONIC) < until)
        ;
}

static volatile long sink;
#define LOOP(times, body)                                                        \
    ({                                                                           \
        double best = 1e30;                                                      \
        for (int round = 0; round < 15; round++) {                               \
            double from = NS(CLOCK_THREAD_CPUTIME_ID);                           \
            for (long i = 0; i < (times); i++) {                                 \
                body;                                                            \
                sink = i;                                                        \
            }                                                                    \
            double took = (NS(CLOCK_THREAD_CPUTIME_ID) - from) / (double)(times); \
            best = took < best ? took : best;                                    \
            struct timespec pause = {0, 5000000};                                \
            nanosleep(&pause, NULL);                                             \
        }                                                                        \
        best;                                                                    \
    })

int main(void)
{
    enum { N = 20000 };
    double first = NS(CLOCK_MONOTONIC);
    TARE_BEGIN("whole");
    double inside_first = NS(CLOCK_MONOTONIC);
    printf("{");
    double empty = LOOP(N, );
    printf("\"pair\": %.3f",
           LOOP(N, { static tare_site s = TARE_SITE("empty"); tare_begin(&s); tare_end(&s); }) - empty);
    TARE_BEGIN("chain");
    printf(", \"next\": %.3f", LOOP(N, { static tare_site s = TARE_SITE("link"); tare_next(&s); }) - empty);
    TARE_END();
    printf(", \"aggregate\": %.3f", LOOP(N, { TARE_AGGREGATE("cell"); }) - empty);
    printf(", \"n\": %d, \"rounds\": 15", N);

    printf(", \"timed\": [");
    for (int i = 0; i < 100; i++) {
        double outside = NS(CLOCK_MONOTONIC), inside, took;
        {
            TARE_AGGREGATE("waits");
            inside = NS(CLOCK_MONOTONIC);
            wait_ns(100e3 + 3e3 * (i * 37 % 100));
            took = NS(CLOCK_MONOTONIC) - inside;
        }
        printf("%s[%.0f, %.0f]", i ? ", " : "", took, NS(CLOCK_MONOTONIC) - outside);
    }
    for (int i = 0; i < 1600; i++) {
        TARE_SAMPLED("sometimes", 16);
    }

    {
        TARE_SPAN("around");
        TARE_BEGIN("forgotten");
    }
    uint64_t ticks = tare_now();
    double then = NS(CLOCK_MONOTONIC);
    struct timespec pause = {0, 200000000};
    nanosleep(&pause, NULL);
    double rate = (double)(tare_now() - ticks) / (NS(CLOCK_MONOTONIC) - then);
    uint32_t track = tare_track("cuda:0 stream 7", TARE_TRACK_GPU);
    printf("], \"complete\": [");
    uint64_t at = tare_now();
    for (int i = 0; i < 50; i++) {
        double ns = 20e3 + 1e3 * (i * 13 % 50);
        tare_complete_span span = {.track = track, .start = at, .end = at + (uint64_t)(ns * rate),
                                   .id = (uint64_t)(i + 1),
                                   .parent = i % 5 == 0 && i ? (uint64_t)i : 0, .flow = i % 2 ? 9 : 0};
        tare_complete_name("kernel", &span);
        at = span.end;
        printf("%s%.0f", i ? ", " : "", ns);
    }
    printf("]");
    TARE_SAMPLES(5);
    TARE_MARK("one");
    TARE_MARK("two");
    for (int i = 0; i < 30; i++)
        TARE_COUNTER("level", i);
    struct timespec rest = {0, 100000000}; /* complete spans lie in the past when the run ends */
    nanosleep(&rest, NULL);
    double inside_last = NS(CLOCK_MONOTONIC);
    TARE_END();
    double last = NS(CLOCK_MONOTONIC);
    printf(", \"recorded\": [%.0f, %.0f], \"cpu\": %.9f, \"at\": [%.0f, %.0f, %.0f, %.0f]}\n",
           inside_last - inside_first, last - first,
           seconds(CLOCK_PROCESS_CPUTIME_ID), first, inside_first, inside_last, last);
    return 0;
}
"""


@pytest.fixture
def c_program(bench):
    """A C program built against the package's own libtare.so."""
    import tare
    library = pathlib.Path(tare.__file__).parent
    source, program = bench.folder / "program.c", bench.folder / "program"
    source.write_text(C_PROGRAM)
    subprocess.run(["cc", "-O2", "-std=gnu11", "-I", str(ROOT / "include"), str(source), "-o", str(program),
                    str(library / "libtare.so"), "-Wl,-rpath," + str(library)], check=True)
    return program


def quantiles(values, share):
    values = sorted(values)
    at = (len(values) - 1) * share
    return values[max(int(at) - 1, 0)], values[min(int(at) + 1, len(values) - 1)]


def test_everything_of_the_c_api(truth, bench, c_program):
    trace = bench.folder / "trace.tare"
    began = time.monotonic_ns()
    process = subprocess.Popen([bench.command, "run", "-q", "-f", "-o", str(trace), "--", str(c_program)],
                               stdout=subprocess.PIPE, env=bench.env(), text=True)
    own = json.loads(process.stdout.read())
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    took = time.monotonic_ns() - began
    assert status == 0
    report = bench.report(trace)
    run, costs = report["run"], report["tare"]
    spans = {row["name"]: row for row in report["spans"]}
    n = own["n"] * own["rounds"]
    assert run["dropped_spans"] + run["dropped_others"] == 0, "a collector that cannot keep up makes no counts exact"

    truth.check("run:tare.spans", costs["spans"], n + 4)
    truth.check("run:tare.chained_spans", costs["chained_spans"], n)
    truth.check("run:tare.marks", costs["marks"], 2)
    truth.check("run:tare.counters", costs["counters"], 30)
    truth.check("run:tare.numbers", costs["numbers"], 1)
    truth.check("run:tare.complete_spans", costs["complete_spans"], 50)
    truth.check("run:tare.aggregate_calls", costs["aggregate_calls"], n + 100 + 1600)
    truth.check("run:tare.aggregate_timed", costs["aggregate_timed"], (n + 100 + 60, n + 100 + 140))
    truth.check("run:tare.pair_ns", costs["pair_ns"], own["pair"])
    truth.check("run:tare.next_ns", costs["next_ns"], own["next"])
    truth.check("run:tare.aggregate_ns", costs["aggregate_ns"], own["aggregate"])
    truth.check("run:tare.inner_ns", costs["inner_ns"], own["pair"] * 1.5)
    truth.check("run:tare.own_ns", costs["own_ns"], n * (own["pair"] + own["next"] + own["aggregate"]))
    truth.check("run:tare.subtracted_ns", costs["subtracted_ns"],
                sum(row["raw_self_ns"] - row["self_ns"] for row in report["spans"]))
    truth.check("run:tare.recorded_ns", costs["recorded_ns"], tuple(own["recorded"]))
    truth.check("run:tare.share", costs["share"], costs["own_ns"] / costs["recorded_ns"])
    truth.check("run:tare.collector_cpu_ns", costs["collector_cpu_ns"],
                1e9 * (used.ru_utime + used.ru_stime - own["cpu"]) * 1.02 + 10e6)
    truth.check("run:tare.sampler_cpu_ns", costs["sampler_cpu_ns"], costs["collector_cpu_ns"])
    truth.check("run:tare.longest_interval_ns", costs["longest_interval_ns"], run["elapsed_ns"])
    truth.check("run:run.elapsed_ns", run["elapsed_ns"], (own["at"][3] - own["at"][0], took))

    # Instants: of the span of the whole, by the program's own clock. The run began after `began`.
    [thread] = [row for row in report["threads"] if row["events"]]
    truth.check("run:threads[].events", thread["events"], 2 * (n + 4) - 1 + n + 2 + 30 + 1 + 50)
    truth.check("run:threads[].first_at_ns", thread["first_at_ns"], (0, own["at"][1] - began))
    truth.check("run:threads[].last_at_ns", thread["last_at_ns"],
                (thread["first_at_ns"] + own["recorded"][0], own["at"][3] - began))
    [process_row] = [row for row in report["processes"] if row["joined"]]
    truth.check("run:processes[].threads", process_row["threads"], 1)
    truth.check("run:processes[].joined_at_ns", process_row["joined_at_ns"], (0, own["at"][1] - began))
    truth.check("run:processes[].left_at_ns", process_row["left_at_ns"], (own["recorded"][0], took))

    tracks = [row for row in report["tracks"] if row["name"] == "kernel"]
    [kernel] = tracks
    times = own["complete"]
    truth.check("run:tracks[].calls", kernel["calls"], 50)
    truth.check("run:tracks[].flows", kernel["flows"], 25)
    truth.check("run:tracks[].children", kernel["children"], 9)
    for key, true in (("total_ns", sum(times)), ("self_ns", sum(times)), ("min_ns", min(times)), ("max_ns", max(times)),
                      ("mean_ns", sum(times) / 50)):
        truth.check("run:tracks[]." + key, kernel[key], (true * 0.998, true * 1.002))
    for key, share in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
        truth.check("run:tracks[]." + key, kernel[key], quantiles(times, share))

    cells = {row["name"]: row for row in report["aggregates"]}
    truth.check("run:aggregates[].calls", [cells[name]["calls"] for name in ("cell", "waits", "sometimes")],
                [n, 100, 1600])
    truth.check("run:aggregates[].timed", [cells[name]["timed"] for name in ("cell", "waits", "sometimes")],
                [(n, n), (100, 100), (60, 140)])
    low, high = [one[0] for one in own["timed"]], [one[1] for one in own["timed"]]
    for key, of in (("total_ns", sum), ("min_ns", min), ("max_ns", max), ("mean_ns", lambda all: sum(all) / len(all))):
        truth.check("run:aggregates[]." + key, cells["waits"][key], (of(low), of(high)))
    for key, share in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
        truth.check("run:aggregates[]." + key, cells["waits"][key],
                    (quantiles(low, share)[0], quantiles(high, share)[1]))
    truth.check("run:spans[].left_open", [spans[name]["left_open"] for name in ("forgotten", "around")], [1, 0])


def test_the_machine_and_how_it_ended(truth, bench):
    before = time.time_ns()
    done = bench.measured("""
        import sys, time, tare
        def stamped(what):
            at = time.time_ns()
            what()
            print(at, time.time_ns())
        stamped(lambda: tare.mark("tick"))
        stamped(lambda: tare.counter("level", 1))
        time.sleep(0.2)
        stamped(lambda: tare.mark("tick"))
        stamped(lambda: tare.counter("level", 2))
        sys.exit(7)
        """, status=7)
    run = done.json["run"]
    times = [tuple(int(word) for word in line.split()) for line in done.out.splitlines()]
    total = [line.split()[1] for line in open("/proc/meminfo") if line.startswith("MemTotal")][0]
    truth.check("run:run.exit_status", run["exit_status"], 7)
    truth.check("run:run.cpus", run["cpus"], os.cpu_count())
    truth.check("run:run.memory_bytes", run["memory_bytes"], int(total) * 1024)
    truth.check("run:run.start_realtime_ns", run["start_realtime_ns"], (before, times[0][1]))
    [mark] = [row for row in done.json["marks"] if row["name"] == "tick"]
    [counter] = [row for row in done.json["counters"] if row["name"] == "level"]
    start = run["start_realtime_ns"]

    def since(pair):
        return pair[0] - start - 2e6, pair[1] - start + 2e6  # the wall clock may be slewed meanwhile

    truth.check("run:marks[].first_at_ns", mark["first_at_ns"], since(times[0]))
    truth.check("run:marks[].last_at_ns", mark["last_at_ns"], since(times[2]))
    truth.check("run:counters[].first_at_ns", counter["first_at_ns"], since(times[1]))
    truth.check("run:counters[].last_at_ns", counter["last_at_ns"], since(times[3]))


def test_a_signal(truth, bench):
    done = bench.measured("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", status=143)
    truth.check("run:run.signal", done.json["run"]["signal"], 15)


def test_spans_left_open(truth, bench):
    done = bench.measured("""
        import os, tare
        with tare.span("outer"):
            with tare.span("inner"):
                os._exit(0)
        """)
    spans = {row["name"]: row for row in done.json["spans"]}
    truth.check("run:spans[].still_open", [spans[name]["still_open"] for name in ("outer", "inner")], [1, 1])


def test_parts_of_calls(truth, bench):
    done = bench.measured("""
        import tare
        def held():
            with tare.span("held"):
                yield
        for _ in range(7):
            with tare.span("around"):
                one = held()
                next(one)
            one.close()
        """)
    spans = {tuple(row["path"]): row for row in done.json["spans"]}
    paths = [("around",), ("around", "held"), ("held",)]
    truth.check("run:spans[].continued", [spans[path]["continued"] for path in paths], [0, 0, 7])
    assert [spans[path]["calls"] for path in paths] == [7, 7, 0]
    assert done.json["run"]["spans"] == 14


MANY = """
    import os, signal, sys, time, tare
    made = int(sys.argv[1])
    one = tare.span("many")
    if sys.argv[2:]:
        with one:
            pass
        time.sleep(0.3)   # the ring is there
        os.kill(os.getppid(), signal.SIGSTOP)
        made -= 1
    for _ in range(made):
        with one:
            pass
    if sys.argv[2:]:
        os.kill(os.getppid(), signal.SIGCONT)
    """


def test_spans_that_found_no_room(truth, bench):
    made = 1_000_000
    report = bench.measured(MANY, made, "stop").json
    shown = report["run"]["spans"]
    assert shown < made, "the pool held all of them: nothing is tested"
    truth.check("run:run.dropped_spans", report["run"]["dropped_spans"], made - shown)
    truth.check("run:threads[].dropped_spans", sum(row["dropped_spans"] for row in report["threads"]), made - shown)
    truth.check("run:processes[].dropped_spans", sum(row["dropped_spans"] for row in report["processes"]), made - shown)


def test_spans_in_a_damaged_block(truth, bench):
    made = 200_000
    done = bench.measured(MANY, made)
    assert done.json["run"]["spans"] + done.json["run"]["dropped_spans"] == made
    whole = done.json["run"]["spans"]
    content = bytearray(done.trace.read_bytes())
    for at in range(len(content) // 2, len(content)):  # the first byte from the middle on whose loss costs spans
        content[at] ^= 0x40
        done.trace.write_bytes(content)
        report = bench.report(done.trace)
        if report["run"]["damaged_blocks"]:
            break
        content[at] ^= 0x40
    truth.check("run:run.damaged_blocks", report["run"]["damaged_blocks"], 1)
    truth.check("run:run.damaged_spans", report["run"]["damaged_spans"], whole - report["run"]["spans"])
    truth.check("run:run.damaged_bytes", report["run"]["damaged_bytes"], len(content))
    assert report["run"]["damaged_spans"] > 0 and report["run"]["damaged_bytes"] > 0


def test_spans_removed_to_keep_the_end(truth, bench):
    report = bench.measured("""
        import time, tare
        for i in range(300):
            with tare.span("one"):
                time.sleep(0.01)
        """, run=["--last", "1s"]).json
    assert report["run"]["rotated_spans"] > 0
    truth.check("run:run.rotated_spans", report["run"]["rotated_spans"], 300 - report["run"]["spans"])


def test_doctor(truth, bench):
    answer = json.loads(bench.call(bench.command, "doctor", "--json", status=None).out)
    for state in ("works", "partly", "fails"):
        truth.check("doctor:" + state, answer[state], sum(row["state"] == state for row in answer["checks"]))
