"""Tables of a trace read in this process: the same values as the command's JSON, and readable by Arrow's consumers."""
import gc
import os
import shutil
import subprocess
import sys
import threading

import pytest

import tare
from tare import _engine


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    from conftest import Bench
    bench = Bench(tmp_path_factory.mktemp("tables"))
    bench.recorded("""
        import tare, threading, time
        def work(n):
            for i in range(n):
                tare.step_begin(i)
                with tare.span("forward", samples=32):
                    with tare.span("inner é"):
                        time.sleep(0.001)
                tare.step_end()
            tare.counter("loss", 0.5)
            tare.mark("done")
        threads = [threading.Thread(target=work, args=(20,)) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    return bench, str(bench.folder / "trace.tare")


def test_rows_are_those_of_the_command(recorded):
    import json
    bench, path = recorded
    told = json.loads(subprocess.run([bench.command, "report", "--json", "--all", path], check=True,
                                     stdout=subprocess.PIPE).stdout)
    read = _engine.open(path)
    seen = 0
    for name in _engine.TABLES:
        rows = read.rows(name)
        if name == "notes":
            rows = [row["note"] for row in rows]
        if name == "metrics":
            for row in rows:
                row["points"] = row["points"] and [list(point.values()) for point in row["points"]]
        assert rows == told[name], name
        seen += len(rows)
    for name in _engine.SINGLES:
        [row], wanted = read.rows(name), dict(told[name])
        reasons = wanted.pop("reasons")
        assert row == wanted, name
        assert {key: read.absent(name, key) for key in row if read.absent(name, key)} == reasons
    assert seen > 30


def test_report(recorded):
    report = tare.open(recorded[1])
    [step] = report.steps
    assert step.count == 40 and step.numbers[0]["sum"] == 40 * 32
    assert {row.name for row in report.spans} >= {"forward", "inner é"}
    assert report.run.exit_status == 0 and not report.run.signal
    assert "signal" in repr(report.run.signal) or report.run.signal.reason
    assert len(report.spans) == len(list(report.spans)) and report.spans[0] in report.spans
    assert report.steps == [step] and report.steps != []


def test_pandas(recorded):
    pytest.importorskip("pandas")
    report = tare.open(recorded[1])
    frame = report.spans.to_pandas()
    assert frame[frame.name == "forward"].calls.sum() == 40 and list(frame) == list(report.spans[0])
    assert len(report.operators) == 0 and {"name", "calls"} <= set(report.operators.to_pandas())


@pytest.mark.parametrize("name", _engine.TABLES + _engine.SINGLES)
def test_pyarrow_reads_every_table(recorded, name):
    pyarrow = pytest.importorskip("pyarrow")
    read = _engine.open(recorded[1])
    table = pyarrow.table(tare.report(recorded[1]).spans if name == "spans" else _Stream(read, name))
    table.validate(full=True)
    assert table.to_pylist() == read.rows(name)
    field = table.schema.field(0)
    assert field.metadata[b"description"]
    if name == "spans":
        assert table.schema.field("total_ns").metadata[b"unit"] == b"ns"


class _Stream:
    def __init__(self, read, name):
        self.read, self.name = read, name

    def __arrow_c_stream__(self, requested_schema=None):
        return self.read.stream(self.name)


def test_polars_and_duckdb_read_them(recorded):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    spans = tare.open(recorded[1]).spans
    frame = polars.DataFrame(spans)
    assert frame.filter(polars.col("name") == "forward")["calls"].sum() == 40
    [(calls,)] = duckdb.sql("select sum(calls) from spans where name = 'forward'").fetchall()
    assert calls == 40


def test_pandas_reads_the_stream(recorded):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    spans = tare.open(recorded[1]).spans
    frame = pyarrow.table(spans).to_pandas()
    pandas.testing.assert_series_equal(frame["total_ns"], spans.to_pandas()["total_ns"], check_dtype=False)


def test_a_stream_outlives_its_report(recorded):
    pyarrow = pytest.importorskip("pyarrow")
    read = _engine.open(recorded[1])
    capsule, wanted = read.stream("spans"), read.rows("spans")
    del read
    gc.collect()

    class Held:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule
    assert pyarrow.table(Held()).to_pylist() == wanted


def test_memory_stays_flat_where_nobody_takes_a_stream(recorded):
    read = _engine.open(recorded[1])

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    for _ in range(200):
        read.stream("metrics"), read.rows("metrics")
    before = resident()
    for _ in range(2000):
        read.stream("metrics"), read.rows("spans")
    assert resident() - before < 8 << 20


def test_several_threads_read_at_once(recorded):
    rows = []
    threads = [threading.Thread(target=lambda: rows.append(len(tare.open(recorded[1]).spans))) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(rows) == 4 and len(set(rows)) == 1


def test_what_is_wrong(recorded, tmp_path):
    read = _engine.open(recorded[1])
    with pytest.raises(ValueError, match="unknown table 'spam'"):
        read.rows("spam")
    with pytest.raises(FileNotFoundError):
        tare.open(tmp_path / "none.tare")
    bad = tmp_path / "bad.tare"
    bad.write_bytes(b"no trace at all")
    with pytest.raises(ValueError):
        tare.open(bad)
    rules = tmp_path / "my.rules"
    rules.write_text("rule a table spam")
    with pytest.raises(ValueError, match="my.rules:1:14: unknown table"):
        tare.open(recorded[1], rules=rules)
    rules.write_text('rule mine table spans where name = "forward" when calls >= 40 say "{name} ran {calls} times"')
    assert "forward ran 40 times" in [finding.title for finding in tare.open(recorded[1], rules=rules).findings]
    assert tare.open(recorded[1]).findings != tare.open(recorded[1], rules=rules).findings


@pytest.mark.parametrize("format", ["text", "json", "html", "events", "chrome", "perfetto"])
def test_views_are_those_of_the_command(recorded, format):
    bench, path = recorded
    option = [] if format == "text" else ["--" + format]
    shown = subprocess.run([bench.command, "report", *option, path], stdout=subprocess.PIPE, check=True).stdout
    assert _engine.open(path).emit(format) == shown
    if format == "text":
        assert str(tare.open(path)) == shown.decode()
        every = subprocess.run([bench.command, "report", "--all", path], stdout=subprocess.PIPE, check=True).stdout
        assert _engine.open(path).emit("text", all=True) == every


@pytest.mark.parametrize("format", ["csv", "tensorboard"])
def test_folders_are_those_of_the_command(recorded, tmp_path, format):
    bench, path = recorded
    subprocess.run([bench.command, "report", "--" + format, tmp_path / "folder", path], check=True)
    written = {str(file.relative_to(tmp_path / "folder")): file.read_bytes()
               for file in (tmp_path / "folder").rglob("*") if file.is_file()}
    assert _engine.open(path).emit_files(format) == written and written


def test_views_that_cannot_be(recorded, tmp_path):
    trace = tmp_path / "moved.tare"
    shutil.copy(recorded[1], trace)
    read = _engine.open(trace)
    for show in (read.emit, read.emit_files):
        with pytest.raises(ValueError, match="unknown format 'spam'"):
            show("spam")
    trace.unlink()
    assert read.emit("json")  # all of it was read
    with pytest.raises((OSError, ValueError), match="moved.tare"):
        read.emit("events")


def parquet_writer(bench, tmp_path):
    """A function that calls `tare report --parquet`. The interpreter beside the command writes the files, or the first
    one on PATH: here one that has the package and PyArrow."""
    import pyarrow
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    folders = [os.path.dirname(os.path.dirname(tare.__file__)), os.path.dirname(os.path.dirname(pyarrow.__file__))]
    python.write_text(f"#!{sys.executable}\nimport sys\nsys.path[:0] = {folders}\nassert sys.argv[1:3] == ['-I', "
                      "'-c']\ncode = sys.argv[3]\nsys.argv[1:4] = []\nexec(code)\n")
    python.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": os.path.dirname(tare.__file__)}
    command = shutil.copy(bench.command, tmp_path / "bin" / "tare2")
    return lambda *words: subprocess.run([command, "report", "--parquet", *words], env=env, stderr=subprocess.PIPE,
                                         text=True)


def test_parquet_files(recorded, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet
    bench, path = recorded
    write = parquet_writer(bench, tmp_path)
    done = write(tmp_path / "tables", path)
    assert (done.returncode, done.stderr) == (0, "")
    read = _engine.open(path)
    for name in _engine.TABLES + _engine.SINGLES:
        file = tmp_path / "tables" / (name + ".parquet")
        assert pyarrow.parquet.read_table(file).to_pylist() == read.rows(name), name
        assert file.stat().st_mode & 0o777 == 0o600
    done = write(tmp_path / "no", tmp_path / "none.tare")
    assert done.returncode == 3 and "none.tare" in done.stderr and not (tmp_path / "no").exists()
    (tmp_path / "file").write_text("")
    done = write(tmp_path / "file", path)
    assert done.returncode == 1 and "cannot write" in done.stderr, done.stderr


def test_parquet_files_of_some_stack_samples(bench, tmp_path):
    """The options that choose samples apply as they do to JSON."""
    pytest.importorskip("pyarrow")
    import pyarrow.parquet
    bench.recorded("""
        import tare, threading, time
        def work(seconds):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                sum(range(1000))
        other = threading.Thread(target=work, args=(1,), name="other")
        other.start()
        with tare.span("wanted"):
            work(0.3)
        work(0.3)
        other.join()
    """)
    path = bench.folder / "trace.tare"
    write = parquet_writer(bench, tmp_path)
    everything = _engine.open(path).rows("functions")
    thread = next(row for row in _engine.open(path).rows("sampled_threads") if not row["main"])
    tid, pid = str(thread["tid"]), str(thread["pid"])
    for options, same in [(("--within", "wanted"), (None, "wanted")), (("--phase", "steady"), (None, None, "steady")),
                          (("--thread", tid, "--process", pid), (None, None, None, tid, int(pid)))]:
        folder = tmp_path / options[1]
        done = write(folder, *options, path)
        assert (done.returncode, done.stderr) == (0, "")
        read = _engine.open(path, *same)
        for name in ("functions", "lines", "sampled_threads"):
            assert pyarrow.parquet.read_table(folder / (name + ".parquet")).to_pylist() == read.rows(name), name
        assert sum(row["samples"] for row in read.rows("functions")) < sum(row["samples"] for row in everything)
    done = write(tmp_path / "idle", "--gpu-idle", path)
    shown = subprocess.run([bench.command, "report", "--json", "--gpu-idle", path], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
    assert done.returncode and shown.returncode and done.stderr == shown.stderr and "--gpu-idle" in done.stderr


def test_parquet_without_pyarrow(recorded, tmp_path):
    bench, path = recorded
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text(f"#!/bin/sh\nexec '{sys.executable}' -S \"$@\"\n")
    python.chmod(0o755)
    command = shutil.copy(bench.command, tmp_path / "bin" / "tare")
    done = subprocess.run([command, "report", "--parquet", "tables", path], cwd=tmp_path, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "LD_LIBRARY_PATH": os.path.dirname(tare.__file__)})
    assert done.returncode == 1 and "--parquet needs" in done.stderr and "PyArrow" in done.stderr, done.stderr
    assert not (tmp_path / "tables").exists()
