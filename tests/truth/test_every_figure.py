"""docs/TRUTH.md has the rows of all files of this folder, and every number in the outputs has a row."""
import bisect
import csv
import fnmatch
import importlib
import json
import pathlib
import sys

import pytest

import truth as rows

HERE = pathlib.Path(__file__).resolve().parent


def every_figure():
    figures = {}
    for file in sorted(HERE.glob("test_*.py")):
        for figure in getattr(importlib.import_module(file.stem), "FIGURES", ()):
            assert figure.path not in figures, f"{figure.path} is in {file.name} and {figures[figure.path][0]}"
            figures[figure.path] = (file.name, figure)
    return {path: figure for path, (_, figure) in figures.items()}


def test_the_page_is_up_to_date():
    documented = rows.documented()
    for path, figure in every_figure().items():
        row = figure.row()
        row.pop("path")
        assert documented.get(path) == row, f"docs/TRUTH.md is not up to date at {path}: run tools/truth"
    assert set(documented) == set(every_figure()), "docs/TRUTH.md has rows that no test has: run tools/truth"


# Numbers that are no figures: identities and places, settings as they were given, how another number is to be read, and
# counts of what went wrong, 0 in a sound run (each is provoked by a test of its own in tests/unit and tests/e2e).
# Everything else that an output shows is measured, counted or derived, and has a row.
NO_FIGURES = {
    "run": """
        schema.* run.attached
        groups[].process groups[].thread groups[].first_span groups[].spans
        spans[].depth spans[].parent spans[].group spans[].line
        steps[].group epochs[].group steps[].slowest[].index steps[].slowest[].thread
        epochs[].slowest[].index epochs[].slowest[].thread
        steps[].p50_interval.needed steps[].p95_interval.needed epochs[].p50_interval.needed
        epochs[].p95_interval.needed aggregates[].every aggregates[].line facts[].line facts[].process
        operators[].modules modules[].parent modules[].depth
        threads[].tid threads[].pid threads[].process threads[].stream
        processes[].number processes[].pid processes[].parent_pid processes[].inner_pid processes[].rank
        metrics[].key metrics[].owner tare.interval_ns usage.carbon_intensity findings[].from_ns findings[].to_ns
        run.left_running run.names_refused run.refused_processes.* run.unknown_blocks run.dropped_others
        processes[].dropped_others threads[].dropped_others threads[].missing_blocks threads[].dropped_ends
        threads[].skipped_slots threads[].unmatched_ends spans[].end_missing
        lines[].line lines[].inner_line span_lines[].line functions[].line sampled_threads[].pid sampled_threads[].tid
        sampled_threads[].process sampled_threads[].torn stacks[].id stacks[].parent stacks[].depth stacks[].line
        stacks[].first_line stacks[].thread
    """,
    "compare": "schema.* baseline.runs candidate.runs baseline.when_ns candidate.when_ns confidence min_change",
    "check": "schema.* baseline.runs candidate.runs baseline.when_ns candidate.when_ns gate figures[].gate "
             "figures[].floor figures[].limit",
    "history": """
        schema.* runs[].exit_status runs[].signal runs[].when_ns trends[].points[].when_ns
        trends[].changes[].when_ns
        run.exit_status run.signal run.when_ns figures.tare_baseline figures.when_ns figures.runs figures.figures[].each
    """,
    "doctor": "schema.*",
    "model": """
        schema.* ir_version opsets[].version dimensions[].value inputs[].shape[] figures.tare_baseline figures.when_ns
        figures.runs figures.figures[].each measured.configurations[].batch measured.configurations[].threads
        measured.configurations[].latency.*.confidence measured.configurations[].latency.*.needed
        measured.thresholds[].limit
    """,
}


