"""Configuration of a profiling run: ProfilingConfig, and settings from files and the environment."""
import dataclasses
import difflib
import enum
import os
import warnings
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Mapping, Optional, Union

from ._core import open_input, read_settings, setting_error

_Path = Union[str, "os.PathLike[str]"]


class ProfilerAction(enum.Enum):
    """The action of a profiler in a step; torch's actions are accepted wherever these are.

        config.profiler_schedule = tare.ProfilerAction.RECORD_AND_SAVE
    """
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def _sentence(fault: str, *words: Optional[str]) -> str:
    """The command's message about a setting; characters that C cannot represent are escaped in it."""
    plain = (None if one is None else one.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
             for one in words)
    return setting_error(fault, *plain)


def _near(name: str, names: Iterable[str], cutoff: float = 0.6) -> Optional[str]:
    return next(iter(difflib.get_close_matches(name, list(names), 1, cutoff)), None)


def _hint(name: str, names: Iterable[str]) -> str:
    near = _near(name, names)
    return f"; did you mean {near!r}?" if near else ""


def _action_of(value: Any) -> ProfilerAction:
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if isinstance(name, str) and name.upper() in ProfilerAction.__members__:
        return ProfilerAction[name.upper()]
    raise TypeError(f"profiler_schedule is an action ({', '.join(ProfilerAction.__members__)}) or a function of the "
                    f"step, not {value!r}")


@dataclass
class ProfilingConfig:
    """The options of a profiling run. Setting an unknown name or a value of the wrong type is an error.

        config = tare.ProfilingConfig(use_compile=True, output_dir="profiles")
        config.with_stack = True
    """
    # torch's profiler
    use_torch_profiler: bool = True
    profiler_schedule: Any = ProfilerAction.RECORD_AND_SAVE  #: an action, or a function from the step to one
    record_shapes: bool = True
    profile_memory: bool = True
    with_stack: bool = False
    # which parts
    profile_data_loading: bool = True
    profile_preprocessing: bool = True
    profile_model_forward: bool = True
    # the machine meanwhile
    monitor_memory: bool = True
    monitor_gpu: bool = True
    monitor_cpu: bool = True
    # optimizations
    enable_optimizations: bool = True
    use_mixed_precision: bool = True
    use_compile: bool = False
    use_channels_last: bool = False
    # what is kept
    save_profiles: bool = True
    output_dir: str = "profiles"

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _FIELDS:
            raise AttributeError(f"unknown setting {name!r}{_hint(name, _FIELDS)}")
        object.__setattr__(self, name, _checked(name, value))

    def action(self, step: int) -> ProfilerAction:
        """The scheduled action for a step.

            config.action(0) is tare.ProfilerAction.RECORD_AND_SAVE
        """
        schedule = self.profiler_schedule
        return _action_of(schedule(step) if callable(schedule) else schedule)

    def as_dict(self) -> Dict[str, Any]:
        """The options as a dict, for reports and JSON.

            json.dumps(config.as_dict())
        """
        out = {name: getattr(self, name) for name in _FIELDS}
        schedule = self.profiler_schedule
        out["profiler_schedule"] = getattr(schedule, "__name__", repr(schedule)) if callable(schedule) \
            else _action_of(schedule).name
        return out


def _checked(name: str, value: Any) -> Any:
    if name == "profiler_schedule":
        if not callable(value) or isinstance(value, enum.Enum):
            _action_of(value)
        return value
    if name == "output_dir":
        if not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"output_dir is a path, not {type(value).__name__}")
        if not os.fspath(value):
            raise ValueError("output_dir is empty")
        return os.fspath(value)
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return value


_FIELDS = tuple(field.name for field in dataclasses.fields(ProfilingConfig))


def create_profiling_config(**settings: Any) -> ProfilingConfig:
    """A ProfilingConfig from these arguments, else from TARE_* variables, tare.toml, [tool.tare] of pyproject.toml.

        config = tare.create_profiling_config(use_torch_profiler=True, save_profiles=True)
    """
    for name in settings:
        if name not in _FIELDS:
            raise TypeError(f"create_profiling_config() has no setting {name!r}{_hint(name, _FIELDS)}")
    found = {name: value for name, value in load_settings().items() if name in _FIELDS}
    found.update(settings)
    return ProfilingConfig(**found)


# ---- settings of files and the environment --------------------------------------------------------------------

_TRAINER: Dict[str, type] = {"enable_memory_monitoring": bool, "memory_monitor_batches": int}
# Of the command, which reads the same files and variables.
_COMMAND = ("output", "quiet", "max_size", "last", "buffer_size", "readable", "no_wait", "interval", "no_sampling",
            "disable", "stacks", "native", "no_stacks", "carbon", "rules", "lines", "ops", "shapes", "steps",
            "every_epochs", "tag", "no_history", "store", "live", "html", "json", "csv", "chrome", "perfetto",
            "tensorboard", "flamegraph", "folded", "speedscope", "pprof", "width", "by")
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


def _type_of(name: str) -> type:
    return _TRAINER.get(name) or (str if name in ("output_dir", "profiler_schedule") else bool)


