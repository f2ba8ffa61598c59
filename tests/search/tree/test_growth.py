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

SOURCE, GROUP = 1.0, 2.5  # of the time of a walk with quadrupoles: a pair, and a group


def cloud(kind: str, count: int) -> Any:
    rng = np.random.default_rng(3)
    places = rng.random((count, 3)) if kind == "uniform" else plummer_sphere(count, rng, 0.985)[0]
    made: Any = Body
    return made.array(position=places, mass=1.0)


def work(kind: str, count: int, search: lw.Tree) -> float:
    """Of a body, in pairs."""
    bodies = cloud(kind, count)
    call = gravity.using(search=search).bind(bodies, bodies, SOFTENING2)
    call()
    found = met(call, search, np.asarray(bodies.position))
    return SOURCE * found.pairs + GROUP * (found.groups + found.shared)


@pytest.mark.parametrize("kind", ["uniform", "plummer"])
@pytest.mark.parametrize(("few", "many"), [(50_000, 200_000), pytest.param(100_000, 1_000_000, marks=pytest.mark.slow)])
def test_what_a_body_meets_hardly_grows(kind: str, few: int, many: int) -> None:
    search = lw.Tree(theta=0.7, order=1)
    assert work(kind, many, search) <= 1.4 * work(kind, few, search)


@pytest.mark.parametrize(("method", "most"), [("walk", 120), ("dual", 160)])
def test_memory_of_a_body(method: Any, most: int) -> None:
    """Bytes beside its record, with the order of all and the result; expansions of order 4."""
    bodies, small = cloud("plummer", 200_000), cloud("plummer", 300)
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
