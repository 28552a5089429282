"""The report of a model as a page that needs nothing else. Every name in it is escaped."""
from html import escape
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence

from . import _core
from ._core import Missing
from ._model_text import between, configuration_text, count, flops_text, ms, precision_text, rate, size

LAYERS_MOST = 60

_STYLE = """
:root { color-scheme: light dark; --bg: #faf9f7; --surface: #fff; --ink: #1c2127; --muted: #5a636e; --line: #e2dfd9;
  --accent: #0a5aa6; --bar: #c9dbec; --warning: #7d4a00; --warning-bg: #fbf0dc; --good: #1c6b4a;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace; }
@media (prefers-color-scheme: dark) { :root { --bg: #131619; --surface: #1a1e23; --ink: #e7e9ec; --muted: #9ba5b0;
  --line: #2b3138; --accent: #84bdf2; --bar: #2c4358; --warning: #f1bd6a; --warning-bg: #34280f; --good: #79d0a8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 var(--sans);
  font-variant-numeric: tabular-nums; }
main { max-width: 1160px; margin: 0 auto; padding: 28px; }
h1 { font: 600 25px/1.3 var(--mono); margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 20px; font-weight: 650; margin: 34px 0 12px; }
p { margin: 0 0 10px; } .muted { color: var(--muted); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 12px; margin-top: 18px; }
.card, .box { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 14px 16px; }
.card b { display: block; font-size: 22px; font-weight: 650; } .card span { color: var(--muted); font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--muted); } th, td { padding: 5px 10px 5px 0; }
tr + tr td { border-top: 1px solid var(--line); } td.n, th.n { text-align: right; white-space: nowrap; }
td.name { font-family: var(--mono); font-size: 13px; overflow-wrap: anywhere; }
td div.bar { background: var(--bar); height: 10px; border-radius: 2px; min-width: 1px; }
ol { margin: 0; padding-left: 20px; } li { margin-bottom: 8px; } li i { color: var(--good); font-style: normal; }
.note { background: var(--warning-bg); color: var(--warning); border-radius: 6px; padding: 8px 12px; margin: 10px 0; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--muted); font: 12px var(--sans); }
.graphs { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 12px; }
@media (max-width: 520px) { .graphs { grid-template-columns: 1fr; } main { padding: 16px; } }
"""

