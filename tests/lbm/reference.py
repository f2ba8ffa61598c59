"""A slow and obviously right lattice Boltzmann solver: the meaning of `lw.sitewise`, in NumPy.

The state is the populations that ARRIVE at the sites. A step lets the function of every site's kind change them, then
streams them: what departs at x in direction q arrives at x + e, or where walls and faces send it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tests.lbm.links import EDGE, OPEN, REST, Index, find_direction, make_links

Array = NDArray[Any]
Operator = Callable[[Array], None]
"""Changes the populations of the sites of one kind, shape (Q, n), in place."""


class Lattice(Protocol):
    """The velocities e (Q rows of components x, y, z) and weights w of a lattice."""

    @property
    def velocities(self) -> Any: ...
    @property
    def weights(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Wall:
    """A kind of sites that are not updated: half-way bounce-back, with a velocity (x, y, z) when it moves."""

    name: str
    velocity: tuple[float, ...] | None = None


class Reference:
    """A box of sites. `kinds` gives an operator or a `Wall` for every number in `mask` (0 where there is none).

    `storage` rounds populations each time that they depart, as memory of that type does. Shapes are (ny, nx) or (nz,
    ny, nx); edges are "periodic", "slip" or the name of a wall kind, or (low, high), by axis. `fractions`, (Q, *shape):
    where walls cut the links on which populations arrive, counted from the site, NaN for half-way.
    """

    def __init__(
        self,
        lattice: Lattice,
        shape: tuple[int, ...],
        mask: Array | None = None,
        edges: Mapping[str, EDGE] | None = None,
        kinds: Mapping[int, Operator | Wall] | None = None,
        *,
        dtype: DTypeLike = np.float64,
        storage: DTypeLike | None = None,
        fractions: Array | None = None,
    ) -> None:
        self.velocities: Index = np.array([[int(c) for c in e] for e in lattice.velocities], np.int64)
        self.weights = np.array([float(w) for w in lattice.weights])
        self.opposite = [find_direction(self.velocities, -e) for e in self.velocities]
        self.shape, self.sites = shape, int(np.prod(shape))
        self.mask = (np.zeros(shape, np.int64) if mask is None else np.asarray(mask, np.int64)).reshape(shape)
        kinds = dict(kinds or {0: lambda f: None})
        self.operators = {k: o for k, o in kinds.items() if not isinstance(o, Wall)}
        self.walls = {k: w for k, w in kinds.items() if isinstance(w, Wall)}
        numbers = {w.name: k for k, w in self.walls.items()}
        motion = {k: w.velocity for k, w in self.walls.items() if w.velocity is not None}
        self.links = make_links(self.velocities, shape, self.mask, dict(edges or {}), numbers, motion)
        self.storage = np.dtype(dtype if storage is None else storage)
        self.f = np.zeros((len(self.weights), *shape), dtype)
        self.fluid: NDArray[np.bool_] = ~np.isin(self.mask, list(self.walls))  # the sites that are updated
        found = {k: np.flatnonzero(self.mask.ravel() == k) for k in self.operators}
        self.chosen = {k: sites for k, sites in found.items() if sites.size}
        self.gained = self._gained()
        self.fractions = None if fractions is None else np.asarray(fractions, np.float64).reshape(len(self.weights), -1)
        self.departed: Array | None = None  # in the last step

    # ------------------------------------------------------------ a step

    def step(self) -> None:
        """Operators, then streaming."""
        self.departed = self.depart()
        self.f = self.arrive(self.departed)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def depart(self) -> Array:
        """What the operators leave in every site."""
        out = self.f.reshape(len(self.f), -1).copy()
        for number, chosen in self.chosen.items():
            block = out[:, chosen]
            self.operators[number](block)
            out[:, chosen] = block
        return out.astype(self.storage).astype(self.f.dtype)

    def arrive(self, out: Array) -> Array:
        """Stream: gather what arrives, and add what a moving wall adds."""
        arrived = out[self.links.leaf, self.links.site] + self.gained
        if self.fractions is not None:
            arrived = self._interpolated(out, arrived).astype(self.storage).astype(self.f.dtype)
        return np.where(self.fluid, arrived.reshape(self.f.shape), self.f)

    def _interpolated(self, out: Array, arrived: Array) -> Array:
        """Linear interpolation of three populations, site by site; half-way where the link beyond the site is cut, too.

        With d the fraction, o opposite to q, and r = (1 - 2 d) / (1 + 2 d), at most 1/3,
        f_q(t+1) = (2 d (1 + r) + r) out_o + (1 - 2 d (1 + r)) f_o(t+1) - r out_q + 6 w (e_q . u) (1 + r).
        The weights of populations add up to 1, and the wall lies at d (Ginzburg, Verhaeghe and d'Humieres 2008).
        """
        assert self.fractions is not None
        found = arrived.copy()
        for q, o in enumerate(self.opposite):
            for n in np.flatnonzero(~np.isnan(self.fractions[q])):
                assert self.links.wall[q, n] != OPEN
                if self.links.wall[o, n] == OPEN:
                    d = self.fractions[q, n]
                    r = min((1 - 2 * d) / (1 + 2 * d), 1 / 3)
                    near, far = 2 * d * (1 + r) + r, 1 - 2 * d * (1 + r)
                    found[q, n] = near * out[o, n] + far * arrived[o, n] - r * out[q, n] + (1 + r) * self.gained[q, n]
        return found

    def _gained(self) -> Array:
        """6 w (e . u) of the walls that populations meet on their links, (Q, N)."""
        result = np.zeros(self.links.wall.shape, self.f.dtype)
        for number, wall in self.walls.items():
            if wall.velocity is not None:
                added = 6.0 * self.weights * (self.velocities @ wall.velocity)
                here = (self.links.wall == number) & ~self.links.still
                result += np.where(here, added[:, None], 0.0).astype(self.f.dtype)
        return result

    # ------------------------------------------------------------ what is measured

    def force(self, names: Iterable[str] | None = None, *, weights: bool = False, galilean: bool = True) -> Array:
        """The momentum that walls took from the populations that arrive now: of these kinds, of all by default.

        Sum over cut links of (e_out - u) f_out - (e_in - u) f_in with the wall's velocity u (Wen, Zhang, Tu, Wang and
        Fang, J. Comput. Phys. 266 (2014) 161), or without u (`galilean=False`), which is what the populations lose.
        `weights` adds w to populations that are stored as deviations. A link that crosses the faces of different walls
        belongs to none of them, and to all; so does one that passes between different walls and is at rest.
        """
        wanted = None if names is None else set(names)
        walls = {k: np.array(w.velocity or np.zeros(self.velocities.shape[1])) for k, w in self.walls.items()
                 if wanted is None or w.name in wanted}  # fmt: skip
        if wanted is None:
            walls[REST] = np.zeros(self.velocities.shape[1])
        total = np.zeros(self.velocities.shape[1])
        for q, e in enumerate(self.velocities):
            inward = self.f[q].ravel().astype(np.float64) + (self.weights[q] if weights else 0.0)
            outward = inward - self.gained[q]
            if self.fractions is not None and self.departed is not None:
                outward = self.departed[self.opposite[q]] + (self.weights[q] if weights else 0.0)
            for number, velocity in walls.items():
                here = (self.links.wall[q] == number) & self.fluid.ravel()
                for still in (False, True) if wanted is None else (False,):
                    some = here & (self.links.still[q] == still)
                    u = velocity if galilean and not still else np.zeros(len(e))
                    total += (-e - u) * outward[some].sum() - (e - u) * inward[some].sum()
        return total

    def moments(self, *, weights: bool = False) -> tuple[Array, Array]:
        """Density, shape `shape`, and momentum, (D, *shape), of what arrives, in float64."""
        whole = self.f.astype(np.float64)
        if weights:
            whole += self.weights.reshape(-1, *[1] * len(self.shape))
        return whole.sum(axis=0), np.tensordot(self.velocities.astype(float), whole, axes=(0, 0))
