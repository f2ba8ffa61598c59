"""Gravity over a tree: when it is taken, its order of the bodies, and how wrong its forces are.

Without `from __future__ import annotations`: a kernel's types are read where it is defined.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.records.arrays import class_of
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.devices import is_gpu, on, require_memory, to_host
from lanewise.sims.common.meshes import in_one_place, values_on_host
from lanewise.sims.common.searches import (
    TreeChoice,
    choice_from,
    choice_of,
    errors_of_parts,
    median_and_most,
    relative,
    spread,
)
from lanewise.sims.gravity.checks import self_force_vanishes
from lanewise.sims.gravity.options import Settings
from lanewise.sims.gravity.physics import Body64, make_physics, pair_type, precision_of
from lanewise.support.attributes import unknown
from lanewise.support.errors import ArgumentError, InputError
from lanewise.support.numerals import counted

METHODS = ("auto", "direct", "tree")
CROSSING, GPU_CROSSING = 20_000, 50_000
"""Bodies from which `auto` takes a tree. With theta 0.6 and order 4 it is as fast as all pairs from
7,000 bodies on, and 1.45 times as fast for 20,000 (a Plummer sphere in float32, two cores of an AMD
EPYC). For a GPU it is an estimate and not measured.
"""

WALKS = ("walk", "dual")
NUMBERS = ("accuracy", "theta", "order", "leaf", "walk", "opening")
"""The settings that only trees have; no accuracy stays none. `walk` is the method of `lw.Tree`."""

SAMPLE = 1024
STEADY, STEADY_ORDER = 1e-3, 4
"""From this accuracy down forces have at least this order, where none is given: order 3 takes as
long and lets momentum drift three to five times as far.
"""


def tree_of(settings: Settings) -> lw.Tree | None:
    """The tree that settings ask for, whatever is left open as `lw.Tree` has it; None without one.

    Raises `InputError` for what no tree is, and for what only trees have without one.
    """
    given = {name: getattr(settings, name) for name in NUMBERS}
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if settings.calibrate and (settings.method != "tree" or settings.accuracy is None):
        raise InputError("--calibrate needs --method tree and --accuracy: it measures what has it")
    if settings.method == "direct":
        for name in said:
            raise InputError(f"--{name} needs --method tree: all pairs have no groups of bodies")
        return None
    opening, walk = said.pop("opening", None), said.pop("walk", None)
    if walk is not None and walk not in WALKS:
        raise InputError(unknown("walk", walk, WALKS))
    try:
        if opening is None:
            return lw.Tree(**said, method=walk)
        order, leaf = said.pop("order", None), said.pop("leaf", None)
        if walk is None or order is None or leaf is None:
            raise InputError("an opening is that of a calibrated tree, with walk, order and leaf")
        return TreeChoice(walk, order, leaf, opening).search(lw.Tree(**said))
    except ArgumentError as error:
        raise InputError(str(error)) from error


def with_method(settings: Settings, bodies: int) -> tuple[Settings, str]:
    """The settings with "direct" or "tree" for a method, with all numbers of a tree, and why it is
    this one.
    """
    check_known("method", settings.method, METHODS)
    tree, why = tree_of(settings), "requested"
    if settings.method == "auto":
        least, where = CROSSING, "on a CPU, measured for theta 0.6 and order 4"
        if is_gpu(settings.device):
            least, where = GPU_CROSSING, "on a GPU, estimated"
        side = "from" if bodies >= least else "fewer than"
        why = f"auto: {side} {least:,} bodies, where a tree pays {where}"
        tree = tree if bodies >= least else None
    if tree is None:
        none: dict[str, Any] = dict.fromkeys(NUMBERS)
        return replace(settings, method="direct", **none), why
    order = tree.terms
    if tree.order is None and tree.accuracy is not None and tree.accuracy <= STEADY:
        order = max(order, STEADY_ORDER)
    numbers: dict[str, Any] = {"theta": tree.angle, "order": order, "leaf": tree.leaf}
    numbers["walk"] = tree.method or "walk"
    return replace(settings, method="tree", **numbers), why


def calibrated(asked: Settings, settings: Settings, bodies: lw.RecordArray) -> tuple[Settings, str]:
    """The settings with the tree that has the accuracy in the least time for these bodies, and why.

    asked: without the numbers that were left open. Raises `InputError` for an accuracy that no tree
    has.
    """
    search = tree_of(asked)
    assert search is not None, "what is calibrated is a tree"
    bodies = in_one_place(bodies)
    law = law_over(search, bodies, settings.softening)
    try:
        found = law.tune(bodies, bodies, softening2=settings.softening**2)
    except ArgumentError as error:
        raise InputError(str(error)) from error
    why = (
        f"calibrated for an accuracy of {settings.accuracy:g}, {found.factor:.2f} times as fast as "
        "without"
    )
    return _taking(settings, choice_from(found.structure)), why


def may_be_known(asked: Settings) -> bool:
    """Whether such a tree may have been calibrated before: one with an accuracy, and no opening."""
    search = tree_of(asked)
    return search is not None and search.accuracy is not None and asked.opening is None


def calibrated_before(
    asked: Settings, settings: Settings, bodies: lw.RecordArray
) -> tuple[Settings, str] | None:
    """The same where it was measured before, for bodies like these; None where it was not. asked:
    what `may_be_known`.
    """
    search = tree_of(asked)
    assert search is not None, "what was calibrated is a tree"
    bodies = in_one_place(bodies)
    law = law_over(search, bodies, settings.softening)
    values = {"softening2": settings.softening**2}
    arguments = law._calls.given((bodies, bodies), values)  # pyright: ignore[reportPrivateUsage]
    assert law.searched is not None, "over a tree"
    picked = law.searched.picked(arguments)
    if not picked.tuned or not isinstance(picked.search, lw.Tree):
        return None
    return _taking(settings, choice_of(picked.search)), picked.why


def law_over(search: lw.Tree, bodies: lw.RecordArray, softening: float) -> lw.Pairwise:
    """The force between such bodies over a tree."""
    softened = self_force_vanishes(softening, pair_type(precision_of(bodies.record)))
    return over(search, make_physics(class_of(bodies), softened).acceleration)


def _taking(settings: Settings, choice: TreeChoice) -> Settings:
    theta = choice.opening if choice.method == "dual" else settings.theta
    return replace(
        settings, calibrate=False, walk=choice.method, order=choice.order, leaf=choice.leaf,
        opening=choice.opening, theta=theta,
    )  # fmt: skip


def over(search: lw.Tree | None, kernel: lw.Pairwise) -> lw.Pairwise:
    """The kernel over a tree, or over all pairs."""
    return kernel if search is None else kernel.using(search=search)


# ------------------------------------------------------------ the order of a tree


def follow_order(gravity: lw.Call, order: NDArray[np.int32]) -> None:
    """Compute the forces anew with this order, as a step of a loop does that makes none."""
    loop = lw.steps([gravity], structures="keep")
    loop.step, loop.orders = 1, (order,)
    loop.run(1)


# ------------------------------------------------------------ errors


@dataclass(frozen=True, slots=True)
class ForceErrors:
    """Relative errors of |a|: the median, that which 99 % are below, the largest, and how many
    bodies were looked at.
    """

    median: float
    most: float
    largest: float
    bodies: int

    def as_dict(self) -> dict[str, float | int]:
        """For a machine-readable result."""
        return {
            "median": self.median, "99 %": self.most, "largest": self.largest,
            "bodies": self.bodies,
        }  # fmt: skip

    def __str__(self) -> str:
        return (
            f"median {self.median:.1e}, 99 % {self.most:.1e}, largest {self.largest:.1e} "
            f"(of {counted(self.bodies, 'body', 'bodies')} against all pairs in float64)"
        )


def accuracy_warning(accuracy: float | None, errors: ForceErrors | None) -> str:
    """What to say of errors that are above the accuracy that was requested, and "" of others."""
    if errors is None or accuracy is None or errors.most <= accuracy:
        return ""
    return (
        f"99 % of the forces are within {errors.most:.1e} of those of all pairs, not within the "
        f"accuracy of {accuracy:g} that was requested; choose a smaller --accuracy, or a "
        "--precision with more digits"
    )


@lw.pairwise
def exact_gravity(target: Body64, source: Body64, softening2: lw.f64) -> lw.dvec3:
    """Newton's law with Plummer softening; bodies in one place do not attract each other."""
    d = source.position - target.position
    squared = lw.dot(d, d)
    if squared == 0.0:
        return lw.dvec3(0)
    inverse = 1 / lw.sqrt(squared + softening2)
    return source.mass * inverse**3 * d


