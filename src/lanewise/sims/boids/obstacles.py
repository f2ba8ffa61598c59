"""What a flock flies around: spheres, boxes, rectangles and planes, seen from one side or from
both, as in OpenSteer.

As text: `sphere:x,y,z,r`, `box:x,y,z,w,h,d`, `rectangle:x,y,z,w,h`, `plane:x,y,z,nx,ny,nz`, and
`,inside`, `,outside` or `,both` behind it for the side that it is seen from. Boxes and rectangles
lie along the axes then: width along x, height along y, depth along z; a file (`read_obstacles`) may
turn them.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lanewise.io.source import FilePath, existing_file, reading
from lanewise.support.articles import an
from lanewise.support.attributes import frozen, near
from lanewise.support.checks import check_fields, checked
from lanewise.support.errors import InputError

Vector: TypeAlias = tuple[float, float, float]
SEEN = ("outside", "inside", "both")
KINDS = {
    "sphere": "x,y,z,r",
    "box": "x,y,z,w,h,d",
    "rectangle": "x,y,z,w,h",
    "plane": "x,y,z,nx,ny,nz",
}
FORMS = ", ".join(f"{kind}:{form}" for kind, form in KINDS.items())
ALONG_Z: Vector = (0.0, 0.0, 1.0)
ALONG_Y: Vector = (0.0, 1.0, 0.0)


@frozen
@dataclass(frozen=True, slots=True)
class Sphere:
    """Solid when it is seen from "outside"; a room when seen from "inside"; a shell when seen from
    "both".
    """

    center: Vector
    radius: float
    seen: str = "outside"

    def __post_init__(self) -> None:
        check_fields(self, InputError)


@frozen
@dataclass(frozen=True, slots=True)
class Box:
    """width along its side, height along its up, depth along its forward."""

    center: Vector
    width: float
    height: float
    depth: float
    forward: Vector = ALONG_Z
    up: Vector = ALONG_Y
    seen: str = "outside"

    def __post_init__(self) -> None:
        check_fields(self, InputError)


@frozen
@dataclass(frozen=True, slots=True)
class Rectangle:
    """width along its side, height along its up; "outside" is the side to which its forward
    points.
    """

    center: Vector
    width: float
    height: float
    forward: Vector = ALONG_Z
    up: Vector = ALONG_Y
    seen: str = "both"

    def __post_init__(self) -> None:
        check_fields(self, InputError)


@frozen
@dataclass(frozen=True, slots=True)
class Plane:
    """An infinite plane; "outside" is the side to which its normal points."""

    center: Vector
    normal: Vector = ALONG_Z
    seen: str = "both"

    def __post_init__(self) -> None:
        check_fields(self, InputError)


Obstacle: TypeAlias = Sphere | Box | Rectangle | Plane


def frame(forward: Vector, up: Vector) -> tuple[Vector, Vector, Vector]:
    """Side, up and forward as unit vectors at right angles, `up` as near to the given one as it
    goes.
    """
    f = np.asarray(forward) / np.linalg.norm(forward)
    side = np.cross(f, up)
    if np.linalg.norm(side) < 1e-9:
        side = np.cross(f, (1.0, 0.0, 0.0) if abs(f[0]) < 0.9 else ALONG_Y)
    side /= np.linalg.norm(side)
    return _plain(side), _plain(np.cross(side, f)), _plain(f)


def _plain(v: Any) -> Vector:
    x, y, z = (float(c) for c in v)
    return x, y, z


def check_obstacle(o: Obstacle) -> None:
    """Refuse what has no extent or no direction."""
    kind = type(o).__name__.lower()
    numbers = {"center": o.center}
    match o:
        case Sphere():
            sizes = {"radius": o.radius}
        case Box():
            sizes = {"width": o.width, "height": o.height, "depth": o.depth}
            numbers |= {"forward": o.forward, "up": o.up}
        case Rectangle():
            sizes = {"width": o.width, "height": o.height}
            numbers |= {"forward": o.forward, "up": o.up}
        case Plane():
            sizes = {}
            numbers["normal"] = o.normal
    for name, size in sizes.items():
        if not (math.isfinite(size) and size > 0):
            raise InputError(
                f"the {name} of {an(kind)} is {size:g}; wanted a finite length above zero"
            )
    for name, v in numbers.items():
        if len(v) != 3 or not all(map(math.isfinite, v)):
            raise InputError(f"the {name} of {an(kind)} is {v}; wanted three finite numbers")
        if name != "center" and not any(v):
            raise InputError(f"the {name} of {an(kind)} is {v}; wanted a direction")
    if o.seen not in SEEN:
        raise InputError(
            f"{an(kind)} is seen from {o.seen!r}{near(o.seen, SEEN) or ';'} wanted one of "
            f"{', '.join(SEEN)}"
        )


def parse_obstacle(text: str) -> Obstacle:
    """An obstacle of the command line. Raises `InputError` with the forms that there are."""
    kind, separator, rest = text.partition(":")
    if not separator or kind not in KINDS:
        asked = "" if kind in KINDS else near(kind, KINDS)
        raise InputError(f"--obstacle {text}{asked or ':'} wanted {FORMS}, or a .toml file")
    cells = [c.strip() for c in rest.split(",")]
    seen = {"seen": cells.pop()} if cells[-1] in SEEN else {}
    try:
        n = [float(c) for c in cells]
    except ValueError as error:
        raise InputError(
            f"--obstacle {text}: wanted numbers, as in {kind}:{KINDS[kind]}"
        ) from error
    if len(n) != len(KINDS[kind].split(",")):
        raise InputError(f"--obstacle {text}: {len(n)} numbers; wanted {kind}:{KINDS[kind]}")
    center, sizes = _plain(n[:3]), list[Any](n[3:])
    match kind:
        case "sphere":
            obstacle: Obstacle = Sphere(center, *sizes, **seen)
        case "box":
            obstacle = Box(center, *sizes, **seen)
        case "rectangle":
            obstacle = Rectangle(center, *sizes, **seen)
        case _:
            obstacle = Plane(center, _plain(sizes), **seen)
    try:
        check_obstacle(obstacle)
    except InputError as error:
        raise InputError(f"--obstacle {text}: {error}") from error
    return obstacle


@checked(InputError)
def read_obstacles(path: FilePath) -> tuple[Obstacle, ...]:
    """The tables [[sphere]], [[box]], [[rectangle]] and [[plane]] of a TOML file; their keys are
    the fields of the classes.
    """
    file = existing_file(path)
    with reading(path, "TOML", (tomllib.TOMLDecodeError, UnicodeDecodeError)):
        tables = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        obstacles: list[Obstacle] = []
        for kind, entries in tables.items():
            if kind not in KINDS or not isinstance(entries, list):
                raise InputError(
                    f"unknown table {kind!r}{near(kind, KINDS) or ';'} wanted "
                    f"{', '.join(f'[[{k}]]' for k in KINDS)}"
                )
            obstacles += [obstacle_of(kind, entry) for entry in entries]
        return tuple(obstacles)


def obstacle_of(kind: str, values: Mapping[str, Any]) -> Obstacle:
    """The obstacle with these fields; raises `InputError`."""
    cls: Any = {"sphere": Sphere, "box": Box, "rectangle": Rectangle, "plane": Plane}[kind]
    try:
        obstacle: Obstacle = cls(**{n: _field(v) for n, v in values.items()})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        names = ", ".join(cls.__dataclass_fields__)
        raise InputError(
            f"{an(kind)} cannot be made of {', '.join(values) or 'nothing'}; its fields are {names}"
        ) from error
    check_obstacle(obstacle)
    return obstacle


def _field(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return _plain(value) if isinstance(value, Sequence) else float(value)


def as_dict(o: Obstacle) -> dict[str, Any]:
    """What `obstacle_of` reads, with the kind."""
    return {"kind": type(o).__name__.lower(), **{n: getattr(o, n) for n in o.__dataclass_fields__}}
