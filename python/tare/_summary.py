"""The summary of a report as an HTML fragment, for notebooks: no scripts, and no styles that affect other elements."""
from html import escape
from typing import Any

from ._core import unit
from ._views import html_table

_ROWS = 12
_COLOURS = {"critical": "#b3261e", "warning": "#9a6700", "info": "#57606a"}


def _findings(report: Any) -> str:
    parts = []
    for found in report.findings[:_ROWS]:
        colour = _COLOURS.get(found.severity, _COLOURS["info"])
        gain = f" <i>(saves up to {unit(found.gain, 'share')} of steady-state time)</i>" if found.gain else ""
        parts.append(f'<li><b style="color:{colour}">{escape(found.title)}</b>{gain}<br>{escape(found.evidence)}'
                     f'<br>{escape(found.advice)}</li>')
    return "<ul>" + "".join(parts) + "</ul>" if parts else ""


def _spans(report: Any) -> str:
    rows = [("  " * row.depth + row.name, unit(row.calls), unit(row.total_ns, "ns"), unit(row.self_ns, "ns"),
             unit(row.p50_ns, "ns"), unit(row.p95_ns, "ns"), unit(row.share, "share")) for row in report.spans[:_ROWS]]
    more = len(report.spans) - len(rows)
    table = html_table(("span", "calls", "total", "self", "p50", "p95", "share"), rows)
    return table + (f"<p>{more} more in .spans</p>" if more > 0 else "")


def _steps(report: Any) -> str:
    rows = [(row.name, unit(row.count), unit(row.p50_ns, "ns"), unit(row.p95_ns, "ns"), unit(row.max_ns, "ns"),
             unit(row.per_second)) for row in report.steps]
    return html_table(("steps", "count", "p50", "p95", "max", "per second"), rows)


def _overhead(report: Any) -> str:
    own = report.tare
    return (f'<p><small>tare: {unit(own.own_ns, "ns")} of overhead in the program ({unit(own.share, "share")}), '
            f'subtracted from self times; trace {escape(report.path)}</small></p>')


def page(report: Any) -> str:
    """The report in a few tables."""
    run, usage = report.run, report.usage
    head = (f"<p><b>{escape(run.command or '')}</b> · {unit(run.elapsed_ns, 'ns')} · CPU "
            f"{unit(usage.cpu_seconds, 's')} · peak memory {unit(usage.rss_peak_bytes, 'bytes')} · "
            f"{unit(run.spans, 'spans')}</p>")
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in report.notes)
    return "<div>" + head + _findings(report) + _steps(report) + _spans(report) + notes + _overhead(report) + "</div>"
