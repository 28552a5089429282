"""The report of a model as a page that needs nothing else. Every name in it is escaped."""
import base64
import hashlib
from html import escape
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from . import _model_charts as charts
from ._core import Missing
from ._model_text import at_least, between, configuration_text, count, flops_text, ms, precision_text, size

LAYERS_MOST = 60

_STYLE = """
:root { color-scheme: light dark; --bg: #faf9f7; --surface: #fff; --sunk: #f3f1ed; --ink: #1c2127; --soft: #3b434d;
  --muted: #5a636e; --line: #e2dfd9; --accent: #0a5aa6; --blue: #0072b2; --warning: #7d4a00; --warning-bg: #fbf0dc;
  --good: #1c6b4a; --info: #245b8c; --info-bg: #e6eff7;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace; }
@media (prefers-color-scheme: dark) { :root { --bg: #131619; --surface: #1a1e23; --sunk: #21262c; --ink: #e7e9ec;
  --soft: #c8cdd3; --muted: #9ba5b0; --line: #2b3138; --accent: #84bdf2; --blue: #5eb6ec; --warning: #f1bd6a;
  --warning-bg: #34280f; --good: #79d0a8; --info: #93c5f0; --info-bg: #172a3b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 var(--sans);
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
main { max-width: 1360px; margin: 0 auto; padding: 28px; }
.mark { font: 650 16px/1 var(--mono); letter-spacing: -.02em; color: var(--accent); margin: 0 0 12px; }
h1 { font: 600 25px/1.3 var(--mono); margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 20px; font-weight: 650; letter-spacing: -.01em; margin: 36px 0 14px; }
p { margin: 0 0 10px; } .muted { color: var(--muted); } p.muted { overflow-wrap: anywhere; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; margin: 20px 0 12px; }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 13px 18px; }
.card dt { color: var(--muted); font-size: 13px; }
.card dd { margin: 0; font-size: 12.5px; color: var(--muted); overflow-wrap: anywhere; }
.card dd.big { font-size: 22px; font-weight: 600; letter-spacing: -.02em; color: var(--ink); }
.card i { font-style: normal; font-size: 14px; font-weight: 400; letter-spacing: 0; }
.sheet { overflow: auto; background: var(--surface); border: 1px solid var(--line); border-radius: 8px; }
.sheet.tall { max-height: min(78vh, 900px); } .sheet + p { margin-top: 10px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: 13.5px; }
th, td { padding: 6px 9px; text-align: left; vertical-align: baseline; border-top: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 16px; } th:last-child, td:last-child { padding-right: 16px; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--surface); border-top: 0;
  border-bottom: 1px solid var(--line); font-weight: 600; color: var(--muted); vertical-align: bottom; }
tbody tr:first-child > * { border-top: 0; } tbody tr:hover > * { background: var(--sunk); }
td.n, th.n { text-align: right; white-space: nowrap; }
.name { width: 34%; min-width: 150px; overflow-wrap: anywhere; }
thead .name { overflow-wrap: normal; } tbody .name { font-family: var(--mono); font-size: 12.5px; }
tr.part th { padding-top: 14px; color: var(--muted); font-weight: 600; }
.tag { display: inline-block; margin-right: 6px; padding: 0 7px; border-radius: 4px; background: var(--info-bg);
  color: var(--info); font-weight: 600; font-size: 12px; white-space: nowrap; }
svg.share { width: 64px; height: 8px; margin-right: 8px; vertical-align: middle; }
.share .all { fill: var(--sunk); } .share .part { fill: var(--blue); }
ol { margin: 0; padding-left: 22px; max-width: 110ch; } li { margin-bottom: 8px; overflow-wrap: anywhere; }
li i { color: var(--good); font-style: normal; font-weight: 600; }
.note { background: var(--warning-bg); color: var(--warning); border-radius: 6px; padding: 8px 12px; margin: 10px 0; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 12px; }
.plot { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 14px 18px 10px; margin: 0;
  min-width: 0; }
.plot figcaption { font-size: 13.5px; color: var(--soft); margin-bottom: 8px; } .plot strong { color: var(--ink); }
.area { padding: 4px 10px 0 68px; } .area svg { display: block; width: 100%; overflow: visible; }
.plot text { fill: var(--muted); font: 12px var(--sans); }
.grid { stroke: var(--line); } .at { stroke: var(--muted); stroke-dasharray: 4 4; }
.course { fill: none; stroke: var(--blue); stroke-width: 1.4; stroke-linejoin: round; }
.bin, .dot { fill: var(--blue); } .other { fill: var(--muted); }
.plot text.size { font-weight: 650; fill: var(--ink); }
.plot text.size, .plot text.label { paint-order: stroke; stroke: var(--surface); stroke-width: 4px; }
.plot text.label { fill: var(--soft); }
@media (min-width: 721px) { .few .name { width: 70%; } }
@media (max-width: 720px) { main { padding: 16px; } .plot { padding: 12px; } .area { padding-left: 62px; }
  .roomy { display: none; } .name { position: sticky; left: 0; z-index: 1; background: var(--surface); min-width: 120px;
  max-width: 44vw; } thead .name { z-index: 2; } }
@media print { :root { color-scheme: light; --bg: #fff; --surface: #fff; --sunk: #f3f1ed; --ink: #000; --soft: #222;
  --muted: #444; --line: #ccc; --accent: #000; --blue: #0072b2; --warning: #7d4a00; --warning-bg: #fbf0dc; --good: #1c6b4a;
  --info: #245b8c; --info-bg: #e6eff7; } .sheet.tall { max-height: none; } .sheet { overflow: visible; }
  .plot, .card, tr { break-inside: avoid; } h2 { break-after: avoid; } thead th { position: static; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def _table(label: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; a head that begins with > is for numbers. The first column is of names; a row of one cell is
    a title between rows."""
    def cell(tag: str, head: str, text: str) -> str:
        kind = " class=n" if head.startswith(">") else " class=name" if head == heads[0] else ""
        return f"<{tag}{kind}{' scope=col' if tag == 'th' else ''}>{text}</{tag}>"

    def line(row: Sequence[str]) -> str:
        if len(row) == 1:
            return f"<tr class=part><th colspan=\"{len(heads)}\" scope=rowgroup>{row[0]}</th></tr>"
        return "<tr>" + "".join(cell("td", head, text) for head, text in zip(heads, row)) + "</tr>"
    top = "".join(cell("th", head, escape(head.lstrip(">"))) for head in heads)
    few = " class=few" if len(heads) <= 3 and all(head.startswith(">") for head in heads[1:]) else ""
    return (f"<div class=\"sheet tall\" tabindex=0 role=region aria-label=\"{escape(label)}\"><table{few}><thead><tr>{top}</tr>"
            f"</thead><tbody>{''.join(map(line, rows))}</tbody></table></div>")


