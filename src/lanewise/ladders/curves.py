"""The picture of a ladder along one setting: a line for each size and each way, time against the
setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from lanewise.ladders.rung import Ladder, Rung, number
from lanewise.plot.canvas import FAINT, TEXT, dark_axes, dark_figure, save_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """What is drawn over the setting: the key of an extra number (None: the time of a rung), the
    name and the size of its unit.
    """

    label: str
    unit: float = 1.0
    key: str | None = None
    logarithmic: bool = True


SHORT = 20  # a range of values below which every tick has its number
STEP = CurvePanel("milliseconds per step", 1e-3)
COLOURS = ("#4f9df0", "#ffab4a", "#7ee0a0", "#ff6a3d", "#c9a0ff", "#e8c547", "#f27fb2", "#9fdcf2")
WIDTH, HEIGHT, LEFT = 9.0, 5.6, 0.9  # inches


def plot_curves(
    path: Path,
    ladder: Ladder,
    rungs: list[Rung],
    machine: str,
    *,
    axis: str,
    label: str,
    panels: tuple[CurvePanel, ...] = (STEP,),
    wide: bool = False,
) -> None:
    """Write the picture of measured rungs to `path`.

    axis: the extra number of a rung that is the setting (`count` is its number of bodies); its
    extra text `curve` names the line.
    label: what the setting is. panels: what is drawn over it, side by side. wide: settings over
    decades. Raises InputError where `path` cannot be written.
    """
    across = WIDTH * (1 if len(panels) == 1 else 0.62 * len(panels))
    figure = dark_figure(across, HEIGHT)
    for n, panel in enumerate(panels):
        each = 1 / len(panels)
        axes = figure.add_axes((n * each + LEFT / across, 0.16, each - 1.15 * LEFT / across, 0.62))
        dark_axes(axes, "", label, panel.label)
        _draw(axes, panel, _lines(ladder, rungs, axis, panel), named=n == 0, wide=wide)
    figure.text(0.03, 0.93, f"{ladder.title}, measured on {machine}", color=TEXT, fontsize=12)
    figure.text(
        0.03,
        0.02,
        fill(f"after {ladder.source}", int(16.5 * across)),
        color=FAINT,
        fontsize=7,
        va="bottom",
    )
    save_png(figure, path)


def _lines(
    ladder: Ladder, rungs: list[Rung], axis: str, panel: CurvePanel
) -> dict[str, list[tuple[float, float]]]:
    """The points of each line by its name."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for rung in rungs:
        if rung.seconds is None or (place := number(rung, axis)) is None:
            continue
        size = "" if axis == "count" else f"{ladder.so_many(rung.bodies)}, "
        points = lines.setdefault(f"{size}{rung.extra.get('curve')}", [])
        value = rung.seconds if panel.key is None else number(rung, panel.key)
        if value is not None:
            points.append((place, value / panel.unit))
    return lines


def _draw(
    axes: Axes,
    panel: CurvePanel,
    lines: dict[str, list[tuple[float, float]]],
    *,
    named: bool,
    wide: bool,
) -> None:
    for n, (name, points) in enumerate(lines.items()):
        along, values = zip(*sorted(points), strict=True) if points else ((), ())
        axes.plot(along, values, "o-", color=COLOURS[n % len(COLOURS)], label=name, markersize=4)
    if not any(lines.values()):
        return
    places = sorted({x for points in lines.values() for x, _ in points})
    if panel.logarithmic:
        axes.set_yscale("log")
        every = [value for points in lines.values() for _, value in points]
        short = max(every) < SHORT * min(every)
        axes.yaxis.set_major_formatter(lambda value, place: f"{value:.3g}")  # 2, not 2 x 10^0
        axes.yaxis.set_minor_formatter(lambda value, place: f"{value:.3g}" if short else "")
    if wide:
        axes.set_xscale("log")
        axes.set_xticks([], minor=True)
    axes.set_xticks(places, [f"{x:,g}" if x < 1e6 else f"{x / 1e6:g} M" for x in places])
    if named:
        axes.figure.legend(
            *axes.get_legend_handles_labels(),
            loc="upper left",
            bbox_to_anchor=(0.02, 0.92),
            ncols=3,
            fontsize=8,
            frameon=False,
            labelcolor=TEXT,
        )
