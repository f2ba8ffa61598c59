"""lw.Tree: near sources one by one, far ones as groups."""

from __future__ import annotations

from dataclasses import dataclass
from math import nextafter
from typing import Any, ClassVar, Literal, NoReturn, get_args

from lanewise.patterns.search.base import (
    Search,
    Structure,
    Walked,
    check_sources,
    plain_number,
)
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree.shape import LEAF
from lanewise.patterns.search.tree.structure import TreeStructure
from lanewise.patterns.search.worlds import Open, Periodic
from lanewise.support.attributes import frozen
from lanewise.support.checks import finite, shown
from lanewise.support.errors import ArgumentError

Method = Literal["walk", "dual"]
THETA, ORDER = 0.6, 4  # where neither is requested
# with an accuracy, in the least time: of FINE and coarser, and of finer ones
COARSE_ORDER, FINE_ORDER, FINE = 3, 5, 3e-4
WIDEST = 0.7  # the opening angle with an accuracy: wider, and estimates say too little
LEAST_ACCURACY = {4: 1e-5, 8: 1e-12}  # by bytes of a number: nearer to its rounding nothing helps
MOST_THETA = 0.9  # a group is farther away than it is wide
MOST_ORDER = 8
MOST_LEAF = 256


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(Search):
    """A tree of groups: a target meets near sources one by one, and groups of far ones by their
    multipole expansions, which lanewise derives from the function itself.

    For functions whose results are sums, and for which `lw.far_field` finds tier R (gravity,
    Coulomb's and Yukawa's forces, Stokeslets) or P (a softening that depends on the target). Groups
    of a function of tier P are records at Chebyshev points, which the function itself meets.
    Results are close to those over all pairs, but not equal: the error falls with theta and with
    the order if the function varies slowly over a group. It does not if the function oscillates or
    grows within a group, like cos(40 r) in a unit box. The first call of a kind is therefore
    compared with all pairs at 768 to 6,144 targets. It warns (`lw.FarFieldWarning`) if the median
    error is above 1 %, or if the 99 % error is above 5 % or above the accuracy.

    theta: a group is far if its radius is less than theta times its distance (None: 0.6; at most
    0.9). order: of the expansions, from 0 (a group is one source at its centre) to 8 (None: 4); in
    tier P the degree of the polynomials along each axis (None: 2), with (order + 1)^axes records
    per group. accuracy: the requested relative error, above 0 and below 1. A group is then far if
    its estimated error is small enough and theta allows it (None: 0.7); the order is 3 by default,
    and 5 below 3e-4. The accuracy is a target and not a bound: for gravity 99 % of the results in
    clusters, lines, sheets and uniform positions were closer, most of them much closer; a call that
    misses it warns. The function's `tune(targets, sources, ...)` measures which method, order
    (unless given), leaves and opening reach the accuracy in the least time, and later calls use
    these. leaf: elements of the smallest groups. method: "walk" (None), where each group of targets
    walks through the tree, or "dual", where groups of sources also meet groups of targets, both
    with expansions: for functions of tier R whose targets are the sources. Two groups are then far
    from each other if the sum of their radii is less than theta times their distance; a higher
    order costs less time than in a walk. position: the field with the position of an element, a
    vec2, vec3, dvec2 or dvec3. radius, k and worlds other than lw.Open() raise an error.

    Methods: J. Barnes and P. Hut 1986, with a tree of halves of a Hilbert curve; dual: L. Greengard
    and V. Rokhlin 1987, W. Dehnen 2002.
    """

    any_distance: ClassVar[bool] = True
    theta: float | None = None
    order: int | None = None
    accuracy: float | None = None
    leaf: int = LEAF
    method: Method | None = None

    def __post_init__(self) -> None:
        self._check_asked()
        super(Tree, self).__post_init__()
        if not isinstance(self.world, Open):
            why = (
                "the images of far groups are an infinite sum, which a tree does not have"
                if isinstance(self.world, Periodic)
                else "the box of a tree follows from its elements and needs no bounds"
            )
            _refuse(f"world={self.world}", f"{why}; wanted lw.Open()")
        for name in ("theta", "order", "leaf", "accuracy"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        theta: Any = self.theta
        if theta is not None and not _between(theta, 0, nextafter(MOST_THETA, 1.0)):
            _refuse(
                f"theta={shown(theta)}",
                f"wanted a number above 0 and at most {MOST_THETA}: a group counts as far where "
                "its radius is less than theta times its distance",
            )
        if self.accuracy is not None and not _between(self.accuracy, 0, 1):
            _refuse(
                f"accuracy={shown(self.accuracy)}",
                "wanted a number above 0 and below 1: the error of results relative to themselves",
            )
        if self.order is not None and not _whole(self.order, 0, MOST_ORDER):
            _refuse(f"order={shown(self.order)}", f"wanted an integer from 0 to {MOST_ORDER}")
        if not _whole(self.leaf, 1, MOST_LEAF):
            _refuse(f"leaf={shown(self.leaf)}", f"wanted an integer from 1 to {MOST_LEAF}")

    def _check_asked(self) -> None:
        """Refuse what other searches have, and what trees do not have yet."""
        for name in ("radius", "k"):
            if getattr(self, name) is not None:
                _refuse(
                    f"{name}={shown(getattr(self, name))}",
                    "a far field has all sources in it, near and far; lw.Neighbors(radius=...) and "
                    "lw.Nearest(k=...) find near ones",
                )
        method: Any = self.method
        if method is not None and (not isinstance(method, str) or method not in get_args(Method)):
            _refuse(f"method={shown(method)}", "wanted 'walk' or 'dual'")
        if method == "dual" and self.accuracy is not None:
            _refuse(
                "method='dual', accuracy=...",
                "errors are estimated where targets meet groups, and not of pairs of groups; "
                "choose theta= and order=, or method='walk'",
            )

    @property
    def angle(self) -> float:
        """The opening angle."""
        if self.theta is None:
            return THETA if self.accuracy is None else WIDEST
        return float(self.theta)

    @property
    def terms(self) -> int:
        """The order of the expansions."""
        if self.order is None:
            if self.accuracy is None:
                return ORDER
            return COARSE_ORDER if self.accuracy >= FINE else FINE_ORDER
        return self.order

    def describe(self) -> str:
        if self.accuracy is not None:
            most = f", theta at most {self.angle:g}" if self.angle != WIDEST else ""
            return (
                f"tree: accuracy {self.accuracy:g} by estimates{most}, order {self.terms}, leaves "
                f"of {self.leaf}"
            )
        both = ", pairs of groups" if self.method == "dual" else ""
        return f"tree: theta {self.angle:g}, order {self.terms}, leaves of {self.leaf}{both}"

    def in_words(self) -> str:
        return "near ones, and far ones in groups"

    def make(self, sources: Points) -> Walked:
        del sources
        _refuse("", "groups of sources stand for what a pairwise function reads of them; use it "
                "as function.using(search=lw.Tree(...))")  # fmt: skip

    def structure(self, targets: Points, sources: Points) -> Structure:
        check_sources(self, sources)
        if self.method == "dual" and targets is not sources:
            _refuse(
                "method='dual'",
                "groups of targets are those of the sources, and these targets are others; pass "
                "the same array twice, or choose method='walk'",
            )
        least = LEAST_ACCURACY[sources.precision.size]
        if self.accuracy is not None and self.accuracy < least:
            _refuse(
                f"accuracy={self.accuracy:g}",
                f"results in {sources.precision} are no closer than about {least:g}; choose that "
                "or more, or records of float64",
            )
        return TreeStructure(
            self.describe(),
            self.angle,
            self.accuracy,
            self.terms,
            self.leaf,
            targets,
            sources,
            pairs=self.method == "dual",
        )


def _between(value: Any, least: float, most: float) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and finite(value) and least < value < most


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _refuse(given: str, why: str) -> NoReturn:
    raise ArgumentError(f"Tree({given}): {why}")
