"""Sites of a thread share what they read of each other, and compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.patterns.sitewise.passes import merging
from lanewise.patterns.sitewise.sites import row_block_of
from tests.passes.test_site_merging import simplified
from tests.patterns.sitewise import after, lowered, read_by_place, reference_kernel
from tests.sites.fields import blur
from tests.sites.test_fields_and_tables import RATES, paint

EDGES = [{}, {"x": ("hot", "slip"), "y": "hot"}, {"x": "insulated", "y": ("slip", "insulated")}]


def placed(layout: lw.Layout, edges: dict[str, object], mask: np.ndarray | None = None):
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 9, (2, 5, 16))
    made = read_by_place(blur.sites((5, 16), layout=layout, edges=edges, mask=mask, u=u, v=v, device="python"))
    made.row_block = row_block_of(layout, 16, plain=True)
    return made


def values_of(edges: dict[str, object]) -> dict[str, float]:
    return {"rate": 0.25, **({"hot": 2.0} if "hot" in str(edges) else {})}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("edges", EDGES, ids=str)
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoSoA(8)], ids=str)
@pytest.mark.parametrize("sites", [2, 4])
def test_merged_sites_compute_the_same(edges, layout, sites):
    box, values = placed(layout, edges), values_of(edges)
    before = simplified(reference_kernel(blur, box, **values))
    merged = merging.apply(before, sites)
    verify_kernel(merged)
    expected = after(blur, box, before, (before,), **values)
    assert after(blur, box, before, (merged,), **values) == expected
    plan = lw.Plan(targets=sites, block=32)
    assert after(blur, box, before, lowered(before, plan, "cuda"), **values) == expected


@pytest.mark.parametrize("sites", [2, 4])
def test_walls_among_merged_sites_keep_their_zeros(sites):
    mask = np.zeros((5, 16), int)
    mask[2, 3:9], mask[4, 1] = 1, 2
    box, values = placed(lw.SoA(), {}, mask), {"rate": 0.25, "hot": 2.0}
    before = simplified(reference_kernel(blur, box, **values))
    expected = after(blur, box, before, (before,), **values)
    assert after(blur, box, before, (merging.apply(before, sites),), **values) == expected


@pytest.mark.parametrize(("sites", "single"), [(2, 2), (4, 2)])
def test_only_the_ends_of_a_row_are_loaded_alone(sites, single):
    @lw.stencil(lw.D2Q5)
    def heat(t: lw.Field[lw.f32]) -> lw.f32:
        return t[0] + t[1] + t[2] + t[3] + t[4]

    box = read_by_place(heat.sites((5, 16), device="python", layout=lw.SoA()))
    box.row_block = 4
    kernel = merging.apply(simplified(reference_kernel(heat, box)), sites)
    loads = [s.across for s in statements(kernel.body) if isinstance(s, ir.LoadRecord)]
    assert sorted(loads) == [1] * single + [sites] * 3


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoSoA(8)], ids=str)
@pytest.mark.parametrize("sites", [2, 4])
def test_merged_sites_read_tables(layout, sites):
    """By what each of them reads ahead, and by its own number."""
    rng = np.random.default_rng(2)
    tables = {"rates": RATES, "source": rng.random((5, 16)).astype(np.float32)}
    u = rng.uniform(0.1, 3.9, (5, 16))
    box = read_by_place(paint.sites((5, 16), layout=layout, u=u, device="python"))
    box.row_block = row_block_of(layout, 16, plain=True)
    before = simplified(reference_kernel(paint, box, **tables))
    expected = after(paint, box, before, (before,), **tables)
    assert after(paint, box, before, (merging.apply(before, sites),), **tables) == expected
    plan = lw.Plan(targets=sites, block=32)
    assert after(paint, box, before, lowered(before, plan, "cuda"), **tables) == expected


def test_sites_among_walls_that_read_tables_are_not_merged():
    mask = np.zeros((5, 16), int)
    mask[2, 3:9] = 1
    box = read_by_place(paint.sites((5, 16), layout=lw.SoA(), mask=mask, device="python"))
    box.row_block = row_block_of(lw.SoA(), 16, plain=True)
    kernel = reference_kernel(paint, box, rates=RATES, source=np.zeros((5, 16), np.float32))
    assert "would read tables" in (merging.legal(kernel, 2) or "")
