"""The picture of a ladder along one setting: a line for each size and each way, time against the
setting.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

from lanewise.ladders.rung import Ladder, Rung, number
from lanewise.plot.canvas import FAINT, TEXT, dark_axes, dark_figure, save_png

COLOURS = ("#4f9df0", "#ffab4a", "#7ee0a0", "#ff6a3d", "#c9a0ff", "#e8c547")
WIDTH, HEIGHT = 9.0, 5.6  # inches


def plot_curves(
    path: Path, ladder: Ladder, rungs: list[Rung], machine: str, *, axis: str, label: str
) -> None:
    """Write the picture of measured rungs to `path`.

    axis: the extra number of a rung that is the setting; its extra text `curve` names the line.
    label: what the setting is. Raises InputError where `path` cannot be written.
    """
    figure = dark_figure(WIDTH, HEIGHT)
    axes = figure.add_axes((0.1, 0.2, 0.86, 0.62))
    dark_axes(axes, "", label, "milliseconds a step")
    lines: dict[str, list[tuple[float, float]]] = {}
    for rung in rungs:
        if rung.seconds is not None and (place := number(rung, axis)) is not None:
            name = f"{rung.bodies:,} {ladder.elements}, {rung.extra.get('curve')}"
            lines.setdefault(name, []).append((place, 1e3 * rung.seconds))
    for n, (name, points) in enumerate(lines.items()):
        along, times = zip(*sorted(points), strict=True)
        axes.plot(along, times, "o-", color=COLOURS[n % len(COLOURS)], label=name, markersize=4)
    if lines:
        axes.set_yscale("log")
        for scale in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            scale(lambda value, place: f"{value:.3g}")  # 2 and not 2 x 10^0
        axes.set_xticks(sorted({x for points in lines.values() for x, _ in points}))
        axes.legend(fontsize=8, frameon=False, labelcolor=TEXT)
    figure.text(0.03, 0.93, f"{ladder.title}, measured on {machine}", color=TEXT, fontsize=12)
    figure.text(
        0.03, 0.02, fill(f"after {ladder.source}", 150), color=FAINT, fontsize=7, va="bottom"
    )
    save_png(figure, path)
