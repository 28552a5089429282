"""How the package's views are written: HTML fragments for notebooks, without scripts, and CSV."""
from typing import Any, Iterable, NamedTuple, Sequence, Union


class Cell(NamedTuple):
    """A cell of an HTML table that is more than text."""
    text: str
    title: str = ""
    style: str = ""


def html_table(head: Sequence[str], rows: Iterable[Sequence[Union[str, Cell]]], left: Sequence[int] = (0,)) -> str:
    """A table; "" without rows. Columns are aligned to the right, except those in `left`. All text is escaped."""
    from html import escape  # slow to import, and rarely needed at a program's start

    def line(tag: str, cells: Sequence[Union[str, Cell]]) -> str:
        out = []
        for at, cell in enumerate(cells):
            text, title, style = cell if isinstance(cell, Cell) else Cell(cell)
            style = f"text-align:{'left' if at in left else 'right'};white-space:pre{';' if style else ''}{style}"
            more = f' title="{escape(title)}"' if title else ""
            out.append(f'<{tag} style="{style}"{more}>{escape(text)}</{tag}>')
        return "<tr>" + "".join(out) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return "<table>" + (line("th", head) if head else "") + body + "</table>" if body else ""


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """CSV with a header. A text that a spreadsheet would read as a formula is prefixed with an apostrophe."""
    import csv
    import io

    def safe(value: Any) -> Any:
        return "'" + value if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([safe(value) for value in row] for row in rows)
    return out.getvalue()