WIDE, HIGH, LEFT, TOP, BOTTOM = 560.0, 220.0, 56.0, 14.0, 30.0


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML already; a head that begins with > is for numbers."""
    def cell(tag: str, head: str, text: str) -> str:
        kind = " class=n" if head.startswith(">") else " class=name" if head == "name" and tag == "td" else ""
        return f"<{tag}{kind}>{text}</{tag}>"
    top = "".join(cell("th", head, escape(head.lstrip(">"))) for head in heads)
    body = "".join("<tr>" + "".join(cell("td", head, text) for head, text in zip(heads, row)) + "</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def _reason(value: Any, show: Callable[[Any], str]) -> str:
    """A value, or n/a with its reason."""
    if isinstance(value, Missing):
        return f"<span class=muted title=\"{escape(value.reason)}\">n/a: {escape(value.reason)}</span>"
    return escape(show(value))


# ---- graphs -------------------------------------------------------------------------------------------------------

def _frame(title: str, inside: str, low: str, high: str, left: str, right: str) -> str:
    bottom = HIGH - BOTTOM
    return (f"<figure class=box style=\"margin:0\"><figcaption>{escape(title)}</figcaption>"
            f"<svg viewBox=\"0 0 {WIDE:g} {HIGH:g}\" role=img aria-label=\"{escape(title)}\">"
            f"<path d=\"M{LEFT:g} {TOP:g}V{bottom:g}H{WIDE:g}\" fill=none stroke=\"var(--line)\"/>"
            f"<text x={LEFT - 6:g} y={bottom:g} text-anchor=end>{escape(low)}</text>"
            f"<text x={LEFT - 6:g} y={TOP + 10:g} text-anchor=end>{escape(high)}</text>"
            f"<text x={LEFT:g} y={HIGH - 8:g}>{escape(left)}</text>"
            f"<text x={WIDE:g} y={HIGH - 8:g} text-anchor=end>{escape(right)}</text>{inside}</svg></figure>")


def _histogram(title: str, values: Sequence[float]) -> str:
    low, high = min(values), _core.quantile(list(values), 0.99)
    bins = max(1, min(40, len(values) // 4 or 1))
    width = (high - low) / bins or 1.0
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, max(0, int((value - low) / width)))] += 1
    step, room = (WIDE - LEFT) / bins, HIGH - TOP - BOTTOM
    bars = "".join(
        f"<rect x={LEFT + at * step:.1f} y={HIGH - BOTTOM - room * one / max(counts):.1f} width={step * 0.9:.1f} "
        f"height={room * one / max(counts):.1f} fill=\"var(--accent)\"/>" for at, one in enumerate(counts) if one)
    return _frame(title, bars, "0", f"{max(counts)} runs", f"{low:.3f} ms", f"{high:.3f} ms (p99)")


def _line(title: str, points: Sequence[Sequence[float]], show: Callable[[float], str], right: str) -> str:
    high = max(one[1] for one in points) or 1.0
    far = points[-1][0] - points[0][0] or 1.0
    room = HIGH - TOP - BOTTOM
    path = " ".join(f"{LEFT + (x - points[0][0]) / far * (WIDE - LEFT):.1f},"
                    f"{HIGH - BOTTOM - room * max(0.0, y) / high:.1f}" for x, y in points)
    inside = f"<polyline points=\"{path}\" fill=none stroke=\"var(--accent)\" stroke-width=1.5 />"
    return _frame(title, inside, "0", show(high), "0", right)


def _trade_off(rows: Sequence[Mapping[str, Any]]) -> str:
    known = [(row["latency"]["p50"], row["throughput"]["samples_per_second"], row) for row in rows
             if row["status"] == "measured" and not isinstance(row["throughput"]["samples_per_second"], Missing)]
    if len(known) < 2:
        return ""
    far, high = max(one[0] for one in known), max(one[1] for one in known)
    room = HIGH - TOP - BOTTOM
    dots = ""
    for latency, throughput, row in known:
        x, y = LEFT + latency / far * (WIDE - LEFT - 90), HIGH - BOTTOM - room * throughput / high
        fill = "var(--accent)" if "trade-off" in row["best"] else "var(--muted)"
        name = escape(configuration_text(row["configuration"]))
        dots += (f"<circle cx={x:.1f} cy={y:.1f} r=5 fill=\"{fill}\"><title>{name}</title></circle>"
                 f"<text x={x + 8:.1f} y={y + 4:.1f}>{name[:28]}</text>")
    return _frame("Latency (across) and throughput (up); the ones worth choosing in colour", dots, "0",
                  f"{high:,.0f}/s", "0 ms", f"{far * (WIDE - LEFT) / (WIDE - LEFT - 90):.2f} ms")


# ---- sections -----------------------------------------------------------------------------------------------------

def _cards(results: Mapping[str, Any]) -> str:
    model, latency, rates, memory = (results[name] for name in ("model", "latency", "throughput", "memory"))
    unit = next((name for name in ("tokens", "images", "samples") if not isinstance(
        rates[f"{name}_per_second"], Missing)), "requests")
    cards = [("latency, p50", ms(latency["p50"]), between(latency["intervals"]["p50"])),
             ("latency, p99", ms(latency["p99"]), between(latency["intervals"]["p99"])),
             ("throughput", rate(rates[f"{unit}_per_second"], unit), f"{rates.get('windows', 0)} windows"),
             ("peak memory", size(memory["peak"]), memory["source"]),
             ("parameters", count(model["parameters"]), size(model["size_bytes"])),
             ("FLOPs a run", count(model["flops"]), flops_text(results).partition(", ")[2])]
    inner = "".join(f"<div class=card>{escape(name)}<b>{escape(value)}</b><span>{escape(more)}</span></div>"
                    for name, value, more in cards)
    return f"<div class=cards>{inner}</div>"


def _details(results: Mapping[str, Any]) -> str:
    model, latency, memory, cpu, io = (results[name] for name in ("model", "latency", "memory", "cpu", "io"))
    rows = [(name, _reason(latency[name], ms), escape(between(latency["intervals"][name]))
             if name in latency["intervals"] else "") for name in ("mean", "std", "min", "p50", "p90", "p95", "p99",
                                                                  "max")]
    out = "<h2>Latency</h2>" + _table(["name", ">value", "interval"], rows)
    out += (f"<p class=muted>{latency['count']} runs after {results['warmup']['runs']} of warm-up; synchronized "
            f"{escape(latency['synchronized'])}; {latency['outliers']['mild']} mild and "
            f"{latency['outliers']['severe']} severe outliers, kept; the garbage collector was "
            f"{'on' if latency['gc']['enabled'] else 'off'} and ran {latency['gc']['collections']} times.</p>")
    parts: List[Sequence[str]] = []
    whole = results["end_to_end"]
    parts.append(("end to end, p50", _reason(whole if isinstance(whole, Missing) else whole["p50"], ms)))
    parts += [(f"{name} a second", _reason(results["throughput"][f"{name}_per_second"], lambda one: f"{one:,.1f}"))
              for name in ("samples", "tokens", "images", "requests")]
    parts += [(f"memory: {name.replace('_', ' ')}", _reason(memory[name], size))
              for name in ("peak", "average", "added", "activation", "per_sample")]
    parts.append(("memory: fragmentation", _reason(memory["fragmentation"], lambda one: f"{100 * one:.1f} %")))
    parts += [(name.replace("_", " "), _reason(model[name], count)) for name in
              ("parameters", "trainable_parameters", "flops", "macs")]
    parts.append(("computed in", escape(precision_text(model["precision"]))))
    parts += [(f"CPU: {name.replace('_', ' ')}", _reason(cpu[name], lambda one: f"{one:,.1f}")) for name in
              ("process_percent", "machine_percent", "waiting_percent", "page_faults_per_run", "waits_per_run")]
    parts.append(("GPU: utilization", _reason(results["gpu"]["utilization_percent"], lambda one: f"{one:.0f} %")))
    parts += [(name.replace("_", " "), _reason(io[name], size)) for name in
              ("disk_read_bytes", "disk_written_bytes", "network_received_bytes", "network_sent_bytes")]
    told = results.get("generation")
    if isinstance(told, Mapping):
        parts += [("time to first token, p50", escape(ms(told["time_to_first_token"]["p50"]))),
                  ("tokens generated a second", escape(f"{told['tokens_per_second']:,.1f}"))]
    elif isinstance(told, Missing):
        parts.append(("generation", _reason(told, str)))
    return out + "<h2>All figures</h2>" + _table(["name", "value"], [(escape(a), b) for a, b in parts])


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
                      escape(", ".join(row["best"]))))
    return "<h2>Configurations</h2>" + _table(["name", ">p50", ">p99", ">samples/s", "best at"], lines)


def _layers(layers: Optional[Mapping[str, Any]]) -> str:
    rows = sorted((layers or {}).get("layers", ()), key=lambda row: -row["self_ms"])
    if not rows:
        return ""
    lines = []
    for row in rows[:LAYERS_MOST]:
        share = row["percent"] if row["percent"] == row["percent"] else 0.0
        lines.append((escape(row["name"]), escape(row["type"]), escape(ms(row["time_ms"])), escape(ms(row["self_ms"])),
                      f"<div class=bar style=\"width:{max(0.0, min(100.0, share)):.1f}%\" "
                      f"title=\"{share:.1f} %\"></div>", escape(count(row["parameters"])),
                      escape(count(row["flops"]))))
    more = f"<p class=muted>{len(rows) - LAYERS_MOST} more.</p>" if len(rows) > LAYERS_MOST else ""
    return (f"<h2>Layers</h2><p class=muted>{escape((layers or {})['note'])}</p>"
            + _table(["name", "type", ">time", ">self", "share", ">parameters", ">FLOPs"], lines) + more)


def _kernels(gpu: Optional[Mapping[str, Any]]) -> str:
    if not gpu:
        return ""
    if not gpu["available"]:
        return f"<h2>GPU</h2><p class=muted>n/a: {escape(gpu['reason'])}</p>"
    lines = [(escape(row["name"]), f"{row['calls']}", f"{row['total_ms']:.3f} ms") for name in (
        "kernels", "memory_transfers") for row in (gpu.get(name) or [])[:30]]
    return "<h2>GPU</h2>" + _table(["name", ">calls", ">time"], lines)


def _graphs(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], memory: Optional[Mapping[str, Any]]) -> str:
    values = results["latency"]["samples"]
    shown = [_histogram("Latency: how often", values)]
    if len(values) > 1:
        shown.append(_line("Latency, run by run", list(enumerate(values)), lambda one: f"{one:.2f} ms",
                           f"{len(values)} runs"))
    course = (memory or {}).get("course")
    if course and len(course) > 1:
        shown.append(_line("Memory of tensors over a run", course, size, f"{course[-1][0]:.2f} ms"))
    shown.append(_trade_off(rows))
    return f"<div class=graphs style=\"margin-top:20px\">{''.join(shown)}</div>"


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
        body += _layers(layers) + _kernels(gpu) + _details(results)
    return ("<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
            f"<title>{escape(str(model['name']))}</title><style>{_STYLE}</style><main>{body}</main></html>\n")
