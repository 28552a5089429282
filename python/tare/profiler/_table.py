"""The text table in torch's format: same columns, same order, same units."""
from typing import Any, List, Optional

from .._core import Missing

_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_BETWEEN = "  "


def time_text(us: Any, unit: Optional[str] = None) -> str:
    if isinstance(us, Missing):
        return "n/a"
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return "%.3f%s" % (us / _UNITS[unit], unit)


def memory_text(size: Any) -> str:
    if isinstance(size, Missing):
        return "n/a"
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(size) >= scale:
            return "%.2f %s" % (size / scale, unit)
    return "%d B" % size


def _share(part: Any, whole: float) -> str:
    if isinstance(part, Missing):
        return "n/a"
    return "%.2f%%" % (100.0 * part / whole) if whole else "NaN"


class _Column:
    def __init__(self, title: str, cell: Any, width: int = 12, side: str = ">") -> None:
        self.title, self.cell, self.width, self.side = title, cell, width, side

    def put(self, text: str) -> str:
        return format(text, "%s%d" % (self.side, self.width))


def _flops_column(rows: List[Any]) -> Optional[_Column]:
    known = [row.flops for row in rows if not isinstance(row.flops, Missing)]
    if not known:
        return _Column("Total FLOPs", lambda row: "n/a")
    known = [flops for flops in known if flops > 0]
    if not known:
        return None  # none of these operators has a formula
    step, least = 0, min(known)
    while least >= 1000 and step < len(_FLOPS) - 1:
        step, least = step + 1, least / 1000
    scale = 1000.0 ** step

    def cell(row: Any) -> str:
        if isinstance(row.flops, Missing):
            return "n/a"
        return "%8.3f" % (row.flops / scale) if row.flops > 0 else "--"
    return _Column("Total " + _FLOPS[step], cell)


def _cut(text: str, most: Optional[int]) -> str:
    return text[:most - 3] + "..." if most is not None and len(text) >= most - 3 else text


def _columns(rows: List[Any], wants: Any, name_most: Optional[int], shapes_most: Optional[int],
             unit: Optional[str]) -> List[_Column]:
    cpu = sum(row.self_cpu_time_total for row in rows)
    width = max(len(row.key) for row in rows) + 4
    found = [_Column("Name", lambda row: _cut(row.key, name_most), min(width, name_most or width)),
             _Column("Self CPU %", lambda row: _share(row.self_cpu_time_total, cpu)),
             _Column("Self CPU", lambda row: time_text(row.self_cpu_time_total, unit)),
             _Column("CPU total %", lambda row: _share(row.cpu_time_total, cpu)),
             _Column("CPU total", lambda row: time_text(row.cpu_time_total, unit)),
             _Column("CPU time avg", lambda row: time_text(row.cpu_time, unit))]
    if wants.device:
        found += [_Column("Self CUDA", lambda row: time_text(row.self_device_time_total, unit)),
                  _Column("Self CUDA %", lambda row: _share(row.self_device_time_total, 0)),
                  _Column("CUDA total", lambda row: time_text(row.device_time_total, unit)),
                  _Column("CUDA time avg", lambda row: time_text(row.device_time, unit))]
    if wants.memory:
        found += [_Column("CPU Mem", lambda row: memory_text(row.cpu_memory_usage)),
                  _Column("Self CPU Mem", lambda row: memory_text(row.self_cpu_memory_usage))]
    found.append(_Column("# of Calls", lambda row: str(row.count)))
    if any(row.input_shapes for row in rows):
        width = max(len(str(row.input_shapes)) for row in rows) + 4
        width = min(width, shapes_most or width)
        found.append(_Column("Input Shapes", lambda row: str(row.input_shapes)[:width], width))
    return found


def _source_column(rows: List[Any], most: Optional[int]) -> Optional[_Column]:
    lengths = [len(line) for row in rows for line in row.stack]
    if not lengths:
        return None
    width = min(max(lengths) + 4, most or max(lengths) + 4)
    return _Column("Source Location", None, width, "<")


def _trim(line: str, width: int) -> str:
    return line if len(line) <= width else "..." + line[len(line) - width + 3:]


def text(rows: List[Any], listed: List[Any], wants: Any, *, header: Optional[str], row_limit: int,
         max_src_column_width: Optional[int], max_name_column_width: Optional[int],
         max_shapes_column_width: Optional[int], time_unit: Optional[str], notes: List[str]) -> str:
    """The table of the given, already sorted rows, with shares of all rows. `wants` selects the columns; notes are
    printed below."""
    if not rows:
        return "".join(note + "\n" for note in notes)
    columns = _columns(rows, wants, max_name_column_width, max_shapes_column_width, time_unit)
    source = _source_column(rows, max_src_column_width)
    flops = _flops_column(rows) if wants.flops else None
    titles = columns + [column for column in (source, flops) if column]
    line = _BETWEEN.join("-" * column.width for column in titles) + _BETWEEN
    out = ["=" * (len(line) - len(_BETWEEN)), header] if header is not None else []
    out += [line, _BETWEEN.join(column.put(column.title) for column in titles) + _BETWEEN, line]
    for row in listed[:row_limit if row_limit >= 0 else None]:
        cells = [column.put(column.cell(row)) for column in columns]
        if source:
            cells.append(source.put(_trim(row.stack[0], source.width) if row.stack else ""))
        if flops:
            cells.append(flops.put(flops.cell(row)))
        out.append(_BETWEEN.join(cells) + _BETWEEN)
        if source:
            before = len(_BETWEEN.join(cells[:len(columns)]) + _BETWEEN)
            out += [" " * before + source.put(_trim(entry, source.width)) for entry in row.stack[1:]] + [""]
    out.append(line)
    out.append("Self CPU time total: " + time_text(sum(row.self_cpu_time_total for row in rows), time_unit))
    return "\n".join(out + notes) + "\n"
