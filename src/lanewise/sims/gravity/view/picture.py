"""The picture of a gravity run: where the bodies are, how fast they move, and how well energy was kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.checks import checked, host_array
from lanewise.errors import ArgumentError
from lanewise.plot.canvas import TEXT, dark_figure, save_png
from lanewise.sims.gravity.view.bodies import draw_bodies
from lanewise.sims.gravity.view.drift import draw_drift


@checked()
def plot_gravity(
    path: str | Path,
    position: ArrayLike,
    velocity: ArrayLike,
    times: ArrayLike,
    energy_error: ArrayLike,
    title: str,
) -> None:
    """Draws one PNG of 2040 x 990 pixels: bodies in the x-y plane at the left, relative energy error at the right.

    Args:
        path: the file to write; an old one is replaced in one step.
        position: (n, 3), in N-body units (G = 1).
        velocity: (n, 3), in N-body units.
        times: (t,), when the energy was measured; the bodies are those of the last time.
        energy_error: (t,), (E - E0) / |E0| with its sign.
        title: one line above the panels.

    Raises:
        ArgumentError: a shape does not fit, there is nothing to draw, or a value is NaN or infinite.
        InputError: the file cannot be written there.
    """
    places = _finite("position", position, (-1, 3))
    speeds = np.linalg.norm(_finite("velocity", velocity, (len(places), 3)), axis=1)
    when = _finite("times", times, (-1,))
    drift = _finite("energy_error", energy_error, (len(when),))

    figure = dark_figure(13.6, 6.6)
    figure.suptitle(title, x=0.062, y=0.965, ha="left", va="top", color=TEXT, fontsize=14, fontweight="bold")
    draw_bodies(figure, (0.062, 0.09, 0.381, 0.785), places[:, :2], speeds, f"t = {when[-1]:.6g}")
    draw_drift(figure, (0.61, 0.09, 0.37, 0.785), when, drift)
    save_png(figure, Path(path))


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """`values` as float64 of `shape` (-1: any length but zero), refused when it is not."""
    given = host_array(name, values)
    if given.dtype.kind not in "fiu":
        raise ArgumentError(f"{name}: {given.dtype} cannot be drawn, wanted numbers")
    array = given.astype(np.float64)
    fits = array.ndim == len(shape) and all(want in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    if not fits or array.size == 0:
        wanted = f"{shape} of at least one".replace("-1", "n")
        raise ArgumentError(f"{name}: shape {array.shape} cannot be drawn, wanted {wanted}")
    if not np.isfinite(array).all():
        index = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ArgumentError(f"{name}[{index}] is {array[index]}: only finite values can be drawn")
    return array
