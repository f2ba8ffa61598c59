"""Bodies as light on a dark sky: what a film of gravity shows, and how it is looked at.

A frame is the surface density of the bodies along an axis, on a logarithmic scale. Few bodies do
not fill the pixels, so the light of each is spread as far as it takes to find a few others. Where
there are many, each pixel counts for itself. No light is lost.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.schema import record
from lanewise.plot.canvas import FAINT, TEXT
from lanewise.plot.raster import srgb
from lanewise.plot.text import font
from lanewise.sims.common.checks import MOST_STEPS, check_known, readable
from lanewise.support.attributes import unknown
from lanewise.support.errors import InputError
from lanewise.support.interrupts import imported

PROJECTIONS = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
"""The axes to the right and upwards; the third one is looked along."""

COLOURS = ("density", "speed")
COMPONENTS = ("gas", "halo", "disc", "bulge", "stars", "boundary")
"""Gadget's types, by their numbers."""

DECADES = 3.4
"""Of surface density, from the sky to white."""

ROOM = 2.5
"""How much denser than the densest parts of the first frame white is: galaxies that meet
brighten.
"""

ENOUGH = 5.0
"""Bodies that have to be around one whose light stays where it is."""

WIDTHS = 5
"""How often the width that light is spread by may double."""

CELL = 2**WIDTHS  # pixels
VARIANCE = 0.5  # in pixels^2, of a sum over neighbours by 1/4, 1/2, 1/4

FAR = 98.5
"""Percentile of the distances along an axis that the first frame shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How bodies are looked at; None: not said.

    show: names of COMPONENTS with commas, else all. width: what the picture is wide, a length, else
    so that the first frame has its bodies in it.
    """

    colour: str | None = None
    projection: str | None = None
    show: str | None = None
    width: float | None = None

    @property
    def said(self) -> list[str]:
        """The names of what was."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


@dataclass(frozen=True, slots=True)
class Shot:
    """How a whole film is looked at: fixed by its first frame, and kept in a checkpoint.

    centre, width: of the picture, in lengths. white: the surface density, mass by area, that is
    white. slow, fast: speeds at the ends of the colours.
    """

    colour: str
    projection: str
    show: str
    centre: tuple[float, float]
    width: float
    white: float
    slow: float
    fast: float


@dataclass(frozen=True, slots=True, eq=False)
class BodiesThen:
    """Bodies at a moment: (n, 3) positions and velocities, (n,) masses and components."""

    time: float
    step: int
    position: NDArray[Any]
    velocity: NDArray[Any]
    mass: NDArray[Any]
    component: NDArray[np.uint8]


def check_look(look: Look) -> None:
    """Refuse names that there are not, and a width that is none. Raises `InputError`."""
    if look.colour not in (None, *COLOURS):
        raise InputError(unknown("colour", look.colour, COLOURS))
    if look.projection not in (None, *PROJECTIONS):
        raise InputError(unknown("projection", look.projection, PROJECTIONS))
    for name in _shown(look.show or ""):
        check_known("component", name, COMPONENTS)
    if look.width is not None and not (math.isfinite(look.width) and look.width > 0):
        raise InputError(f"--width {look.width:g}: wanted a finite length above zero")


def _shown(show: str) -> list[str]:
    return [name.strip() for name in show.split(",")] if show else []


def chosen(show: str, component: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which bodies are shown; raises `InputError` where none is."""
    names = _shown(show)
    kept = np.isin(component, [COMPONENTS.index(n) for n in names] if names else range(256))
    if not kept.any():
        there = ", ".join(COMPONENTS[k] for k in np.unique(component) if k < len(COMPONENTS))
        raise InputError(f"--show {show}: there are no such bodies; there are {there}")
    return kept


def shot_of(look: Look, first: BodiesThen, size: tuple[int, int]) -> Shot:
    """The frame and the scale of a film of this size, height and width, that begins with these
    bodies.
    """
    show, projection = look.show or "", look.projection or "xy"
    kept = chosen(show, first.component)
    places = first.position[kept][:, list(PROJECTIONS[projection])].astype(np.float64)
    centre, width = _frame(places, look.width, size)
    speeds = np.linalg.norm(first.velocity[kept].astype(np.float64), axis=1)
    slow, fast = (float(v) for v in np.percentile(speeds, (2.0, 98.0)))
    if not fast > slow:
        margin = 0.5 * (fast or 1.0)
        slow, fast = slow - margin, fast + margin
    shot = Shot(look.colour or "density", projection, show, centre, width, 1.0, slow, fast)
    light, _ = surface(first, shot, size)
    bright = light[light > 0]
    return replace(shot, white=float(np.percentile(bright, 99.7)) * ROOM if bright.size else 1.0)


