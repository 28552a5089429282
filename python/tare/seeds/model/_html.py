"""The content of a model's HTML report; the engine writes the page."""
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from ... import _core, _engine
from ..._core import Missing
from ._text import at_least, between, configuration_text, count, flops_text, ms, precision_text, size

LAYERS_MOST = 60
Section = Tuple[str, str, str, str, List[str], List[float], List[float], List[float]]


def _section(kind: str, title: str, rows: Sequence[Sequence[str]] = (), note: str = "", columns: str = "",
             x: Sequence[float] = (), y: Sequence[float] = (), z: Sequence[float] = ()) -> Section:
    return kind, title, note, columns, [cell for row in rows for cell in row], list(x), list(y), list(z)


def _reason(value: Any, show: Callable[[Any], str]) -> str:
    """A value, or n/a with its reason."""
    return f"n/a: {value.reason}" if isinstance(value, Missing) else show(value)


# ---- sections -----------------------------------------------------------------------------------------------------

def _tiles(results: Mapping[str, Any]) -> Section:
    model, latency, rates, memory = (results[name] for name in ("model", "latency", "throughput", "memory"))
    unit = next((name for name in ("tokens", "images", "samples") if not isinstance(
        rates[f"{name}_per_second"], Missing)), "requests")
    speed = rates[f"{unit}_per_second"]
    known = not isinstance(speed, Missing) and speed == speed
    return _section("tiles", "", [
        ("latency, p50", ms(latency["p50"]), between(latency["intervals"]["p50"])),
        ("latency, p99", ms(latency["p99"]), between(latency["intervals"]["p99"])),
        ("throughput", f"{speed:,.{0 if speed >= 1000 else 1}f} {unit}/s" if known else "n/a",
         f"{rates.get('windows', 0)} windows" if known else getattr(speed, "reason", "")),
        ("peak memory", size(memory["peak"]), memory["source"]),
        ("parameters", count(model["parameters"]),
         f"{size(model['parameter_bytes'])} of weights; "
         f"{'file size' if model['path'] else 'with buffers'} {size(model['size_bytes'])}"),
        ("FLOPs a run", at_least(model) + count(model["flops"]), flops_text(results).partition(", ")[2])])


def _charts(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]],
            memory: Optional[Mapping[str, Any]]) -> List[Section]:
    times = [1e6 * one for one in results["latency"]["samples"]]
    made = [_section("distribution", "Latency", x=[_core.quantile(times, 0.5), _core.quantile(times, 0.95)], y=times),
            _section("course", "Latency, run by run", [("first run", "", f"run {len(times):,}")], columns="ns",
                     x=range(len(times)), y=times)]
    course = (memory or {}).get("course")
    if course:
        end = course[-1][0]
        made.append(_section("course", "Memory of tensors in the course of a run", [("0", ms(end / 2), ms(end))],
                             columns="bytes", x=[one[0] for one in course], y=[one[1] for one in course]))
    known = [row for row in rows if row["status"] == "measured"
             and not isinstance(row["throughput"]["samples_per_second"], Missing)]
    return made + [_section("trade-off", "", [(configuration_text(row["configuration"]),) for row in known],
                            columns="samples/s", x=[1e6 * row["latency"]["p50"] for row in known],
                            y=[row["throughput"]["samples_per_second"] for row in known],
                            z=["trade-off" in row["best"] for row in known])]


def _latency(results: Mapping[str, Any]) -> Section:
    latency = results["latency"]
    rows = [(name, _reason(latency[name], ms), between(latency["intervals"][name])
             if name in latency["intervals"] else "") for name in ("mean", "std", "min", "p50", "p90", "p95", "p99",
                                                                  "max")]
    return _section("table", "Latency", rows, columns="Latency|#Value|Interval", note=(
        f"{latency['count']} runs after {results['warmup']['runs']} of warm-up; synchronized "
        f"{latency['synchronized']}; {latency['outliers']['mild']} mild and {latency['outliers']['severe']} severe "
        f"outliers, kept; the garbage collector was {'on' if latency['gc']['enabled'] else 'off'} and ran "
        f"{latency['gc']['collections']} times."))


