"""Passwords stay out of messages; text from files neither moves the cursor nor commands a CI system."""
import json
import pathlib
import subprocess
import sys

import pytest

from e2e_conftest import TARE, VICTIMS

SECRET = "hunter2"
PLACES = [
    "postgres://user:hunter2@127.0.0.1:1/x",
    "postgresql://user:hunter2@127.0.0.1:1/x",
    "POSTGRES://user:hunter2@127.0.0.1:1/x",
    "PostgreSQL://user:hunter2@127.0.0.1:1/x",
    "mysql://user:hunter2@127.0.0.1/x",
    "mongodb+srv://user:hunter2@127.0.0.1/x",
    "postgres://user:hunter2%zz@127.0.0.1:1/x",
    "postgres://user:%zzhunter2@127.0.0.1:1/x",
    "postgres://user:p@hunter2@127.0.0.1:1/x",
    "postgres://user:hunter2@p@127.0.0.1:1/x",
    "postgres://user:hunter2/p@127.0.0.1:1/x",
    "postgres://user:p/hunter2@127.0.0.1:1/x",
    "postgres://user:p?hunter2@127.0.0.1:1/x",
    "postgres://user:p#hunter2@127.0.0.1:1/x",
    "postgres://user:p hunter2@127.0.0.1:1/x",
    "postgres://user:p:hunter2@127.0.0.1:1/x",
    "postgres://user:p'hunter2@127.0.0.1:1/x",
    "postgres://user:[hunter2@127.0.0.1:1/x",
    "postgres://user:hunter2",
    "postgres://:hunter2@127.0.0.1:1/x",
    "postgres://user@127.0.0.1:1/x?password=hunter2",
    "postgres://user@127.0.0.1:1/x?sslmode=disable&password=hunter2",
    "postgres://user@127.0.0.1:1/x?PASSWORD=hunter2&nonsense=1",
    "postgres://" + "u" * 70 + ":hunter2@127.0.0.1:1/x",
    "https://user:hunter2@example.invalid/",
    "postgres://user:p p@q hunter2@127.0.0.1:1/x",
    "postgres://user:12 hunter2@127.0.0.1:1/x",
    "postgres://user:12;hunter2",
    "postgres://user:12#hunter2",
    "postgres://user:[hunter2",
    "postgres://user%3Ahunter2@127.0.0.1:1/x",
    "postgres://user@127.0.0.1:1/x?sslpassword=hunter2",
    "postgres:/user:hunter2@127.0.0.1/x",
    "postgresql//user:hunter2@127.0.0.1/x",
    "postgres:user:hunter2@127.0.0.1/x",
    "user:hunter2@127.0.0.1",
    "host=127.0.0.1 port=1 password=hunter2",
    "host=127.0.0.1 port=1 password = 'a hunter2'",
    "pass=hunter2",
]


@pytest.mark.parametrize("place", PLACES)
def test_no_message_has_the_password(bench, place):
    said = []
    for words in (["history"], ["history", "trend"], ["run", "-o", "t.tare", "-f", "--", "true"],
                  ["history", "--store", place], ["run", "-f", "-o", "t.tare", "--store", place, "--", "true"]):
        done = bench.tare(*words, env={"TARE_STORE": place})
        said.append(done.out + done.err)
    assert SECRET not in "".join(said), [one for one in said if SECRET in one]
    assert not [path for path in bench.folder.rglob("*") if SECRET in str(path)], "no folder has its name"
    assert any("user" in one or "127.0.0.1" in one or "history" in one for one in said)


def test_hosts_and_ports_are_still_shown(bench):
    done = bench.tare("history", env={"TARE_STORE": "postgres://user@127.0.0.1:1/x"})
    assert "127.0.0.1:1/x" in done.err or "127.0.0.1" in done.err


# ---- text of others ----------------------------------------------------------------------------------------------
EVIL = ["\x1b]0;owned\x07", "\x1b[2J", "\x9b2J", "‮gnp", "⁦x", "؜", "\r", "\x08" * 5, "\x7f", "\x1b[8m"]


def evil_import(bench, name):
    events = [{"ph": "X", "name": name, "ts": 1000 * i, "dur": 500, "pid": 1, "tid": 1} for i in range(5)]
    events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": name}})
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": name}})
    (bench.folder / "evil.json").write_text(json.dumps({"traceEvents": events}))
    assert bench.tare("import", "-o", "evil.tare", "evil.json").status == 0
    return bench.folder / "evil.tare"


def check_harmless(text, colours=False):
    for character in text:
        code = ord(character)
        assert character in "\n\t" or not (code < 32 or 127 <= code < 160), repr(text)
        assert code not in (0x61C, 0x200E, 0x200F) and not 0x2028 <= code <= 0x202E and not 0x2066 <= code <= 0x2069
    for line in text.split("\n"):
        assert not line.lstrip().startswith("::"), line
        assert "##[" not in line and "##vso[" not in line.lower(), line