def _reason(value: Any, show: Callable[[Any], str]) -> str:
    """A value, or n/a with its reason."""
    if isinstance(value, Missing):
        return f"<span class=muted title=\"{escape(value.reason)}\">n/a: {escape(value.reason)}</span>"
    return escape(show(value))


# ---- sections -----------------------------------------------------------------------------------------------------

def _cards(results: Mapping[str, Any]) -> str:
    model, latency, rates, memory = (results[name] for name in ("model", "latency", "throughput", "memory"))
    unit = next((name for name in ("tokens", "images", "samples") if not isinstance(
        rates[f"{name}_per_second"], Missing)), "requests")
    speed = rates[f"{unit}_per_second"]
    known = not isinstance(speed, Missing) and speed == speed
    cards = [("latency, p50", ms(latency["p50"]), "", between(latency["intervals"]["p50"])),
             ("latency, p99", ms(latency["p99"]), "", between(latency["intervals"]["p99"])),
             ("throughput", f"{speed:,.{0 if speed >= 1000 else 1}f}" if known else "n/a", f"{unit}/s" if known else "",
              f"{rates.get('windows', 0)} windows" if known else getattr(speed, "reason", "")),
             ("peak memory", size(memory["peak"]), "", memory["source"]),
             ("parameters", count(model["parameters"]), "",
              f"{size(model['parameter_bytes'])} of weights; "
              f"{'file size' if model['path'] else 'with buffers'} {size(model['size_bytes'])}"),
             ("FLOPs a run", at_least(model) + count(model["flops"]), "", flops_text(results).partition(", ")[2])]
    inner = "".join(f"<div class=card><dt>{escape(name)}</dt><dd class=big>{escape(value)}"
                    f"{f' <i>{escape(of)}</i>' if of else ''}</dd><dd>{escape(more)}</dd></div>"
                    for name, value, of, more in cards)
    return f"<dl class=cards>{inner}</dl>"