def _frame(
    places: NDArray[np.float64], width: float | None, size: tuple[int, int]
) -> tuple[tuple[float, float], float]:
    """Centre and width: all of a few bodies, most of many."""
    ends = (0.0, 100.0) if len(places) <= 100 else (100.0 - FAR, FAR)
    low, high = np.percentile(places, ends, axis=0)
    middle = (low + high) / 2
    centre = (float(middle[0]), float(middle[1]))
    if width is not None:
        return centre, width
    rows, columns = size
    across, along = high - low
    wide = 1.25 * float(max(across, along * columns / rows))
    return centre, wide if wide > 0 else max(1.0, float(np.abs(middle).max()) * 1e-3)


def surface(
    then: BodiesThen, shot: Shot, size: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Surface density, mass by area, and the mean speed by mass: (height, width), the upper row
    first.
    """
    rows, columns = size
    kept = chosen(shot.show, then.component)
    right, up = PROJECTIONS[shot.projection]
    scale, edge = columns / shot.width, CELL  # what is next to the picture shines into it
    wide, high = (-(-(n + 2 * edge) // CELL) * CELL for n in (columns, rows))
    x = (then.position[kept, right].astype(np.float64) - shot.centre[0]) * scale + columns / 2
    y = rows / 2 - (then.position[kept, up].astype(np.float64) - shot.centre[1]) * scale
    x, y = x + edge, y + edge
    inside = (x >= 0) & (x < wide) & (y >= 0) & (y < high)
    pixel = y[inside].astype(np.int64) * wide + x[inside].astype(np.int64)
    mass = then.mass[kept][inside].astype(np.float64)
    speed = np.linalg.norm(then.velocity[kept][inside].astype(np.float64), axis=1)

    def seen(weights: NDArray[np.float64] | None) -> NDArray[np.float32]:
        sums = np.bincount(pixel, weights, wide * high)
        return sums.reshape(high, wide).astype(np.float32)

    shining = spread(seen(None), (seen(mass), seen(mass * speed)))
    light, motion = (f[edge : edge + rows, edge : edge + columns] for f in shining)
    mean = np.divide(motion, light, out=np.zeros_like(light), where=light > 0)
    return light * np.float32(scale**2), mean


def spread(
    count: NDArray[np.float32], fields: tuple[NDArray[np.float32], ...], widths: int = WIDTHS
) -> tuple[NDArray[np.float32], ...]:
    """The fields, whose light goes from each pixel as far as it takes to find ENOUGH bodies; their
    sums stay. count: bodies in a pixel.

    Sides are multiples of 2 to the power of `widths`. As much as has enough bodies around it is
    smoothed by its neighbours; the rest goes to pixels twice as wide, and so on.
    """
    if not widths:
        return tuple(_blurred(f) for f in fields)
    # of the Gaussian that a width stands for, in pixels of the picture
    within = _blurred(count) * np.float32(4 * math.pi * VARIANCE * 4.0 ** (WIDTHS - widths))
    share = np.minimum(within * np.float32(1 / ENOUGH), np.float32(1))
    near = tuple(share * f for f in fields)
    rest = tuple(_halved(f - n) for f, n in zip(fields, near, strict=True))
    far = spread(_halved(count), rest, widths - 1)
    return tuple(_blurred(n) + _doubled(f) for n, f in zip(near, far, strict=True))


def _halved(field: NDArray[np.float32]) -> NDArray[np.float32]:
    """Means of 2 x 2 pixels."""
    rows = field[::2] + field[1::2]
    return np.asarray((rows[:, ::2] + rows[:, 1::2]) / 4, np.float32)


def _blurred(field: NDArray[np.float32]) -> NDArray[np.float32]:
    """Under a Gaussian of VARIANCE pixels^2, nearly: 1/4, 1/2, 1/4 along each axis."""
    wide = np.pad(field, 1)
    rows = wide[:-2] + 2 * wide[1:-1] + wide[2:]
    return np.asarray((rows[:, :-2] + 2 * rows[:, 1:-1] + rows[:, 2:]) / 16, np.float32)


def _doubled(field: NDArray[np.float32]) -> NDArray[np.float32]:
    """On pixels half as wide, linear between them."""
    image = imported("PIL.Image")
    size = (2 * field.shape[1], 2 * field.shape[0])
    return np.asarray(image.fromarray(field).resize(size, image.Resampling.BILINEAR))


# ------------------------------------------------------------ colours


LEVELS, HUES = 512, 64


@cache
def density_table() -> NDArray[np.uint8]:
    """(LEVELS, 3), night to white over blue, violet and gold; lightness grows evenly in OKLab."""
    place = np.linspace(0, 1, LEVELS)
    knots = np.array([0.0, 0.18, 0.40, 0.60, 0.80, 1.0])
    hue = np.interp(place, knots, np.radians([268, 274, 300, 385, 430, 455]))
    chroma = np.interp(place, knots, [0.02, 0.10, 0.155, 0.14, 0.11, 0.015])
    return srgb(_lab(place, chroma * np.cos(hue), chroma * np.sin(hue)))


@cache
def speed_table() -> NDArray[np.uint8]:
    """(HUES, LEVELS, 3): slow is amber, fast blue, over a pale middle; density is lightness."""
    place = np.linspace(0, 1, LEVELS)
    swell = np.sin(np.pi * place**0.7) ** 0.9
    tables: list[NDArray[np.uint8]] = []
    for turn in np.linspace(-1, 1, HUES):
        end = math.radians(250 if turn > 0 else 52)
        chroma = (0.165 if turn > 0 else 0.15) * abs(turn) ** 0.8 * swell
        tables.append(srgb(_lab(place, chroma * math.cos(end), chroma * math.sin(end))))
    return np.stack(tables)


def _lab(
    place: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.stack([0.09 + 0.89 * place**0.92, a, b], axis=1)


@dataclass(frozen=True, slots=True)
class BodyPainter:
    """Paints one moment after the other, all on the scale of one shot. title: above the time."""

    shot: Shot
    size: tuple[int, int]
    title: str = ""

    def paint(self, then: BodiesThen) -> NDArray[np.uint8]:
        """(height, width, 3)."""
        light, mean = surface(then, self.shot, self.size)
        level = self._level(light)
        if self.shot.colour == "density":
            rgb = density_table()[level]
        else:
            place = (mean - self.shot.slow) / (self.shot.fast - self.shot.slow)
            hue = np.clip(place * (HUES - 1), 0, HUES - 1).astype(np.int64)
            rgb = speed_table()[hue, level]
        return self._captioned(rgb, then)

    def _level(self, light: NDArray[np.float32]) -> NDArray[np.int64]:
        """The place of a density on the scale: logarithmic, and linear below its lowest decade."""
        least = self.shot.white * 10.0**-DECADES
        place = np.log1p(light / np.float32(least)) / math.log1p(self.shot.white / least)
        return np.clip(place * (LEVELS - 1), 0, LEVELS - 1).astype(np.int64)

    def _captioned(self, rgb: NDArray[np.uint8], then: BodiesThen) -> NDArray[np.uint8]:
        """Title and time at the upper left, a length at the lower left."""
        image, draw = imported("PIL.Image"), imported("PIL.ImageDraw")
        picture = image.fromarray(np.ascontiguousarray(rgb))
        pen, unit = draw.Draw(picture), rgb.shape[0] / 1080
        left, small = round(34 * unit), font(max(9, round(21 * unit)))
        pen.text((left, round(26 * unit)), self.title, font=small, fill=FAINT)
        pen.text((left, round(58 * unit)), f"t = {then.time:.4g}", font=small, fill=TEXT)
        length = _round_length(self.shot.width / 6)
        wide = length / self.shot.width * rgb.shape[1]
        bottom = rgb.shape[0] - round(36 * unit)
        pen.line([(left, bottom), (left + wide, bottom)], fill=TEXT, width=max(1, round(2 * unit)))
        place = (left + wide / 2, bottom - round(8 * unit))
        pen.text(place, f"{length:g}", font=small, fill=TEXT, anchor="mb")
        return np.asarray(picture)


def _round_length(length: float) -> float:
    """The next lower one of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(length))
    return next(m * power for m in (5, 2, 1) if m * power <= length * (1 + 1e-12))


# ------------------------------------------------------------ in a checkpoint


@dataclass(frozen=True, slots=True)
class FilmPlan:
    """What a checkpoint keeps of a film: how it looks, and the steps between its frames."""

    shot: Shot
    every: int


def film_to_json(film: FilmPlan) -> str:
    """One line; floats read back exactly."""
    return json.dumps(asdict(film))


def film_from_json(text: str) -> FilmPlan:
    """What `film_to_json` wrote; raises `InputError` for anything else."""
    with readable("film"):
        film = record(FilmPlan, json.loads(text), "a film")
    shot = film.shot
    check_look(
        Look(colour=shot.colour, projection=shot.projection, show=shot.show, width=shot.width)
    )
    scale = (*shot.centre, shot.white, shot.slow, shot.fast)
    if not (all(map(math.isfinite, scale)) and shot.white > 0 and shot.fast > shot.slow):
        raise InputError(f"damaged checkpoint: its film has no scale: {text}")
    if not 1 <= film.every <= MOST_STEPS:
        raise InputError(f"damaged checkpoint: its film has frames every {film.every} steps")
    return film
