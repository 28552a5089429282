"""The summary of a report as a piece of HTML, for notebooks: no script, no style that reaches outside it."""
from html import escape
from typing import Any, List, Sequence

_ROWS = 12
_COLOURS = {"critical": "#b3261e", "warning": "#9a6700", "info": "#57606a"}


def duration(ns: Any) -> str:
    """A time of so many nanoseconds, with three digits."""
    if ns is None or ns != ns:
        return "n/a"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def _size(amount: Any) -> str:
    return str(amount) if amount != amount else f"{amount / (1 << 20):,.1f} MiB"


def _table(head: Sequence[str], rows: List[Sequence[str]]) -> str:
    side = ["left"] + ["right"] * (len(head) - 1)

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:{at};white-space:pre">{escape(cell)}</{tag}>'
                                for at, cell in zip(side, cells)) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


def _findings(report: Any) -> str:
    parts = []
    for found in report.findings[:_ROWS]:
        colour = _COLOURS.get(found.severity, _COLOURS["info"])
        gain = f" <i>(saves up to {found.gain:.0%} of steady-state time)</i>" if found.gain else ""
        parts.append(f'<li><b style="color:{colour}">{escape(found.title)}</b>{gain}<br>{escape(found.evidence)}'
                     f'<br>{escape(found.advice)}</li>')
    return "<ul>" + "".join(parts) + "</ul>" if parts else ""


def _spans(report: Any) -> str:
    rows = [("  " * row.depth + row.name, f"{row.calls:,}", duration(row.total_ns), duration(row.self_ns),
             duration(row.p50_ns), duration(row.p95_ns), f"{row.share:.1%}") for row in report.spans[:_ROWS]]
    more = len(report.spans) - len(rows)
    table = _table(("span", "calls", "total", "self", "p50", "p95", "share"), rows) if rows else ""
    return table + (f"<p>{more} more in .spans</p>" if more > 0 else "")


def _steps(report: Any) -> str:
    rows = [(row.name, f"{row.count:,}", duration(row.p50_ns), duration(row.p95_ns), duration(row.max_ns),
             "n/a" if row.per_second is None else f"{row.per_second:,.1f}") for row in report.steps]
    return _table(("steps", "count", "p50", "p95", "max", "per second"), rows) if rows else ""


def _weight(report: Any) -> str:
    own = report.tare
    share = "n/a" if own.share != own.share else f"{own.share:.2%}"
    return (f'<p><small>tare: {duration(own.own_ns)} of recording inside the program ({share}), '
            f'taken off self times; trace {escape(report.path)}</small></p>')


def page(report: Any) -> str:
    """The report in a few tables."""
    run, usage = report.run, report.usage
    cpu = f"{usage.cpu_seconds:.2f} s" if usage.cpu_seconds == usage.cpu_seconds else "n/a"
    head = (f"<p><b>{escape(run.command or '')}</b> · {duration(run.elapsed_ns)} · CPU {cpu} · peak memory "
            f"{escape(_size(usage.rss_peak_bytes))} · {run.spans:,} spans</p>")
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in report.notes)
    return "<div>" + head + _findings(report) + _steps(report) + _spans(report) + notes + _weight(report) + "</div>"
