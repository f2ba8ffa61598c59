"""The directions that `--sky` names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lanewise.sims.waves.commands.arguments import numbers
from lanewise.sims.waves.sky import Cap, Rectangle, Region, isotropic_sky, uniform_sky
from lanewise.sims.waves.tables import read_sky
from lanewise.support.errors import InputError

Directions = list[tuple[float, float]]
FORMS = "ALPHA,DELTA in radians, a file of directions, isotropic:STEP or uniform:STEP,STEP"


def directions(texts: Sequence[str]) -> Directions:
    """Of all the texts, in their order. Raises InputError for one that names nothing."""
    every = [d for text in texts for d in _of_one(text)]
    if not every:
        raise InputError("--sky names no directions; wanted at least one")
    return every


def _of_one(text: str) -> Directions:
    kind, colon, rest = text.partition(":")
    if colon and kind in ("isotropic", "uniform"):
        return _grid(kind, rest, text)
    if Path(text).exists():
        return read_sky(text)
    if len(parts := text.split(",")) != 2:
        raise InputError(f"--sky is {text!r}: there is no such file; wanted {FORMS}")
    alpha, delta = numbers(",".join(parts), "--sky")
    return [(alpha, delta)]


def _grid(kind: str, rest: str, text: str) -> Directions:
    """isotropic:STEP and uniform:STEP,STEP, perhaps followed by @ and a region."""
    steps, at, place = rest.partition("@")
    each = numbers(steps, f"--sky {kind}:")
    region = _region(place, text) if at else None
    if kind == "isotropic" and len(each) == 1:
        points = isotropic_sky(each[0], region)
    elif kind == "uniform" and len(each) in (1, 2):
        points = uniform_sky(each[0], each[-1], region)
    else:
        raise InputError(
            f"--sky is {text!r}; wanted isotropic:STEP, or uniform:STEP,STEP for alpha and delta, "
            "in radians"
        )
    return list(zip(points[:, 0].tolist(), points[:, 1].tolist(), strict=True))


def _region(text: str, whole: str) -> Region:
    match numbers(text, "--sky, behind @,"):
        case [alpha, delta, radius]:
            return Cap(alpha, delta, radius)
        case [low, high, bottom, top]:
            return Rectangle(low, high, bottom, top)
        case _:
            raise InputError(
                f"--sky is {whole!r}; wanted behind @ a cap ALPHA,DELTA,RADIUS, or a rectangle "
                "ALPHA,ALPHA,DELTA,DELTA, in radians"
            )
