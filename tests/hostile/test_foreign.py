"""Files of other people in the current folder, in a repository or in the environment run nothing and steer nothing."""
import os
import pathlib
import shutil
import stat
import subprocess

import pytest

from conftest import as_user
from e2e_conftest import TARE, VICTIMS


def tick(bench, *options, **more):
    return bench.tare("run", *options, "--", VICTIMS / "ticker", bench.folder / "ledger", 1000, 20, **more)


# ---- programs --------------------------------------------------------------------------------------------------
def trap(path, evidence):
    path.write_text(f"#!/bin/sh\necho ran >> '{evidence}'\ncat\n")
    path.chmod(0o755)
    return path


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@pytest.mark.parametrize("how", ["fsmonitor", "filter", "process", "hook", "included", "environment"])
def test_a_repository_runs_nothing(bench, how):
    repo, evidence = bench.folder / "repo", bench.folder / "evidence"
    repo.mkdir()

    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=repo, check=True,
                       capture_output=True)
    git("init", "-q")
    (repo / "file").write_text("one\n")
    (repo / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git("add", ".")
    git("commit", "-qm", "one")
    program = trap(bench.folder / "trap", evidence)
    env = {}
    if how == "fsmonitor":
        git("config", "core.fsmonitor", str(program))
    elif how in ("filter", "process"):
        git("config", f"filter.evil.{'clean' if how == 'filter' else 'process'}", str(program))
    elif how == "hook":
        git("config", "core.hooksPath", str(bench.folder / "hooks"))
        (bench.folder / "hooks").mkdir()
        for name in ("post-index-change", "fsmonitor-watchman", "pre-auto-gc"):
            trap(bench.folder / "hooks" / name, evidence)
    elif how == "included":
        (repo / "more.cfg").write_text(f"[filter \"evil\"]\n clean = {program}\n[core]\n fsmonitor = {program}\n")
        git("config", "include.path", "../more.cfg")
    else:
        env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": str(program),
               "GIT_EXTERNAL_DIFF": str(program), "GIT_PAGER": str(program)}
    (repo / "file").write_text("two\n")  # its content has to be looked at
    os.utime(repo / "file", (1, 1))
    evidence.unlink(missing_ok=True)
    done = bench.call(TARE, "run", "-o", "t.tare", "--", VICTIMS / "ticker", bench.folder / "ledger", 1000, 20,
                      cwd=repo, env=env)
    assert done.status == 0 and (repo / "t.tare").exists()
    assert not evidence.exists(), "something of the repository ran"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@pytest.mark.parametrize("how", ["ssh", "uploadpack", "included", "allowed"])
def test_a_repository_with_missing_objects_fetches_nothing(bench, how):
    """A partial clone fetches what is missing from a remote of its own choice, by a program of its own choice."""
    repo, evidence = bench.folder / "repo", bench.folder / "evidence"
    (repo / "d").mkdir(parents=True)

    def git(*words, check=True):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=repo, check=check,
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL).stdout.strip()
    git("init", "-q")
    (repo / "d" / "file").write_text("one\n")
    git("add", ".")
    git("commit", "-qm", "one")
    tree = git("rev-parse", "HEAD^{tree}")
    program = trap(bench.folder / "trap", evidence)
    program.write_text(f"#!/bin/sh\necho ran >> '{evidence}'\nexit 1\n")  # waits for nothing
    text = ('[core]\n repositoryformatversion = 1\n[extensions]\n partialClone = origin\n'
            '[remote "origin"]\n promisor = true\n partialclonefilter = blob:none\n')
    if how == "uploadpack":
        text += f' url = {bench.folder}\n uploadpack = "{program};git-upload-pack"\n'
    else:
        text += f' url = ssh://x/y\n[core]\n sshCommand = {program}\n'
    if how == "allowed":
        text += '[protocol]\n allow = always\n[protocol "ssh"]\n allow = always\n'
    if how == "included":
        (repo / ".git" / "more").write_text(text)
        git("config", "core.repositoryformatversion", "1")
        git("config", "extensions.partialClone", "origin")
        git("config", "include.path", "more")
    else:
        with open(repo / ".git" / "config", "a") as config:
            config.write(text)
    (repo / ".git" / "index").unlink()
    (repo / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    git("status", "--porcelain", "--untracked-files=no", check=False)
    assert evidence.exists(), "git itself runs it: the trap works"
    evidence.unlink()
    done = bench.call(TARE, "run", "-o", "t.tare", "--", VICTIMS / "ticker", bench.folder / "ledger", 1000, 20,
                      cwd=repo)
    assert done.status == 0 and (repo / "t.tare").exists()
    assert not evidence.exists(), "something of the repository ran"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_plain_repository_is_still_told_dirty(bench):
    repo = bench.folder / "repo"
    repo.mkdir()
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one", "--allow-empty"]):
        (repo / "file").write_text("one\n")
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=repo, check=True,
                       capture_output=True)
    (repo / "file").write_text("two\n")
    import json
    bench.call(TARE, "run", "-q", "-o", "t.tare", "--", VICTIMS / "ticker", bench.folder / "ledger", 1000, 20, cwd=repo)
    runs = json.loads(bench.tare("history", "--json").out)["runs"]
    assert runs[0]["dirty"] is True


