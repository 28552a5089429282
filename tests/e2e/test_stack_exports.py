"""`--folded`, `--speedscope` and `--pprof`, written from a call tree made by hand (tests/unit/emit_stack_tree.h).

pprof's profile is read with Google's protobuf library and a description of profile.proto written for this test; where
pprof itself is installed it reads the file, too. What speedscope requires of a file is checked as its schema has it.
The flame graph in SVG is tested in tests/browser."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from conftest import BUILD, PATIENCE, VICTIMS

MAKE = BUILD / "tests" / "browser" / "make_page"
ATTACK = "</script>]]></svg><img src=x onerror=alert(1)>"
# Of the tree in emit_stack_tree.h, in seconds.
WALL, CPU, THREADS = 26.233, 13.133, 3
STATES = {"running": 13.133, "lock": 8.1, "pipe": 3.48, "disk": 0.62, "network": 0.52, "gpu": 0.19, "gil": 0.095,
          "runnable": 0.095}


def made(kind, *words):
    return subprocess.run([MAKE, kind, *words], stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout


# ---- folded ----

def folded(*words):
    """As flamegraph.pl reads it: everything up to the last space is the stack."""
    stacks = collections.Counter()
    for line in made("folded", *words).decode("utf-8").splitlines():
        stack, _, weight = line.rpartition(" ")
        stacks[tuple(stack.split(";"))] += int(weight)
    return stacks


def test_folded_stacks_add_up():
    stacks = folded()
    assert sum(stacks.values()) == pytest.approx(WALL * 1e6, abs=len(stacks))
    by_thread = collections.Counter()
    for stack, weight in stacks.items():
        by_thread[stack[:2]] += weight
    assert by_thread == {("train.py (4120)", "MainThread (4120)"): 9_926_000,
                         ("train.py (4120)", "pin_memory (4127)"): 8_311_000,
                         ("train.py (4133)", "MainThread (4134)"): 7_996_000}
    network = [(stack, weight) for stack, weight in stacks.items() if stack[-1] == "[waiting for the network]"]
    assert network == [(("train.py (4120)", "MainThread (4120)", "<module> (train.py:88)", "main (train.py:74)",
                         "upload (storage.py:31)", "Session.request (requests/sessions.py:589)",
                         "SSLSocket.read (ssl.py:1104)", "[waiting for the network]"), 520_000)]


def test_folded_names_cannot_begin_a_frame_or_a_line():
    stacks = folded("hostile")
    assert sum(stacks.values()) == 1_050_000
    assert sorted(len(stack) for stack in stacks) == [3, 4, 4, 5]
    assert all(stack[0].startswith(ATTACK) for stack in stacks)


# ---- speedscope ----

def speedscope(*words):
    def strict(pairs):
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys))
        return dict(pairs)
    return json.loads(made("speedscope", *words).decode("utf-8"), object_pairs_hook=strict)


# Of https://www.speedscope.app/file-format-schema.json what concerns sampled profiles: required keys and types.
FILE = {"$schema": str, "shared": dict, "profiles": list}
FRAME = {"name": str}
PROFILE = {"type": str, "name": str, "unit": str, "startValue": (int, float), "endValue": (int, float), "samples": list,
           "weights": list}
UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}


def check_schema(file):
    def has(thing, required, optional):
        assert set(required) <= set(thing) <= set(required) | set(optional), thing.keys()
        for key, kind in {**required, **{key: kind for key, kind in optional.items() if key in thing}}.items():
            assert isinstance(thing[key], kind) and not isinstance(thing[key], bool), (key, thing[key])
    has(file, FILE, {"activeProfileIndex": int, "exporter": str, "name": str})
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert list(file["shared"]) == ["frames"]
    for frame in file["shared"]["frames"]:
        has(frame, FRAME, {"file": str, "line": int, "col": int})
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        has(profile, PROFILE, {})
        assert profile["type"] == "sampled" and profile["unit"] in UNITS
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert all(isinstance(weight, (int, float)) and weight >= 0 for weight in profile["weights"])
        for sample in profile["samples"]:
            assert all(isinstance(at, int) and 0 <= at < len(file["shared"]["frames"]) for at in sample)
        assert profile["endValue"] - profile["startValue"] == pytest.approx(sum(profile["weights"]))


def test_speedscope_has_a_profile_of_each_thread():
    file = speedscope()
    check_schema(file)
    assert [profile["name"] for profile in file["profiles"]] == [
        "train.py (4120) · MainThread (4120)", "train.py (4120) · pin_memory (4127)",
        "train.py (4133) · MainThread (4134)"]
    assert file["activeProfileIndex"] == 0
    assert sum(profile["endValue"] for profile in file["profiles"]) == pytest.approx(WALL)
    frames = file["shared"]["frames"]
    keys = [(frame["name"], frame.get("file"), frame.get("line")) for frame in frames]
    assert len(keys) == len(set(keys))
    # Its own view of a thread: self time by innermost function.
    selves = collections.Counter()
    for sample, weight in zip(file["profiles"][0]["samples"], file["profiles"][0]["weights"]):
        selves[frames[sample[-1]]["name"]] += weight
    assert selves["Conv2d.forward"] == pytest.approx(2.45) and selves["[waiting for a pipe]"] == pytest.approx(1.58)


def test_speedscope_and_folded_agree():
    file, stacks = speedscope(), folded()
    assert sum(len(profile["samples"]) for profile in file["profiles"]) == len(stacks)


def test_speedscope_keeps_hostile_names():
    file = speedscope("hostile")
    check_schema(file)
    assert any(frame["name"].startswith(ATTACK) for frame in file["shared"]["frames"])


# ---- pprof ----

# Of https://github.com/google/pprof/blob/main/proto/profile.proto: message, number, name, type, repeated.
I64, U64, STR, BOOL = "TYPE_INT64", "TYPE_UINT64", "TYPE_STRING", "TYPE_BOOL"
PROTO = {
    "Profile": [(1, "sample_type", "ValueType", True), (2, "sample", "Sample", True), (3, "mapping", "Mapping", True),
                (4, "location", "Location", True), (5, "function", "Function", True), (6, "string_table", STR, True),
                (7, "drop_frames", I64, False), (8, "keep_frames", I64, False), (9, "time_nanos", I64, False),
                (10, "duration_nanos", I64, False), (11, "period_type", "ValueType", False), (12, "period", I64, False),
                (13, "comment", I64, True), (14, "default_sample_type", I64, False)],
    "ValueType": [(1, "type", I64, False), (2, "unit", I64, False)],
    "Sample": [(1, "location_id", U64, True), (2, "value", I64, True), (3, "label", "Label", True)],
    "Label": [(1, "key", I64, False), (2, "str", I64, False), (3, "num", I64, False), (4, "num_unit", I64, False)],
    "Mapping": [(1, "id", U64, False), (2, "memory_start", U64, False), (3, "memory_limit", U64, False),
                (4, "file_offset", U64, False), (5, "filename", I64, False), (6, "build_id", I64, False),
                (7, "has_functions", BOOL, False), (8, "has_filenames", BOOL, False),
                (9, "has_line_numbers", BOOL, False), (10, "has_inline_frames", BOOL, False)],
    "Location": [(1, "id", U64, False), (2, "mapping_id", U64, False), (3, "address", U64, False),
                 (4, "line", "Line", True), (5, "is_folded", BOOL, False)],
    "Line": [(1, "function_id", U64, False), (2, "line", I64, False), (3, "column", I64, False)],
    "Function": [(1, "id", U64, False), (2, "name", I64, False), (3, "system_name", I64, False),
                 (4, "filename", I64, False), (5, "start_line", I64, False)],
}


def profile_class():
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in PROTO.items():
        message = file.message_type.add(name=name)
        for number, field, kind, repeated in fields:
            made_field = message.field.add(name=field, number=number)
            made_field.label = made_field.LABEL_REPEATED if repeated else made_field.LABEL_OPTIONAL
            if kind.startswith("TYPE_"):
                made_field.type = getattr(made_field, kind)
            else:
                made_field.type, made_field.type_name = made_field.TYPE_MESSAGE, ".perftools.profiles." + kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


def unknown_fields(message):
    """Anything that profile.proto does not describe survives parsing; a copy without it is shorter."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.DiscardUnknownFields()
    return message.ByteSize() - copy.ByteSize()


