"""Which moments and local expansions a far field needs.

    result.x, .y, .z = mass * d * h     one set of moments (mass), one local expansion (a potential)
    result = F.d h                      three sets of moments, one local expansion
Moments are those of weights: fields of the source, and the source itself where it is counted. Where
the results along all axes are the same function times the components of d, they are the gradient of
one potential, and share its expansion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from lanewise.analysis.far_field import Radial
from lanewise.analysis.value_numbering import Value

Index = tuple[int, ...]
"""How often a function is differentiated along each axis, or the powers of a product."""


@dataclass(frozen=True, slots=True)
class LocalExpansion:
    """What is expanded around the centre of a group of targets.

    factor: the value of the target that it is multiplied by, a number of the proof's table (None:
    1). results: by number; those of a potential are the components of its gradient.
    """

    potential: bool
    factor: int | None
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Interaction:
    """A set of moments that adds to a local expansion through the derivatives of a function of d.

    The function is the product of `powers` of d's components and of `radial`; of a local expansion
    that is a potential it is one whose gradient is d times `radial`.
    """

    weight: int
    local: int
    powers: Index
    radial: Value


@dataclass(frozen=True, slots=True)
class ExpansionShape:
    """Moments by their weights (`radial_form.ONE`: the number of sources), local expansions, and
    what leads from these to those.
    """

    weights: tuple[str, ...]
    locals: tuple[LocalExpansion, ...]
    interactions: tuple[Interaction, ...]


def shape_of(radial: Radial, axes: int) -> ExpansionShape:
    """The expansions of a function of tier R."""
    weights: dict[str, int] = {}
    locals_: dict[LocalExpansion, int] = {}
    interactions: list[Interaction] = []
    shared = _potentials(radial, axes)
    for number, terms in enumerate(radial.results):
        for term in terms:
            weight = weights.setdefault(term.part.weight, len(weights))
            key = (term.part.weight, term.part.factor, term.radial)
            results = shared.get(key) if sum(term.part.powers) == 1 else None
            if results is None:
                local = LocalExpansion(False, term.part.factor, (number,))
                powers = term.part.powers
            elif results[0] != number:  # they come with the first of them
                continue
            else:
                local = LocalExpansion(True, term.part.factor, results)
                powers = (0,) * axes
            place = locals_.setdefault(local, len(locals_))
            interactions.append(Interaction(weight, place, powers, term.radial))
    return ExpansionShape(tuple(weights), tuple(locals_), tuple(interactions))


def _potentials(radial: Radial, axes: int) -> dict[tuple[str, int | None, Value], tuple[int, ...]]:
    """The results that are one function times the components of d, in the order of the axes."""
    found: dict[tuple[str, int | None, Value], dict[int, list[int]]] = {}
    for number, terms in enumerate(radial.results):
        for term in terms:
            if sum(term.part.powers) == 1:
                key = (term.part.weight, term.part.factor, term.radial)
                by_axis = found.setdefault(key, {})
                by_axis.setdefault(term.part.powers.index(1), []).append(number)
    return {
        key: tuple(by_axis[a][0] for a in range(axes))
        for key, by_axis in found.items()
        if len(by_axis) == axes
        and all(len(numbers) == 1 for numbers in by_axis.values())
        and len({numbers[0] for numbers in by_axis.values()}) == axes
    }


@cache
def indices(axes: int, order: int) -> tuple[Index, ...]:
    """All indices of at most this order, lower orders first, x before y."""
    every = product(range(order + 1), repeat=axes)
    return tuple(sorted((i for i in every if sum(i) <= order), key=lambda i: (sum(i), _back(i))))


def _back(index: Index) -> Index:
    return tuple(-n for n in index)


def lowered(index: Index, axis: int, by: int = 1) -> Index:
    """The index with one axis counted less."""
    return tuple(n - by * (a == axis) for a, n in enumerate(index))


def raised(index: Index, axis: int) -> Index:
    """The index with one axis counted once more."""
    return lowered(index, axis, -1)


def plus(a: Index, b: Index) -> Index:
    """The index of both, one after the other."""
    return tuple(m + n for m, n in zip(a, b, strict=True))


def below(index: Index) -> Iterator[Index]:
    """All indices none of whose numbers is greater."""
    return product(*(range(n + 1) for n in index))


def minus(a: Index, b: Index) -> Index:
    """What is left of an index."""
    return tuple(m - n for m, n in zip(a, b, strict=True))


def text(index: Index) -> str:
    """The index in a name."""
    return "_".join(map(str, index))
