"""2F over frequency, of all detectors and of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.canvas import FAINT, GRID, PANEL, TEXT, dark_axes, dark_figure, save_png

if TYPE_CHECKING:
    from lanewise.sims.waves.definition import FStatistic

COLOURS = ("#4f9df0", "#ff6a3d", "#9fdcf2", "#ffab4a", "#7ddc8a")
TOGETHER = "#fbe3a1"
METHODS = {"demod": "demodulation", "resamp": "resampling"}
EXPECTED = 4.0  # of 2F in noise
MOST_POINTS = 20_000  # of a line: of more, the highest of each stretch is drawn


def draw_band(
    path: Path,
    frequencies: NDArray[np.float64],
    statistic: FStatistic,
    detectors: Sequence[str],
    method: str,
    where: str = "",
) -> None:
    """Write a PNG of the first stack: frequencies (n) in Hz; method: "demod" or "resamp"; where:
    the direction, in words.
    """
    figure = dark_figure(11.0, 5.5)
    axes = figure.add_axes((0.08, 0.12, 0.89, 0.78))
    best = int(statistic.two_f[0].argmax())
    largest = f"largest {statistic.two_f[0, best]:.1f} at {frequencies[best]:.7f} Hz"
    title = (
        f"2F by {METHODS.get(method, method)}: {len(frequencies):,} "
        f"frequencies{where and f' {where}'}, {largest}"
    )
    base = _round_number(frequencies)
    dark_axes(axes, title, f"frequency − {base:g} Hz  [mHz]", "2F")
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    x = (frequencies - base) * 1e3
    point: dict[str, Any] = {"marker": "o", "markersize": 3} if len(x) < 200 else {}
    for i, (name, values) in enumerate(zip(detectors, statistic.two_f_detector[0], strict=True)):
        if len(detectors) > 1:
            axes.plot(
                *_thinned(x, values),
                color=COLOURS[i % len(COLOURS)],
                linewidth=0.9,
                alpha=0.8,
                label=name,
            )
    axes.plot(
        *_thinned(x, statistic.two_f[0]),
        color=TOGETHER,
        linewidth=1.4,
        label=" + ".join(detectors),
        **point,
    )
    axes.axhline(
        EXPECTED,
        color=FAINT,
        linewidth=0.9,
        linestyle="--",
        label=f"expected in noise: {EXPECTED:g}",
    )
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.legend(
        facecolor=PANEL,
        framealpha=0.85,
        edgecolor=GRID,
        labelcolor=TEXT,
        fontsize=9,
        loc="upper right",
    )
    save_png(figure, path)


def _round_number(frequencies: NDArray[np.float64]) -> float:
    """What ticks count from, so that their labels are short."""
    digits = max(0, int(-np.floor(np.log10(max(float(np.ptp(frequencies)), 1e-9)))))
    return float(np.round(frequencies.mean(), min(9, digits)))


def _thinned(
    x: NDArray[np.float64], y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """At most MOST_POINTS, the highest of each stretch, so that no peak is lost."""
    step = -(-len(x) // MOST_POINTS)
    if step == 1:
        return x, y
    starts = np.arange(0, len(x), step)
    chosen = np.array([s + int(y[s : s + step].argmax()) for s in starts])
    return x[chosen], y[chosen]