def test_python_in_the_current_folder_is_not_asked_for_onnx_runtime(bench):
    evidence = bench.folder / "evidence"
    body = f"open({str(evidence)!r}, 'a').write('ran')\n"
    (bench.folder / "onnxruntime").mkdir()
    (bench.folder / "onnxruntime" / "__init__.py").write_text(body)
    (bench.folder / "onnxruntime" / "capi").mkdir()
    for name in ("os", "importlib", "sitecustomize", "usercustomize", "encodings"):
        (bench.folder / f"{name}.py").write_text(body)
    library = bench.folder / "onnxruntime" / "capi" / "libonnxruntime.so.1.99"
    build_library(bench, library, evidence)
    env = {"VIRTUAL_ENV": "", "TARE_ONNXRUNTIME": "", "PYTHONPATH": str(bench.folder)}
    (bench.folder / "m.onnx").write_bytes(b"")
    bench.tare("doctor", env=env)
    bench.tare("model", "m.onnx", env=env)
    assert not evidence.exists()


def build_library(bench, path, evidence):
    """A shared library that leaves evidence when it is loaded."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    source = bench.folder / "evil.c"
    source.write_text('#include <stdio.h>\n__attribute__((constructor)) static void ran(void) '
                      '{ FILE *f = fopen("%s", "a"); if (f) { fputs("ran", f); fclose(f); } }\n' % evidence)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), str(source)], check=True, capture_output=True)


@pytest.mark.parametrize("how", ["world writable", "a stranger's"])
def test_a_library_in_a_place_of_others_is_not_loaded(bench, how, request):
    evidence, venv = bench.folder / "evidence", bench.folder / "venv"
    capi = venv / "lib" / "python3.11" / "site-packages" / "onnxruntime" / "capi"
    capi.mkdir(parents=True)
    library = capi / "libonnxruntime.so.1.99"
    build_library(bench, library, evidence)
    if how == "world writable":
        (venv / "lib").chmod(0o777)
    else:
        os.chown(library, *request.getfixturevalue("stranger"))
    done = bench.tare("doctor", env={"VIRTUAL_ENV": str(venv)})
    assert done.status == 0 and not evidence.exists()
    (venv / "lib").chmod(0o755)
    os.chown(library, os.geteuid(), os.getegid())
    bench.tare("doctor", env={"VIRTUAL_ENV": str(venv)})
    assert evidence.exists(), "our own is"


def test_libraries_and_programs_of_the_current_folder_are_not_taken(bench):
    evidence = bench.folder / "evidence"
    for name in ("libnvidia-ml.so.1", "libsqlite3.so.0", "libpq.so.5", "libonnxruntime.so.1"):
        build_library(bench, bench.folder / name, evidence)
    for name in ("git", "python3", "sh"):
        trap(bench.folder / name, evidence)
    env = {"LD_LIBRARY_PATH": "/nonexistent:", "PATH": ":" + os.environ["PATH"], "VIRTUAL_ENV": ""}
    bench.tare("doctor", env=env)
    tick(bench, "-o", "t.tare", env=env)
    bench.tare("history", env={**env, "TARE_STORE": "postgres://u@127.0.0.1:1/x"})
    assert not evidence.exists()


@pytest.mark.parametrize("how", ["world writable", "group writable", "a stranger's", "hwcaps", "hwcaps, relative"])
def test_libraries_of_others_on_the_library_path_are_not_loaded(bench, how, request):
    evidence, place = bench.folder / "evidence", bench.folder / "libraries"
    inner = place / "glibc-hwcaps" / "x86-64-v2" if "hwcaps" in how else place
    inner.mkdir(parents=True)
    for name in ("libnvidia-ml.so.1", "libsqlite3.so.0", "libpq.so.5", "libonnxruntime.so.1"):
        build_library(bench, inner / name, evidence)
    if how == "group writable":
        os.chown(inner, os.geteuid(), 12345) if os.geteuid() == 0 else pytest.skip("needs root")
        inner.chmod(0o775)
    elif how == "a stranger's":
        os.chown(inner, *request.getfixturevalue("stranger"))
    elif how != "hwcaps, relative":
        inner.chmod(0o777)
    env = {"LD_LIBRARY_PATH": "libraries" if "relative" in how else str(place), "VIRTUAL_ENV": ""}
    for words in (["doctor"], ["history"], ["run", "-f", "-o", "t.tare", "--", "true"]):
        bench.tare(*words, env=env)
    bench.tare("history", env={**env, "TARE_STORE": "postgres://u@127.0.0.1:1/x"})
    assert not evidence.exists()
    if how == "world writable":
        inner.chmod(0o755)
        bench.tare("doctor", env=env)
        assert evidence.exists(), "our own is"


# ---- settings --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["tare.toml", "pyproject.toml"])
@pytest.mark.parametrize("how", ["world writable", "a stranger's"])
def test_settings_of_others_are_not_heeded(bench, name, how, request):
    head = "[tool.tare]\n" if name == "pyproject.toml" else ""
    settings = bench.folder / name
    settings.write_text(head + 'html = "page.html"\n')
    if how == "world writable":
        settings.chmod(0o666)
    else:
        os.chown(settings, *request.getfixturevalue("stranger"))
    done = tick(bench, "-o", "t.tare")
    assert done.status == 0 and not (bench.folder / "page.html").exists()
    assert f"ignoring {name}: it " in done.err, done.err
    os.chown(settings, os.geteuid(), os.getegid())
    settings.chmod(0o644)
    done = tick(bench, "-o", "u.tare")
    assert (bench.folder / "page.html").exists() and "not used" not in done.err


def test_check_settings_of_others_are_not_heeded(bench):
    made = bench.run("ticker", bench.folder / "ledger", 1000, 20)
    settings = bench.folder / "tare.toml"
    settings.write_text('[check]\n"elapsed" = "implausible"\n')
    assert bench.tare("check", made.trace).status == 2
    settings.chmod(0o666)
    assert "implausible" not in bench.tare("check", made.trace).err


@pytest.mark.parametrize("value", ["/tmp/stolen.html", "../stolen.html", "out/../../stolen.html", "link/stolen.html",
                                   "~/stolen.html"])
def test_settings_of_a_project_write_inside_of_it(bench, value):
    project = bench.folder / "project"
    project.mkdir()
    (project / "link").symlink_to(bench.folder)
    (project / "tare.toml").write_text(f'html = "{value}"\n')
    done = bench.call(TARE, "run", "--", "true", cwd=project)
    assert done.status == 2 and "tare.toml:1: html" in done.err and "outside" in done.err
    assert not (bench.folder / "stolen.html").exists()


def test_links_in_a_project_lead_nowhere(bench):
    project, outside = bench.folder / "project", bench.folder / "outside"
    (project / "tb" / "plugins").mkdir(parents=True)
    outside.mkdir()
    (project / "h.db").symlink_to("../outside/made.db")
    (project / "tare.toml").write_text('store = "h.db"\n')
    done = bench.call(TARE, "run", "-o", "a.tare", "--", "true", cwd=project, env={"TARE_STORE": ""})
    assert done.status == 2 and "outside" in done.err and not list(outside.iterdir())
    (project / "tare.toml").write_text('tensorboard = "tb"\n')
    shutil.rmtree(project / "tb" / "plugins")
    (project / "tb" / "plugins").symlink_to(outside)
    done = bench.call(TARE, "run", "-f", "-o", "a.tare", "--", VICTIMS / "ticker", "/dev/null", 1000, 5, cwd=project)
    assert not list(outside.iterdir()) and "is a symbolic link" in done.err, done.err


def test_settings_of_a_project_run_nothing(bench):
    made = bench.run("ticker", bench.folder / "ledger", 1000, 20)
    (bench.folder / "tare.toml").write_text(f'[check]\nrerun = "touch {bench.folder}/evidence"\n"elapsed" = "1%"\n')
    done = bench.tare("check", "-b", made.trace, made.trace)
    assert done.status == 2 and "tare.toml:2: rerun: a command can only be set with --rerun" in done.err
    assert not (bench.folder / "evidence").exists()


@pytest.mark.parametrize("text", ['store = "postgres://u:hunter2@127.0.0.1:1/x"\n',
                                  '[history]\nstore = "postgres://u:hunter2@127.0.0.1:1/x"\n',
                                  '[history]\nstore = "/tmp/elsewhere.db"\n'])
def test_settings_of_a_project_name_no_history_elsewhere(bench, text):
    (bench.folder / "tare.toml").write_text(text)
    done = bench.tare("run", "--", "true")
    assert done.status == 2 and "tare.toml:" in done.err and "hunter2" not in done.err
    (bench.folder / "tare.toml").write_text('[history]\nstore = "inside"\n')
    assert bench.tare("run", "--", "true", env={"TARE_STORE": ""}).status == 0
    (bench.folder / "tare.toml").write_text('[history]\nstore = "off"\n')
    assert bench.tare("run", "--", "true", env={"TARE_STORE": ""}).status == 0
