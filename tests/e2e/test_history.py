"""`tare history`: every run is kept, by many writers at once, in SQLite and in PostgreSQL; what cannot be kept costs a
line and nothing else."""
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import time

import pytest
from conftest import PATIENCE, TARE, VICTIMS, Bench, scaled
from postgres import Server, find
from waiting import until


@pytest.fixture(scope="module")
def server():
    made = Server()
    if made.missing:
        pytest.skip(made.missing)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, bench):
    """A folder, and a store of each kind, as TARE_STORE has it."""
    if request.param == "sqlite":
        return str(bench.folder / "history")
    server = request.getfixturevalue("server")
    name = "t" + os.urandom(6).hex()
    url = server.url.replace("/postgres?", f"/{name}?")
    psql(server.url, f"CREATE DATABASE {name}")
    return url


def psql(url, statement):
    done = subprocess.run([find("psql"), "-qtAX", url, "-c", statement], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    return done.stdout.strip()


class History:
    """A bench with a store: runs and what `tare history` says of them."""

    def __init__(self, bench, store):
        self.bench, self.store = bench, store

    def tare(self, *words, status=0, **options):
        env = {"TARE_STORE": self.store, **options.pop("env", {})}
        done = self.bench.tare(*words, env=env, **options)
        assert done.status == status, (words, done.status, done.out[-2000:], done.err[-2000:])
        return done

    def run(self, *command, options=(), status=0, **more):
        return self.tare("run", "-q", *options, "--", *command, status=status, **more)

    def __call__(self, *words, **options):
        return self.tare("history", *words, **options)

    def runs(self, *words):
        return json.loads(self("list", "--json", "-n", "0", *words).out)["runs"]


@pytest.fixture
def history(bench, store):
    return History(bench, store)


@pytest.fixture
def local(bench):
    return History(bench, str(bench.folder / "history"))


# ---- runs are kept --------------------------------------------------------------------------------

def test_runs_are_kept_with_what_they_did(history):
    history.run("true", options=["--tag", "one", "--tag", "two"])
    history.run("sh", "-c", "exit 3", status=3)
    history.run("sh", "-c", "kill -9 $$", status=137)
    killed, failed, good = history.runs()
    assert (good["command"], good["exit_status"], good["signal"], good["tags"]) == ("true", 0, None, ["one", "two"])
    assert (failed["exit_status"], killed["signal"]) == (3, 9)
    assert good["elapsed_ns"] > 0 and good["machine"] and good["host"]
    assert good["directory"] == str(history.bench.folder)
    assert pathlib.Path(good["trace"]).exists()
    assert re.fullmatch("[0-9a-f]{32}", good["id"])
    assert abs(good["when_ns"] / 1e9 - time.time()) < 3600


def test_figures_are_those_of_the_report(history):
    history.run(VICTIMS / "shown", "30", options=["-o", "trace.tare"])
    run = json.loads(history("show", "last", "--json").out)
    rows = {row["name"]: row for row in run["figures"]["figures"]}
    steps = history.bench.json(history.bench.folder / "trace.tare")["steps"]
    assert rows["step"]["n"] == steps[0]["count"]
    assert rows["step"]["value"] == pytest.approx(steps[0]["p50_ns"], abs=1)  # whole there
    assert any(name.startswith("span:") for name in rows)
    text = history("show", "last").out
    assert "run.elapsed" in text and max(map(len, text.splitlines())) <= 80


def test_git_revision_and_changes(local):
    folder = local.bench.folder
    def git(*words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
    if not shutil.which("git"):
        pytest.skip("there is no git here")
    git("init", "-q")
    (folder / "tracked").write_text("1")
    git("add", "tracked")
    git("commit", "-qm", "first")
    local.run("true")
    (folder / "tracked").write_text("2")
    local.run("true")
    dirty, clean = local.runs()
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, stdout=subprocess.PIPE, text=True).stdout.strip()
    assert head.startswith(clean["revision"].split()[0])
    # A machine under load may take longer than git is waited for.
    assert clean["dirty"] in (False, None) and dirty["dirty"] in (True, None)
    assert len(local.runs("--revision", head[:6])) == 2
    assert local.runs("--revision", "ffffffffffff") == []


@pytest.mark.parametrize("script, answers", [
    ("sleep 600", (None,)),                      # says nothing
    ("exec >&-; sleep 600", (None,)),            # says that it is done, and is not
    ("sleep 600 & echo $! >> pids; exit 0", (None,)),  # leaves somebody behind who holds its output
    ("echo ' M tracked'; sleep 600", (True, None)),
    ("exit 0", (False, None)),                   # a machine under load may take longer than git is waited for
    ("exit 128", (None,)),
])
def test_a_git_that_hangs_holds_nobody_up(local, script, answers):
    folder = local.bench.folder
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("0123456789012345678901234567890123456789\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "git").write_text(f"#!/bin/sh\necho $$ >> pids\n{script}\n")
    (folder / "bin" / "git").chmod(0o755)
    local.run("true", env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"})
    run, = local.runs()
    assert run["revision"].startswith("012345") and run["dirty"] in answers
    pids = (folder / "pids").read_text().split() if (folder / "pids").exists() else []  # killed before it could write
    until(lambda: not any(is_running(pid) for pid in pids), "git has ended")


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_switched_off(local):
    local.run("true", options=["--no-history"])
    local.run("true", env={"TARE_STORE": "off"})
    (local.bench.folder / "tare.toml").write_text("[history]\nenabled = false\n")
    local.run("true")
    assert not (local.bench.folder / "history").exists()
    (local.bench.folder / "tare.toml").write_text('[history]\nstore = "elsewhere"\ntag = "always"\n')
    done = local.run("true", env={"TARE_STORE": ""})
    assert done.err == ""
    assert (local.bench.folder / "elsewhere" / "history.db").exists()
    (local.bench.folder / "tare.toml").write_text("[history]\nenabeld = false\n")
    assert "unknown setting 'enabeld' in [history]" in local.run("true", status=2).err
    (local.bench.folder / "tare.toml").unlink()
    assert "disabled" in local(env={"TARE_STORE": "off"}, status=2).err


def test_a_session_of_a_program_is_kept(local):
    local.bench.call(VICTIMS / "own", "twice", env={"TARE_STORE": local.store, "TARE_HELPER": str(TARE)})
    wait_for(lambda: (local.bench.folder / "history" / "history.db").exists() and len(local.runs()) == 2)
    for run in local.runs():
        assert run["command"].endswith("own twice") and run["exit_status"] is None and run["trace"].endswith(".tare")


def wait_for(condition):
    """The helper keeps a session after the program has its answer."""
    until(condition, "it is kept", pause=0.05)


# ---- looking ---------------------------------------------------------------------------------------

def made_up(count, store):
    """Lines as export writes them: a figure that is 30 % higher from the middle on."""
    lines = []
    for i in range(count):
        value = 1e6 * (1.3 if i >= count // 2 else 1) * (1 + 0.01 * ((i * 7919) % 13 - 6) / 6)
        run = {"id": f"{i:08x}" + "0" * 24, "kind": "run", "when_ns": 1700000000000000000 + i * 3600 * 10**9,
               "command": "python3 train.py" if i % 4 else "./serve <b>&amp;", "directory": "/w", "host": f"h{i % 2}",
               "machine": "m", "cpu_model": "c", "revision": f"{i:012x} on main", "dirty": False, "exit_status": 0,
               "signal": None, "elapsed_ns": int(value), "trace": "/w/t.tare", "tags": ["x"] if i % 10 == 0 else []}
        figures = {"tare_baseline": 1, "kind": "run", "figures": [
            {"name": "step", "unit": "ns", "better": "lower", "exact": False, "value": value, "total": None, "n": 1}]}
        lines.append(json.dumps({"schema": {"name": "tare-history", "version": 1}, "run": run, "figures": figures}))
    return "\n".join(lines) + "\n"


def test_lists_filters_and_ids(history):
    assert "no runs in" in history().err
    assert history.runs() == [] and history("export").out == ""
    assert "no runs in" in history("show", "last", status=2).err
    done = history("import", text_in=made_up(60, history.store))
    assert "60 runs added" in done.err
    assert len(history("list").out.splitlines()) == 21  # a head, and twenty
    assert len(history.runs("--command", "TRAIN.PY")) == 45
    assert len(history.runs("--host", "h1", "--tag", "x")) == 0
    assert len(history.runs("--tag", "x")) == 6
    assert len(history.runs("--since", "2023-11-16", "--revision", "00000000003")) == 12
    assert history.runs("--since", "1h") == []
    rows = list(csv.DictReader(io.StringIO(history("--csv", "-n", "2").out)))
    assert [row["id"][:8] for row in rows] == ["0000003b", "0000003a"]
    assert all(len(line) <= 80 for line in history("--width", "80").out.splitlines())
    assert "is ambiguous" in history("show", "0000", status=2).err
    assert "no run 'abc'" in history("show", "abc", status=2).err
    assert "is not a run id" in history("show", "train", status=2).err
    assert json.loads(history("show", "0000003B", "--json").out)["run"]["id"].startswith("0000003b")
    history("tag", "0000003b", "kept", "again")
    assert [run["id"][:8] for run in history.runs("--tag", "kept", "--tag", "again")] == ["0000003b"]
    history("tag", "--remove", "0000003b", "kept")
    assert history.runs("--tag", "kept") == []


def test_trends_have_change_points(history):
    history("import", text_in=made_up(60, history.store))
    found = json.loads(history("trend", "step", "--command", "t", "--json").out)["trends"][0]
    assert len(found["points"]) == 45 and found["better"] == "lower"
    assert [change["verdict"] for change in found["changes"]] == ["worse"]
    first = found["points"][found["changes"][0]["at"]]
    assert int(first["id"][:8], 16) in (29, 30, 31)
    text = history("trend", "step", "--command", "train").out
    assert "+30" in text and "worse" in text and max(map(len, text.splitlines())) <= 80
    assert "did you mean 'step'" in history("trend", "stap", status=2).err
    page = history("trend", "step", "--command", "serve", "--html").out
    assert page.count("<circle") == 15 and "<script" not in page
    rows = list(csv.DictReader(io.StringIO(history("trend", "step", "--command", "train", "--csv").out)))
    assert len(rows) == 45 and sum(bool(row["after"]) for row in rows) == 1


def series(values, revision_of):
    """Runs with one figure; revisions as given."""
    lines = []
    for i, value in enumerate(values):
        run = {"id": f"{i:08x}" + "1" * 24, "kind": "run", "when_ns": 1700000000000000000 + i * 60 * 10**9,
               "command": "train",
               "directory": "/w", "host": "h", "machine": "m", "cpu_model": "c", "revision": revision_of(i),
               "dirty": False,
               "exit_status": 0, "signal": None, "elapsed_ns": int(value), "trace": "/w/t.tare", "tags": []}
        figures = {"tare_baseline": 1, "kind": "run", "figures": [
            {"name": "step", "unit": "ns", "better": "lower", "exact": False, "value": value, "total": None, "n": 1}]}
        lines.append(json.dumps({"schema": {"name": "tare-history", "version": 1}, "run": run, "figures": figures}))
    return "\n".join(lines) + "\n"


def changes_of(bench, name, lines):
    store = History(bench, str(bench.folder / name))
    store("import", text_in=lines)
    return json.loads(store("trend", "step", "--json").out)["trends"][0]


def test_repeated_runs_of_a_commit_are_one_group(bench):
    """Runs of one commit are made in one sitting, which has its own speed: that made 53 false change points in 40 flat
    series."""
    draw = random.Random(3)
    false = 0
    for one in range(scaled(12, 2)):
        values = []
        for _ in range(12):
            sitting = draw.gauss(0, 0.03)
            values += [1e7 * (1 + sitting + draw.gauss(0, 0.005)) for _ in range(6)]
        found = changes_of(bench, f"flat{one}", series(values, lambda i: f"{i // 6:012x} on main"))
        assert [group["runs"] for group in found["revisions"]] == [6] * 12
        assert all(change["at"] % 6 == 0 for change in found["changes"])
        median = sorted(values[:6])[2:4]
        assert found["revisions"][0]["value"] == pytest.approx(sum(median) / 2)
        assert (found["revisions"][0]["min"],
                found["revisions"][0]["max"]) == pytest.approx((min(values[:6]), max(values[:6])))
        false += len(found["changes"])
    assert false <= 1


def test_a_change_lies_between_revisions(bench):
    draw = random.Random(4)
    values = [1e7 * (1.2 if i >= 60 else 1) * (1 + draw.gauss(0, 0.01)) for i in range(100)]
    found = changes_of(bench, "step", series(values, lambda i: f"{i // 5:012x}"))
    change, = found["changes"]
    assert (change["at"], change["revision"], change["verdict"]) == (60, f"{12:012x}", "worse") and change["p"] <= 0.01
    # The same revision measured again later stays one group, at the place of its first run.
    again = changes_of(bench, "again", series(values + values[:5], lambda i: f"{i % 100 // 5:012x}"))
    assert again["revisions"][0]["runs"] == 10 and len(again["changes"]) == 1
    text = History(bench, str(bench.folder / "step"))("trend", "step").out
    assert "100 runs of 20 revisions" in text and "p <0.001" in text or "p 0.0" in text


def test_names_are_escaped_in_the_page(local):
    hostile = made_up(12, local.store).replace('"name": "step"', '"name": "<img src=x onerror=alert(1)>\'\\"&"')
    hostile = hostile.replace(" on main", " </title><script>")
    local("import", text_in=hostile)
    page = local("trend", "--all-machines", "--command", "serve", "<img src=x onerror=alert(1)>'\"&", "--html").out
    assert "<img" not in page and "<script" not in page and "&lt;img" in page
    one = local("trend", "<img src=x onerror=alert(1)>'\"&", "--html").out  # of one command: it is the page's title
    assert "<b>" not in one


def test_export_and_import_are_each_others_reverse(history, bench):
    history("import", text_in=made_up(7, history.store))
    history.run("true", options=["--tag", "real"])
    history("export", "-o", "all.jsonl")
    other = History(bench, str(bench.folder / "other"))
    assert "8 runs added" in other("import", "all.jsonl").err
    assert "0 runs added, 8 already present" in other("import", "all.jsonl").err
    assert other("export").out == (bench.folder / "all.jsonl").read_text()
    assert len((bench.folder / "all.jsonl").read_text().splitlines()) == 8


def test_broken_lines_are_told(local):
    lines = made_up(3, local.store).splitlines()
    for broken in ("{", "[]", "null", '{"schema": {"name": "tare-history", "version": 1}}', lines[1][:-20],
                   lines[1].replace('"id"', '"ids"'),
                   '{"schema": {"name": "tare-history", "version": 2}, "run": {}}',
                   lines[1].replace("tare-history", "tare-check"), "\x00"):
        done = local("import", text_in=lines[0] + "\n" + broken + "\n" + lines[2] + "\n", status=3)
        assert "standard input:2" in done.err, (broken, done.err)
        assert len(done.err.splitlines()) == 2, done.err
    assert len(local.runs()) == 1  # the line before it
    assert "cannot read" in local("import", "nowhere.jsonl", status=3).err


def test_prune(history):
    history("import", text_in=made_up(30, history.store))
    assert "missing --keep N" in history("prune", status=2).err
    assert "22 runs would be deleted" in history("prune", "--keep", "5", "--dry-run").err
    assert "22 runs deleted" in history("prune", "--keep", "5").err
    assert len(history.runs()) == 8  # and three that are tagged
    assert "8 runs deleted" in history("prune", "--older-than", "1d", "--include-tagged").err
    assert history.runs() == []


def test_compare(history):
    for _ in range(3):
        history.run("true")
    history.run("false", status=1)
    history.run("true")
    assert "run.elapsed" in history("compare").out
    found = json.loads(history("compare", "last", "--json").out)
    assert found["baseline"]["runs"] == 3 and found["baseline"]["command"] == "true"
    two = json.loads(history("compare", "last~1", "last", "--json").out)
    assert (two["baseline"]["command"], two["candidate"]["command"]) == ("false", "true")
    assert found["answer"].startswith("One run against 3: inconclusive.")
    assert {row["name"]: row["effect"] for row in found["figures"]}["run.elapsed"] is not None
    assert "no earlier successful run" in history("compare", "last~4", status=2).err


def test_add_traces(local):
    local.run("true", options=["--no-history", "-o", "one.tare"])
    assert "1 run added" in local("add", "one.tare", "--tag", "late").err
    assert "0 runs added, 1 already present" in local("add", "one.tare").err
    assert local.runs()[0]["tags"] == ["late"]
    (local.bench.folder / "no.tare").write_text("nothing")
    assert local("add", "no.tare", status=3).err


def test_usage(local):
    local.run("true")
    for words, says in ((["lits"], "did you mean list?"), (["--keep", "3"], "--keep cannot be combined with list"),
                        (["show"], "tare history show ID"), (["show", "a", "b"], "unexpected argument"),
                        (["--since", "tomorrow"], "is not a time"), (["-n", "x"], "not a whole number"),
                        (["trend", "--json", "--csv"], "are mutually exclusive"),
                        (["tag", "last", "a b"], "is not a valid tag"),
                        (["show", "last~99999999999999999999999"], "the history has fewer runs"),
                        (["compare", "last", "last", "--last", "5"], "--last requires exactly one run"),
                        (["trend", *["step"] * 65], "more than 64 figures"),
                        (["list", "x"], "unexpected argument 'x': tare history list\n"),
                        (["--store", "mysql://x"], "is not a valid history")):
        assert says in local(*words, status=2).err


# ---- many at once ------------------------------------------------------------------------------------

WRITERS = 8


def test_eight_writers_lose_nothing(history):
    each = scaled(12, 2)

    def write(number):
        for i in range(each):
            done = history.run("true", options=["-o", f"w{number}.{i}.tare", "--tag", f"w{number}"])
            assert done.err == ""

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    runs = history.runs()
    assert len(runs) == WRITERS * each and len({run["id"] for run in runs}) == len(runs)
    for number in range(WRITERS):
        assert sum(run["tags"] == [f"w{number}"] for run in runs) == each
    for run in runs:
        figures = json.loads(history("show", run["id"], "--json").out)["figures"]["figures"]
        assert any(row["name"] == "run.elapsed" for row in figures)
        break


def test_a_killed_writer_loses_nothing_else(local):
    """Importers are killed at any moment while others write: what was told to be there is there, and whole."""
    local.run("true", options=["-o", "first.tare"])
    env = local.bench.env({"TARE_STORE": local.store})
    (local.bench.folder / "many.jsonl").write_text(made_up(scaled(3000, 300), local.store))
    kept = 1
    for round in range(6):
        importer = subprocess.Popen([TARE, "history", "import", "many.jsonl"], env=env, cwd=local.bench.folder,
                                    stderr=subprocess.DEVNULL)
        time.sleep(0.01 * round * round)
        importer.send_signal(signal.SIGKILL)
        importer.wait()
        assert local.run("true", options=["-o", f"k{round}.tare"]).err == ""
        kept += 1
    assert len([run for run in local.runs() if run["command"] == "true"]) == kept
    with sqlite3.connect(local.bench.folder / "history" / "history.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        torn = db.execute("SELECT count(*) FROM tare_run WHERE seq NOT IN (SELECT run FROM tare_figure)").fetchone()[0]
    assert torn == 0


def test_a_reader_does_not_stop_writers(local):
    local.run("true")
    db = sqlite3.connect(local.bench.folder / "history" / "history.db", isolation_level=None)
    db.execute("BEGIN")
    assert db.execute("SELECT count(*) FROM tare_run").fetchone() == (1,)
    assert local.run("true").err == ""
    assert len(local.runs()) == 2
    assert db.execute("SELECT count(*) FROM tare_run").fetchone() == (1,)
    db.close()


# ---- what cannot be kept -----------------------------------------------------------------------------

def said_once(done, *words):
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("tare: not in the history: "), done.err
    for word in words:
        assert word in lines[0], lines[0]


def test_places_that_cannot_be_written_cost_a_line(bench):
    for place, word in (("/proc/nowhere", "cannot create the directory"),
                        ("/dev/null", "is a device, not an SQLite database"),
                        ("mysql://x/y", "is not a valid history")):
        said_once(History(bench, place).run("sh", "-c", "exit 7", status=7), word)
    (bench.folder / "text.db").write_text("this is no database, and it is long enough to be taken for one " * 20)
    said_once(History(bench, "text.db").run("true"), "is not an SQLite database")
    assert "is not an SQLite database" in History(bench, "text.db")(status=3).err
    db = sqlite3.connect(bench.folder / "mine.db")
    db.execute("CREATE TABLE mine (a)")
    db.commit()
    db.close()
    said_once(History(bench, "mine.db").run("true"), "a database of another application")
    assert sqlite3.connect(bench.folder / "mine.db").execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]


def test_a_damaged_history_costs_a_line(local):
    for i in range(3):
        local.run("true")
    path = local.bench.folder / "history" / "history.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    said_once(local.run("true"), "is damaged")
    assert "is damaged" in local(status=3).err
    path.write_bytes(whole[:5000])
    said_once(local.run("true"), "is damaged")


def test_a_newer_history_is_left_alone(local):
    local.run("true")
    path = local.bench.folder / "history" / "history.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    said_once(local.run("true"), "newer version of tare", "schema 99")
    assert "newer version of tare" in local(status=3).err


def test_a_locked_history_is_not_waited_for_for_ever(local):
    local.run("true")
    db = sqlite3.connect(local.bench.folder / "history" / "history.db", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    said_once(local.run("true"), "another program has locked the history")
    db.execute("COMMIT")
    assert local.run("true").err == ""


def test_a_full_disk_costs_a_line(local):
    """Files of this process may not grow beyond what the trace takes: as on a full disk."""
    local.run("true", options=["-o", "one.tare"])
    size = (local.bench.folder / "one.tare").stat().st_size

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    limit = max(size * 2, 16384)
    if limit > (local.bench.folder / "history" / "history.db-wal").stat().st_size:
        pytest.skip("a trace of nothing is larger here than the history's log")
    done = local.run("true", options=["--no-sampling", "-o", "two.tare"], preexec_fn=small_files)
    said_once(done)
    assert len(local.runs()) == 1
    assert local.run("true", options=["-o", "three.tare"]).err == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that its program may not write")
def test_a_folder_that_may_only_be_read(local):
    local.run("true")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tare-ro-"))
    try:
        (folder / "tmp").mkdir()
        shutil.copy(local.bench.folder / "history" / "history.db", folder)
        with sqlite3.connect(folder / "history.db") as db:
            shutil.copy(local.bench.folder / "history" / "history.db-wal", folder)
        subprocess.run([TARE, "history", "--store", local.store, "export", "-o", folder / "all.jsonl"], check=True,
                       env=local.bench.env())
        (folder / "history.db").unlink()
        (folder / "history.db-wal").unlink()
        store = folder / "store"
        subprocess.run([TARE, "history", "--store", store, "import", folder / "all.jsonl"], check=True,
                       stderr=subprocess.DEVNULL, env=local.bench.env())
        with sqlite3.connect(store / "history.db") as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        for path in store.iterdir():
            path.unlink() if path.name != "history.db" else path.chmod(0o644)
        store.chmod(0o555)
        folder.chmod(0o777)
        nobody = {"env": {**os.environ, "TARE_STORE": str(store), "TMPDIR": str(folder), "HOME": "/"}, "cwd": folder,
                  "user": 65534, "group": 65534, "extra_groups": [], "stdin": subprocess.DEVNULL,
                  "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        if subprocess.run([TARE, "--version"], **nobody).returncode != 0:
            pytest.skip("another user may not run this build")
        done = subprocess.run([TARE, "run", "-q", "--", "true"], **nobody)
        assert done.returncode == 0
        said_once(type("Said", (), {"err": done.stderr}), "no permission to write")
        done = subprocess.run([TARE, "history"], **nobody)  # but read
        assert done.returncode == 0 and "true" in done.stdout, done.stderr
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_server_that_is_not_there_costs_a_line(bench):
    done = History(bench, "postgres://me:secret@localhost:1/perf").run("true")
    if "needs libpq" in done.err:
        pytest.skip("there is no libpq here")
    said_once(done, "postgres://me@localhost:1/perf", "refused")
    assert "secret" not in done.err
    for url in ("postgres://me:sec/secret@localhost:1/p", "postgres://me:a?secret@localhost:1/p",
                "postgres://me@localhost:1/p?password=secret", "postgres://me:secret@[broken/p"):
        done = History(bench, url).run("true")
        said_once(done, "postgres://me@")
        assert "secret" not in done.err
    done = History(bench, "postgres://me:secret@localhost:1/perf")(status=3)
    assert len(done.err.splitlines()) == 1 and "secret" not in done.err


def test_a_server_that_goes_silent_is_not_waited_for(bench, tmp_path):
    """It takes the connection and says nothing."""
    import socket
    probe = History(bench, "postgres://localhost:1/x").run("true")
    if "needs libpq" in probe.err:
        pytest.skip("there is no libpq here")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        said_once(History(bench, f"postgres://x@127.0.0.1:{port}/x?sslmode=disable").run("true"),
                  "did not answer within")


def test_an_import_that_the_server_refuses_adds_nothing(bench, server):
    """In the middle of a transaction: what was put before is not told to be there."""
    name = "t" + os.urandom(6).hex()
    url = server.url.replace("/postgres?", f"/{name}?")
    psql(server.url, f"CREATE DATABASE {name}")
    history = History(bench, url)
    history.run("true", options=["-o", "first.tare"])
    (bench.folder / "runs.jsonl").write_text(made_up(5, url))
    psql(url, "ALTER TABLE tare_run ADD CHECK (seq <= 3)")
    done = history("import", "runs.jsonl", status=3)
    assert "0 runs added" in done.err and "violates check constraint" in done.err, done.err
    assert len(history.runs()) == 1


def test_a_newer_schema_in_postgres(bench, server):
    name = "t" + os.urandom(6).hex()
    url = server.url.replace("/postgres?", f"/{name}?")
    psql(server.url, f"CREATE DATABASE {name}")
    history = History(bench, url)
    history.run("true")
    assert len(history.runs()) == 1
    psql(url, "UPDATE tare_schema SET version = 99")
    said_once(history.run("true"), "newer version of tare")


def test_the_file_is_private(local):
    local.run("true")
    folder = local.bench.folder / "history"
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
