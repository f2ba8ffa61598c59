"""`lw.sitewise` against the NumPy reference: one body for all devices, streaming forms, layouts and types of
storage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.sitewise import sites as array
from tests.lbm.boxes import D3Q15, LATTICES, LID, WALL, Box, boxes
from tests.lbm.compare import Way, check_colliding, check_exact, with_every_kind
from tests.lbm.kernels import INLET, NEGATED, REVERSED, SOURCE, colliding, exact
from tests.lbm.links import EDGE

FORMS = ("pull", "push", "in-place")
LAYOUTS = (lw.SoA(), lw.AoS(), lw.AoSoA(4), lw.AoAS(), lw.SoAoAS())
TYPES = (("f32", "f32"), ("f64", "f64"), ("f32", "f64"))
"""(storage, arithmetic)."""
FACES: tuple[dict[str, EDGE], ...] = (
    {},
    {"x": "wall", "y": ("wall", "lid"), "z": "slip"},
    {"x": ("slip", "lid"), "y": "slip", "z": ("lid", "wall")},
    {"y": ("slip", "wall"), "z": "lid"},
)
SHAPES = {2: ((2, 3), (33, 7), (6, 1), (1, 40)), 3: ((5, 4, 3), (2, 3, 1), (3, 2, 19))}
"""Awkward ones. All have room for every kind, so that they share kernels."""
STEPS = (0, 1, 2, 3, 6, 7)
PLANS = (lw.Plan(branches="apart"), lw.Plan(branches="together"))
"""A kernel for each class of sites, or one for all."""


@dataclass(frozen=True)
class Case:
    """A kernel for one combination of everything that decides about its code."""

    lattice: lw.Lattice
    form: str
    layout: Any
    types: tuple[str, str]
    faces: dict[str, EDGE]
    plan: lw.Plan | None = None

    @property
    def edges(self) -> dict[str, EDGE]:
        return {a: e for a, e in self.faces.items() if a in "xyz"[: self.lattice.dimension]}

    def __str__(self) -> str:
        edges = " ".join(f"{a}:{e if isinstance(e, str) else '|'.join(e)}" for a, e in self.edges.items())
        plan = "" if self.plan is None else f" {self.plan}"
        return f"{self.lattice.name} {self.form} {self.layout} {'-'.join(self.types)} {edges or 'periodic'}{plan}"


def covering(*choices: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of one of each, few, in which any two values of two different choices meet at least once."""

    def pairs(case: tuple[int, ...]) -> set[Any]:
        return set(combinations(enumerate(case), 2))

    every = list(product(*(range(len(c)) for c in choices)))
    missing = set().union(*map(pairs, every))
    chosen: list[tuple[Any, ...]] = []
    while missing:
        best = max(every, key=lambda case: len(pairs(case) & missing))
        missing -= pairs(best)
        chosen.append(tuple(c[i] for c, i in zip(choices, best, strict=True)))
    return chosen


def check_case(
    case: Case, device: str, checks: Sequence[Any] = ((exact, check_exact), (colliding, check_colliding))
) -> None:
    """Masks that hold every kind, in boxes of several shapes, after odd and even numbers of steps."""
    storage, real = case.types
    way = Way(device, case.form, case.layout, storage, real, case.plan)
    for make, check in checks:
        for n, shape in enumerate(SHAPES[case.lattice.dimension]):
            for steps in STEPS:
                empty = Box(case.lattice, shape, np.zeros(shape, np.int32), case.edges)
                check(with_every_kind(empty, make(case.lattice, real), 10 * n + steps), way, steps, steps)


# ------------------------------------------------------------ the interpreter: every box


KINDS = (0, REVERSED, SOURCE, NEGATED, WALL, LID)


ANY_FORM, ANY_LAYOUT, ANY_PLAN = (st.sampled_from(c) for c in (FORMS, LAYOUTS, PLANS))


@pytest.mark.slow
@given(boxes(kinds=KINDS, most=4), ANY_FORM, ANY_LAYOUT, ANY_PLAN, st.integers(0, 4), st.integers(0, 99))
def test_whole_numbers_in_any_box_interpreted(
    box: Box, form: str, layout: Any, plan: lw.Plan, steps: int, seed: int
) -> None:
    check_exact(box, Way("python", form, layout, plan=plan), steps, seed)


ANY_PLANE = boxes(lattices=(lw.D2Q9,), kinds=(0, INLET, WALL, LID), most=3)


@pytest.mark.slow
@settings(max_examples=10)
@given(ANY_PLANE, ANY_FORM, ANY_PLAN, st.sampled_from(("f16", "f32")), st.integers(0, 4))
def test_collisions_in_any_box_interpreted(box: Box, form: str, plan: lw.Plan, storage: str, steps: int) -> None:
    check_colliding(box, Way("python", form, None, storage, plan=plan), steps)


# ------------------------------------------------------------ compiled for the CPU

QUICK = Case(lw.D2Q9, "in-place", lw.SoA(), ("f32", "f32"), FACES[1], PLANS[1])


@pytest.mark.slow
def test_whole_numbers_compiled() -> None:
    check_case(QUICK, "cpu", [(exact, check_exact)])


@pytest.mark.slow  # many kernels: one for each kind of sites
def test_default_plan_compiled() -> None:
    check_case(replace(QUICK, plan=None), "cpu")