def _latency(results: Mapping[str, Any]) -> str:
    latency = results["latency"]
    rows = [(name, _reason(latency[name], ms), escape(between(latency["intervals"][name]))
             if name in latency["intervals"] else "") for name in ("mean", "std", "min", "p50", "p90", "p95", "p99",
                                                                  "max")]
    return ("<h2>Latency</h2>" + _table("Latency", ["Latency", ">Value", "Interval"], rows)
            + f"<p class=muted>{latency['count']} runs after {results['warmup']['runs']} of warm-up; synchronized "
            f"{escape(latency['synchronized'])}; {latency['outliers']['mild']} mild and "
            f"{latency['outliers']['severe']} severe outliers, kept; the garbage collector was "
            f"{'on' if latency['gc']['enabled'] else 'off'} and ran {latency['gc']['collections']} times.</p>")


def _details(results: Mapping[str, Any]) -> str:
    model, memory, cpu, io = (results[name] for name in ("model", "memory", "cpu", "io"))
    parts: List[Tuple[str, ...]] = [("Time",)]
    whole = results["end_to_end"]
    parts.append(("end to end, p50", _reason(whole if isinstance(whole, Missing) else whole["p50"], ms)))
    parts += [(f"{name} a second", _reason(results["throughput"][f"{name}_per_second"], lambda one: f"{one:,.1f}"))
              for name in ("samples", "tokens", "images", "requests")]
    told = results.get("generation")
    if isinstance(told, Mapping):
        parts += [("time to first token, p50", escape(ms(told["time_to_first_token"]["p50"]))),
                  ("tokens generated a second", escape(f"{told['tokens_per_second']:,.1f}"))]
    elif isinstance(told, Missing):
        parts.append(("generation", _reason(told, str)))
    parts.append(("Memory",))
    parts += [(name.replace("_", " "), _reason(memory[name], size))
              for name in ("peak", "average", "added", "activation", "per_sample")]
    parts.append(("fragmentation", _reason(memory["fragmentation"], lambda one: f"{100 * one:.1f} %")))
    parts.append(("Model",))
    parts += [(name.replace("_", " "), _reason(model[name], count)) for name in
              ("parameters", "trainable_parameters", "flops", "macs")]
    parts.append(("computed in", escape(precision_text(model["precision"]))))
    parts.append(("Machine",))
    parts += [(title, _reason(cpu[name], lambda one, unit=unit: f"{one:,.1f}{unit}")) for name, title, unit in (
        ("process_percent", "CPU of the process", " %"), ("machine_percent", "CPU of the machine", " %"),
        ("waiting_percent", "waiting", " %"), ("preempted_percent", "runnable, but others had the CPUs", " %"),
        ("page_faults_per_run", "page faults a run", ""), ("waits_per_run", "waits a run", ""))]
    parts.append(("GPU utilization", _reason(results["gpu"]["utilization_percent"], lambda one: f"{one:.0f} %")))
    parts += [(name.rpartition("_")[0].replace("_", " "), _reason(io[name], size)) for name in
              ("disk_read_bytes", "disk_written_bytes", "network_received_bytes", "network_sent_bytes")]
    return "<h2>All figures</h2>" + _table("All figures", ["Figure", "Value"], [
        (escape(row[0]), *row[1:]) for row in parts])