@pytest.mark.parametrize("name", [*EVIL, "::error file=x::y", "  ::error::y", "##[error]y", "x ##[command]y",
                                  "##vso[task.setvariable]y", "a\n::error::y", "a\r\n::set-output name=x::y"])
def test_reports_are_harmless(bench, name):
    trace = evil_import(bench, name)
    for words in (["report", trace], ["report", "--by", "thread", trace], ["report", "--all", trace],
                  ["report", "--all", "--by", "process", trace], ["compare", trace, trace],
                  ["check", "--baseline", trace, trace]):
        done = bench.tare(*words)
        check_harmless(done.out)
        check_harmless(done.err)


@pytest.mark.parametrize("name", ["\x1b[31m\x1b]0;owned\x07", "::error::y"])
def test_imported_history_is_harmless(bench, name):
    bench.run("ticker", bench.folder / "ledger", 1000, 20, options=["-q"])
    lines = bench.tare("history", "export").out.splitlines()
    line = json.loads(lines[-1])

    def poison(value):
        if isinstance(value, dict):
            return {key: poison(one) for key, one in value.items()}
        if isinstance(value, list):
            return [poison(one) for one in value]
        return value
    for where in (line, line.get("run", {})):
        for key in ("revision", "command", "host", "machine", "tags", "cpu_model", "kernel"):
            if isinstance(where.get(key), str):
                where[key] = name
            elif key == "revision" and key in where:
                where[key] = name
    (bench.folder / "in.jsonl").write_text("\n".join([*lines[:-1], json.dumps(line)]) + "\n")
    env = {"TARE_STORE": str(bench.folder / "second")}
    done = bench.tare("history", "import", "in.jsonl", env=env)
    check_harmless(done.out + done.err)
    for words in ([], ["show", "1"], ["trend"], ["compare", "1", "1"]):
        done = bench.tare("history", *words, env=env)
        check_harmless(done.out)
        check_harmless(done.err)
    if "\x1b" in name:
        on_terminal = bench.call(sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", TARE, "history",
                                 "show", "1", env=env, stdin=subprocess.DEVNULL)
        assert "\x1b]0" not in on_terminal.out


def test_data_for_machines_keeps_what_it_is(bench):
    """Text is made harmless for people; JSON and CSV say what was recorded."""
    trace = evil_import(bench, "::error ##[x]")
    names = [span["name"] for span in bench.json(trace)["spans"]]
    assert "::error ##[x]" in names


def on_terminal(bench, *words, **options):
    """What reaches a terminal, which adds a carriage return to each end of a line."""
    code = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    done = bench.call(sys.executable, "-c", code, TARE, *words, **options)
    return done, done.out.replace("\r\n", "\n")


def test_data_on_a_terminal_is_escaped(bench):
    """Data for machines is shown without what moves a cursor; in a pipe it is what was recorded."""
    name = "a\x1b]0;owned\x07\x9b31m\u202eb\x7fé漢"
    trace = evil_import(bench, name)
    bench.tare("history", "add", trace)
    lines = bench.tare("history", "export").out.splitlines()
    one = json.loads(lines[-1])
    for where in (one, one.get("run", {})):
        for key in ("revision", "command", "host", "machine", "directory", "trace"):
            if isinstance(where.get(key), str) or key in ("revision", "command"):
                where[key] = name
    one["id" if "id" in one else "run_id"] = "f" * len(str(one.get("id", one.get("run_id", "f" * 32))))
    (bench.folder / "in.jsonl").write_text(json.dumps(one) + "\n")
    env = {"TARE_STORE": str(bench.folder / "second"), "TERM": "xterm", "NO_COLOR": "1"}
    assert bench.tare("history", "import", "in.jsonl", env=env).status == 0
    for words in (["history", "--csv"], ["history", "--json"], ["history", "export"],
                  ["history", "show", "last", "--csv"],
                  ["history", "show", "last", "--json"], ["history", "trend", "--csv"], ["report", "--events", trace],
                  ["report", "--json", trace], ["report", "--chrome", trace], ["report", "--perfetto", trace],
                  ["report", "-o", "/dev/stdout", "--events", trace], ["report", "-o", "/dev/tty", "--events", trace],
                  ["compare", "--json", trace, trace], ["check", "--json", "--baseline", trace, trace],
                  ["check", "--all", "--github", "--baseline", trace, trace], ["clean", "--dry-run"]):
        done, shown = on_terminal(bench, *words, env=env)
        for character in shown:
            code = ord(character)
            assert character in "\n\t" or not (code < 32 or 127 <= code < 160 or code == 0x202e), (words, shown)
        if words[0] == "report" and words[1] != "--perfetto" or words[:2] == ["history", "--csv"]:
            assert ("\\u001b" in shown or "\\x1b" in shown) and "é漢" in shown, (words, shown)  # --events: always \\x1b
        if "--json" in words:
            json.loads(shown)
            assert words[0] != "report" or name in [span["name"] for span in json.loads(shown)["spans"]]
    assert name in bench.tare("history", "--csv", env=env).out
