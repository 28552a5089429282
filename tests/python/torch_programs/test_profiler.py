"""tare.profiler beside torch.profiler on the same programs: same operators, equal counts, equal details."""
import collections
import gzip
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import warnings

import pytest

pytest.importorskip("torch.nn", reason="torch is not installed")
import torch  # noqa: E402
import torch.profiler as theirs  # noqa: E402

from conftest import Bench  # noqa: E402

import tare  # noqa: E402
import tare.profiler as ours  # noqa: E402
from tare.profiler import _switch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
NO_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU: its times are real")


class Training:
    """Convolution, attention and linear layers, with a real step of training."""

    def __init__(self):
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.head = torch.nn.Linear(8, 4)
        parameters = [p for part in (self.conv, self.layer, self.head) for p in part.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=0.01)
        self.images, self.labels = torch.randn(2, 3, 8, 8), torch.tensor([1, 3])
        self.step()
        self.step()  # what happens once, has happened

    def step(self):
        self.optimizer.zero_grad()
        features = torch.relu(self.conv(self.images)).flatten(2).transpose(1, 2)
        loss = torch.nn.functional.cross_entropy(self.head(self.layer(features).mean(1)), self.labels)
        loss.backward()
        self.optimizer.step()


@pytest.fixture(scope="module")
def training():
    return Training()


def cycles(module, training, steps=10, **options):
    """A profile of two cycles, and the number of the step at which each was ready."""
    ready = []
    with module.profile(activities=[module.ProfilerActivity.CPU],
                        on_trace_ready=lambda prof: ready.append(prof.step_num),
                        schedule=module.schedule(wait=1, warmup=1, active=3, repeat=2), **options) as prof:
        for _ in range(steps):
            with module.record_function("whole step"):
                training.step()
            prof.step()
    return prof, ready


def counts(prof):
    return {row.key: row.count for row in prof.key_averages()}


# ---- the same as torch -------------------------------------------------------------------------------------------

def test_operators_and_counts_are_torchs(training):
    own, ready = cycles(ours, training)
    other, their_ready = cycles(theirs, training)
    assert ready == their_ready == [5, 10]
    assert counts(own) == counts(other)
    assert counts(own)["ProfilerStep*"] == counts(own)["whole step"] == 3


def test_times_are_torchs():
    """The quickest of many calls on one thread, which a busy machine does not change much: threads that wait for one
    another are slow in every call."""
    matrix, threads = torch.randn(300, 300), torch.get_num_threads()

    def quickest(module):
        with module.profile(activities=[module.ProfilerActivity.CPU]) as prof:
            for _ in range(30):
                matrix.mm(matrix)
        return min(event.cpu_time_total for event in prof.events() if event.name == "aten::mm")
    torch.set_num_threads(1)
    try:
        assert 0.1 < quickest(ours) / quickest(theirs) < 10
    finally:
        torch.set_num_threads(threads)


def test_times_add_up(training):
    rows = {row.key: row for row in cycles(ours, training)[0].key_averages()}
    step = rows["ProfilerStep*"]
    assert all(0 <= row.self_cpu_time_total <= row.cpu_time_total + 1e-3 for row in rows.values())
    assert rows["whole step"].cpu_time_total <= step.cpu_time_total
    # Self times add up to the steps, but for the recorder's own cost, which is taken off.
    total = sum(row.self_cpu_time_total for row in rows.values())
    assert 0.5 * step.cpu_time_total < total <= step.cpu_time_total * 1.001
    assert step.cpu_time == pytest.approx(step.cpu_time_total / 3)


def test_schedule_is_torchs():
    for wait, warmup, active, repeat, skip_first, skip_wait in (
            (0, 0, 1, 0, 0, 0), (1, 1, 3, 2, 0, 0), (2, 0, 1, 1, 3, 0), (0, 2, 2, 3, 1, 0), (3, 1, 2, 2, 2, 1)):
        named = dict(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first,
                     skip_first_wait=skip_wait)
        mine, other = ours.schedule(**named), theirs.schedule(**named)
        assert [mine(step) for step in range(30)] == [other(step) for step in range(30)], named


