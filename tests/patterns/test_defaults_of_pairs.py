"""Which shapes of threads pairs have by default on a GPU: what waits has one target to a thread, plain sums
have four.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.work import describe_work
from lanewise.language.target import Machine

MACHINE = Machine("cuda", 132)
MANY = 1 << 17


@lw.record
class Item:
    position: lw.vec3
    charge: lw.f32


@lw.pairwise
def plain(target: Item, source: Item) -> lw.vec3:
    d = source.position - target.position
    q = lw.dot(d, d) + 0.5
    return source.charge * lw.rsqrt(q) * d


@lw.pairwise
def one(target: Item, source: Item) -> lw.f32:
    d = source.position - target.position
    return source.charge * lw.exp(-lw.dot(d, d))


@lw.pairwise
def waits(target: Item, source: Item) -> lw.vec3:
    d = source.position - target.position
    return source.charge * lw.exp(-lw.dot(d, d)) * d


@lw.pairwise
def nearest(target: Item, source: Item) -> tuple[lw.ArgMin[lw.f32], lw.f32]:
    d = source.position - target.position
    q = lw.dot(d, d)
    return q, q


@lw.pairwise
def many(target: Item, source: Item) -> tuple[lw.ArgMin[lw.f32], lw.vec3, lw.vec3, lw.vec3]:
    d = source.position - target.position
    return lw.dot(d, d), d, 2.0 * d, 3.0 * d


@lw.pairwise
def counts(target: Item, source: Item) -> lw.Count:
    d = source.position - target.position
    return lw.dot(d, d) < 0.5


@lw.pairwise
def short(target: Item, source: Item) -> lw.f32:
    d = source.position - target.position
    return 1.0 / (lw.dot(d, d) + 1.0)


@lw.pairwise
def lengthy(target: Item, source: Item) -> lw.f32:
    d = source.position - target.position
    return lw.sin(lw.dot(d, d))


def default(kernel: Any, targets: int = MANY, *, same: bool = False, requested: lw.Plan | None = None) -> Any:
    a = Item.array(position=np.zeros((4, 3), np.float32), charge=np.ones(4, np.float32))
    calls = kernel._calls
    arguments = calls.skeleton.elsewhere(calls.signature, calls.given((a, a if same else a.copy()), {}), "cuda")
    work = describe_work(calls.subject.reference(arguments), targets)
    return complete_plan(requested, MACHINE, work)


@pytest.mark.parametrize(
    ("kernel", "targets", "block"),
    [(plain, 4, 256), (one, 4, 256), (waits, 1, 1024), (nearest, 1, 1024), (many, 4, 256), (counts, 4, 256)],
    ids=lambda k: getattr(k, "__name__", ""),
)
def test_one_side(kernel: Any, targets: int, block: int) -> None:
    plan = default(kernel)
    assert (plan.reciprocity, plan.targets, plan.block, plan.tile) == ("off", targets, block, block)


@pytest.mark.parametrize(
    ("kernel", "targets", "unroll", "registers"),
    [(counts, 8, 8, 128), (short, 6, 4, 0), (lengthy, 4, 2, 0)],
    ids=lambda k: getattr(k, "__name__", ""),
)
def test_both_sides(kernel: Any, targets: int, unroll: int, registers: int) -> None:
    plan = default(kernel, same=True)
    assert plan.reciprocity == "ordered"
    assert (plan.targets, plan.unroll, plan.registers) == (targets, unroll, registers)


@lw.pairwise
def smallest(target: Item, source: Item) -> tuple[lw.KMin[lw.f32, 32], lw.KMin[lw.f32, 32]]:
    d = source.position - target.position
    return lw.sqrt(lw.dot(d, d)), source.charge


def test_states_that_do_not_fit_next_to_a_tile() -> None:
    assert default(smallest).slices == 1
    assert default(smallest).block >= 256


def test_sums_are_as_short_as_those_of_four_targets() -> None:
    """So they are as exact."""
    assert default(waits).slices == default(one).slices == 8


@pytest.mark.parametrize("targets", [1, 300, 5000, 1 << 14, MANY, 1 << 20])
def test_blocks_are_as_many_as_there_is_room_for(targets: int) -> None:
    """Few targets: many threads for each, and parts of the sources."""
    plan = default(waits, targets)
    assert plan.block // plan.slices >= 32
    assert (plan.parts > 1) is (targets <= 300)


@pytest.mark.parametrize("kernel", [plain, one, waits, nearest, many, counts, short], ids=lambda k: k.__name__)
@pytest.mark.parametrize("targets", [1, 5000, MANY])
def test_defaults_agree_with_what_is_requested(kernel: Any, targets: int) -> None:
    """A tile is staged by whole blocks; several targets of a thread need its registers."""
    for tile in (256, 512, 768, 1024, 2048):
        plan = default(kernel, targets, requested=lw.Plan(tile=tile))
        assert (plan.tile, tile % plan.block) == (tile, 0)
    assert default(kernel, MANY, requested=lw.Plan(targets=4)).block == 256
