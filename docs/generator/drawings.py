"""What a picture of an example shows: a drawing of what the program holds at its end, or its text.

A drawing gets the axes and the names of the program: those of the module, and those of the
functions that it has left, a function's first call before its later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont, ImageOps

Names = Mapping[str, Any]
Drawing = Callable[[Any, Names], None]
PAPER, INK = (250, 250, 248), (40, 44, 52)
LINES, COLUMNS = 16, 71


def animals(axes: Any, names: Names) -> None:
    """Sheep and wolves at the end."""
    for herd, colour, size in (("sheep", "#7a8f3c", 2), ("wolves", "#b3202c", 5)):
        places = np.asarray(names[herd].records.position)
        axes.scatter(*places.T, s=size, c=colour, linewidths=0, label=herd)
    axes.legend(fontsize=7, loc="upper right", framealpha=0.9, markerscale=3)
    square(axes)


def lid(axes: Any, names: Names) -> None:
    """The speed in the cavity."""
    speed = np.hypot(*np.moveaxis(_in_square(names["velocity"]), -1, 0))
    axes.imshow(speed, origin="lower", cmap="viridis", interpolation="bilinear")
    square(axes)


def _in_square(velocity: Any) -> Any:
    size = round((np.asarray(velocity).size // 2) ** 0.5)
    return np.asarray(velocity).reshape(size, size, 2)


def fit(axes: Any, names: Names) -> None:
    """Energies of the atoms: measured, at the start, fitted."""
    energy, atoms, measured = (names[n] for n in ("energy", "atoms", "measured"))
    order = np.argsort(measured)
    axes.plot(np.asarray(measured)[order], lw=5, color="#c9d2e0", label="measured")
    for label, values, style in (("at the start", (0.5, 1.0), ":"), ("fitted", None, "-")):
        found = energy(atoms, atoms, *(values or names["parameters"]))
        axes.plot(np.asarray(found)[order], style, color="#b3202c", lw=1.2, label=label)
    axes.legend(fontsize=7)
    labels(axes, "atom", "energy")


def atoms(axes: Any, names: Names) -> None:
    """Atoms, seen along the last axis."""
    dots(axes, names["atoms"].position, 55)


def stars(axes: Any, names: Names) -> None:
    """Stars, seen along the last axis."""
    held = names["bodies"] if "bodies" in names else names["stars"]
    dots(axes, held.position, 4)


def grains(axes: Any, names: Names) -> None:
    """Grains, coloured by their sideways velocity."""
    held = names["grains"]
    dots(axes, held.position, 6, np.asarray(held.velocity)[:, 0])


def dish(axes: Any, names: Names) -> None:
    """The second substance."""
    axes.imshow(names["newest"][1], origin="lower", cmap="magma", interpolation="bilinear")
    square(axes)


def profile(axes: Any, names: Names) -> None:
    """The velocity across the channel, computed and exact."""
    y, speed, half = names["y"], names["exact"].max(), names["half"]
    newton = speed * (1 - (y / half - 1) ** 2)
    axes.plot(newton, y, ":", color="#777777", lw=1.2, label="Newtonian")
    axes.plot(names["exact"], y, color="#b3202c", lw=1.2, label="exact")
    axes.plot(names["found"], y, "o", ms=3, color="#204a87", label="computed")
    axes.legend(fontsize=7, loc="center left")
    labels(axes, "velocity", "height")


def sphere(axes: Any, names: Names) -> None:
    """The flow in the plane through the sphere."""
    flow = np.asarray(names["simulation"].velocity[..., 0])
    plane = np.where(names["sphere"], np.nan, flow)[flow.shape[0] // 2]
    axes.set_facecolor("#555555")
    axes.imshow(plane, origin="lower", cmap="viridis")
    square(axes)


def flock(axes: Any, names: Names) -> None:
    """Particles as arrows, coloured by their heading."""
    held = names["flock"]
    (x, y), (u, v) = np.asarray(held.position).T, np.asarray(held.heading).T
    axes.quiver(x, y, u, v, np.arctan2(v, u), cmap="twilight", scale=28, width=0.006)
    square(axes)


def dots(axes: Any, position: Any, size: float, colour: Any = None) -> None:
    """Points in the plane of their first two components, coloured by the last one."""
    places = np.asarray(position)
    shown = places[:, -1] if colour is None else colour
    order = np.argsort(places[:, -1])
    axes.scatter(*places[order, :2].T, s=size, c=shown[order], cmap="plasma", linewidths=0)
    square(axes)


def square(axes: Any) -> None:
    """Equal scales, no ticks."""
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])


def labels(axes: Any, x: str, y: str) -> None:
    """Small labels of both axes."""
    axes.set_xlabel(x, fontsize=8)
    axes.set_ylabel(y, fontsize=8)
    axes.tick_params(labelsize=7)


def written(text: str, size: tuple[int, int]) -> Image.Image:
    """The first lines of a text, as a terminal shows them."""
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans Mono"), 9)
    image = Image.new("RGB", size, INK)
    shown = [line[:COLUMNS] for line in text.splitlines()[:LINES]]
    ImageDraw.Draw(image).multiline_text((8, 8), "\n".join(shown), font=font, fill=PAPER, spacing=4)
    return image


def thumbnail(path: Path, size: tuple[int, int]) -> Image.Image:
    """A picture at this size, on paper of its own colour."""
    image = Image.open(path).convert("RGB")
    small = ImageOps.contain(image, size, Image.Resampling.LANCZOS)
    corners = {image.getpixel((x, y)) for x in (0, image.width - 1) for y in (0, image.height - 1)}
    paper = Image.new("RGB", size, corners.pop() if len(corners) == 1 else "white")
    paper.paste(small, ((size[0] - small.width) // 2, (size[1] - small.height) // 2))
    return paper


DRAWINGS: dict[str, Drawing] = {
    "birth_and_death": animals,
    "cavity": lid,
    "fit_a_potential": fit,
    "own_force": atoms,
    "own_loop_grains": grains,
    "own_loop_leapfrog": stars,
    "own_loop_reaction": dish,
    "shear_thinning": profile,
    "sphere_drag": sphere,
    "star_cluster": stars,
    "vicsek": flock,
}