def _take(value: Any, name: str, where: str) -> Any:
    kind = _type_of(name)
    if kind is int and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if kind is not int and isinstance(value, kind):
        try:
            return value if name in _TRAINER else _checked(name, value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from None
    words = {bool: "true or false", int: "a whole number of 0 or more", str: "a string"}[kind]
    raise ValueError(_sentence("type", where, name, words))


def _from_table(folder: str, file: str, table: str) -> Dict[str, Any]:
    path = os.path.join(folder, file)
    known = (*_FIELDS, *_TRAINER)
    found: Dict[str, Any] = {}
    refused, pairs = read_settings(path, table)
    if refused:
        warnings.warn(_sentence("ignored", path, "", refused), stacklevel=3)
    for key, value, line in pairs:
        name = key.replace("-", "_")
        where = f"{path}:{line}"
        if name in found:
            raise ValueError(_sentence("twice", where, key))
        if name in known:
            found[name] = _take(value, name, where)
        elif name not in _COMMAND:
            raise ValueError(_sentence("unknown", where, key, _near(name, (*known, *_COMMAND))))
        if name == "output_dir" and not _is_inside(value, folder):
            raise ValueError(_sentence("outside", where, name, value))
    return found


def _from_environment(environment: Mapping[str, str]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    known = (*_FIELDS, *_TRAINER)
    for variable, text in environment.items():
        name = variable[5:].lower()
        if not variable.startswith("TARE_"):
            continue
        if name not in known:
            near = _near(name, known, 0.85)
            if near and name not in _COMMAND:
                raise ValueError(_sentence("misspelt", "", variable, f"TARE_{near.upper()}"))
            continue
        value: Any = text
        if _type_of(name) is bool:
            if text.lower() not in _YES + _NO:
                raise ValueError(_sentence("switch", variable, name, text))
            value = text.lower() in _YES
        elif not text:
            continue  # set to nothing is not set
        elif _type_of(name) is int and text.isdecimal() and len(text) < 20:
            value = int(text)
        found[name] = _take(value, name, variable)
    return found


def _is_inside(output: str, folder: str) -> bool:
    """A project's settings may only write into its folder: the user who runs it did not name another one."""
    inside = os.path.realpath(folder)
    return os.path.commonpath([inside, os.path.realpath(os.path.join(folder, output))]) == inside


def load_settings(folder: Optional[_Path] = None, environment: Optional[Mapping[str, str]] = None) -> Dict[str, Any]:
    """Persistent settings by name: [tool.tare] of pyproject.toml, then tare.toml, then TARE_* variables; later ones
    take precedence. An unknown name or a value of the wrong type is a ValueError that states its location.

        tare.load_settings().get("output_dir", "profiles")
    """
    where = os.fspath(folder) if folder is not None else "."
    found: Dict[str, Any] = {}
    for name, table in (("pyproject.toml", "tool.tare"), ("tare.toml", "")):
        found.update(_from_table(where, name, table))
    found.update(_from_environment(os.environ if environment is None else environment))
    return found


# ---- a trainer's YAML -------------------------------------------------------------------------------------------

# Exceptions that PyYAML does not wrap: for values that do not match their tag ("!!int", "!!bool x") and deep nesting.
_YAML_FAILS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)


def _read_yaml(path: str) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise ImportError(f"{path}: YAML files need PyYAML: pip install 'tare[yaml]'") from None
    try:
        with open(path, encoding="utf-8", opener=open_input) as file:
            found = yaml.safe_load(file.read())
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{path}: {error}") from None
    except _YAML_FAILS as error:
        raise ValueError(f"{path} cannot be read as YAML: {error!r}") from None
    if not isinstance(found, (Mapping, type(None))):
        raise ValueError(f"{path} holds no mapping but {type(found).__name__}")
    return found or {}


_PASSED_OVER = ("batch_size", "num_workers", "epochs")  # the trainer's own


def read_trainer_params(config: Union[None, Mapping[str, Any], _Path], strict: bool = True) -> Dict[str, Any]:
    """enable_memory_monitoring and memory_monitor_batches of a mapping, a YAML file, or (None) the settings. Other
    keys belong to the trainer: unknown ones are named in a warning (strict=False: silently ignored).

        read_trainer_params({"trainer_params": {"enable_memory_monitoring": True}})
    """
    if config is None:
        return {name: value for name, value in load_settings().items() if name in _TRAINER}
    where = "the configuration"
    if not isinstance(config, Mapping):
        where = os.fspath(config)
        config = _read_yaml(where)
    if "trainer_params" in config:
        config = config["trainer_params"]
        if not isinstance(config, Mapping):
            raise ValueError(f"{where}: trainer_params is a mapping, not {type(config).__name__}")
    found: Dict[str, Any] = {}
    unknown = []
    for name, value in config.items():
        if name in _TRAINER:
            found[name] = _take(value, name, where)
        elif strict and name not in _PASSED_OVER:
            unknown.append(f"{name!r}{_hint(str(name), _TRAINER)}")
    if unknown:
        warnings.warn(f"{where}: ignored, not a setting of the monitor: {', '.join(unknown)}", UserWarning,
                      stacklevel=3)
    return found
