"""What a case is. A new one is one new module of this package that defines `CASE`.

What it measures on the way is a series, with its table as CSV. Between the sites of a line values
come from cubic Lagrange interpolation; walls half a link outside are nodes like others.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.cases.bodies import Obstacle
from lanewise.sims.lbm.kinds import Edges, Kind
from lanewise.sims.lbm.obstacles.surfaces import Surface
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.lbm.view.slices import Quantity


SMALLEST, LARGEST = 4, 1 << 20  # of --size


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks of a case, with the case's own choice where the user made none.

    re: Reynolds number; size: sites across the case's length; speed: the case's velocity in lattice
    units;
    obstacle: what stands in the stream instead of the case's own body.
    """

    re: float
    size: int
    speed: float
    lattice: str
    drive: str = ""
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a flow is like after a step, on the host: density of the lattice's shape, velocity with
    one more axis (x, y, z).
    """

    step: int
    density: Any
    velocity: Any


class Flow(Protocol):
    """What measurements on the way may use of a simulation."""

    @property
    def step(self) -> int: ...
    @property
    def density(self) -> Any: ...
    @property
    def velocity(self) -> Any: ...
    def force_on(self, *names: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Probe:
    """Numbers that are measured every `every` steps, and their names.

    paired: a value is the mean over a step and the one before it, and there is none of step 0.
    Lattices keep a momentum that changes its sign with every step and site; forces on walls show
    it, and the mean over two steps is without (A. J. C. Ladd, Numerical simulations of particulate
    suspensions via a discretized Boltzmann equation, Journal of Fluid Mechanics 271 (1994),
    285-309). walls: those whose force is measured, by their names.
    """

    names: tuple[str, ...]
    measure: Callable[[Flow], tuple[float, ...]]
    every: int
    paired: bool = False
    walls: tuple[str, ...] = ()

    def is_due(self, step: int) -> bool:
        """Whether a value belongs to this step."""
        return step % self.every == 0 and not (self.paired and step == 0)

    def prepares(self, step: int) -> bool:
        """Whether the value of the next step needs what is measured after this one."""
        return self.paired and (step + 1) % self.every == 0

    def next(self, step: int) -> int:
        """The next step after which something is measured."""
        following = (step // self.every + 1) * self.every
        return following - 1 if self.paired and following - 1 > step else following


@dataclass(frozen=True, slots=True, eq=False)
class Setup:
    """A flow, ready to be simulated.

    Attributes:
        shape: (ny, nx) or (nz, ny, nx) sites
        viscosity: kinematic, in lattice units; `speed` and `length` are those of the Reynolds
          number
        edges, mask: as in `Simulation`; `kinds` says what the numbers of the mask, and the walls of
          the edges, are
        surfaces: of walls, by their numbers: these lie there instead of half-way between sites
        outflow_speed: at which outflow edges carry things out
        force: a body force on every site, one component a dimension
        density, velocity, gradient: the initial state as arrays (gradient: d velocity_b / d x_a in
          [..., a, b]), None at rest
        steps: how many to take when the user does not say; with `steady`, at most
        steady: the relative change of the velocity at which the flow counts as steady; 0 for flows
          that never are
        probe: what to measure on the way
        results: (the last state, what was measured) -> the case's own results
        picture: the field of the picture: "speed" or "vorticity"; streamlines: in a box that is
          closed below
    """

    lattice: str
    shape: tuple[int, ...]
    viscosity: float
    speed: float
    length: float
    steps: int
    results: Callable[[State, Series], dict[str, Any]]
    edges: Edges = field(default_factory=dict[str, Any])
    mask: Any = None
    kinds: Mapping[int, Kind] = field(default_factory=dict[int, Kind])
    force: tuple[float, ...] | None = None
    density: Any = None
    velocity: Any = None
    gradient: Any = None
    steady: float = 0.0
    probe: Probe | None = None
    picture: Quantity = "speed"
    streamlines: bool = False
    outflow_speed: float = 1.0
    surfaces: Mapping[int, Surface] = field(default_factory=dict[int, Surface])


@dataclass(frozen=True, slots=True)
class Case:
    """A named flow.

    Attributes:
        re, size, speed: the defaults; `size_of` says what `size` counts
        lattices: those it can run on, the default first
        drives: the ways to drive it, the default first; empty when there is only one
        obstacle: whether a mask or a mesh may replace its own obstacle
        mean_speed: see `Request.speed`: which velocity that is
    """

    name: str
    description: str
    make: Callable[[Request], Setup]
    re: float
    size: int
    size_of: str
    speed: float = 0.1
    speed_of: str = "the largest velocity"
    lattices: tuple[str, ...] = ("D2Q9",)
    collision: str = "trt"
    drives: tuple[str, ...] = ()
    obstacle: bool = False

    def request(
        self,
        *,
        re: float | None = None,
        size: int | None = None,
        speed: float | None = None,
        lattice: str | None = None,
        drive: str | None = None,
        obstacle: Obstacle | None = None,
    ) -> Request:
        """The completed request; raises InputError for settings that the case does not have."""
        chosen_lattice = self.lattices[0] if lattice is None else lattice.upper()
        if chosen_lattice not in self.lattices:
            asked = near(chosen_lattice, self.lattices)
            raise InputError(
                f"{self.name} runs on {_listed(self.lattices)}, found lattice {lattice!r}{asked}"
            )
        if drive is not None and drive not in self.drives:
            wanted = f"wanted one of {_listed(self.drives)}" if self.drives else "it has only one"
            raise InputError(
                f"{self.name} has no way {drive!r} to drive it{near(drive, self.drives) or ';'} "
                f"{wanted}"
            )
        if obstacle is not None and not self.obstacle:
            raise InputError(
                f"{self.name} has no obstacle that a mask or a mesh could replace; wanted "
                f"{_with_obstacle()}"
            )
        chosen = Request(
            float(self.re if re is None else re),  # as a checkpoint gives it back, to the byte
            self.size if size is None else size,
            float(self.speed if speed is None else speed),
            chosen_lattice,
            drive or (self.drives[0] if self.drives else ""),
            obstacle,
        )
        _check(chosen, self.size_of)
        return chosen

    def setup(self, **asked: Any) -> Setup:
        """The flow with these settings (see `request`)."""
        return self.make(self.request(**asked))


def _check(request: Request, size_of: str) -> None:
    if not 0 < request.re < float("inf"):
        raise InputError(
            f"the Reynolds number is {request.re:g}; wanted a finite number above zero"
        )
    if not SMALLEST <= request.size <= LARGEST:
        raise InputError(f"the size is {request.size}; wanted {SMALLEST} to {LARGEST:,} {size_of}")
    if not 0 < request.speed < float("inf"):
        raise InputError(
            f"the speed is {request.speed:g}; wanted a finite number above zero, in sites per step"
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)


CASES: dict[str, Case] = {}
"""Name -> case, in the order of the file names; the package fills it from its modules."""


def _with_obstacle() -> str:
    return " or ".join(c.name for c in CASES.values() if c.obstacle)


def steps_for(length: float, speed: float, crossings: float) -> int:
    """The steps in which the flow crosses `length` that many times."""
    return max(1, round(crossings * length / speed))


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Measurements after some steps: `steps` (n,) int64, `values` (n, len(names)) float64."""

    names: tuple[str, ...]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    @staticmethod
    def of(names: tuple[str, ...], rows: list[tuple[int, tuple[float, ...]]]) -> Series:
        """From (step, values) pairs."""
        steps = np.array([step for step, _ in rows], np.int64)
        return Series(
            names, steps, np.array([v for _, v in rows], np.float64).reshape(len(rows), len(names))
        )

    def __len__(self) -> int:
        return len(self.steps)

    def column(self, name: str) -> NDArray[np.float64]:
        """All measurements of one quantity."""
        return self.values[:, self.names.index(name)]

    def csv(self) -> str:
        """A table with a line of names; numbers are written so that they read back exactly."""
        text = io.StringIO()
        table: Any = csv.writer(text, lineterminator="\n")
        table.writerow(("step", *self.names))
        table.writerows(
            (int(s), *(repr(float(x)) for x in row))
            for s, row in zip(self.steps, self.values, strict=True)
        )
        return text.getvalue()