def force_errors(
    bodies: lw.RecordArray, acceleration: Any, softening: float, accuracy: float | None = None
) -> ForceErrors:
    """Of accelerations (n, 3) for G = 1, by about SAMPLE bodies, or by more where it is not clear
    whether an accuracy is kept; the same ones in every run of so many bodies.
    """
    count, device = len(bodies), bodies.device
    require_memory(
        device, 64 * count, f"the forces of {counted(count, 'body', 'bodies')} in float64"
    )
    places, masses = values_on_host(bodies.position), values_on_host(bodies.mass)
    if isinstance(acceleration, lw.SplitArray):
        acceleration = acceleration.numpy()
    make: Any = Body64
    sources = make.array(position=places, mass=masses, device=device)

    def errors(some: slice) -> NDArray[np.float64]:
        targets = make.array(position=places[some], mass=0.0, device=device)
        wanted = np.asarray(to_host(exact_gravity(targets, sources, softening**2)), np.float64)
        with on(device):
            found = np.asarray(to_host(acceleration[some]), np.float64)
        return relative(found, wanted)

    if accuracy is None:
        found = errors(spread(count, SAMPLE))
    else:
        found = errors_of_parts(count, count, accuracy, errors)
    return ForceErrors(*median_and_most(found), float(found.max()), len(found))
