"""A flock as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lanewise.io.atomic import atomic_path
from lanewise.io.source import FilePath
from lanewise.sims.boids.view.painter import Painter
from lanewise.sims.boids.view.view import Moment, View, check_view


def plot_flock(
    path: FilePath, moment: Moment, view: View, *, course: Sequence[tuple[float, float]] = (), overwrite: bool = False
) -> None:
    """One PNG. course: times and polarisations before this moment.

    Raises `InputError` where it cannot be written, or for a view of what there is not.
    """
    check_view(view, moment.ids)
    painter = Painter(view)
    painter.remember(course)
    pixels = painter.paint(moment)
    save_pixels(Path(path), pixels, overwrite=overwrite)


def save_pixels(path: Path, pixels: NDArray[np.uint8], *, overwrite: bool) -> None:
    """A PNG of (height, width, 3): whole, or not at all."""
    from PIL import Image

    with atomic_path(path, overwrite) as temporary:
        Image.fromarray(pixels).save(temporary, format="PNG")
