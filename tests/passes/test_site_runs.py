from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.patterns.sitewise.passes import runs as site_runs
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from tests.lbm.boxes import D3Q15, LID, WALL, boxes
from tests.lbm.kernels import NEGATED, REVERSED, SOURCE, exact
from tests.passes.probe import changes, refusal
from tests.passes.test_site_splitting import MASK, relaxing, simplified
from tests.patterns.sitewise import VALUES, after, box_sites, reference_kernel, relax


def bulk_of(sites: Any, flow: Any = relax, **values: Any) -> tuple[ir.Kernel, ir.Kernel, list[ir.Kernel]]:
    """The whole step, the kernel of the bulk as the pass gets it, and the others."""
    whole = simplified(reference_kernel(flow, sites, **(values or VALUES)))
    bulk, *others = site_splitting.apply(whole, spans=True)
    return whole, bulk, others


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("pull_kinds", {"mask": MASK}),
        ("in_place_odd", {"form": "in-place", "edges": {"y": ("wall", "slip")}, "steps": 1}),
    ],
)
def test_golden(golden, name, given):
    _, bulk, _ = bulk_of(relaxing(**given))
    golden(f"{name}_before", print_kernel(bulk, with_functions=False))
    golden(name, changes(bulk, site_runs.apply(bulk)))


@examples(
    boxes(lattices=(lw.D2Q9, D3Q15), kinds=(0, REVERSED, SOURCE, NEGATED, WALL, LID), most=4),
    st.sampled_from((("pull", 0), ("pull", 1), ("in-place", 1))),
)
def test_meaning_is_kept(box, phase):
    """One step of the reference kernel against runs and the rest of the special sites, in any order: the same bits everywhere."""
    form, step = phase
    pair = exact(box.lattice)
    sites = box_sites(pair.flow, box, form, steps=step)
    whole, bulk, others = bulk_of(sites, pair.flow, **pair.values)
    kernels = [site_runs.apply(bulk), *others]
    verify_kernel(kernels[0])
    wanted = after(pair.flow, sites, whole, (whole,), **pair.values)
    assert after(pair.flow, sites, whole, kernels, **pair.values) == wanted
    assert after(pair.flow, sites, whole, kernels[::-1], **pair.values) == wanted


def test_the_loop_over_a_run_asks_nothing_and_has_a_view_for_each_population():
    _, bulk, _ = bulk_of(relaxing("in-place", edges={"y": "wall", "x": "slip"}, steps=1))
    kernel = site_runs.apply(bulk)
    assert not any(isinstance(s, ir.If) for s in statements(kernel.body))
    assert [a.name for a in kernel.arrays] == [*(f"$view.f.{q}" for q in range(9)), "$places", "$runs"]
    assert all(a.written for a in kernel.arrays[:9])


def test_other_layouts_are_refused():
    sites = relax.sites((4, 5), edges={"x": "wall"}, streaming="pull", device="python", layout=lw.AoSoA(4))
    sites.fresh = False
    _, bulk, _ = bulk_of(sites)
    assert refusal(lambda: site_runs.apply(bulk)) == (
        "runs of sites cannot be applied to relax_bulk: its populations do not lie in an array for each"
    )


def test_phases_that_fetch_along_no_link_are_refused():
    _, bulk, _ = bulk_of(relaxing("push", mask=MASK))
    assert refusal(lambda: site_runs.apply(bulk)) == (
        "runs of sites cannot be applied to relax_bulk: its sites load no population along a link"
    )


def test_other_kernels_are_refused():
    whole, _, _ = bulk_of(relaxing(mask=MASK))
    assert refusal(lambda: site_runs.apply(whole)) == (
        "runs of sites cannot be applied to relax: it has no spans of sites"
    )