def numbers(value, path=""):
    """(path, number) of everything in a JSON document; rows of a table share a path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, path + "[]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def without_row(output, *documents):
    """Paths of numbers in documents that neither have a row nor are known to be no figures."""
    known = {path.partition(":")[2] for path in every_figure() if path.startswith(output + ":")}
    patterns = [one.replace("[]", "[[]]") for one in NO_FIGURES.get(output, "").split()]
    paths = {path for document in documents for path, _ in numbers(document)}
    assert paths, "nothing was looked at"
    return sorted(path for path in paths - known if not any(fnmatch.fnmatchcase(path, one) for one in patterns))


TRAINING = """
    import asyncio, time, torch, tare
    from torch.utils.data import DataLoader, TensorDataset
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(torch.randn(320, 64), torch.randint(0, 10, (320,)))
    for epoch in range(2):
        for x, y in DataLoader(data, batch_size=32):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            tare.counter("loss", loss.item())
    with tare.span("outer", samples=3):
        time.sleep(0.2)
    async def task():
        with tare.span("in a task"):
            await asyncio.sleep(0.01)
    asyncio.run(task())
    tare.mark("end")
    """
PLAIN = """
    import sys, time, tare
    for i in range(20):
        with tare.span("work", samples=4):
            time.sleep(0.002 * float(sys.argv[1]))
    """


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Traces of five runs each of a program and of the same made slower, in a folder with a history of them."""
    from conftest import Bench
    bench = Bench(tmp_path_factory.mktemp("runs"))
    script = bench.script(PLAIN)
    names = {}
    for side, factor in (("before", "1"), ("after", "1.6")):
        names[side] = [bench.folder / f"{side}{i}.tare" for i in range(5)]
        for trace in names[side]:
            bench.call(bench.command, "run", "-q", "-o", trace, "--", sys.executable, script, factor, hooked=True)
    return bench, names


def test_run(bench):
    done = bench.measured(TRAINING, run=["--shapes"], report=["--all"])
    assert without_row("run", done.json) == []


def test_compare(runs):
    bench, names = runs
    done = bench.call(bench.command, "compare", "--json", "--all", "--baseline", *names["before"], "--candidate",
                      *names["after"], status=None)
    turns = bench.call(bench.command, "compare", "--json", "--ab", "-q", "--bare", "--warmup", "0", "--rounds", "8",
                       "true", "sleep 0.05")
    one = bench.call(bench.command, "history", "compare", "last", "--json")
    documents = [json.loads(each.out) for each in (done, turns, one)]
    assert without_row("compare", *documents) == []


def test_check(runs):
    bench, names = runs
    baseline = bench.folder / "baseline.json"
    bench.call(bench.command, "baseline", "save", "-o", baseline, *names["before"])
    done = bench.call(bench.command, "check", "--json", "--baseline", baseline, *names["after"], status=None)
    assert without_row("check", json.loads(done.out)) == []


def test_history(runs):
    bench, _ = runs
    documents = [json.loads(bench.call(bench.command, "history", *words, "--json").out)
                 for words in (["list"], ["show", "last"], ["trend"])]
    assert without_row("history", *documents) == []


def test_doctor(bench):
    assert without_row("doctor", json.loads(bench.call(bench.command, "doctor", "--json", status=None).out)) == []


def test_model(bench):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    numpy = pytest.importorskip("numpy")
    helper = onnx.helper
    weights = numpy.ones((64, 32), dtype=numpy.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="fc"), helper.make_node("Relu", ["y"], ["z"], name="relu")],
        "g",
        [helper.make_tensor_value_info("x", 1, ["batch", 64])], [helper.make_tensor_value_info("z", 1, ["batch", 32])],
        [onnx.numpy_helper.from_array(weights, "w")])
    path = bench.folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    done = bench.call(bench.command, "model", "--json", "--runs", "20", "--threshold", "latency:10s", "--", path,
                      env={"TARE_ONNXRUNTIME": str(pathlib.Path(runtime.__file__).parent / "capi")})
    assert without_row("model", json.loads(done.out)) == []


def table_numbers(path):
    """(column, row, number) of every cell of a CSV file that is a number."""
    with open(path, newline="", encoding="utf-8") as text:
        for row, cells in enumerate(csv.DictReader(text)):
            for column, cell in cells.items():
                try:
                    yield column, row, float(cell)
                except (TypeError, ValueError):
                    pass


def test_csv_shows_the_numbers_of_json(bench):
    """Every number of JSON has a row, so that one of CSV that JSON lacks would have none. JSON has whole
    nanoseconds."""
    done = bench.measured(TRAINING, run=["--shapes"], report=["--all"])
    folder = bench.folder / "tables"
    bench.call(bench.command, "report", "--csv", folder, "--all", done.trace)
    known = sorted(number for _, number in numbers(done.json))

    def is_known(number, unit):
        at = bisect.bisect_left(known, number)
        return any(abs(one - number) <= max(unit, 1e-8 * abs(one)) for one in known[max(0, at - 1):at + 1])

    unknown = {f"{path.stem}.{column}" for path in folder.glob("*.csv") for column, _, number in table_numbers(path)
               if not column.endswith("row") and not is_known(number, 0.51 if column.endswith(("_ns", "value")) else 0)}
    assert not unknown, " ".join(sorted(unknown))