def test_torchs_own_parts_are_accepted(training, tmp_path):
    with ours.profile(activities=[theirs.ProfilerActivity.CPU],
                      schedule=theirs.schedule(wait=0, warmup=1, active=2, repeat=2),
                      on_trace_ready=theirs.tensorboard_trace_handler(str(tmp_path))) as prof:
        for _ in range(6):
            training.step()
            prof.step()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2 and all(path.name.endswith(".pt.trace.json") for path in files)
    for path in files:
        names = [event.get("name") for event in json.loads(path.read_text())["traceEvents"]]
        assert names.count("aten::conv2d") == 2


def test_tares_own_actions_are_accepted(training):
    actions = [tare.ProfilerAction.NONE, tare.ProfilerAction.WARMUP, tare.ProfilerAction.RECORD_AND_SAVE]
    with ours.profile(schedule=lambda step: actions[step % 3]) as prof:
        for _ in range(3):
            training.step()
            prof.step()
    assert counts(prof)["aten::conv2d"] == 1


@NO_GPU
def test_without_a_schedule_and_by_hand(training):
    prof = ours.profile()
    prof.start()
    training.step()
    prof.step()
    training.step()
    prof.stop()
    other = theirs.profile(activities=[theirs.ProfilerActivity.CPU])
    other.start()
    training.step()
    other.step()
    training.step()
    other.stop()
    assert counts(prof) == counts(other)
    prof.stop()  # a second stop changes nothing
    assert counts(prof)["aten::conv2d"] == 2


def test_cycles_together(training):
    prof, _ = cycles(ours, training, acc_events=True)
    assert counts(prof)["aten::conv2d"] == counts(prof)["aten::conv2d"] == 6  # asking changes nothing
    assert len([event for event in prof.events() if event.name == "aten::conv2d"]) == 6


def test_an_open_cycle_is_handed_on_at_the_end(training):
    ready = []
    with ours.profile(schedule=ours.schedule(wait=0, warmup=0, active=5), on_trace_ready=ready.append) as prof:
        training.step()
        prof.step()
        training.step()
    assert ready == [prof] and counts(prof)["aten::conv2d"] == 2


# ---- details -----------------------------------------------------------------------------------------------------

DETAILS = dict(record_shapes=True, profile_memory=True, with_flops=True)


@NO_GPU
@pytest.mark.parametrize("field", ["flops", "cpu_memory_usage", "self_cpu_memory_usage"])
def test_details_are_torchs(training, field):
    own, _ = cycles(ours, training, **DETAILS)
    other, _ = cycles(theirs, training, **DETAILS)
    mine = {row.key: getattr(row, field) for row in own.key_averages() if row.key.startswith("aten::")}
    assert mine == {row.key: getattr(row, field) for row in other.key_averages() if row.key.startswith("aten::")}
    assert any(value > 0 for value in mine.values())


@NO_GPU
def test_groups_by_shape_are_torchs(training):
    own, _ = cycles(ours, training, **DETAILS)
    other, _ = cycles(theirs, training, **DETAILS)

    def groups(prof):
        rows = prof.key_averages(group_by_input_shape=True)
        return sorted((row.key, str(row.input_shapes), row.count) for row in rows if row.key.startswith("aten::"))
    assert groups(own) == groups(other)


@NO_GPU
def test_details_are_of_the_recorded_steps(training):
    """A recorded step unlike the warm-up: what is shown is its own."""
    with ours.profile(schedule=ours.schedule(wait=0, warmup=1, active=2, repeat=1), with_flops=True) as prof:
        for step in range(3):
            training.conv(training.images)
            if step == 2:
                training.conv(training.images)
            training.head(torch.ones(1, 8))
            prof.step()
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::conv2d"].count == 3 and rows["aten::conv2d"].flops == 3 * 2 * 2 * 8 * 6 * 6 * 3 * 3 * 3
    assert rows["aten::addmm"].flops == 2 * 2 * 8 * 4


@NO_GPU
def test_stacks(training, tmp_path):
    prof, _ = cycles(ours, training, with_stack=True)
    rows = [row for row in prof.key_averages(group_by_stack_n=20) if row.key == "aten::conv2d"]
    assert any("step" in line for line in rows[0].stack)
    prof.export_stacks(str(tmp_path / "stacks"))
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert lines and all(line.rsplit(" ", 1)[1].isdigit() for line in lines)
    assert any(";" in line for line in lines)


