"""Results of a model as text and as CSV."""
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..._core import Missing, unit
from ..._views import csv_text


def ms(value: Any) -> str:
    return unit(value * 1e6, "ns")


def size(value: Any) -> str:
    return unit(value, "bytes")


def count(value: Any) -> str:
    return ("at least " if getattr(value, "at_least", False) else "") + unit(value)


def rate(value: Any, what: str) -> str:
    return unit(value, f"{what}/s")


def between(reported: Any) -> str:
    """The interval, or the reason it is unavailable."""
    if isinstance(reported, Missing):
        return reported.reason
    return f"{ms(reported['low'])} to {ms(reported['high'])} at 95 %"


def precision_text(reported: Mapping[str, Any]) -> str:
    done = reported["executed"]
    if isinstance(done, Missing):
        return f"n/a ({done.reason})"
    shares = ", ".join(f"{number} in {name}" for name, number in done["operators"].items())
    return f"{shares}; {done['casts']} casts" if done["casts"] else shares


def flops_text(results: Mapping[str, Any]) -> str:
    done, speed = results["model"]["flops"], results["compute"]["flops_per_second"]
    bound = "at least " if results["model"].get("flops_at_least") else ""
    return "n/a" if isinstance(done, Missing) else f"{bound}{unit(done)}, {bound}{unit(speed, 'FLOP/s')}"


def at_least(model: Mapping[str, Any]) -> str:
    """Prefix for FLOPs and MACs of which some are not counted."""
    counted = getattr(model["flops"], "at_least", False)  # then count() says so
    return "at least " if model.get("flops_at_least") and not counted else ""


def summary(results: Mapping[str, Any]) -> str:
    """A summary that fits on a screen."""
    model, latency, rates, memory = (results[name] for name in ("model", "latency", "throughput", "memory"))
    lines = [f"{model['name']} ({model['kind']}) on {model['device']}", ""]
    rows = [("latency", f"{ms(latency['p50'])} (p50), {between(latency['intervals']['p50'])}")]
    rows += [(name, f"{ms(latency[name])}, {between(latency['intervals'][name])}") for name in ("p95", "p99")]
    rows += [("mean, max", f"{ms(latency['mean'])}, {ms(latency['max'])} of {latency['count']} runs")]
    if not isinstance(results["end_to_end"], Missing):
        rows.append(("end to end", f"{ms(results['end_to_end']['p50'])} (p50)"))
    rates_text = [rate(rates[f"{name}_per_second"], name) for name in ("samples", "tokens", "images", "requests")
                  if not isinstance(rates[f"{name}_per_second"], Missing)]
    rows += [("throughput", ", ".join(rates_text)),
             ("memory",
              f"{size(memory['peak'])} at most ({memory['source']}); activations {size(memory['activation'])}"),
             ("parameters", f"{count(model['parameters'])}, {size(model['parameter_bytes'])} of weights"),
             ("file size" if model["path"] else "in memory", size(model["size_bytes"])),
             ("FLOPs a run", flops_text(results)),
             ("computed in", precision_text(model["precision"]))]
    reported = results.get("generation")
    if isinstance(reported, Mapping):
        rows.append(("generation", f"{ms(reported['time_to_first_token']['p50'])} to the first token, "
                     f"{rate(reported['tokens_per_second'], 'tokens')}"))
    elif isinstance(reported, Missing):
        rows.append(("generation", f"n/a ({reported.reason})"))
    lines += [f"  {name:<14}{text}" for name, text in rows]
    for name, text in results["input"].get("generated", {}).items():
        lines.append(f"  {'input':<14}{name}: generated, {text}")
    for note in results.get("notes", ()):
        lines.append(f"  note: {note}")
    return "\n".join(lines)


# ---- CSV --------------------------------------------------------------------------------------------------------

Line = Tuple[str, str, str, Any, str]


def _lines_of(section: str, name: str, part: Mapping[str, Any], keys: Sequence[Tuple[str, str]]) -> List[Line]:
    return [(section, name, key, part.get(key, Missing("it was not measured")), unit) for key, unit in keys]


_LATENCY = [(key, "ms") for key in ("mean", "std", "min", "p50", "p90", "p95", "p99", "max")] + [("count", "")]
_RATES = [(f"{name}_per_second", f"{name}/s") for name in ("samples", "tokens", "images", "requests")]
_MEMORY = [(name, "bytes") for name in ("peak", "average", "added", "activation", "per_sample")] + [
    ("fragmentation", "share")]
_MODEL = [("parameters", ""), ("trainable_parameters", ""), ("parameter_bytes", "bytes"), ("size_bytes", "bytes"),
          ("flops", ""), ("macs", ""), ("flops_at_least", "")]


def _section(results: Mapping[str, Any]) -> List[Line]:
    name = results["model"]["name"]
    out = _lines_of("latency", name, results["latency"], _LATENCY)
    if not isinstance(results["end_to_end"], Missing):
        out += _lines_of("end_to_end", name, results["end_to_end"], _LATENCY)
    for key, reported in results["latency"]["intervals"].items():
        low, high = (reported, reported) if isinstance(reported, Missing) else (reported["low"], reported["high"])
        out += [("latency", name, f"{key}_low", low, "ms"), ("latency", name, f"{key}_high", high, "ms")]
    out += _lines_of("throughput", name, results["throughput"], _RATES)
    out += _lines_of("memory", name, results["memory"], _MEMORY)
    out += _lines_of("model", name, results["model"], _MODEL)
    out += _lines_of("cpu", name, results["cpu"], [("process_percent", "%"), ("machine_percent", "%"),
                                                   ("waiting_percent", "%"), ("preempted_percent", "%"),
                                                   ("page_faults_per_run", "")])
    out += _lines_of("gpu", name, results["gpu"], [("utilization_percent", "%")])
    out += _lines_of("io", name, results["io"], [(key, "bytes") for key in (
        "disk_read_bytes", "disk_written_bytes", "network_received_bytes", "network_sent_bytes")])
    reported = results.get("generation")
    if isinstance(reported, Mapping):
        for key in ("time_to_first_token", "time_between_tokens"):
            if isinstance(reported[key], Mapping):
                out += _lines_of(key, name, reported[key], _LATENCY)
        out.append(("generation", name, "tokens_per_second", reported["tokens_per_second"], "tokens/s"))
    return out


def configuration_text(configuration: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in configuration.items())


def csv_of(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]],
           layers: Optional[Mapping[str, Any]]) -> str:
    """section, name, metric, value, unit, reason: one line for each metric."""
    lines = _section(results)
    for row in rows:
        name = configuration_text(row["configuration"])
        if row["status"] != "measured":
            lines.append(("benchmark", name, "latency.p50", row["latency"], "ms"))
            continue
        for part, keys in (("latency", _LATENCY), ("throughput", _RATES), ("memory", _MEMORY)):
            lines += [("benchmark", name, f"{part}.{key}", value, unit)
                      for _, _, key, value, unit in _lines_of("", "", row[part], keys)]
    for row in (layers or {}).get("layers", ()):
        lines += _lines_of("layer", row["name"], row, [
            ("time_ms", "ms"), ("self_ms", "ms"), ("percent", "%"), ("calls", ""), ("parameters", ""), ("flops", ""),
            ("output_bytes", "bytes")])
    out = []
    for section, name, metric, value, unit in lines:
        missing = isinstance(value, Missing) or value is None or value != value
        reason = value.reason if isinstance(value, Missing) else ""
        out.append([section, name, metric, "" if missing else value, unit, reason])
    return csv_text(["section", "name", "metric", "value", "unit", "reason"], out)
