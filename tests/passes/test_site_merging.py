from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.language.target import Machine
from lanewise.passes import constant_folding, dead_code, scalar_replacement, thread_mapping
from lanewise.patterns.sitewise.passes import merging as site_merging
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.planning.plan import Plan
from tests.lbm.boxes import D3Q15, LID, WALL, boxes
from tests.lbm.kernels import NEGATED, REVERSED, SOURCE, exact
from tests.passes.probe import changes, refusal
from tests.patterns.sitewise import VALUES, after, box_sites, lowered, read_by_place, reference_kernel, relax

BLOCK = 8
KINDS = (0, REVERSED, SOURCE, NEGATED, WALL, LID)
LATTICES = (lw.D2Q9, D3Q15, lw.D3Q19)
FACES = st.one_of(
    boxes(lattices=LATTICES, kinds=(0,), most=3, block=BLOCK),
    boxes(lattices=LATTICES, kinds=(0, REVERSED, SOURCE), most=3, block=BLOCK),
    boxes(lattices=LATTICES, kinds=KINDS, most=3, block=BLOCK),
)


def simplified(kernel: ir.Kernel) -> ir.Kernel:
    """As the pipeline hands it to the pass."""
    return dead_code.apply(scalar_replacement.apply(constant_folding.apply(kernel)))


def relaxing(
    *, mask: Any = None, edges: Any = None, dense: bool = False, form: str = "pull", layout: Any = None
) -> Any:
    chosen = layout or lw.AoSoA(BLOCK)
    sites = relax.sites((3, BLOCK), mask=mask, edges=edges, layout=chosen, streaming=form, device="python")
    sites.step, sites.fresh = 1, False
    return read_by_place(sites, dense=dense) if form == "pull" else sites


MASK = np.zeros((3, BLOCK), int)
MASK[1, 2], MASK[2, 2] = 1, 2


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("framed", {"edges": {"x": "wall", "y": ("wall", "lid")}}),
        ("marked", {"mask": MASK}),
        ("dense", {"mask": MASK, "dense": True}),
    ],
)
def test_golden(golden, name, given):
    before = simplified(reference_kernel(relax, relaxing(**given), **VALUES))
    golden(f"{name}_before", print_kernel(before, with_functions=False))
    golden(name, changes(before, site_merging.apply(before, 2)))


@examples(FACES, st.sampled_from((2, 4)), st.booleans())
def test_meaning_is_kept(box, sites_of_a_thread, dense):
    """One step of the reference kernel against the merged one: the same bits everywhere in memory."""
    pair = exact(box.lattice)
    sites = read_by_place(box_sites(pair.flow, box, "pull", layout=lw.AoSoA(BLOCK), steps=1), dense=dense)
    before = simplified(reference_kernel(pair.flow, sites, **pair.values))
    merged = site_merging.apply(before, sites_of_a_thread)
    verify_kernel(merged)
    wanted = after(pair.flow, sites, before, (before,), **pair.values)
    assert after(pair.flow, sites, before, (merged,), **pair.values) == wanted


@examples(FACES, st.sampled_from((2, 4)), st.booleans(), st.sampled_from(("f16", "f32", "f64")))
def test_lowered_kernels_do_what_the_naive_one_does(box, sites_of_a_thread, dense, storage):
    pair = exact(box.lattice, "f64" if storage == "f64" else "f32")
    made = box_sites(pair.flow, box, "pull", layout=lw.AoSoA(BLOCK), storage=storage, steps=1)
    sites = read_by_place(made, dense=dense)
    reference = reference_kernel(pair.flow, sites, **pair.values)
    wanted = after(pair.flow, sites, reference, (reference,), **pair.values)
    kernels = lowered(reference, Plan(targets=sites_of_a_thread, block=32), "cuda")
    assert after(pair.flow, sites, reference, kernels, **pair.values) == wanted


def test_populations_are_moved_together():
    """One access for both sites where x stays the same, one for each where it does not; all are stored together."""
    before = simplified(reference_kernel(relax, relaxing(edges={"x": "wall", "y": "wall"}), **VALUES))
    kernel = site_merging.apply(before, 2)
    loaded = [(s.reads[0][0], s.across) for s in statements(kernel.body) if isinstance(s, ir.LoadRecord)]
    along_x = {f"q{q.index}" for q in lw.D2Q9 if q.x}
    assert {leaf for leaf, across in loaded if across == 1} == along_x
    assert {leaf for leaf, across in loaded if across == 2} == {
        f"q{q.index}" for q in lw.D2Q9
    } - along_x | along_x - along_x
    assert [s.across for s in statements(kernel.body) if isinstance(s, ir.StoreRecord)] == [2]