class Profile:
    def __init__(self, data):
        raw = gzip.decompress(data)
        self.message = profile_class().FromString(raw)
        assert unknown_fields(self.message) == 0
        self.strings = list(self.message.string_table)
        assert self.strings[0] == "" and len(self.strings) == len(set(self.strings))
        self.functions = {one.id: one for one in self.message.function}
        self.locations = {one.id: one for one in self.message.location}
        for table, listed in ((self.functions, self.message.function), (self.locations, self.message.location)):
            assert len(table) == len(listed) and 0 not in table
        self.types = [(self.strings[one.type], self.strings[one.unit]) for one in self.message.sample_type]

    def frames(self, sample):
        """Outermost first: function, file, line."""
        found = []
        for location in reversed(sample.location_id):
            (line,) = self.locations[location].line
            function = self.functions[line.function_id]
            found.append((self.strings[function.name], self.strings[function.filename], line.line))
        return found

    def labels(self, sample):
        return {self.strings[label.key]: self.strings[label.str] for label in sample.label}


def test_pprof_has_wall_and_cpu_time():
    profile = Profile(made("pprof"))
    assert profile.types == [("wall", "nanoseconds"), ("cpu", "nanoseconds")]
    assert profile.strings[profile.message.default_sample_type] == "wall"
    assert profile.message.duration_nanos == 10_500_000_000
    assert all(len(sample.value) == 2 and 0 <= sample.value[1] <= sample.value[0] for sample in profile.message.sample)
    for at, whole in ((0, WALL), (1, CPU)):
        assert sum(sample.value[at] for sample in profile.message.sample) == pytest.approx(whole * 1e9, abs=100)