@NO_GPU
def test_details_without_a_schedule(training, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ours.profile(activities=[ours.ProfilerActivity.CPU], record_shapes=True) as prof:
            with ours.record_function("outer"):
                training.step()
    assert isinstance(prof, ours.profile) and counts(prof)["outer"] == 1
    shapes = [row.input_shapes for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::conv2d"]
    assert shapes[0][0] == [2, 3, 8, 8]
    prof.export_trace(str(tmp_path / "one.tare"))
    assert sum(row.calls for row in tare.report(tmp_path / "one.tare").spans if row.name == "aten::conv2d") == 1


# ---- traces with details, beside torch's own -------------------------------------------------------------------------

ROOT = pathlib.Path(__file__).resolve().parents[3]
READERS = os.environ.get("TARE_READERS", str(ROOT / "build" / "readers" / "bin" / "python"))


# The seed's "Profiler Configuration" as it stands there, but for the device; arguments: the module, a folder.
SEED_PROGRAM = """
    import importlib, json, sys, torch
    import torch.nn.functional as F
    profiler = importlib.import_module(sys.argv[1])
    blocks = "blocks" in sys.argv
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 10))
    optimizer = torch.optim.Adam(model.parameters())
    train_loader = [(torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))) for _ in range(10)]

    def train_step(batch):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
    train_step(train_loader[0])
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=1, warmup=1, active=3, repeat=2),
        on_trace_ready=profiler.tensorboard_trace_handler(sys.argv[2]),
        record_shapes=True, profile_memory=True, with_stack=True, with_flops=True
    ) as prof:
        for step, batch in enumerate(train_loader):
            if blocks:
                with profiler.record_function("block"):
                    train_step(batch)
            else:
                train_step(batch)
            prof.step()
    averages = prof.key_averages()
    rows = [[row.key, row.count, row.cpu_memory_usage, row.self_cpu_memory_usage, row.flops] for row in averages]
    print(json.dumps({"rows": rows, "table": averages.table(sort_by="cpu_time_total", row_limit=-1),
                      "self": averages.self_cpu_time_total,
                      "own": sum(row.self_cpu_time_total for row in averages)}))
    if sys.argv[1].startswith("tare"):
        for name in ("one.json", "two.json.gz"):
            prof.export_chrome_trace(sys.argv[2] + "/" + name)
        prof.export_trace(sys.argv[2] + "/cycle.tare")
"""


def contents(path):
    """What a trace holds: events by category, those with shapes, bytes of memory events, names of Python functions."""
    events = json.loads(path.read_text())["traceEvents"]
    memory = [event for event in events if event["name"] == "[memory]"]
    plain = collections.Counter(re.sub("0x[0-9a-f]+", "", event["name"]) for event in events
                                if event.get("cat") == "python_function")
    levels = [event["args"]["Total Allocated"] for event in memory]
    return {"categories": collections.Counter(event.get("cat", event["ph"]) for event in events),
            "shapes": sorted(str((event["name"], event["args"]["Input Dims"], event["args"]["Input type"]))
                             for event in events if "Input Dims" in event.get("args", {})),
            "memory": [event["args"]["Bytes"] for event in memory],
            "allocated": max(levels) - min(levels), "devices": {event["args"]["Device Type"] for event in memory},
            "functions": plain, "parents": sum("Python parent id" in event.get("args", {}) for event in events)}


def by_both(folder, *words):
    """The same program with torch's profiler and with ours: (folder, what it printed) of each."""
    bench = Bench(folder)
    found = []
    for module in ("torch.profiler", "tare.profiler"):
        done = bench.python(SEED_PROGRAM, module, folder / module, *words)
        found.append((folder / module, json.loads(done.out.splitlines()[-1])))
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return by_both(tmp_path_factory.mktemp("traces"))


@NO_GPU
def test_traces_hold_what_torchs_hold(folders):
    (their_folder, _), (our_folder, _) = folders
    their, own = (sorted(folder.glob("*.pt.trace.json")) for folder in (their_folder, our_folder))
    assert len(their) == len(own) == 2
    for left, right in zip(their, own):
        expected, found = contents(left), contents(right)
        assert len(found["shapes"]) > 100 and len(found["memory"]) > 100 and sum(found["functions"].values()) > 500
        assert found == expected
        assert not [name for name in found["functions"] if "tare" in name]


@NO_GPU
def test_tables_with_details_are_torchs(folders):
    (_, their), (_, own) = folders

    def plain(rows):
        return sorted([re.sub("0x[0-9a-f]+", "", row[0]), *row[1:]] for row in rows)
    assert plain(own["rows"]) == plain(their["rows"])
    assert [name.strip() for name in columns(own["table"])] == [name.strip() for name in columns(their["table"])]
    assert len(own["table"].splitlines()) == len(their["table"].splitlines())
    assert own["self"] == pytest.approx(own["own"])


@NO_GPU
def test_a_trace_is_written_as_often_as_asked(folders):
    """torch refuses the second time; the seed has a handler and then export_chrome_trace()."""
    folder, _ = folders[1]
    whole = (folder / "one.json").read_bytes()
    assert gzip.decompress((folder / "two.json.gz").read_bytes()) == whole
    assert sorted(folder.glob("*.pt.trace.json"))[-1].read_bytes() == whole
    spans = tare.report(folder / "cycle.tare").spans
    assert sum(row.calls for row in spans if row.name == "aten::conv2d") == 3


@NO_GPU
def test_blocks_of_ours_leave_no_functions_of_ours(tmp_path):
    (their_folder, _), (our_folder, _) = by_both(tmp_path, "blocks")
    their, own = (contents(sorted(folder.glob("*.pt.trace.json"))[0]) for folder in (their_folder, our_folder))
    assert not [name for name in own["functions"] if "tare" in name]
    assert own["categories"]["user_annotation"] == their["categories"]["user_annotation"]
    assert own["shapes"] == their["shapes"] and own["memory"] == their["memory"]


@NO_GPU
@pytest.mark.skipif(not os.path.exists(READERS), reason="torch-tb-profiler is not installed (tools/setup test)")
def test_tensorboards_memory_and_module_views_are_torchs(folders, tmp_path):
    seen = []
    for folder, _ in folders:
        one = tmp_path / folder.name
        one.mkdir()
        shutil.copy(sorted(folder.glob("*.pt.trace.json"))[0], one / "one.pt.trace.json")
        done = subprocess.run([READERS, str(ROOT / "tests" / "e2e" / "tensorboard_readers.py"), "torch_tb_profiler",
                               str(one)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        seen.append(json.loads(done.stdout.split("SEEN ", 1)[1]))
    their, own = seen
    assert "memory" in own["views"] and "module" in own["views"] and own["views"] == their["views"]
    assert own["memory"]["CPU"] and own["memory"] == their["memory"]
    assert own["modules"] and [row[:2] + row[5:] for row in own["modules"]] == [row[:2] + row[5:]
                                                                                for row in their["modules"]]
    assert {name: row["calls"] for name, row in own["operators"].items()} == {
        name: row["calls"] for name, row in their["operators"].items()}


@NO_GPU
def test_where_ours_cannot_torch_records(training, monkeypatch):
    expected = counts(cycles(ours, training)[0])
    monkeypatch.setattr(_switch, "ready", lambda: "there is a reason")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prof, _ = cycles(ours, training)
    assert counts(prof) == expected
    assert any("there is a reason" in str(one.message) and one.filename == __file__ for one in caught)


def test_a_torch_with_other_stubs_is_left_alone(tmp_path):
    header = tmp_path / "include/torch/csrc/profiler/stubs/base.h"
    header.parent.mkdir(parents=True)
    known = open(os.path.join(os.path.dirname(torch.__file__), "include/torch/csrc/profiler/stubs/base.h")).read()

    class Other:
        __file__ = str(tmp_path / "__init__.py")
    assert not _switch._stubs_known(Other)
    header.write_text(known)
    assert _switch._stubs_known(Other)
    header.write_text(known.replace("virtual void mark(", "virtual void more() const = 0;\n  virtual void mark("))
    assert not _switch._stubs_known(Other)


# ---- the table ---------------------------------------------------------------------------------------------------

def columns(table):
    return [word for word in table.splitlines()[1].split("  ") if word.strip()]


@NO_GPU
@pytest.mark.parametrize("options", [{}, {"profile_memory": True}, {"with_flops": True}, DETAILS])
def test_columns_are_torchs(training, options):
    own, _ = cycles(ours, training, **options)
    other, _ = cycles(theirs, training, **options)
    for named in ({}, {"group_by_input_shape": True}):
        mine, their = (prof.key_averages(**named).table(sort_by="cpu_time_total") for prof in (own, other))
        assert [name.strip() for name in columns(mine)] == [name.strip() for name in columns(their)]
    assert len(mine.splitlines()[0]) == len(their.splitlines()[0])


def test_rows_are_sorted_and_limited(training):
    averages = cycles(ours, training)[0].key_averages()
    for key in ("cpu_time_total", "self_cpu_time_total", "cpu_time", "count"):
        wanted = sorted((getattr(row, key) for row in averages), reverse=True)[:3]
        shown = [line.split()[-1] for line in averages.table(sort_by=key, row_limit=3).splitlines()[3:6]]
        if key == "count":
            assert shown == [str(value) for value in wanted]
        assert len(averages.table(sort_by=key, row_limit=3).splitlines()) == 3 + 3 + 2
    assert "=" * 20 in averages.table(header="A title") and "A title" in averages.table(header="A title")
    in_ms = averages.table(time_unit="ms")
    assert re.search(r"\dms ", in_ms) and not re.search(r"\dus ", in_ms)
    with pytest.raises(ValueError, match="not sorted by 'speed'"):
        averages.table(sort_by="speed")
    with pytest.raises(ValueError, match="time_unit"):
        averages.table(time_unit="minutes")


@NO_GPU
def test_absent_device_times_say_why(training):
    with ours.profile(activities=[ours.ProfilerActivity.CPU, ours.ProfilerActivity.CUDA]) as prof:
        training.step()
    row = prof.key_averages()[0]
    assert math.isnan(row.cuda_time_total) and "CUDA" in row.cuda_time_total.reason
    assert row.self_cuda_time_total.reason == row.device_time_total.reason
    table = prof.key_averages().table(sort_by="cuda_time_total", row_limit=2)
    assert "Self CUDA" in table and " n/a " in table and "0.000us" not in table
    assert "CUDA times: n/a (%s)" % row.cuda_time_total.reason in table


# ---- events and files --------------------------------------------------------------------------------------------

def test_events_have_their_callers(training):
    prof, _ = cycles(ours, training)
    events = prof.events()
    linear = [event for event in events if event.name == "aten::linear"]
    assert linear and all(event.time_range.elapsed_us() == event.cpu_time_total > 0 for event in linear)
    assert {event.cpu_parent.name for event in events if event.name == "aten::conv2d"} == {"whole step"}
    for event in events:
        assert sum(child.cpu_time_total for child in event.cpu_children) <= event.cpu_time_total + 1e-3
    sums = {row.key: row.count for row in events.key_averages()}
    assert sums == counts(prof)
    top = events.table(top_level_events_only=True, row_limit=-1).splitlines()
    assert sum("ProfilerStep*" in line for line in top) == 3 and not any("aten::" in line for line in top)
    assert "device_memory_usage: n/a" in events.table(sort_by="device_memory_usage")


def test_files(training, tmp_path):
    prof, _ = cycles(ours, training)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    plain = (tmp_path / "trace.json").read_bytes()
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()) == plain
    assert sum(event.get("name") == "aten::conv2d" for event in json.loads(plain)["traceEvents"]) == 3
    prof.export_trace(str(tmp_path / "steps.tare"))
    report = tare.report(tmp_path / "steps.tare")
    assert sum(row.calls for row in report.spans if row.name == "aten::conv2d") == 3
    assert sum(row.calls for row in report.spans if row.kind == "step") == 3
    with pytest.raises(FileNotFoundError, match="no folder"):
        prof.export_chrome_trace(str(tmp_path / "nowhere" / "trace.json"))
    with pytest.raises(RuntimeError, match="with_stack is off"):
        prof.export_stacks(str(tmp_path / "stacks"))
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(str(tmp_path / "stacks"), metric="speed")


def test_trace_handler_writes_a_file_a_cycle(training, tmp_path):
    with ours.profile(schedule=ours.schedule(wait=0, warmup=1, active=1, repeat=2),
                      on_trace_ready=ours.trace_handler(str(tmp_path))) as prof:
        for _ in range(4):
            training.step()
            prof.step()
    assert len(list(tmp_path.glob("*.tare"))) == 2


# ---- blocks ------------------------------------------------------------------------------------------------------

def test_record_function_as_block_and_around_functions():
    @ours.record_function("named")
    def work(x):
        "Works."
        return x + 1
    assert work.__doc__ == "Works." and work.__name__ == "work"
    with ours.profile() as prof:
        with ours.record_function("outer"):
            for value in range(3):
                assert work(value) == value + 1
    assert counts(prof) == {"outer": 1, "named": 3}
    assert {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()} == {
        "outer": None, "named": "outer"}


def test_record_function_where_nothing_is_recorded():
    with ours.record_function("quiet") as block:
        assert block.name == "quiet"
    with pytest.raises(TypeError):
        ours.record_function(3)


# ---- what goes wrong ---------------------------------------------------------------------------------------------

def test_bad_input_gets_a_sentence():
    for named, error, match in (
            ({"activities": []}, ValueError, "nothing to profile"),
            ({"activities": [3]}, TypeError, "ProfilerActivity, not 3"),
            ({"schedule": 3}, TypeError, "schedule is a function"),
            ({"schedule": lambda step: 7}, ValueError, "gave 7 for step 0")):
        with pytest.raises(error, match=match):
            ours.profile(**named)
    for named in ({"active": 0}, {"wait": -1}, {"warmup": 1.5}, {"repeat": -1}):
        with pytest.raises(ValueError, match="whole number"):
            ours.schedule(**{"wait": 0, "warmup": 0, "active": 1, **named})
    with pytest.raises(RuntimeError, match="nothing is recorded yet"):
        ours.profile().key_averages()


def test_a_second_profile_is_refused_and_the_first_goes_on(training):
    with ours.profile() as prof:
        with pytest.raises(RuntimeError, match="already"):
            ours.profile().start()
        training.step()
    assert counts(prof)["aten::conv2d"] == 1


def test_an_exception_passes_and_what_was_recorded_stays(training):
    with pytest.raises(ZeroDivisionError):
        with ours.profile() as prof:
            training.step()
            1 / 0
    assert counts(prof)["aten::conv2d"] == 1
    assert not tare.recording() and not torch.autograd._profiler_enabled()
    with theirs.profile(activities=[theirs.ProfilerActivity.CPU]) as other:  # torch's own works afterwards
        training.step()
    assert {row.key: row.count for row in other.key_averages()}["aten::conv2d"] == 1


def test_nothing_is_left_behind(training, tmp_path):
    before = dict(os.environ)
    prof = ours.profile()
    folder = prof._folder
    with prof:
        training.step()
    assert dict(os.environ) == before
    assert os.path.isdir(folder)
    del prof
    import gc
    gc.collect()
    assert not os.path.exists(folder)


SCRIPT = """
    import torch
    import tare
    import tare.profiler as profiler
    conv, data = torch.nn.Conv2d(3, 4, 3), torch.randn(1, 3, 8, 8)
    conv(data)
    with profiler.profile(schedule=profiler.schedule(wait=1, warmup=1, active=2, repeat=2)) as prof:
        for _ in range(8):
            with profiler.record_function("block"):
                conv(data)
            prof.step()
    print({row.key: row.count for row in prof.key_averages() if row.key in
           ("aten::conv2d", "block", "ProfilerStep*")})
    print(len([event for event in prof.events() if event.name == "aten::conv2d"]), tare.recording())
"""


def test_below_tare_run_it_is_part_of_that_recording(bench):
    done = bench.recorded(SCRIPT)
    assert done.out.splitlines() == ["{'ProfilerStep*': 2, 'block': 2, 'aten::conv2d': 2}", "2 True"], done.out
    spans = done.report.spans
    assert sum(row.calls for row in spans if row.name == "block") == 8
    assert sum(row.calls for row in spans if row.name == "aten::conv2d") == 4


def test_without_torch_blocks_and_schedules_work(bench):
    done = bench.python("""
        import sys
        sys.modules["torch"] = sys.modules["torch.profiler"] = None
        import tare.profiler as profiler
        with profiler.record_function("block"):
            print(profiler.schedule(wait=0, warmup=0, active=1)(0).name, profiler.ProfilerActivity.CPU.name)
        try:
            profiler.profile()
        except ImportError as error:
            print(error)
    """)
    assert done.out.splitlines() == ["RECORD_AND_SAVE CPU", "tare.profiler.profile needs torch: pip install torch"]
