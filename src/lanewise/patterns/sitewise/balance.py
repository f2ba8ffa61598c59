"""What walls that move add to the mass of a closed box, and walls that cannot move as
requested.

Every link that meets a moving wall gains 6 w (e . u). Over a closed box the sum of these terms has
to be nothing: it is, exactly, where walls move along themselves (`resting.py` says what happens at
their ends), and it is not where a wall moves along its own normal. The same holds for every part of
a box that walls close off from the rest: what one part gains is no help to another that loses it.

Only sites next to moving walls are looked at. Neighbours among them lie in one part; where the sum
over each such group is nothing already, it does not matter which groups the fluid connects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.patterns.sitewise.kinds import AXES, OUTFLOW, REST, Edges
from lanewise.patterns.sitewise.resting import parts_of
from lanewise.support.connected import connected

Whole = npt.NDArray[np.int64]
Velocities = Mapping[int, tuple[float, ...]]

ROUNDING = 1e-9
"""Of the terms of all axes together: what their sum may differ from nothing by."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a box that walls close: what the links of moving walls add up to in it.

    sums: by the number of a wall, sum of w e over the links that it moves: its velocity times six
    of that is what it adds in a step.
    place: the first of its sites that lie next to a moving wall, as an index of the mask; None
    where the part is all of the box.
    """

    sums: Mapping[int, tuple[Fraction, ...]]
    place: tuple[int, ...] | None

    def terms(self, velocities: Velocities) -> dict[tuple[int, int], float]:
        """What each wall adds in a step along each axis, but for nothing."""
        return {
            (n, axis): 6 * float(part) * velocities[n][axis]
            for n, parts in self.sums.items()
            for axis, part in enumerate(parts)
            if part and velocities[n][axis] != 0
        }

    def refusal(self, velocities: Velocities, names: Mapping[int, str]) -> str | None:
        terms = self.terms(velocities)
        if _cancel(terms):
            return None
        (number, axis), _ = max(terms.items(), key=lambda item: abs(item[1]))
        total = sum(terms.values())
        where = "the box" if self.place is None else f"its part around site {site(self.place)}"
        return (
            f"the wall {names[number]!r} moves with {velocities[number]}, into the fluid or away "
            f"from it along {AXES[axis]}: {where} is "
            f"closed, and its mass would change by {total:.3g} in every step; wanted a velocity "
            "along the wall, or an opening"
        )


@dataclass(frozen=True, slots=True)
class Balance:
    """What the links of some moving walls add up to.

    parts: the closed parts of the box whose mass changes.
    mirrored: (number of a wall, axis, step) where such links are mirrored at a slip face.
    """

    parts: tuple[Part, ...]
    mirrored: frozenset[tuple[int, int, int]]

    def refusal(self, velocities: Velocities, names: Mapping[int, str]) -> str | None:
        """Why walls cannot move with these velocities; None where they can."""
        for number, axis, step in sorted(self.mirrored):
            if velocities[number][axis] != 0:
                face = AXES[axis] + ("-" if step < 0 else "+")
                return (
                    f"the wall {names[number]!r} moves with {velocities[number]}, across the slip "
                    f"face {face} that it lies against, "
                    "whose mirror image would move the other way; wanted no velocity along "
                    f"{AXES[axis]}, or a wall at {face}"
                )
        return next((r for p in self.parts if (r := p.refusal(velocities, names))), None)


def _cancel(terms: Mapping[tuple[int, int], float]) -> bool:
    return abs(sum(terms.values())) <= ROUNDING * sum(map(abs, terms.values()))


def _oblique(velocity: tuple[int, ...]) -> int:
    """Along how many axes: those along one join the most."""
    return sum(map(abs, velocity))


def site(place: tuple[int, ...]) -> str:
    """A site of the mask in a message, such as (y, x) = (3, 4)."""
    return f"({', '.join('zyx'[-len(place) :])}) = ({', '.join(map(str, place))})"


Moving = tuple[tuple[int, tuple[float, ...]], ...]
"""Walls with their velocities."""


def kept_balance(
    kept: dict[Moving, Balance],
    lattice: Lattice,
    kinds: npt.NDArray[np.uint8],
    edges: Edges,
    walls: frozenset[int],
    velocities: Velocities,
) -> Balance:
    """See `wall_balance`; it is kept for the last velocities alone."""
    key = tuple(sorted(velocities.items()))
    if key not in kept:
        kept.clear()
        kept[key] = wall_balance(lattice, kinds, edges, walls, velocities)
    return kept[key]


def wall_balance(
    lattice: Lattice,
    kinds: npt.NDArray[np.uint8],
    edges: Edges,
    walls: frozenset[int],
    velocities: Velocities,
) -> Balance:
    """Count the links of a box. `kinds`: of its sites, 0 where there is fluid and openings where
    there are neither walls nor that; `walls`: the kinds that are walls; `velocities`: of those that
    move.
    """
    box = _Box(lattice, kinds, edges, walls)
    moving = {n: u for n, u in velocities.items() if any(u)}
    numbers = box.beside(frozenset(moving))
    sites = box.coordinates(numbers)
    alike = np.arange(OUTFLOW + 1)  # walls of one velocity are one
    for n, u in moving.items():
        alike[n] = min(k for k, v in moving.items() if v == u)
    scale = math.lcm(*(w.denominator for w in lattice.weights))
    gains = {n: np.zeros((len(sites), lattice.dimension), np.int64) for n in moving}
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
            for axis, component in enumerate(velocity):
                gains[n][here, axis] += int(weight * scale) * component
                if component and bool((here & slips[:, axis]).any()):
                    mirrored.add((n, axis, -component))
    parts = tuple(_unbalanced(box, numbers, gains, scale, moving))
    return Balance(parts, frozenset(mirrored))


def _unbalanced(
    box: _Box, numbers: Whole, gains: Mapping[int, Whole], scale: int, velocities: Velocities
) -> Iterator[Part]:
    """The closed parts of a box that walls add something to.

    numbers: of the sites next to moving walls, in order; gains: what each of them has of w e, times
    `scale`, by wall.
    """

    def parts(labels: Whole) -> Iterator[tuple[int, Part]]:
        names, first, of = np.unique(labels, return_index=True, return_inverse=True)
        sums = {n: np.zeros((len(names), g.shape[1]), np.int64) for n, g in gains.items()}
        for n, gained in gains.items():
            np.add.at(sums[n], of, gained)
        for k, name in enumerate(names.tolist()):
            by_wall = {n: tuple(Fraction(int(x), scale) for x in s[k]) for n, s in sums.items()}
            place = np.unravel_index(numbers[first[k]], box.kinds.shape)
            part = Part(by_wall, tuple(int(x) for x in place))
            if not _cancel(part.terms(velocities)):
                yield name, part

    if not any(g.any() for g in gains.values()) or not list(parts(box.together(numbers))):
        return
    fluid = np.flatnonzero(~np.isin(box.kinds, sorted(box.walls)))
    labels = box.together(fluid)
    opened = np.unique(labels[box.opened(fluid)])
    whole = len(np.unique(labels)) == 1
    for name, part in parts(labels[np.searchsorted(fluid, numbers)]):
        if name not in opened:
            yield Part(part.sums, None) if whole else part


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    lattice: Lattice
    kinds: npt.NDArray[np.uint8]
    edges: Edges
    walls: frozenset[int]

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(reversed(self.kinds.shape))

    def beside(self, moving: frozenset[int]) -> Whole:
        """(n,): the numbers, in order, of the sites that are no walls and may lie next to one of
        these walls.
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
        return numbers[~np.isin(self.kinds.ravel()[numbers], sorted(self.walls))]

    def coordinates(self, numbers: Whole) -> Whole:
        """(n, D): those of sites, x first."""
        places = np.unravel_index(numbers, self.kinds.shape)
        return np.stack(places[::-1], axis=1).astype(np.int64)

    def together(self, numbers: Whole) -> Whole:
        """(n,): a label for each of these sites, in order, that all have in common which links
        among these sites connect.
        """
        sites, none = self.coordinates(numbers), (0,) * self.kinds.ndim
        mirrors = any(
            "slip" in (self.edges.face(a, 1), self.edges.face(a, -1)) for a in range(len(none))
        )
        # Without a mirror, a link and the way back connect the same sites.
        every = [v for v in self.lattice.velocities if (v != none if mirrors else v > none)]
        places = self._places(numbers)
        return connected(
            len(numbers), (self._links(places, sites, v) for v in sorted(every, key=_oblique))
        )

    def _places(self, numbers: Whole) -> Callable[[Whole], Whole]:
        """Finds sites by number among these ones, which are in order: their places, -1 for none."""
        if len(numbers) * 8 > self.kinds.size:  # a table is faster, and not much larger
            table = np.full(self.kinds.size, -1, np.int64)
            table[numbers] = np.arange(len(numbers))
            return table.__getitem__

        def look(found: Whole) -> Whole:
            at = np.minimum(np.searchsorted(numbers, found), len(numbers) - 1)
            return np.where(numbers[at] == found, at, -1)

        return look

    def _links(
        self, places: Callable[[Whole], Whole], sites: Whole, velocity: tuple[int, ...]
    ) -> tuple[Whole, Whole]:
        """The pairs of these sites that lie at both ends of a link, by their places."""
        found, inside = np.zeros(len(sites), np.int64), np.ones(len(sites), np.bool_)
        for axis in range(self.kinds.ndim - 1, -1, -1):
            step = velocity[axis]
            there = sites[:, axis] + step
            outside = (there < 0) | (there >= self.extents[axis])
            face = self.edges.face(axis, step) if step else 0
            if face == "periodic":
                there %= self.extents[axis]
            else:
                there = np.where(outside, sites[:, axis], there)
                if face != "slip":
                    inside &= ~outside
            found = found * self.extents[axis] + there
        at = places(found)
        met = np.flatnonzero(inside & (at >= 0))
        return met, at[met]

    def opened(self, numbers: Whole) -> npt.NDArray[np.bool_]:
        """(n,): where fluid may come in or leave, of sites that are no walls: openings, and sites
        at a face that it flows out through.
        """
        sites, found = self.coordinates(numbers), self.kinds.ravel()[numbers] != 0
        for axis in range(self.kinds.ndim):
            for step, end in ((-1, 0), (1, self.extents[axis] - 1)):
                if self.edges.face(axis, step) == OUTFLOW:
                    found |= sites[:, axis] == end
        return found

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