def test_pprof_has_labels_of_process_thread_and_state():
    profile, states, threads = Profile(made("pprof")), collections.Counter(), set()
    for sample in profile.message.sample:
        labels = profile.labels(sample)
        assert set(labels) == {"process", "thread", "state"}
        states[labels["state"]] += sample.value[0] / 1e9
        threads.add((labels["process"], labels["thread"]))
        assert (sample.value[1] > 0) == (labels["state"] == "running")
    assert dict(states) == pytest.approx(STATES)
    assert len(threads) == THREADS


def test_pprof_has_functions_files_and_lines():
    profile = Profile(made("pprof"))
    (network,) = [sample for sample in profile.message.sample if profile.labels(sample)["state"] == "network"]
    frames = profile.frames(network)
    assert [(name, line) for name, _, line in frames] == [("<module>", 88), ("main", 74), ("upload", 31),
                                                          ("Session.request", 589), ("SSLSocket.read", 1104)]
    assert frames[2][1] == "/home/ada/vision/storage.py"
    (upload,) = [one for one in profile.message.function if profile.strings[one.name] == "upload"]
    assert upload.start_line == 8


def test_pprof_and_folded_agree():
    profile, stacks = Profile(made("pprof")), folded()
    assert len(profile.message.sample) == len(stacks)
    assert sorted(sample.value[0] // 1000 for sample in profile.message.sample) == sorted(stacks.values())


def test_pprof_names_have_no_control_characters():
    profile = Profile(made("pprof", "hostile"))
    assert not any(re.search(r"[\x00-\x1f\x7f]", text) for text in profile.strings)
    assert any(text.startswith(ATTACK) for text in profile.strings)


def pprof_itself():
    if shutil.which("pprof"):
        return ["pprof"]
    return ["go", "tool", "pprof"] if shutil.which("go") else None


@pytest.mark.skipif(pprof_itself() is None, reason="pprof is not installed")
def test_pprof_itself_reads_it(tmp_path):
    path = tmp_path / "run.pb.gz"
    path.write_bytes(made("pprof"))
    told = subprocess.run([*pprof_itself(), "-top", str(path)], stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          check=True).stdout
    assert "Type: wall" in told and re.search(r"3215ms .* ImageFile.load", told)
    assert re.search(r"9918ms .* <module>\n", told), told  # not taken for a C++ template, and cut to nothing
    path.write_bytes(made("pprof", "hostile"))
    told = subprocess.run([*pprof_itself(), "-top", str(path)], stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          check=True).stdout
    assert "<lambda>" in told and "javascript:alert(1)" in told


# ---- the command ----

@pytest.mark.parametrize("kind", ["folded", "speedscope", "pprof", "flamegraph"])
def test_a_trace_without_stacks_is_told(bench, kind):
    trace = bench.folder / "run.tare"
    assert bench.tare("run", "-q", "-o", trace, "--", VICTIMS / "kinds", "all", "5").status == 0
    done = bench.tare("report", f"--{kind}", bench.folder / "out", trace)
    assert done.status == 3 and "no stack samples" in done.err
    assert not (bench.folder / "out").exists()
    done = bench.tare("report", f"--{kind}", trace, trace)
    assert done.status == 2 and f"--{kind} is the trace itself" in done.err
    done = bench.tare("report", f"--{kind}", "out", "-o", "other", trace)
    assert done.status == 2 and "mutually exclusive" in done.err


# 2 s in two threads, of which 0.8 s on a CPU; see tests/browser/make_stacks.c.
@pytest.fixture
def recorded(bench):
    script = bench.folder / "hot.py"
    script.write_text("import json\njson.dumps(big)\n    while not done: work()\n")
    os.utime(script, (1_600_000_000, 1_600_000_000))  # the run began in 2023
    trace = bench.folder / "run.tare"
    trace.write_bytes(subprocess.run([MAKE.parent / "make_stacks", script], stdout=subprocess.PIPE, timeout=PATIENCE,
                                     check=True).stdout)
    return trace


def test_a_trace_is_exported(bench, recorded):
    """Through the whole command: every export has the time of the table of threads."""
    out = bench.folder / "out"

    def exported(kind):
        done = bench.tare("report", f"--{kind}", out, recorded)
        assert done.status == 0, done.err
        return out.read_bytes()

    assert [row["wall_ns"] for row in bench.json(recorded)["sampled_threads"]] == [1_000_000_000, 1_000_000_000]
    lines = exported("folded").decode().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 2_000_000
    file = json.loads(exported("speedscope"))
    check_schema(file)
    assert [profile["endValue"] for profile in file["profiles"]] == pytest.approx([1, 1])
    samples = Profile(exported("pprof")).message.sample
    assert [sum(sample.value[at] for sample in samples) for at in (0, 1)] == [2_000_000_000, 800_000_000]
    assert ElementTree.fromstring(exported("flamegraph")).tag == "{http://www.w3.org/2000/svg}svg"


def code_in(path):
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.S).group(1)
    return [text for text in json.loads(data)["stacks"]["code"] if text is not None]


def test_code_is_shown_on_request_only(bench, recorded):
    page = bench.folder / "page.html"

    def shown(*words):
        done = bench.tare("report", "--html", "-o", page, *words, recorded)
        assert done.status == 0, done.err
        return code_in(page)

    assert shown() == []
    assert sorted(shown("--source")) == ["json.dumps(big)", "while not done: work()"]
    (bench.folder / "hot.py").write_text("secret = 1\nanother = 2\n")  # changed since
    assert shown("--source") == []
    assert "--source requires --html" in bench.tare("report", "--source", recorded).err


def test_code_of_other_files_is_not_shown(bench, tmp_path):
    page, trace = bench.folder / "page.html", bench.folder / "run.tare"
    for name in ("/etc/shadow", "/etc/passwd", "/proc/self/environ"):
        link = tmp_path / (name.replace("/", "_") + ".py")
        link.symlink_to(name)
        for script in (name, link):
            trace.write_bytes(subprocess.run([MAKE.parent / "make_stacks", script], stdout=subprocess.PIPE,
                                             timeout=PATIENCE, check=True).stdout)
            assert bench.tare("report", "--html", "--source", "-o", page, trace).status == 0
            assert code_in(page) == []
