"""Libraries that are loaded into the program by ITT's and NVTX's own variables, called as those interfaces call
them."""
import pytest

from conftest import BUILD

RANGES = BUILD / "tests" / "fake" / "ranges"
ENGINE = "autograd::engine::evaluate_function: "


def record(bench, what, *words, status=0, **more):
    done = bench.tare("run", "-q", "--no-sampling", "--ops", "-f", "-o", "trace.tare", "--", RANGES, what, *words,
                      **more)
    assert done.status == status, (done.status, done.out, done.err)
    return done


def operators(report):
    return {row["name"]: row["calls"] for row in report["operators"]}


def test_tasks_of_the_torch_domain_are_operators(bench):
    assert record(bench, "itt").err == ""
    report = bench.json("trace.tare")
    # ten steps, and one in a child that was forked
    assert operators(report) == {"aten::linear": 11, "aten::addmm": 11, ENGINE + "AddmmBackward0": 11, "aten::early": 1}
    spans = {(row["name"], row["kind"], row["depth"]): row["calls"] for row in report["spans"]}
    assert spans["aten::addmm", "operator", 1] == 11
    assert spans["mine", "span", 0] == 1  # another domain
    assert not any(name == "primitive" for name, _, _ in spans)  # oneDNN's own
    assert report["run"]["dropped_spans"] == 0
    assert sum(row["unmatched_ends"] for row in report["threads"]) == 0
    assert report["operators"][0]["phase"] is None


def test_pairs_without_steps_or_phases(bench):
    record(bench, "itt")
    rows = {row["name"]: row for row in bench.json("trace.tare")["operators"]}
    assert rows["aten::addmm"]["paired"] == 11
    assert rows["aten::addmm"]["pair"] == ENGINE + "AddmmBackward0"
    assert rows["aten::linear"]["pair"] is None


def test_ranges_of_nvtx_lose_what_differs_with_each_call(bench):
    record(bench, "nvtx")
    report = bench.json("trace.tare")
    assert operators(report) == {"aten::mm": 6, "aten::mul": 1}
    spans = {row["name"]: row["kind"] for row in report["spans"]}
    assert spans["loading"] == spans["registered"] == "span"


def test_many_threads_use_the_same_names(bench):
    record(bench, "threads")
    assert operators(bench.json("trace.tare")) == {f"aten::op{i}": 160 for i in range(50)}


def test_a_torch_that_was_loaded_before(bench):
    assert record(bench, "torch", BUILD / "tests" / "fake" / "libtorch_cpu.so").err == ""
    report = bench.json("trace.tare")
    assert operators(report) == {"aten::linear": 200, "aten::addmm": 200, "(null)": 1}
    assert {(row["name"], row["depth"]) for row in report["spans"]} == \
        {("aten::linear", 0), ("aten::addmm", 1), ("(null)", 0)}
    assert [(row["name"], row["count"]) for row in report["marks"]] == [("a mark", 1)]
    assert sum(row["unmatched_ends"] for row in report["threads"]) == 0


def test_names_and_depth_are_bounded(bench):
    record(bench, "names")
    found = operators(bench.json("trace.tare"))
    assert found["op 0"] == found["op 11000"] == 1
    assert "op 12999" not in found
    assert found["(more names)"] > 1000


def test_who_listens_already_is_left_alone(bench):
    done = record(bench, "nvtx", env={"INTEL_LIBITTNOTIFY64": "/opt/vtune/collector.so"})
    assert "--ops: INTEL_LIBITTNOTIFY64 is already set to /opt/vtune/collector.so" in done.err
    assert operators(bench.json("trace.tare"))["aten::mm"] == 6
    done = record(bench, "itt", status=3, env={"INTEL_LIBITTNOTIFY64": "/opt/vtune/collector.so"})
    assert "/opt/vtune/collector.so" in done.out  # what the program was given


@pytest.mark.parametrize("options, listens", [((), False), (("--ops",), True)])
def test_nothing_is_named_unless_asked_for(bench, options, listens):
    done = bench.tare("run", "-q", "--no-sampling", *options, "--", "sh", "-c",
                      'echo "$INTEL_LIBITTNOTIFY64 $NVTX_INJECTION64_PATH $TARE_OPS"')
    assert (done.out.split() != []) == listens
    if listens:
        assert done.out.split()[2] == "1"


def test_the_text_and_the_tables_show_them(bench):
    record(bench, "itt")
    text = bench.report("trace.tare").out
    assert "\nOperators " in text and "engine: AddmmBackward0" in text
    bench.report("trace.tare", "--csv", "tables")
    lines = (bench.folder / "tables" / "operators.csv").read_text().splitlines()
    assert lines[0].startswith("row,name,direction,phase,calls,self_ns,raw_self_ns")
    assert any(line.partition(",")[2].startswith("aten::addmm,,,11,") for line in lines)
    assert (bench.folder / "tables" / "modules.csv").read_text().count("\n") == 1  # none were recorded