NODES = 4  # a cubic: its error is far below that of the flow


def interpolate(places: Any, values: Any, targets: Any) -> NDArray[np.float64]:
    """The values at `targets` (m,) from those at `places` (n,), ascending and not evenly spaced;
    float64 of shape (m,).

    Each uses the four nodes around it, fewer if there are fewer. Outside the nodes it extrapolates.
    """
    x, y, at = (np.asarray(a, np.float64) for a in (places, values, targets))
    width = min(NODES, len(x))
    first = np.clip(np.searchsorted(x, at) - width // 2, 0, len(x) - width)
    nodes = first[:, None] + np.arange(width)
    result = np.zeros(len(at))
    for j in range(width):
        others = [k for k in range(width) if k != j]
        factors = [(at - x[nodes[:, k]]) / (x[nodes[:, j]] - x[nodes[:, k]]) for k in others]
        result += y[nodes[:, j]] * np.prod(factors, axis=0)
    return result


def between_walls(
    values: Any, low: float = 0.0, high: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places (n + 2,) in 0..1 and values of n sites between two walls half a link outside, with the
    walls' own values.
    """
    n = len(values)
    places = np.concatenate(([0.0], (np.arange(n) + 0.5) / n, [1.0]))
    return places, np.concatenate(([low], np.asarray(values, np.float64), [high]))


def middle(field: Any, axis: int) -> NDArray[np.float64]:
    """The field on the plane in the middle of an axis: a plane of sites, or the mean of the two
    besides it.
    """
    n = field.shape[axis]
    a, b = np.take(field, (n - 1) // 2, axis), np.take(field, n // 2, axis)
    return (np.asarray(a, np.float64) + np.asarray(b, np.float64)) / 2