def _benchmark(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    lines = []
    for row in rows:
        name = escape(configuration_text(row["configuration"]))
        if row["status"] != "measured":
            lines.append((name, "refused", "", "", escape(row["reason"])))
            continue
        lines.append((name, escape(ms(row["latency"]["p50"])), escape(ms(row["latency"]["p99"])),
                      _reason(row["throughput"]["samples_per_second"], lambda one: f"{one:,.1f}"),
                      "".join(f"<span class=tag>{escape(one)}</span>" for one in row["best"])))
    return "<h2>Configurations</h2>" + _table("Configurations", ["Configuration", ">p50", ">p99", ">Samples/s", "Best at"], lines)


def _share(percent: float) -> str:
    if percent != percent:
        return "n/a"
    return (f"<svg class=share aria-hidden=true><rect class=all width=\"100%\" height=8 rx=2 /><rect class=part "
            f"width=\"{max(0.0, min(100.0, percent)):.1f}%\" height=8 rx=2 /></svg>{percent:.1f} %")


def _layers(layers: Optional[Mapping[str, Any]]) -> str:
    rows = sorted((layers or {}).get("layers", ()), key=lambda row: -row["self_ms"])
    if not rows:
        return ""
    lines = [(escape(row["name"]), escape(row["type"]), escape(ms(row["time_ms"])), escape(ms(row["self_ms"])),
              _share(row["percent"]), escape(count(row["parameters"])), escape(count(row["flops"])))
             for row in rows[:LAYERS_MOST]]
    more = (f"<p class=muted>{len(rows) - LAYERS_MOST} more, with less time of their own, are in the JSON and CSV.</p>"
            if len(rows) > LAYERS_MOST else "")
    return (f"<h2>Layers, the longest first</h2><p class=muted>{escape((layers or {})['note'])}</p>"
            + _table("Layers", ["Layer", "Type", ">Time", ">Own time", ">Share", ">Parameters", ">FLOPs"], lines)
            + more)


def _kernels(gpu: Optional[Mapping[str, Any]]) -> str:
    if not gpu:
        return ""
    if not gpu["available"]:
        return f"<h2>GPU</h2><p class=muted>n/a: {escape(gpu['reason'])}</p>"
    found = sorted((row for name in ("kernels", "memory_transfers") for row in (gpu.get(name) or [])[:30]),
                   key=lambda row: -row["total_ms"])
    lines = [(escape(row["name"]), f"{row['calls']:,}", ms(row["total_ms"]), _of_kernel(row)) for row in found]
    busy = f"<p class=muted>Busy for {ms(gpu['device_ms'])} of {ms(gpu['run_ms'])}: {escape(gpu['note'])}.</p>"
    return "<h2>GPU: kernels and copies</h2>" + busy + _table(
        "GPU", ["Kernel or copy", ">Calls", ">Time", ">Occupancy, or rate"], lines)


def _of_kernel(row: Mapping[str, Any]) -> str:
    """What torch estimates of a kernel; how fast a copy was."""
    told, unit = (row["occupancy_percent"], "%") if "occupancy_percent" in row else (row["gb_per_second"], "GB/s")
    return "" if isinstance(told, Missing) else f"{told:.3g} {unit}"


def _graphs(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], memory: Optional[Mapping[str, Any]]) -> str:
    values = results["latency"]["samples"]
    shown = [charts.histogram(values)]
    if len(values) > 1:
        shown.append(charts.course("Latency", ", run by run", list(enumerate(values)), False,
                                   ("first run", f"run {len(values):,}")))
    course = (memory or {}).get("course")
    if course and len(course) > 1:
        shown.append(charts.course("Memory of tensors", " in the course of a run", course, True,
                                   ("0", ms(course[-1][0] / 2), ms(course[-1][0]))))
    shown.append(charts.trade_off(rows))
    return f"<div class=plots>{''.join(shown)}</div>"


def page(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], layers: Optional[Mapping[str, Any]],
         memory: Optional[Mapping[str, Any]], gpu: Optional[Mapping[str, Any]], advice: Sequence[Any], graphs: bool,
         details: bool) -> str:
    """The whole page."""
    model, where = results["model"], results["machine"]
    arrays: List[Dict[str, Any]] = results["input"]["arrays"]
    shapes = ", ".join(f"{one['name']} {'×'.join(map(str, one['shape']))} {one['type']}" for one in arrays)
    body = (f"<h1>{escape(str(model['name']))}</h1><p class=muted>{escape(model['kind'])} on {escape(model['device'])}"
            f"{', ' + escape(shapes) if shapes else ''}; {escape(str(where['cpu_model'] or where['host']))}, "
            f"{where['cpus']} CPUs</p>")
    body += "".join(f"<p class=note>{escape(note)}</p>" for note in results.get("notes", ()))
    body += _cards(results)
    if graphs:
        body += _graphs(results, rows, memory)
    if advice:
        items = "".join(f"<li>{escape(str(one))}{f' <i>{escape(one.gain)}</i>' if one.gain else ''}</li>"
                        for one in advice)
        body += f"<h2>What to change</h2><ol>{items}</ol>"
    body += _benchmark(rows)
    if details:
        body += _layers(layers) + _kernels(gpu) + _latency(results) + _details(results)
    allowed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    return ("<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta http-equiv=Content-Security-Policy "
            f"content=\"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; base-uri 'none'; "
            "form-action 'none'\"><meta name=viewport content=\"width=device-width, initial-scale=1\">"
            f"<meta name=color-scheme content=\"light dark\"><title>{escape(str(model['name']))}</title>"
            f"<link rel=icon href=\"data:,\"><style>{_STYLE}</style></head><body><main>"
            f"<p class=mark aria-hidden=true>tare</p>{body}</main></body></html>\n")