def test_one_site_a_thread_changes_nothing():
    before = simplified(reference_kernel(relax, relaxing(), **VALUES))
    assert site_merging.apply(before, 1) == before


@pytest.mark.parametrize(
    ("lattice", "storage", "count", "sites"),
    [
        (lw.D3Q19, "f16", 1 << 24, 2),
        (lw.D3Q27, "f16", 1 << 24, 2),
        (lw.D2Q9, "f16", 1 << 24, 4),
        (lw.D2Q9, "f16", 1 << 16, 1),
        (lw.D3Q19, "f32", 1 << 24, 1),
    ],
)
def test_default(lattice, storage, count, sites):
    """Several sites per thread where a population has two bytes, and there are threads enough."""
    shape = (2, BLOCK) if lattice.dimension == 2 else (2, 2, BLOCK)
    made = exact(lattice).flow.sites(shape, storage=storage, layout=lw.AoSoA(BLOCK), streaming="pull", device="python")
    machine = Machine("cuda", 132)
    first = reference_kernel(exact(lattice).flow, made, **exact(lattice).values)
    assert complete_site_plan(Plan(targets=2), machine, first).targets == 1  # after populations were set
    made.step, made.fresh = 1, False
    reference = reference_kernel(exact(lattice).flow, read_by_place(made), **exact(lattice).values)
    assert complete_site_plan(None, machine, reference, count).targets == sites
    assert complete_site_plan(Plan(targets=1), machine, reference).targets == 1
    assert complete_site_plan(None, Machine("cpu", 8), reference).targets == 1


def test_sites_of_lists_are_not_merged():
    """They do not lie side by side: with branches apart a thread has one site, also where several are the default."""
    sites = exact(lw.D3Q19).flow.sites(
        (2, 2, BLOCK), mask=np.eye(2, dtype=int)[..., None] * np.ones(BLOCK, int) * WALL, storage="f16", layout=lw.AoSoA(BLOCK),
        streaming="pull", device="python",
    )  # fmt: skip
    sites.step, sites.fresh = 1, False
    reference = reference_kernel(exact(lw.D3Q19).flow, read_by_place(sites), **exact(lw.D3Q19).values)
    machine, count = Machine("cuda", 132), 1 << 24
    assert complete_site_plan(None, machine, reference, count).targets == 2
    assert complete_site_plan(Plan(branches="apart"), machine, reference, count).targets == 1
    head = f"thread merging cannot be applied to {reference.name}: "
    assert refusal(lambda: complete_site_plan(Plan(branches="apart", targets=2), machine, reference, count)) == (
        f"{head}with its branches apart special sites come from lists, one per thread"
    )
    for part in site_splitting.apply(simplified(reference), spans=False)[1:]:
        assert "whole blocks of the layout" in refusal(lambda part=part: site_merging.apply(part, 2))


def test_refusals():
    kernel = simplified(reference_kernel(relax, relaxing(), **VALUES))
    head = "thread merging cannot be applied to relax: "
    assert refusal(lambda: site_merging.apply(kernel, 3)) == f"{head}a thread updates 1, 2 or 4 sites; 3 were requested"
    mapped = thread_mapping.apply(kernel, 32)
    assert refusal(lambda: site_merging.apply(mapped, 2)) == f"{head}its sites are already mapped to threads"
    for other in (relaxing(form="in-place"), relaxing(layout=lw.SoA())):
        plain = simplified(reference_kernel(relax, other, **VALUES))
        assert refusal(lambda plain=plain: site_merging.apply(plain, 2)) == (
            f"{head}its sites follow no links to rows whose sites are whole blocks of the layout, side by side in memory"
        )
    narrow = simplified(reference_kernel(relax, relaxing(layout=lw.AoSoA(2)), **VALUES))
    assert refusal(lambda: site_merging.apply(narrow, 4)) == f"{head}4 sites are no part of the 2 that lie side by side"
    assert refusal(lambda: lowered(kernel, Plan(targets=2), "cpu")) == (
        f"{head}on a CPU neighbouring sites share SIMD registers"
    )
