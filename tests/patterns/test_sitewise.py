"""What the pattern writes: text of D2Q9, and the ways in which a site learns what is special about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.language import types as t
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.kernel import SiteFunction
from lanewise.patterns.sitewise.momentum_exchange import build_momentum_exchange
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.planning.plan import Plan
from lanewise.support.errors import ArgumentError
from tests.lbm.boxes import LID, WALL, boxes
from tests.lbm.kernels import NEGATED, REVERSED, SOURCE, exact
from tests.patterns.sitewise import (
    VALUES,
    after,
    box_sites,
    lowered,
    read_by_place,
    read_by_words,
    reference_kernel,
    relax,
)

KINDS = (0, REVERSED, SOURCE, NEGATED, WALL, LID)
EDGES = {"x": "slip", "y": ("wall", "lid")}
MASK = np.zeros((4, 5), int)
MASK[1, 2], MASK[2, 2] = 1, 2


def sites_of(form: str, *, mask: Any = None, steps: int = 0, fresh: bool = False, edges: Any = EDGES) -> Any:
    sites = relax.sites((4, 5), mask=mask, edges=edges, streaming=form, device="python")
    sites.step, sites.fresh = steps, fresh
    return sites


GOLDEN: dict[str, Any] = {
    "first": lambda: sites_of("pull", fresh=True),
    "pull": lambda: sites_of("pull"),
    "pull_kinds": lambda: sites_of("pull", mask=MASK),
    "pull_dense": lambda: read_by_words(sites_of("pull", mask=MASK), dense=True),
    "push": lambda: sites_of("push"),
    "in_place_even": lambda: sites_of("in-place"),
    "in_place_odd": lambda: sites_of("in-place", steps=1),
    "in_place_odd_kinds": lambda: sites_of("in-place", mask=MASK, steps=1),
    "periodic": lambda: sites_of("pull", edges={}),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(golden, name):
    golden(name, print_kernel(reference_kernel(relax, GOLDEN[name](), **VALUES), with_functions=False))


def looking(function: Any = None) -> Any:
    """The arguments of a kernel that looks at what arrives."""
    sites = sites_of("pull", mask=MASK)
    seen = relax.main if function is None else SiteFunction(function, lw.D2Q9)
    return relax.kernels.arguments(sites, 0, False, relax.kinds.values(sites, VALUES), (seen.update,))


def test_golden_momentum_exchange(golden):
    """Over the sites whose links walls cut, in float64."""
    golden(
        "momentum_exchange", print_kernel(build_momentum_exchange(looking(), t.I64, (3,), False), with_functions=False)
    )


def test_golden_observer(golden):
    """Puts nothing, and gives zeros for walls."""

    def flux(f: lw.populations) -> tuple[lw.vec2, lw.f32]:
        return lw.vec2(f[1] - f[2], f[3] - f[4]), f[0]

    golden("observer", print_kernel(build_sitewise(looking(flux), t.I64), with_functions=False))


# ---------------------------------------------------------------- one meaning


@pytest.mark.slow
@given(boxes(kinds=KINDS, most=4), st.sampled_from(("pull", "push", "in-place")), st.integers(0, 1), st.booleans())
def test_marks_or_words_say_the_same(box, form, step, dense):
    """Kernels of large GPU boxes read flags instead of marks: the same bits, here in boxes of any size."""
    pair = exact(box.lattice)
    wanted, found = [], []
    for result, by_words in ((wanted, False), (found, True)):
        sites = box_sites(pair.flow, box, form, steps=step)
        if by_words:
            read_by_words(sites, dense=dense)
        kernel = reference_kernel(pair.flow, sites, **pair.values)
        verify_kernel(kernel)
        result += after(pair.flow, sites, kernel, (kernel,), **pair.values)
        if by_words:
            for kind in ("cpu", "cuda"):
                plan = Plan(block=32 if kind == "cuda" else None)
                assert after(pair.flow, sites, kernel, lowered(kernel, plan, kind), **pair.values) == wanted
    assert found == wanted


@given(boxes(kinds=KINDS, most=4), st.sampled_from((lw.SoA(), lw.AoSoA(1), lw.AoSoA(2))), st.booleans())
def test_sites_may_compute_where_they_lie(box, layout, dense):
    """As on a GPU, where faces that wrap are nothing special: the same bits."""
    pair = exact(box.lattice)
    sites = box_sites(pair.flow, box, "pull", layout=layout)
    wanted = after(
        pair.flow, sites, reference := reference_kernel(pair.flow, sites, **pair.values), (reference,), **pair.values
    )
    read_by_place(sites, dense=dense)
    kernel = reference_kernel(pair.flow, sites, **pair.values)
    verify_kernel(kernel)
    assert after(pair.flow, sites, kernel, (kernel,), **pair.values) == wanted
    shaped = lowered(kernel, Plan(block=32), "cuda")
    assert after(pair.flow, sites, kernel, shaped, **pair.values) == wanted


@given(boxes(kinds=KINDS, most=4), st.sampled_from(("pull", "push", "in-place")), st.integers(0, 1), st.integers(0, 5))
def test_the_order_of_sites_does_not_matter(box, form, step, seed):
    """Sites race with nobody, so any order of them leaves the same bits; here the list of a special part is
    shuffled.
    """
    pair = exact(box.lattice)
    sites = box_sites(pair.flow, box, form, steps=step)
    kernel = reference_kernel(pair.flow, sites, **pair.values)
    if site_splitting.legal(kernel) is not None:
        return
    kernels = site_splitting.apply(kernel, spans=True)
    wanted = after(pair.flow, sites, kernel, kernels, **pair.values)
    rng = np.random.default_rng(seed)
    for part in list(sites._parts):
        sites._parts[part] = np.ascontiguousarray(rng.permutation(sites._parts[part]))
    assert after(pair.flow, sites, kernel, kernels, **pair.values) == wanted


# ---------------------------------------------------------------- structure


def arrays_of(kernel: ir.Kernel) -> list[str]:
    return [a.name for a in kernel.arrays]


def test_what_a_phase_reads():
    """Marks only where links are followed or kinds differ, flags only where something may be special."""
    assert arrays_of(reference_kernel(relax, sites_of("pull"), **VALUES)) == ["f", "$next", "$marks", "$flags"]
    assert arrays_of(reference_kernel(relax, sites_of("pull", fresh=True), **VALUES)) == ["f", "$next"]
    assert arrays_of(reference_kernel(relax, sites_of("in-place"), **VALUES)) == ["f"]
    assert arrays_of(reference_kernel(relax, sites_of("in-place", steps=1), **VALUES)) == ["f", "$flags"]
    assert "$solids" in arrays_of(reference_kernel(relax, sites_of("pull", mask=MASK), **VALUES))
    assert arrays_of(reference_kernel(relax, read_by_words(sites_of("pull"), dense=True), **VALUES)) == [
        "f",
        "$next",
        "$flags",
    ]


def test_values_that_no_kind_of_the_box_takes_are_no_parameters():
    names = [u.name for u in reference_kernel(relax, sites_of("pull", edges={}), **VALUES).uniforms]
    assert names == ["omega"]
    names = [u.name for u in reference_kernel(relax, sites_of("pull", mask=MASK), **VALUES).uniforms]
    assert names == ["omega", "level", "lid_velocity.x", "lid_velocity.y"]


def test_a_value_for_every_site_is_an_array():
    sites = sites_of("pull", mask=MASK)
    kernel = reference_kernel(relax, sites, omega=np.ones((4, 5), np.float32), level=1.0, lid_velocity=(0.0, 0.0))
    assert "omega" in arrays_of(kernel)
    assert "omega" not in [u.name for u in kernel.uniforms]


def test_a_bulk_site_of_two_copies_reads_and_writes_each_population_once():
    kernel = reference_kernel(relax, sites_of("pull", edges={}), **VALUES)
    (loop,) = kernel.body
    assert isinstance(loop, ir.Parallel)
    loads = [s for s in loop.body if isinstance(s, ir.LoadRecord) and s.array == "f"]
    assert sorted(leaf for s in loads for leaf, _ in s.reads) == sorted(f"q{q}" for q in range(9))
    (store,) = (s for s in statements(kernel.body) if isinstance(s, ir.StoreRecord))
    assert len(store.writes) == 9


def test_kinds_that_disagree_about_a_type_are_refused():
    @lw.sitewise(lw.D2Q9)
    def calm(f: lw.populations, rate: lw.f32):
        f[0] = rate

    @calm.kind(1, "wild")
    def wild(f: lw.populations, rate: lw.vec2):
        f[0] = rate.x

    sites = calm.sites((2, 2), mask=[[0, 1], [0, 0]], device="python")
    with pytest.raises(ArgumentError) as error:
        calm(sites, rate=1.0)
    assert str(error.value) == "'rate' is an f32 of calm and a vec2 of wild; wanted one type"
