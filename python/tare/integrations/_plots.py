"""Plots of recorded values, with matplotlib if it is installed."""
import io
import math
import os
from typing import Any, Dict, List, Sequence, Tuple, Union

from .._files import write_whole

_PANELS: Sequence[Tuple[str, str]] = (("cpu", "CPU (%)"), ("memory", "Memory (%)"), ("gpu_memory", "GPU memory (GB)"))
_KINDS = ("png", "svg", "pdf", "jpg", "jpeg")


def plot_series(series: Dict[str, List[float]], path: Union[str, "os.PathLike[str]"]) -> None:
    """Draws a column over time in each panel; a column without values shows n/a. The image format is the
    path's extension, PNG without one.

        plot_series({"time_s": [0, 1], "cpu": [3.0, 99.0]}, "cpu.png")
    """
    kind = os.path.splitext(os.fspath(path))[1][1:].lower() or "png"
    if kind not in _KINDS:
        raise ValueError(f"an image is one of {', '.join(_KINDS)}, not {kind!r}")
    write_whole(path, _draw(series, kind))


def _draw(series: Dict[str, List[float]], kind: str) -> bytes:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(10, 8), layout="constrained")  # no pyplot: the program's own figures are not affected
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(len(_PANELS), 1, sharex=True)
    for axis, (name, label) in zip(axes, _PANELS):
        values = series.get(name, [])
        axis.set_ylabel(label)
        axis.grid(True, alpha=0.3)
        if all(math.isnan(value) for value in values):
            axis.text(0.5, 0.5, "n/a", transform=axis.transAxes, ha="center", va="center", color="gray")
            axis.set_yticks([])
            continue
        axis.plot(series["time_s"], values, linewidth=1.2, marker="." if len(values) < 50 else None)
        if name == "gpu_memory":
            axis.set_ylim(bottom=0)
        else:  # so that lines at 0 % and 100 % are fully visible
            axis.set_ylim(bottom=-3, top=104)
            axis.set_yticks(range(0, 101, 20))
    axes[-1].set_xlabel("Time (s)")
    image = io.BytesIO()
    figure.savefig(image, format=kind, dpi=120)
    return image.getvalue()
