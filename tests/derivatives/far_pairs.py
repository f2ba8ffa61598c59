"""Random pairs of groups, whose far fields go through the operators: many pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.derivatives.expansions.estimates import sizes_of_errors
from lanewise.derivatives.expansions.operators import Operators
from lanewise.ir import nodes as ir
from tests.derivatives.whole_arrays import Array, called


@dataclass(frozen=True)
class Pairs:
    """Groups of targets around the origin and of sources around `centre`, both (pairs, elements, axes).

    scales: those of targets and sources. theta: the sum of their radii over their distance.
    """

    targets: Array
    sources: Array
    centre: Array
    scales: tuple[Array, Array]
    radius: Array

    @property
    def distance(self) -> Array:
        return np.linalg.norm(self.centre, axis=1)


def random_pairs(
    rng: np.random.Generator, count: int, theta: Array, axes: int = 3, elements: int = 32, sizes: float = 0.0
) -> Pairs:
    """Cubes of random elements, around their mean; sizes: how far apart they may be, as a power of ten."""
    groups: list[Array] = []
    for _ in range(2):
        size = 10 ** rng.uniform(-sizes, sizes, (count, 1, 1))
        places = rng.uniform(-1, 1, (count, elements, axes)) * size
        groups.append(places - places.mean(1, keepdims=True))
    radii = [np.linalg.norm(g, axis=2).max(1) for g in groups]
    direction = rng.normal(size=(count, axes))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    centre = direction * ((radii[0] + radii[1]) / theta)[:, None]
    scales = tuple(2.0 ** np.round(np.log2(r)) for r in radii)
    return Pairs(groups[0], groups[1] + centre[:, None], centre, (scales[0], scales[1]), radii[0])


def named(name: str, places: Array) -> dict[str, Array]:
    """Components as parameters."""
    return {f"{name}.{c}": places[..., a] for a, c in enumerate("xyz"[: places.shape[-1]])}


@cache
def operators_of(kernel: Any, order: int) -> Operators:
    return Operators(lw.far_field(kernel).proof, order)


@cache
def operator(kernel: Any, order: int, name: str) -> ir.Function:
    return getattr(operators_of(kernel, order), name)()


@dataclass(frozen=True)
class Field:
    """The far field of one kernel at random pairs. values: fields of sources and targets, and what is one for all."""

    kernel: Any
    order: int
    pairs: Pairs
    sources: dict[str, Array]
    targets: dict[str, Array]
    values: dict[str, Any]

    def _run(self, name: str, arguments: dict[str, Any]) -> list[Array]:
        return called(operator(self.kernel, self.order, name), {**self.values, **arguments})

    def exact(self) -> Array:
        """The sums over all pairs, in float64: (pairs, targets, results)."""
        f = lw.far_field(self.kernel).proof.function
        wide = {p.name: ir.Parameter(p.name, p.type) for p in f.parameters}
        env: dict[str, Any] = {"$same": False, **self.values}
        env |= named("source.position", self.pairs.sources[:, None]) | named(
            "target.position", self.pairs.targets[:, :, None]
        )
        env |= {n: v[:, None, :] for n, v in self.sources.items()} | {n: v[:, :, None] for n, v in self.targets.items()}
        shape = (*self.pairs.targets.shape[:2], self.pairs.sources.shape[1])
        return np.stack(
            [np.broadcast_to(r, shape).sum(-1, dtype=np.float64) for r in called(f, {n: env[n] for n in wide})], -1
        )

    def moments(self) -> dict[str, Array]:
        of = named("source.position", self.pairs.sources) | named("$centre", self.pairs.centre[:, None]) | self.sources
        parts = self._run("p2m", of | {"$scale": self.pairs.scales[1][:, None]})
        shape = self.pairs.sources.shape[:2]
        names = [p.name for p in operators_of(self.kernel, self.order).moments()]
        return {n: np.broadcast_to(x, shape).sum(1, dtype=x.dtype) for n, x in zip(names, parts, strict=True)}

    def locals(self) -> dict[str, Array]:
        zero = np.zeros_like(self.pairs.centre)
        between = named("$source", self.pairs.centre) | named("$target", zero)
        scales = {"$target.scale": self.pairs.scales[0], "$source.scale": self.pairs.scales[1]}
        parts = self._run("m2l", self.moments() | between | scales)
        names = [p.name for p in operators_of(self.kernel, self.order).locals()]
        return {n: np.broadcast_to(x, zero.shape[:1]) for n, x in zip(names, parts, strict=True)}

    def at_targets(self, name: str, group: dict[str, Array], centre: Array, scale: Array) -> Array:
        """The results of an operator at the targets, from what belongs to a group: (pairs, targets, results)."""
        of = {n: x[:, None] for n, x in group.items()} | named("$centre", centre[:, None])
        of |= named("target.position", self.pairs.targets) | self.targets | {"$scale": scale[:, None]}
        shape = self.pairs.targets.shape[:2]
        return np.stack([np.broadcast_to(r, shape) for r in self._run(name, of)], -1)

    def by_locals(self) -> Array:
        """Through P2M, M2L and L2P: (pairs, targets, results)."""
        return self.at_targets("l2p", self.locals(), np.zeros_like(self.pairs.centre), self.pairs.scales[0])

    def by_moments(self) -> Array:
        """Through P2M and M2P: (pairs, targets, results)."""
        return self.at_targets("m2p", self.moments(), self.pairs.centre, self.pairs.scales[1])

    def estimated(self) -> Array:
        """The error that is estimated of `by_moments`, at the nearest target: (pairs,)."""
        o, pairs = operators_of(self.kernel, self.order), self.pairs
        lengths = np.linalg.norm(pairs.sources - pairs.centre[:, None], axis=2) ** (self.order + 1)
        nearest = np.linalg.norm(pairs.targets - pairs.centre[:, None], axis=2).min(1)
        sizes = called(sizes_of_errors(o), {**self.values, "$distance": nearest})
        weights = [np.abs(self.sources[n]) if n in self.sources else 1.0 for n in o.shape.weights]
        parts = (
            size * (weights[i.weight] * lengths).sum(1) for i, size in zip(o.shape.interactions, sizes, strict=True)
        )
        return sum(parts, np.zeros(len(lengths)))


def relative(found: Array, exact: Array) -> float:
    """The root of the mean square of errors of vectors over their lengths."""
    lengths = np.linalg.norm(exact, axis=-1)
    return float(np.sqrt(np.mean((np.linalg.norm(found - exact, axis=-1) / lengths) ** 2)))