def _details(results: Mapping[str, Any]) -> List[Section]:
    model, memory, cpu, io = (results[name] for name in ("model", "memory", "cpu", "io"))
    whole, reported = results["end_to_end"], results.get("generation")
    time = [("end to end, p50", _reason(whole if isinstance(whole, Missing) else whole["p50"], ms))]
    time += [(f"{name} a second", _reason(results["throughput"][f"{name}_per_second"], lambda one: f"{one:,.1f}"))
             for name in ("samples", "tokens", "images", "requests")]
    if isinstance(reported, Mapping):
        time += [("time to first token, p50", ms(reported["time_to_first_token"]["p50"])),
                 ("tokens generated a second", f"{reported['tokens_per_second']:,.1f}")]
    elif isinstance(reported, Missing):
        time.append(("generation", _reason(reported, str)))
    taken = [(name.replace("_", " "), _reason(memory[name], size))
             for name in ("peak", "average", "added", "activation", "per_sample")]
    taken.append(("fragmentation", _reason(memory["fragmentation"], lambda one: f"{100 * one:.1f} %")))
    of_model = [(name.replace("_", " "), _reason(model[name], count)) for name in
                ("parameters", "trainable_parameters", "flops", "macs")]
    of_model.append(("computed in", precision_text(model["precision"])))
    machine = [(title, _reason(cpu[name], lambda one, unit=unit: f"{one:,.1f}{unit}")) for name, title, unit in (
        ("process_percent", "CPU of the process", " %"), ("machine_percent", "CPU of the machine", " %"),
        ("waiting_percent", "waiting", " %"), ("preempted_percent", "runnable, but others had the CPUs", " %"),
        ("page_faults_per_run", "page faults a run", ""), ("waits_per_run", "waits a run", ""))]
    machine.append(("GPU utilization", _reason(results["gpu"]["utilization_percent"], lambda one: f"{one:.0f} %")))
    machine += [(name.rpartition("_")[0].replace("_", " "), _reason(io[name], size)) for name in
                ("disk_read_bytes", "disk_written_bytes", "network_received_bytes", "network_sent_bytes")]
    return [_section("table", f"All figures: {name}", rows, columns="Figure|Value")
            for name, rows in (("time", time), ("memory", taken), ("model", of_model), ("machine", machine))]


def _benchmark(rows: Sequence[Mapping[str, Any]]) -> List[Section]:
    lines = []
    for row in rows:
        name = configuration_text(row["configuration"])
        if row["status"] != "measured":
            lines.append((name, "refused", "", "", row["reason"]))
            continue
        lines.append((name, ms(row["latency"]["p50"]), ms(row["latency"]["p99"]),
                      _reason(row["throughput"]["samples_per_second"], lambda one: f"{one:,.1f}"),
                      ", ".join(row["best"])))
    return [_section("table", "Configurations", lines, columns="Configuration|#p50|#p99|#Samples/s|Best at")] \
        if rows else []


def _layers(layers: Optional[Mapping[str, Any]]) -> List[Section]:
    rows = sorted((layers or {}).get("layers", ()), key=lambda row: -row["self_ms"])
    if not rows:
        return []
    lines = [(row["name"], row["type"], ms(row["time_ms"]), ms(row["self_ms"]),
              f"{row['percent']:.1f} %" if row["percent"] == row["percent"] else "n/a", count(row["parameters"]),
              count(row["flops"])) for row in rows[:LAYERS_MOST]]
    more = (f"; {len(rows) - LAYERS_MOST} more, with less time of their own, are in the JSON and CSV"
            if len(rows) > LAYERS_MOST else "")
    return [_section("table", "Layers, the longest first", lines, (layers or {})["note"] + more,
                     "Layer|Type|#Time|#Own time|%Share|#Parameters|#FLOPs")]


def _kernels(gpu: Optional[Mapping[str, Any]]) -> List[Section]:
    if not gpu:
        return []
    if not gpu["available"]:
        return [_section("list", "GPU", note=f"n/a: {gpu['reason']}")]
    found = sorted((row for name in ("kernels", "memory_transfers") for row in (gpu.get(name) or [])[:30]),
                   key=lambda row: -row["total_ms"])
    return [_section("table", "GPU: kernels and copies",
                     [(row["name"], f"{row['calls']:,}", ms(row["total_ms"]), _of_kernel(row)) for row in found],
                     f"Busy for {ms(gpu['device_ms'])} of {ms(gpu['run_ms'])}: {gpu['note']}.",
                     "Kernel or copy|#Calls|#Time|#Occupancy, or rate")]


def _of_kernel(row: Mapping[str, Any]) -> str:
    """Torch's estimates for a kernel; the bandwidth of a copy."""
    reported, unit = (row["occupancy_percent"], "%") if "occupancy_percent" in row else (row["gb_per_second"], "GB/s")
    return "" if isinstance(reported, Missing) else f"{reported:.3g} {unit}"


def page(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], layers: Optional[Mapping[str, Any]],
         memory: Optional[Mapping[str, Any]], gpu: Optional[Mapping[str, Any]], advice: Sequence[Any], graphs: bool,
         details: bool) -> bytes:
    """The whole page."""
    model, where = results["model"], results["machine"]
    shapes = "".join(f", {one['name']} {'×'.join(map(str, one['shape']))} {one['type']}"
                     for one in results["input"]["arrays"])
    sections = [_tiles(results)]
    if results.get("notes"):
        sections.insert(0, _section("notes", "", [(note,) for note in results["notes"]]))
    if graphs:
        sections += _charts(results, rows, memory)
    if advice:
        sections.append(_section("list", "What to change",
                                 [(f"{one} ({one.gain})" if one.gain else str(one),) for one in advice]))
    sections += _benchmark(rows)
    if details:
        sections += [*_layers(layers), *_kernels(gpu), _latency(results), *_details(results)]
    return _engine.page(str(model["name"]), f"{model['kind']} on {model['device']}{shapes}; "
                        f"{where['cpu_model'] or where['host']}, {where['cpus']} CPUs", sections)
