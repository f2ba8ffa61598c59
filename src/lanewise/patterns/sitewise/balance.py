"""What walls that move add to the mass of a closed box, and walls that cannot move as they are
told.

Every link that meets a moving wall gains 6 w (e . u). Over a closed box the sum of these terms has
to be nothing: it is, exactly, where walls move along themselves (`resting.py` says what happens at
their ends), and it is not where a wall moves along its own normal. Only sites beside moving walls
are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.patterns.sitewise.kinds import AXES, OUTFLOW, REST, Edges
from lanewise.patterns.sitewise.resting import parts_of

Whole = npt.NDArray[np.int64]
Velocities = Mapping[int, tuple[float, ...]]

ROUNDING = 1e-9
"""Of the terms of all axes together: what their sum may differ from nothing by."""


@dataclass(frozen=True, slots=True)
class Balance:
    """What the links of some moving walls add up to.

    sums: by the number of a wall, sum of w e over the links that it moves: its velocity times six
    of that is what it adds in a step.
    mirrored: (number of a wall, axis, step) where such links are mirrored at a slip face.
    """

    sums: Mapping[int, tuple[Fraction, ...]]
    mirrored: frozenset[tuple[int, int, int]]

    def refusal(
        self, velocities: Velocities, names: Mapping[int, str], *, closed: bool
    ) -> str | None:
        """Why walls cannot move with these velocities, in a box that is `closed` or has openings;
        None where they can.
        """
        for number, axis, step in sorted(self.mirrored):
            if velocities[number][axis] != 0:
                face = AXES[axis] + ("-" if step < 0 else "+")
                return (
                    f"the wall {names[number]!r} moves with {velocities[number]}, across the slip "
                    f"face {face} that it lies against, "
                    "whose mirror image would move the other way; wanted no velocity along "
                    f"{AXES[axis]}, or a wall at {face}"
                )
        return self._unbalanced(velocities, names) if closed else None

    def _unbalanced(self, velocities: Velocities, names: Mapping[int, str]) -> str | None:
        terms = {
            (n, axis): 6 * float(part) * velocities[n][axis]
            for n, parts in self.sums.items()
            for axis, part in enumerate(parts)
            if part and velocities[n][axis] != 0
        }
        total = sum(terms.values())
        if abs(total) <= ROUNDING * sum(map(abs, terms.values())):
            return None
        (number, axis), _ = max(terms.items(), key=lambda item: abs(item[1]))
        return (
            f"the wall {names[number]!r} moves with {velocities[number]}, into the fluid or away "
            f"from it along {AXES[axis]}: the box is "
            f"closed, and its mass would change by {total:.3g} in every step; wanted a velocity "
            "along the wall, or an opening"
        )


def wall_balance(
    lattice: Lattice,
    kinds: npt.NDArray[np.uint8],
    edges: Edges,
    walls: frozenset[int],
    velocities: Velocities,
) -> Balance:
    """Count the links of a box. `kinds`: of its sites; `walls`: the kinds that are walls;
    `velocities`: of those that move.
    """
    box = _Box(kinds, edges, walls)
    moving = {n: u for n, u in velocities.items() if any(u)}
    sites = box.beside(frozenset(moving))
    alike = np.arange(OUTFLOW + 1)  # walls of one velocity are one
    for n, u in moving.items():
        alike[n] = min(k for k, v in moving.items() if v == u)
    sums = {n: [Fraction(0)] * lattice.dimension for n in moving}
    mirrored: set[tuple[int, int, int]] = set()
    for velocity, weight in zip(lattice.velocities, lattice.weights, strict=True):
        back = tuple(-c for c in velocity)
        met, slips = box.met(sites, back)
        moves = np.isin(met, list(moving))
        for steps in parts_of(back):
            beside, _ = box.met(sites, steps)
            moves &= (beside == 0) | (alike[beside] == alike[met])
        for n in moving:
            here = moves & (met == n)
            count = int(np.count_nonzero(here))
            for axis, component in enumerate(velocity):
                sums[n][axis] += Fraction(weight) * component * count
                if component and bool((here & slips[:, axis]).any()):
                    mirrored.add((n, axis, -component))
    return Balance({n: tuple(parts) for n, parts in sums.items()}, frozenset(mirrored))


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    kinds: npt.NDArray[np.uint8]
    edges: Edges
    walls: frozenset[int]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(reversed(self.kinds.shape))

    def beside(self, moving: frozenset[int]) -> Whole:
        """(n, D): the coordinates, x first, of the sites that are no walls and may lie beside one
        of these walls.
        """
        shape, dimension = self.kinds.shape, self.kinds.ndim
        chosen: list[Whole] = []
        for axis in range(dimension):
            for step, end in ((-1, 0), (1, self.extents[axis] - 1)):
                if self.edges.face(axis, step) in moving:
                    layer = np.indices(
                        [1 if a == dimension - 1 - axis else n for a, n in enumerate(shape)]
                    )
                    layer[dimension - 1 - axis] = end
                    chosen.append(np.ravel_multi_index(tuple(layer), shape).ravel())
        inside = np.isin(self.kinds, sorted(moving))
        if inside.any():
            around = np.argwhere(inside)
            for offset in np.ndindex(*[3] * dimension):
                there = around + np.array(offset) - 1
                for a, n in enumerate(shape):
                    periodic = self.edges.face(dimension - 1 - a, 1) == "periodic"
                    there[:, a] = there[:, a] % n if periodic else np.clip(there[:, a], 0, n - 1)
                chosen.append(np.unique(np.ravel_multi_index(tuple(there.T), shape)))
        numbers = np.unique(np.concatenate([np.empty(0, np.int64), *chosen]))
        numbers = numbers[~np.isin(self.kinds.ravel()[numbers], sorted(self.walls))]
        return np.stack(np.unravel_index(numbers, shape)[::-1], axis=1).astype(np.int64)

    def met(self, sites: Whole, steps: tuple[int, ...]) -> tuple[Whole, npt.NDArray[np.bool_]]:
        """The kind of the wall that lies so many steps from each site, 0 for none, and at which
        axes a slip face mirrors the way (n, D).
        """
        met, slips = np.zeros(len(sites), np.int64), np.zeros(sites.shape, np.bool_)
        ends = sites.copy()
        for axis, step in enumerate(steps):
            if not step:
                continue
            there = sites[:, axis] + step
            outside = (there < 0) | (there >= self.extents[axis])
            face = self.edges.face(axis, step)
            if face == "periodic":
                there %= self.extents[axis]
            else:
                there = np.where(outside, sites[:, axis], there)
                if face == "slip":
                    slips[:, axis] = outside
                else:
                    met = np.where(outside, np.where((met == 0) | (met == face), face, REST), met)
            ends[:, axis] = there
        kind = self.kinds[tuple(ends.T[::-1])].astype(np.int64)
        return np.where(met == 0, np.where(np.isin(kind, sorted(self.walls)), kind, 0), met), slips
