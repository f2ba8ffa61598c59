"""How a call over lw.Tree grows with the number of bodies: what a body meets, and its memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from bench.far_field_bound import met
from lanewise.sims.gravity.initial.plummer import plummer_sphere
from tests.search.tree.test_tree_calls import SOFTENING2, Body, gravity

GROUP, SHARED = 20.0, 1000.0  # of the time of a pair, on a CPU: a group (order 2), an M2L (order 4)


def cloud(count: int) -> Any:
    made: Any = Body
    return made.array(position=plummer_sphere(count, np.random.default_rng(3), 0.985)[0], mass=1.0)


def work(count: int, search: lw.Tree) -> float:
    """Of a body, in pairs."""
    bodies = cloud(count)
    call = gravity.using(search=search).bind(bodies, bodies, SOFTENING2)
    call()
    found = met(call, search, np.asarray(bodies.position))
    return found.pairs + GROUP * found.groups + SHARED * found.shared


WALK, DUAL = lw.Tree(theta=0.7, order=1), lw.Tree(theta=0.7, order=4, method="dual")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "few", "many"),
    [
        (WALK, 50_000, 200_000),
        pytest.param(DUAL, 50_000, 200_000, marks=pytest.mark.slow),
        pytest.param(WALK, 100_000, 1_000_000, marks=pytest.mark.slow),
        pytest.param(DUAL, 100_000, 1_000_000, marks=pytest.mark.slow),
    ],
)
def test_the_work_of_a_body_hardly_grows(search: lw.Tree, few: int, many: int) -> None:
    """A walk meets more groups with every level of the tree; pairs of groups hardly do."""
    assert work(many, search) <= 1.4 * work(few, search)


@pytest.mark.parametrize(("method", "most"), [("walk", 82), ("dual", 120)])
def test_memory_of_a_body(method: Any, most: int) -> None:
    """Bytes beside its record, with the order of all and the result; expansions of order 4. The
    first call is compared with all pairs, and positions are looked at: both take next to nothing.
    """
    bodies, small = cloud(50_000), cloud(300)
    far = gravity.using(search=lw.Tree(theta=0.7, order=4, method=method))
    far.bind(small, small, SOFTENING2)()  # compiles
    tracemalloc.start()
    try:
        call = far.bind(bodies, bodies, SOFTENING2)
        call()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert call.results[0].nbytes < now <= peak
    assert peak / len(bodies) < most
