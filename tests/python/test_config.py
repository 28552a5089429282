"""ProfilingConfig, and settings from files and the environment."""
import json
import os
import pathlib
import re
import sys

import pytest

import tare
from tare import config

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULTS = {
    "use_torch_profiler": True, "profiler_schedule": "RECORD_AND_SAVE", "record_shapes": True, "profile_memory": True,
    "with_stack": False, "profile_data_loading": True, "profile_preprocessing": True, "profile_model_forward": True,
    "monitor_memory": True, "monitor_gpu": True, "monitor_cpu": True, "enable_optimizations": True,
    "use_mixed_precision": True, "use_compile": False, "use_channels_last": False, "save_profiles": True,
    "output_dir": "profiles",
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """A folder without settings."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_field_and_its_default():
    assert tare.ProfilingConfig().as_dict() == DEFAULTS
    assert json.loads(json.dumps(tare.create_profiling_config().as_dict())) == DEFAULTS


def test_fields_can_be_given_and_set():
    made = tare.create_profiling_config(use_torch_profiler=False, output_dir=pathlib.Path("out"), save_profiles=False)
    assert not made.use_torch_profiler and made.output_dir == "out"
    made.use_mixed_precision = False
    assert made.as_dict()["use_mixed_precision"] is False
    assert made == tare.ProfilingConfig(use_torch_profiler=False, output_dir="out", save_profiles=False,
                                        use_mixed_precision=False)


def test_names_that_do_not_exist():
    with pytest.raises(TypeError, match="no setting 'use_mixed_precison'; did you mean 'use_mixed_precision'"):
        tare.create_profiling_config(use_mixed_precison=True)
    made = tare.ProfilingConfig()
    with pytest.raises(AttributeError, match="did you mean 'with_stack'"):
        made.with_stacks = True
    with pytest.raises(TypeError):
        tare.ProfilingConfig(nonsense=1)


@pytest.mark.parametrize("name, value, error", [
    ("use_compile", 1, TypeError), ("use_compile", "yes", TypeError), ("output_dir", 5, TypeError),
    ("output_dir", "", ValueError), ("profiler_schedule", 5, TypeError), ("profiler_schedule", "SAVE", TypeError),
])
def test_values_of_another_kind(name, value, error):
    made = tare.ProfilingConfig()
    before = made.as_dict()
    with pytest.raises(error):
        setattr(made, name, value)
    assert made.as_dict() == before


def test_the_schedule_is_an_action_or_a_function():
    made = tare.ProfilingConfig()
    assert made.action(7) is tare.ProfilerAction.RECORD_AND_SAVE
    made.profiler_schedule = "warmup"
    assert made.action(0) is tare.ProfilerAction.WARMUP
    made.profiler_schedule = lambda step: "RECORD" if step % 2 else tare.ProfilerAction.NONE
    assert [made.action(step).name for step in range(3)] == ["NONE", "RECORD", "NONE"]
    assert made.as_dict()["profiler_schedule"] == "<lambda>"


def test_torchs_actions_are_accepted():
    torch = pytest.importorskip("torch")
    made = tare.ProfilingConfig(profiler_schedule=torch.profiler.ProfilerAction.RECORD)
    assert made.action(0) is tare.ProfilerAction.RECORD
    made.profiler_schedule = torch.profiler.schedule(wait=1, warmup=1, active=1)
    assert [made.action(step).name for step in range(3)] == ["NONE", "WARMUP", "RECORD_AND_SAVE"]


# ---- files and the environment ----------------------------------------------------------------------------------

def test_later_sources_win(elsewhere, monkeypatch):
    (elsewhere / "pyproject.toml").write_text(
        '[tool.other]\nuse_compile = "what"\n[tool.tare]\nuse-compile = true\nwith_stack = true\noutput_dir = "a"\n'
        'quiet = true\n')
    assert tare.load_settings() == {"use_compile": True, "with_stack": True, "output_dir": "a"}
    (elsewhere / "tare.toml").write_text('output_dir = "b"\nwith_stack = false\n')
    monkeypatch.setenv("TARE_OUTPUT_DIR", "c")
    monkeypatch.setenv("TARE_MONITOR_CPU", "off")
    monkeypatch.setenv("TARE_NO_SAMPLING", "1")  # the command's
    assert tare.load_settings() == {"use_compile": True, "with_stack": False, "output_dir": "c", "monitor_cpu": False}
    made = tare.create_profiling_config(monitor_cpu=True)
    assert (made.use_compile, made.with_stack, made.output_dir, made.monitor_cpu) == (True, False, "c", True)


def test_set_to_nothing_is_not_set():
    assert tare.load_settings(environment={"TARE_OUTPUT_DIR": "", "PATH": "/bin"}) == {}


@pytest.mark.parametrize("environment, words", [
    ({"TARE_USE_COMPILE": "perhaps"}, "TARE_USE_COMPILE: 'perhaps' is not 1 or 0"),
    ({"TARE_USE_COMPIL": "1"}, "did you mean TARE_USE_COMPILE?"),
    ({"TARE_MEMORY_MONITOR_BATCHES": "-3"}, "a whole number of 0 or more"),
    ({"TARE_PROFILER_SCHEDULE": "SAVE"}, "profiler_schedule is an action"),
])
def test_bad_variables(environment, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        tare.load_settings(environment=environment)


@pytest.mark.parametrize("text, words", [
    ("use_compil = true", "unknown setting 'use_compil'; did you mean 'use_compile'"),
    ("use_compile = 3", "tare.toml:1: use_compile must be true or false"),
    ("\nuse_compile = [1]", "tare.toml:2: a value must be a string, a number, true or false"),
    ("output_dir = 'a", "tare.toml:1: unterminated string"),
    ("what is this", "tare.toml:1: expected = and a value after the name"),
    ("use_compile = true\nuse-compile = true", "tare.toml:2: use-compile is set twice"),
    ("memory_monitor_batches = " + "9" * 5000, "tare.toml:1: a value must be"),
    ("memory_monitor_batches = 1.5", "tare.toml:1: memory_monitor_batches must be a whole number of 0 or more"),
])
def test_bad_files(elsewhere, text, words):
    (elsewhere / "tare.toml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(words)):
        tare.load_settings()


@pytest.mark.parametrize("text", ["colour = 1", "quiet = true\nintervall = 3", "what is this", "output_dir = 'a"])
def test_the_command_refuses_in_the_same_words(bench, monkeypatch, text):
    monkeypatch.chdir(bench.folder)
    (bench.folder / "tare.toml").write_text(text)
    with pytest.raises(ValueError) as refused:
        tare.load_settings(".")
    told = bench.call(bench.command, "run", "true", status=2).err
    assert str(refused.value).replace("./", "") in told


def test_a_file_that_is_no_text(elsewhere):
    (elsewhere / "tare.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8"):
        tare.load_settings()


TRICKY = '''
[project]
description = """
[tool.tare]
use_compile = true
"""
dependencies = [
    "a", # ]
    ["tool.tare"],
]
text = 'it is [not] a # comment'
[ tool . "tare" ] # ours
output_dir = "a # b \\"c\\"" # said
with_stack = true
max-size = 1_000
[tool.tare.check]
use_compile = true
[tool.other]
list = ["x",
  "use_compile = true",
]
'''


def test_what_stands_in_other_tables_and_texts_is_not_ours(elsewhere):
    (elsewhere / "pyproject.toml").write_text(TRICKY)
    assert tare.load_settings() == {"output_dir": 'a # b "c"', "with_stack": True}


def test_settings_that_others_can_write_are_not_used(elsewhere):
    (elsewhere / "tare.toml").write_text("use_compile = true\n")
    (elsewhere / "tare.toml").chmod(0o666)
    with pytest.warns(UserWarning, match="ignoring .*tare.toml: it is writable by others"):
        assert tare.load_settings() == {}


def test_yaml_needs_pyyaml(elsewhere, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (elsewhere / "trainer.yaml").write_text("enable_memory_monitoring: true\n")
    with pytest.raises(ImportError, match=re.escape("trainer.yaml: YAML files need PyYAML: pip install 'tare[yaml]'")):
        config.read_trainer_params("trainer.yaml")


def test_the_commands_settings_are_known():
    source = ROOT / "src" / "cli" / "settings.c"
    table = source.read_text().split("} known[] = {")[1].split("};")[0]
    names = {name.replace("-", "_") for name in re.findall(r'\{"([a-z-]+)"', table)}
    assert names and names <= set(config._COMMAND)


def test_settings_in_a_pipe_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "tare.toml")
    with pytest.warns(UserWarning, match="ignoring .*tare.toml: it is not a regular file"):
        assert tare.load_settings(tmp_path, {}) == {}


def test_settings_of_a_project_write_into_its_folder(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path)
    for place in (str(tmp_path / "there"), "../there", "link/there"):
        (tmp_path / "here" / "tare.toml").write_text(f'output_dir = "{place}"\n')
        with pytest.raises(ValueError, match="tare.toml:1: output_dir: '.*' is outside the directory of the settings"):
            tare.load_settings(tmp_path / "here", {})
    (tmp_path / "here" / "tare.toml").write_text('output_dir = "a/b"\n')
    assert tare.load_settings(tmp_path / "here", {}) == {"output_dir": "a/b"}
    assert tare.load_settings(tmp_path / "here", {"TARE_OUTPUT_DIR": "/x"}) == {"output_dir": "/x"}