def test_collisions_compiled() -> None:
    case = replace(QUICK, form="push", types=("f64", "f64"))
    check_case(case, "cpu", [(colliding, check_colliding)])


@settings(max_examples=12)
@given(boxes(lattices=(lw.D2Q9,), kinds=KINDS, most=9), st.integers(0, 5))
def test_any_mask_and_shape_compiled(drawn: Box, steps: int) -> None:
    """Masks of all kinds, with the kernels of the test above: a row is added for the kinds that are missing."""
    ny, nx = drawn.shape
    mask = np.zeros((ny + 1, max(nx, len(KINDS))), np.int32)
    mask[:ny, :nx] = drawn.mask
    missing = [k for k in KINDS if k not in drawn.mask]
    mask[-1, : len(missing)] = missing
    check_exact(
        Box(lw.D2Q9, mask.shape, mask, QUICK.edges), Way("cpu", QUICK.form, QUICK.layout, plan=QUICK.plan), steps
    )


COMPILED = [Case(*c) for c in covering(LATTICES, FORMS, LAYOUTS, TYPES, FACES, PLANS)]


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_every_combination_of_two_compiled(case: Case) -> None:
    """Kinds of their own kernels take a minute to compile: there the kernel with fewer of them."""
    apart = case.plan is PLANS[0]
    check_case(case, "cpu", [(colliding, check_colliding) if apart else (exact, check_exact)])


# ------------------------------------------------------------ masks that lack some kinds, 0 among them

SUBSETS = [c for n in range(1, 5) for c in combinations((0, INLET, WALL, LID), n)]
LACKING = covering(SUBSETS, FORMS, (None, *PLANS))
FEW = [((INLET,), "push", PLANS[0]), ((WALL,), "pull", PLANS[0])]


def check_lacking(device: str, kinds: tuple[int, ...], form: str, plan: lw.Plan | None) -> None:
    """A mask of these kinds alone; a single site of each kind, and several sites."""
    for shape in ((1, len(kinds)), (5, 6)):
        mask = np.resize(np.array(kinds, np.int32), shape)
        edges = {a: e for a, e in FACES[1].items() if a in "xy"}
        check_colliding(Box(lw.D2Q9, shape, mask, edges), Way(device, form, None, plan=plan), 3)


@pytest.mark.quick("(7,)-push-branches='apart'")
@pytest.mark.parametrize(("kinds", "form", "plan"), FEW, ids=str)
def test_masks_that_lack_kinds_compiled(kinds: tuple[int, ...], form: str, plan: lw.Plan) -> None:
    check_lacking("cpu", kinds, form, plan)


@pytest.mark.slow
@pytest.mark.parametrize(("kinds", "form", "plan"), [c for c in LACKING if c not in FEW], ids=str)
def test_every_mask_that_lacks_kinds_compiled(kinds: tuple[int, ...], form: str, plan: lw.Plan | None) -> None:
    check_lacking("cpu", kinds, form, plan)


@pytest.mark.cuda
@pytest.mark.parametrize(("kinds", "form", "plan"), LACKING, ids=str)
def test_masks_that_lack_kinds_on_a_gpu(kinds: tuple[int, ...], form: str, plan: lw.Plan | None) -> None:
    check_lacking("cuda", kinds, form, plan)


# ------------------------------------------------------------ compiled for a GPU

ON_A_GPU = [Case(*c) for c in covering(LATTICES, FORMS, (None, *LAYOUTS), (*TYPES, ("f16", "f32")), FACES, PLANS)]


@pytest.mark.cuda
@pytest.mark.parametrize("case", ON_A_GPU, ids=str)
def test_every_combination_of_two_on_a_gpu(case: Case) -> None:
    check_case(case, "cuda")


TOGETHER = covering(LATTICES, (("f16", "f32"), *TYPES), FACES, (2, 4), ("faces", "marks", "words"))


@pytest.mark.cuda
@pytest.mark.parametrize(("lattice", "types", "faces", "sites", "mask"), TOGETHER, ids=str)
def test_several_sites_a_thread_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
    lattice: lw.Lattice,
    types: tuple[str, str],
    faces: dict[str, EDGE],
    sites: int,
    mask: str,
) -> None:
    """Rows of whole blocks, whose sites learn what is special from where they lie, from bits, or from words."""
    monkeypatch.setattr(array, "LEAST_DENSE", 0 if mask == "words" else 1 << 30)
    case = Case(lattice, "pull", lw.AoSoA(16), types, faces, lw.Plan(targets=sites))
    way = Way("cuda", case.form, case.layout, *types, case.plan)
    shape = (3, 32) if lattice.dimension == 2 else (3, 2, 16)
    empty = Box(lattice, shape, np.zeros(shape, np.int32), case.edges)
    for make, check in ((exact, check_exact), (colliding, check_colliding)):
        for steps in (1, 2, 5):
            box = empty if mask == "faces" else with_every_kind(empty, make(lattice, types[1]), steps)
            check(box, way, steps, steps)


# ------------------------------------------------------------ a user's own lattice


@pytest.mark.quick("in-place")
@pytest.mark.parametrize("form", FORMS)
def test_a_lattice_of_the_users_own(form: str) -> None:
    empty = Box(D3Q15, (3, 2, 2), np.zeros((3, 2, 2), np.int32), {"x": "wall", "y": ("slip", "lid")})
    check_exact(with_every_kind(empty, exact(D3Q15), 1), Way("python", form), 3)
