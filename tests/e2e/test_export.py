"""`tare report --chrome`, `--perfetto`, `--csv`: strict, complete, and the same spans as the tables have.

Perfetto's packets are read back with the message classes of Perfetto's own Python package. Its trace processor is a
program that the package downloads when first used; where one is installed already it reads the file, too."""
import collections
import csv
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

from conftest import PATIENCE, ROOT, SANITIZER, TARE, VICTIMS, Bench, scaled

SEED = int(os.environ.get("TARE_SEED", random.SystemRandom().randrange(1 << 32)))
Span = collections.namedtuple("Span", "name begin_ns end_ns restored")


# ---- reading back ----

def strict(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return dict(pairs)


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


def exported(bench, trace, kind):
    out = bench.folder / f"out.{kind}"
    done = bench.tare("report", f"--{kind}", "-o", out, trace)
    assert done.status == 0, (done.status, done.err[-2000:])
    return out


def read_chrome(bench, trace):
    text = exported(bench, trace, "chrome").read_text(encoding="utf-8")
    return json.loads(text, object_pairs_hook=strict, parse_constant=refuse)


def nanoseconds(us):
    return round(us * 1000)


def chrome_spans(document):
    """Complete events, and asynchronous ones with their ends."""
    spans, ends = [], {}
    for event in document["traceEvents"]:
        if event["ph"] == "e":
            ends[event["id"]] = event
    for event in document["traceEvents"]:
        if event["ph"] not in "Xb":
            continue
        end = event["ts"] + event["dur"] if event["ph"] == "X" else ends.pop(event["id"])["ts"]
        spans.append(Span(event["name"], nanoseconds(event["ts"]), nanoseconds(end), event["cat"] == "restored"))
    assert not ends
    return spans


def read_perfetto(bench, trace):
    data = exported(bench, trace, "perfetto").read_bytes()
    parsed = proto.Trace()
    assert parsed.ParseFromString(data) == len(data)
    before = parsed.SerializeToString()
    parsed.DiscardUnknownFields()
    assert parsed.SerializeToString() == before, "only fields that Perfetto knows"
    return parsed


class Packets:
    """Track events with their names, in the order a viewer takes them; tracks by uuid."""

    def __init__(self, trace):
        self.tracks, self.events, self.base_ns = {}, [], 0
        names = {"event_categories": {}, "event_names": {}, "debug_annotation_names": {}}
        for order, packet in enumerate(trace.packet):
            assert packet.trusted_packet_sequence_id == 1
            if packet.HasField("clock_snapshot"):
                clocks = {clock.clock_id: clock.timestamp for clock in packet.clock_snapshot.clocks}
                assert clocks[proto.BUILTIN_CLOCK_REALTIME] == clocks[proto.BUILTIN_CLOCK_BOOTTIME]
                self.base_ns = clocks[proto.BUILTIN_CLOCK_REALTIME]
            for kind, known in names.items():
                for entry in getattr(packet.interned_data, kind):
                    assert known.setdefault(entry.iid, entry.name) == entry.name
            if packet.HasField("track_descriptor"):
                self.tracks.setdefault(packet.track_descriptor.uuid, packet.track_descriptor)
            if packet.HasField("track_event"):
                event = packet.track_event
                assert event.track_uuid in self.tracks, "a track is described before it is used"
                name = names["event_names"][event.name_iid] if event.name_iid else event.name
                category = names["event_categories"][event.category_iids[0]] if event.category_iids else None
                self.events.append((event.track_uuid, packet.timestamp, order, event, name, category))
        self.events.sort(key=lambda event: event[:3])

    def spans(self):
        """Begins and ends in pairs on every track."""
        spans = []
        for _, events in itertools.groupby(self.events, key=lambda event: event[0]):
            stack = []
            for _, ns, _, event, name, category in events:
                if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
                    stack.append((name, ns, category))
                elif event.type == proto.TrackEvent.TYPE_SLICE_END:
                    name, begin, category = stack.pop()
                    spans.append(Span(name, begin - self.base_ns, ns - self.base_ns, category == "restored"))
            assert not stack
        return spans


# ---- traces of every kind ----

def recorded(bench, *words, options=()):
    return bench.run(*words, options=options).trace


def killed(bench, whom):
    """The ticker, ended by SIGKILL: of the program (the collector writes the end), or of both."""
    trace = bench.folder / "t.tare"
    process = bench.start(TARE, "run", "-q", "-o", trace, "--", VICTIMS / "ticker", bench.folder / "ledger", 100,
                          60000, start_new_session=True)
    process.stdout.readline()
    target = int(process.stdout.readline().split()[1])
    time.sleep(0.2)
    if whom == "program":
        os.kill(target, signal.SIGKILL)
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    if whom != "program":
        assert bench.tare("report", "--json", trace).status == 0  # finishes the file from what was left behind
        assert bench.json(trace)["run"]["salvaged"]
    return trace


def damaged(bench, *words):
    """Every block hit in turn would take long: some bits anywhere."""
    trace = recorded(bench, *words)
    data, dice = bytearray(trace.read_bytes()), random.Random(SEED)
    for _ in range(6):
        bit = dice.randrange(16 * 8, 8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
    trace.write_bytes(data)
    return trace


def cut(bench, *words):
    trace = recorded(bench, *words)
    data = trace.read_bytes()
    trace.write_bytes(data[:len(data) * 2 // 3])
    return trace


TRACES = {
    "nested": lambda bench: recorded(bench, "nest", "loop", scaled(3000)),
    "deep": lambda bench: recorded(bench, "nest", "deep", 200, 3),
    "very deep": lambda bench: recorded(bench, "nest", "deep", 9000, 1),
    "recursive": lambda bench: recorded(bench, "nest", "recurse", 12),
    "wrong ends": lambda bench: recorded(bench, "nest", "wrong"),
    "left open": lambda bench: recorded(bench, "nest", "open", 5),
    "every kind": lambda bench: recorded(bench, "kinds", "all", 300),
    "workers": lambda bench: recorded(bench, "forks", "workers", 4),
    "program killed": lambda bench: killed(bench, "program"),
    "salvaged": lambda bench: killed(bench, "all"),
    "damaged": lambda bench: damaged(bench, "kinds", "all", 300),
    "cut": lambda bench: cut(bench, "kinds", "all", 300),
    "rotated": lambda bench: recorded(bench, "nest", "loop", scaled(400000, 100000), options=("--max-size", "64K")),
    "format 1.0": lambda bench: ROOT / "tests" / "fixture" / "format-1.0.tare",
    "format 1.1": lambda bench: ROOT / "tests" / "fixture" / "format-1.1.tare",
    "format 1.2": lambda bench: ROOT / "tests" / "fixture" / "format-1.2.tare",
}


@pytest.fixture(scope="module", params=TRACES)
def trace(request, tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("export"))
    return bench, TRACES[request.param](bench)


def test_spans_are_counted_equal(trace):
    bench, path = trace
    run = bench.json(path)["run"]
    chrome = chrome_spans(read_chrome(bench, path))
    packets = Packets(read_perfetto(bench, path)).spans()
    assert sum(not span.restored for span in chrome) == run["spans"], f"TARE_SEED={SEED}"
    assert collections.Counter(chrome) == collections.Counter(packets), "both formats have the same spans"
    assert all(span.end_ns >= span.begin_ns for span in chrome)


def test_spans_never_cross_on_a_thread(trace):
    bench, path = trace
    lanes = collections.defaultdict(list)
    for event in read_chrome(bench, path)["traceEvents"]:
        if event["ph"] == "X":
            begin = nanoseconds(event["ts"])
            lanes[event["pid"], event["tid"]].append((begin, -(begin + nanoseconds(event["dur"]))))
    for lane, spans in lanes.items():
        stack = []
        for begin, minus_end in sorted(spans):
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or -minus_end <= stack[-1], lane
            stack.append(-minus_end)


def test_totals_agree_with_the_table(trace):
    bench, path = trace
    report = bench.json(path)
    run, folded = report["run"], any("deeper" in note for note in report["notes"])
    if folded or run["damaged_blocks"] or run["rotated_spans"] or not run["finished"]:
        pytest.skip("the table folds spans, or some of their blocks are gone")
    totals, calls = collections.Counter(), collections.Counter()
    for row in report["spans"]:
        totals[row["name"]] += row["total_ns"]
        calls[row["name"]] += row["calls"]
    for row in report["tracks"]:
        totals[row["name"]] += row["total_ns"]
        calls[row["name"]] += row["calls"]
    mine = chrome_spans(read_chrome(bench, path))
    assert collections.Counter(span.name for span in mine) == calls
    for name, total in totals.items():
        sum_ns = sum(span.end_ns - span.begin_ns for span in mine if span.name == name)
        assert abs(sum_ns - total) <= calls[name] + total * 1e-3, name


# ---- one trace with everything in it ----

@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    bench = Bench(tmp_path_factory.mktemp("everything"))
    return bench, recorded(bench, "kinds", "all", 200)


def test_chrome_has_names_marks_counters_numbers_and_flows(everything):
    bench, path = everything
    document, report = read_chrome(bench, path), bench.json(path)
    events = document["traceEvents"]
    kinds = collections.Counter(event["ph"] for event in events)
    process = report["processes"][0]
    names = {(event["pid"], event["tid"]): event["args"]["name"]
             for event in events if event["name"] == "thread_name"}
    assert names[process["pid"], report["threads"][0]["tid"]] == report["threads"][0]["name"]
    assert any(event["name"] == "process_name" and event["pid"] == process["pid"] for event in events)
    assert kinds["i"] == sum(row["count"] for row in report["marks"])
    assert kinds["s"] == kinds["f"] > 0
    finite = sum(event["cat"] == "counter" for event in events if event["ph"] == "C")
    assert finite + document["otherData"]["values_left_out"] == sum(row["count"] for row in report["counters"])
    samples = sum(event["args"]["samples"] for event in events if "samples" in event.get("args", {}))
    assert samples == next(row["sum"] for row in report["steps"][0]["numbers"] if row["name"] == "samples")
    assert all(event["ts"] >= 0 for event in events if event["ph"] != "M")


def test_perfetto_has_tracks_counters_flows_and_annotations(everything):
    bench, path = everything
    packets, report = Packets(read_perfetto(bench, path)), bench.json(path)
    process, thread = report["processes"][0], report["threads"][0]
    assert any(track.process.pid == process["pid"] for track in packets.tracks.values())
    main = next(track for track in packets.tracks.values() if track.thread.tid == thread["tid"])
    assert main.thread.thread_name == thread["name"]
    assert packets.tracks[main.parent_uuid].process.pid == process["pid"]
    events = [event[3] for event in packets.events]
    counters = [event for event in events if event.type == proto.TrackEvent.TYPE_COUNTER]
    assert counters and all(packets.tracks[event.track_uuid].HasField("counter") for event in counters)
    assert sum(len(event.flow_ids) for event in events) == sum(row["flows"] for row in report["tracks"])
    assert any(note.HasField("int_value") for event in events for note in event.debug_annotations)
    start = report["run"]["start_realtime_ns"]
    assert packets.base_ns == int(start) if start else packets.base_ns == 0


def test_samples_are_counters_in_both(bench):
    done = bench.tare("run", "-q", "-o", "t.tare", "--interval", "20ms", "--", "sh", "-c", "sleep 0.5; exit 0")
    assert done.status == 0, done.err
    trace = bench.folder / "t.tare"
    document, packets = read_chrome(bench, trace), Packets(read_perfetto(bench, trace))
    samples = [event for event in document["traceEvents"] if event.get("cat") == "sample"]
    shell = bench.json(trace)["processes"][0]["pid"] if bench.json(trace)["processes"] else None
    rss = [event for event in samples if event["name"] == "memory.rss"]
    assert len(rss) > 3 and all(event["args"]["bytes"] > 0 for event in rss)
    assert shell is None or shell in {event["pid"] for event in rss}
    named = {event["pid"] for event in document["traceEvents"] if event["name"] == "process_name"}
    assert {event["pid"] for event in samples} <= named, "whoever has counters has a name"
    drawn = [event for event in packets.events if event[3].type == proto.TrackEvent.TYPE_COUNTER]
    assert len(drawn) == len(samples), "both formats draw the same"
    assert all(packets.tracks[event[0]].counter.unit_name for event in drawn)
    points = read_csv(bench, trace)["metrics_points.csv"]
    assert any(row["metric"] == "memory.rss" and float(row["max"]) > 0 for row in points)


def test_names_that_need_escaping(bench):
    source = bench.folder / "odd.c"
    odd = ['a"b\\c', "line\nbreak", "</script>", "tab\tand \x01", "ünïcödé 加载", "=cmd()", "@x,y"]
    literals = "".join('{ tare_site s = TARE_SITE("%s"); tare_begin(&s); tare_end(&s); }\n' %
                       "".join(f"\\{byte:03o}" for byte in name.encode()) for name in odd)
    source.write_text(f"#include <tare.h>\nint main(void) {{ {literals} return 0; }}\n")
    subprocess.run(["cc", "-I", ROOT / "include", source, "-o", bench.folder / "odd", "-L", TARE.parent, "-ltare",
                    f"-Wl,-rpath,{TARE.parent}"] + ([] if SANITIZER == "none" else [f"-fsanitize={SANITIZER}"]),
                   check=True)
    assert bench.tare("run", "-q", "-o", "odd.tare", "--", "./odd").status == 0
    trace = bench.folder / "odd.tare"
    assert sorted(span.name for span in chrome_spans(read_chrome(bench, trace))) == sorted(odd)
    assert sorted(span.name for span in Packets(read_perfetto(bench, trace)).spans()) == sorted(odd)
    rows = read_csv(bench, trace)["spans.csv"]
    quoted = ["'" + name if name[0] in "=+-@\t\r" else name for name in odd]
    assert sorted(row["name"] for row in rows) == sorted(quoted)


# ---- csv ----

def read_csv(bench, trace):
    folder = bench.folder / "tables"
    shutil.rmtree(folder, ignore_errors=True)
    done = bench.tare("report", "--csv", folder, trace)
    assert done.status == 0, done.err
    tables = {}
    for path in sorted(folder.iterdir()):
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file, strict=True))
        assert all(len(row) == len(rows[0]) for row in rows), path.name
        tables[path.name] = [dict(zip(rows[0], row)) for row in rows[1:]]
    return tables


def cell_of(value, between):
    """A value of the JSON report as a cell."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return between.join(value)
    return "" if value is None else value if isinstance(value, str) else repr(value)


def is_rows(value):
    return isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value)


def check_values(cells, values, before=""):
    """Every value of an object is in the cells; returns how many there are. Rows inside are tables of their own."""
    n = 0
    for key, value in values.items():
        name = before + key
        if isinstance(value, dict):
            n += check_values(cells, value, name + "_")
        elif name in cells:
            wanted, got = cell_of(value, " " if key == "arguments" else "/"), cells[name]
            plain = isinstance(value, (int, float)) and not isinstance(value, bool)
            same = float(got) == float(value) if plain else got.removeprefix("'") == wanted
            assert same, (name, got, wanted)
            n += 1
        elif name == "peaks" and value is None:  # an object that is not there
            inside = [cells[cell] for cell in cells if cell.startswith(name + "_")]
            assert not any(inside), name
            n += len(inside)
        else:
            assert is_rows(value) or value in ([], None), f"{name} is in JSON only"
    return n


def test_csv_has_what_json_has(everything):
    bench, path = everything
    tables, report = read_csv(bench, path), bench.json(path, "--all")
    for name in ("run", "tare", "usage", "phases"):
        rows, values = tables[name + ".csv"], dict(report[name])
        reasons = values.pop("reasons")
        n = check_values({row["key"]: row["value"] for row in rows}, values)
        assert n == len(rows) > 5, name
        assert all(row["value"] or row["absent"] or row["key"] == "arguments" for row in rows), "absent has a reason"
        told = {row["key"]: row["absent"] for row in rows if row["absent"]}
        assert {key: told[key] for key in reasons if key in told} == {key: reasons[key] for key in reasons
                                                                      if key in told}
    assert [row["note"] for row in tables["notes.csv"]] == report["notes"]
    n_inside = 0
    for name in [name for name, value in report.items() if isinstance(value, list) and name != "notes"]:
        rows = tables[name + ".csv"]
        assert [row["row"] for row in rows] == [str(index) for index in range(len(report[name]))], name
        for index, (row, values) in enumerate(zip(rows, report[name])):
            assert check_values(row, values) == len(row) - 1, name
            for key, inside in values.items():
                if not is_rows(inside):
                    continue
                one = {"processes": "process"}.get(name, name[:-1])
                cells = [cells for cells in tables[f"{name}_{key}.csv"] if cells[one + "_row"] == str(index)]
                assert len(cells) == len(inside), (name, key)
                for got, wanted in zip(cells, inside):
                    n_inside += 1
                    if isinstance(wanted, list):
                        assert [float(cell) for cell in list(got.values())[-len(wanted):]] == pytest.approx(wanted)
                    else:
                        check_values(got, wanted)
    assert n_inside > 20


def test_csv_of_every_trace(trace):
    bench, path = trace
    tables = read_csv(bench, path)
    run = {row["key"]: row["value"] for row in tables["run.csv"]}
    assert int(run["spans"]) == bench.json(path)["run"]["spans"]


# ---- Perfetto's own reader, where it is there ----

def trace_processor():
    cached = pathlib.Path("~/.local/share/perfetto/prebuilts").expanduser().glob("trace_processor_shell*")
    return shutil.which("trace_processor_shell") or next((str(path) for path in cached), None)


@pytest.mark.skipif(not trace_processor(), reason="no trace_processor_shell here, and nothing is downloaded")
def test_the_trace_processor_reads_both(everything):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    bench, path = everything
    spans = bench.json(path)["run"]["spans"]
    for kind in ("perfetto", "chrome"):
        with TraceProcessor(trace=str(exported(bench, path, kind)),
                            config=TraceProcessorConfig(bin_path=trace_processor())) as reader:
            counted = "select count(*) as n from slice where category != 'mark'"
            assert next(iter(reader.query(counted))).n == spans
            wrong = "select sum(value) as n from stats where severity in ('error', 'data_loss')"
            assert not next(iter(reader.query(wrong))).n
