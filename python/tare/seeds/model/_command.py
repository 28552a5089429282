"""`python -m tare profile`: a model profiled in CI. Exit status 1 for a broken threshold or a regression, 2 for usage,
3 for a model, an input or a baseline that cannot be read or run."""
import argparse
import json
import os
import sys
import warnings
from typing import Any, List, Optional

from ..._core import Missing

_EXAMPLE = """example:
  python -m tare profile --model-path model.onnx --output-dir profiling_results \\
      --threshold latency:100ms throughput:1000samples/s --baseline baseline.json
"""


class _Broken(Exception):
    """An input that cannot be read or run, as a sentence."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        print(f"{self.prog}: {message} (see --help)", file=sys.stderr)
        raise SystemExit(2)


def _limit(text: str) -> str:
    from .check import parse_threshold
    try:
        parse_threshold(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _whole(least: int) -> Any:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)
    return read


def _sizes(text: str) -> List[int]:
    return [_whole(1)(one) for one in text.split(",")]


def _shape(text: str) -> Any:
    """[NAME=]1x3x224x224[:TYPE]"""
    name, equals, rest = text.rpartition("=")
    dims, _, kind = rest.partition(":")
    parts = dims.replace(",", "x").split("x")
    if not all(one.isdecimal() and int(one) > 0 for one in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape like 1x3x224x224 or ids=1x128:int64")
    if (kind or "float32") not in _KINDS:
        raise argparse.ArgumentTypeError(f"{text!r}: {kind} is no type; there are {', '.join(_KINDS)}")
    return (name if equals else None), [int(one) for one in parts], kind or "float32"


_KINDS = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tare profile", description="Profiles a model: an ONNX file, a TorchScript or torch.export "
                     "file, or a Hugging Face folder. Writes profiling_results.json, profiling_metrics.csv and "
                     "profiling_report.html.", epilog=_EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model-path", required=True, metavar="PATH", help="the model")
    add("--output-dir", required=True, metavar="DIR", help="where the results go; it is made")
    add("--threshold", nargs="+", action="extend", default=[], type=_limit, metavar="NAME:LIMIT",
        help="latency:100ms p99:120ms throughput:1000samples/s memory:2GB …; exit status 1 when one is broken")
    add("--baseline", metavar="FILE", help="results to compare with; exit status 1 for a regression")
    add("--regression", type=float, metavar="SHARE", help="how much worse is a regression (0.05; 0.1 against another "
        "machine's baseline)")
    add("--history", metavar="DIR", help="keep these results there too, and tell the trend")
    add("--device", help="cpu (default), cuda or cuda:N")
    add("--precision", help="fp32, fp16 or bf16 (the model's own)")
    add("--runs", type=_whole(1), default=100, metavar="N", help="runs that count (100)")
    add("--warmup", type=_whole(0), default=10, metavar="N", help="runs before them, at least (10)")
    add("--batch-size", type=_sizes, metavar="N,…", help="compare batch sizes")
    add("--input", metavar="FILE", help="inputs: .npy, or .npz with arrays by name")
    add("--input-shape", type=_shape, action="append", metavar="[NAME=]SHAPE[:TYPE]",
        help="generated inputs: 1x3x224x224, input_ids=1x128:int64")
    add("--detailed", action="store_true", help="layers, operators, memory and a sweep over batch sizes as well")
    add("--json", action="store_true", help="print the results as JSON")
    add("-q", "--quiet", action="store_true", help="print only what is broken")
    return parser


def _input(options: Any) -> Any:
    if options.input and options.input_shape:
        raise _Broken("--input and --input-shape are two ways to say it: one of them")
    if options.input:
        return _from_file(options.input)
    if not options.input_shape:
        return None
    arrays = [(name, _generated(name or "", dims, kind)) for name, dims, kind in options.input_shape]
    if all(name is None for name, _ in arrays):
        return arrays[0][1] if len(arrays) == 1 else tuple(array for _, array in arrays)
    if any(name is None for name, _ in arrays):
        raise _Broken("--input-shape: all inputs have a name, or none has")
    return dict(arrays)


def _generated(name: str, dims: List[int], kind: str) -> Any:
    numpy = _need_numpy("--input-shape")
    if "mask" in name.lower():
        return numpy.ones(dims, kind)
    chance = numpy.random.default_rng(0)
    if kind.startswith("float"):
        return chance.standard_normal(dims).astype(kind)
    return chance.integers(0, 2, dims).astype(kind)


def _need_numpy(what: str) -> Any:
    try:
        import numpy
        return numpy
    except ImportError:
        raise _Broken(f"{what} needs NumPy: pip install numpy") from None


def _from_file(path: str) -> Any:
    numpy = _need_numpy("--input")
    try:
        read = numpy.load(path, allow_pickle=False)
        return {name: read[name] for name in read.files} if hasattr(read, "files") else read
    except FileNotFoundError:
        raise _Broken(f"there is no input {path}") from None
    except Exception as error:
        raise _Broken(f"the input {path} cannot be read: {error}") from None


def _profiled(options: Any) -> Any:
    from . import ModelProfiler
    data = _input(options)
    try:
        profiler = ModelProfiler(options.model_path, options.device, options.precision)
        profiler.profile(data, options.runs, options.warmup, options.detailed)
        if options.batch_size:
            profiler.benchmark([{"batch_size": size} for size in options.batch_size], options.runs, options.warmup)
        return profiler
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise _Broken(str(error)) from None


def _write(profiler: Any, folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
        profiler.export_json(os.path.join(folder, "profiling_results.json"))
        profiler.export_csv(os.path.join(folder, "profiling_metrics.csv"))
        profiler.generate_html_report(os.path.join(folder, "profiling_report.html"))
    except OSError as error:
        raise _Broken(f"the results cannot be written: {error}") from None


def _regressions(options: Any, profiler: Any) -> List[Any]:
    from .check import detect_regressions, load_baseline
    if not options.baseline:
        return []
    try:
        baseline = load_baseline(options.baseline)
        with warnings.catch_warnings(record=True) as reported:
            warnings.simplefilter("always")
            found = detect_regressions(baseline, profiler.results, options.regression)
    except (OSError, ValueError) as error:
        raise _Broken(str(error)) from None
    for one in reported:
        print(f"tare profile: {one.message}", file=sys.stderr)
    return found


def _history(options: Any, profiler: Any) -> Optional[str]:
    from .check import model_trend
    if not options.history:
        return None
    try:
        os.makedirs(options.history, exist_ok=True)
        profiler.export_json(os.path.join(options.history, f"{profiler.results['when_ns']}.json"))
        return str(model_trend(options.history))
    except (OSError, ValueError) as error:
        raise _Broken(f"the history {options.history}: {error}") from None


def _table(checks: List[Any]) -> str:
    """Limits as a table: which hold, which are broken and by how much."""
    rows = [("threshold", "measured", "", "")]
    for one in checks:
        missing = isinstance(one.value, Missing)
        rows.append((one.threshold, f"n/a: {one.value.reason}" if missing else f"{one.value:,.6g} {one.unit}".strip(),
                     "broken" if one.broken else "holds",
                     f"{one.percent:+.1f} %" if one.broken and not missing else ""))
    wide = [max(len(row[at]) for row in rows) for at in range(4)]
    return "\n".join("  " + "  ".join(cell.ljust(wide[at]) for at, cell in enumerate(row)).rstrip() for row in rows)


def main(words: List[str]) -> int:
    """The command, without its name. Its exit status."""
    options = _parser().parse_args(words)
    try:
        profiler = _profiled(options)
        _write(profiler, options.output_dir)
        regressions = _regressions(options, profiler)
        trend = _history(options, profiler)
    except _Broken as error:
        print(f"tare profile: {error}", file=sys.stderr)
        return 3
    from .check import check_thresholds
    checks = check_thresholds(profiler.results, options.threshold)
    broken = [one for one in checks if one.broken]
    if options.json:
        print(json.dumps(profiler._whole()))
    elif not options.quiet:
        print(profiler.results)
        for one in profiler.advise():
            print(f"  advice: {one}{f' ({one.gain})' if one.gain else ''}")
        if trend:
            print(f"  trend: {trend}")
        print(f"  written: {options.output_dir}")
    where = sys.stderr if options.json else sys.stdout
    if checks and (broken or not options.quiet):
        print(_table(checks), file=where)
    for regression in regressions:
        print(f"  regression: {regression}", file=where)
    return 1 if broken or regressions else 0
