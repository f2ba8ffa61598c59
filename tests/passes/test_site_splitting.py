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
from lanewise.passes import constant_folding, dead_code, scalar_replacement, thread_mapping
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.planning.plan import Plan
from tests.corpus import case
from tests.harness import program
from tests.lbm.boxes import D3Q15, LID, WALL, boxes
from tests.lbm.kernels import NEGATED, REVERSED, SOURCE, exact
from tests.passes.probe import changes, refusal, simple
from tests.patterns.sitewise import VALUES, after, box_sites, lowered, reference_kernel, relax

KINDS = (0, REVERSED, SOURCE, NEGATED, WALL, LID)
FORMS = st.sampled_from(("pull", "push", "in-place"))
LAYOUTS = st.sampled_from((lw.SoA(), lw.AoSoA(4), lw.AoAS(), lw.SoAoAS()))


def simplified(kernel: ir.Kernel) -> ir.Kernel:
    """As the pipeline hands it to the pass."""
    return dead_code.apply(scalar_replacement.apply(constant_folding.apply(kernel)))


def relaxing(form: str = "pull", *, mask: Any = None, edges: Any = None, steps: int = 0, fresh: bool = False) -> Any:
    sites = relax.sites((4, 5), mask=mask, edges=edges, streaming=form, device="python")
    sites.step, sites.fresh = steps, fresh
    return sites


MASK = np.zeros((4, 5), int)
MASK[1, 2], MASK[2, 2] = 1, 2


@pytest.mark.parametrize("spans", [True, False], ids=["spans", "masked"])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("pull", {"edges": {"y": "wall"}}),
        ("pull_kinds", {"mask": MASK}),
        ("in_place_odd", {"form": "in-place", "edges": {"y": ("wall", "slip")}, "steps": 1}),
        ("in_place_even_kinds", {"form": "in-place", "mask": MASK}),
    ],
)
def test_golden(golden, name, given, spans):
    sites = relaxing(**given)
    before = simplified(reference_kernel(relax, sites, **VALUES))
    kernels = site_splitting.apply(before, spans=spans)
    golden(f"{name}_before", print_kernel(before, with_functions=False))
    golden(f"{name}_{'spans' if spans else 'masked'}", changes(before, *kernels))


@examples(boxes(kinds=KINDS, most=4), FORMS, LAYOUTS, st.integers(0, 1), st.booleans())
def test_meaning_is_kept(box, form, layout, step, spans):
    """One step of the reference kernel against the split ones, in any order: the same bits everywhere in memory."""
    pair = exact(box.lattice)
    sites = box_sites(pair.flow, box, form, layout=layout, steps=step)
    before = simplified(reference_kernel(pair.flow, sites, **pair.values))
    if site_splitting.legal(before) is not None:
        return
    kernels = site_splitting.apply(before, spans=spans)
    for k in kernels:
        verify_kernel(k)
    wanted = after(pair.flow, sites, before, (before,), **pair.values)
    assert after(pair.flow, sites, before, kernels, **pair.values) == wanted
    assert after(pair.flow, sites, before, kernels[::-1], **pair.values) == wanted


@examples(boxes(lattices=(lw.D2Q9, D3Q15), kinds=KINDS, most=3), FORMS, LAYOUTS, st.integers(0, 1), st.sampled_from(("cpu", "cuda")))  # fmt: skip
def test_lowered_kernels_of_both_plans_do_what_the_naive_one_does(box, form, layout, step, kind):
    pair = exact(box.lattice)
    sites = box_sites(pair.flow, box, form, layout=layout, steps=step)
    reference = reference_kernel(pair.flow, sites, **pair.values)
    wanted = after(pair.flow, sites, reference, (reference,), **pair.values)
    for branches in ("together", "apart"):
        plan = Plan(branches=branches, block=32 if kind == "cuda" else None)
        assert after(pair.flow, sites, reference, lowered(reference, plan, kind), **pair.values) == wanted


# ---------------------------------------------------------------- what the parts are


def kernels_of(sites: Any, *, spans: bool = True) -> dict[str, ir.Kernel]:
    found = site_splitting.apply(simplified(reference_kernel(relax, sites, **VALUES)), spans=spans)
    return {k.name: k for k in found}


def test_each_kind_gets_a_kernel_of_its_own():
    kernels = kernels_of(relaxing(mask=MASK))
    assert list(kernels) == ["relax_bulk", "relax_kind0", "relax_kind1"]
    parts = {n: [a.name for a in k.arrays] for n, k in kernels.items()}
    assert parts == {
        "relax_bulk": ["f", "$next", "$spans"],
        "relax_kind0": ["f", "$next", "$flags", "$sites.kind0"],
        "relax_kind1": ["f", "$next", "$flags", "$sites.kind1"],
    }
    assert {n: [u.name for u in k.uniforms] for n, k in kernels.items()} == {
        "relax_bulk": ["omega"],
        "relax_kind0": ["omega"],
        "relax_kind1": ["level"],
    }
    assert list(kernels_of(relaxing(edges={"x": "wall"}))) == ["relax_bulk", "relax_special"]


def test_who_knows_the_kind_and_follows_no_links_reads_no_word():
    for kernel in kernels_of(relaxing("in-place", mask=MASK)).values():
        assert "$flags" not in [a.name for a in kernel.arrays]


def test_the_bulk_asks_nothing():
    """No mark, no word, no clamped place, no test: a loop over neighbours that vectorises."""
    for form, steps in (("pull", 0), ("push", 0), ("in-place", 1)):
        bulk = kernels_of(relaxing(form, mask=MASK, edges={"y": ("wall", "lid"), "x": "slip"}, steps=steps))[
            "relax_bulk"
        ]
        inside = list(statements(bulk.body))
        assert not any(isinstance(s, ir.If) for s in inside)
        assert "$flags" not in [a.name for a in bulk.arrays]
        assert "min(" not in str(inside)
        assert sum(isinstance(s, ir.For) for s in inside) == 1


def test_on_a_gpu_the_bulk_is_what_is_left_of_all_sites():
    kernels = kernels_of(relaxing(mask=MASK), spans=False)
    assert [a.name for a in kernels["relax_bulk"].arrays] == ["f", "$next", "$marks"]
    assert [u.name for u in kernels["relax_bulk"].uniforms] == ["omega"]
    assert [c.name for c in kernels["relax_bulk"].counts] == ["$count", "$nx", "$ny"]


# ---------------------------------------------------------------- refusals


def test_a_phase_without_links_has_no_parts():
    before = simplified(reference_kernel(relax, relaxing("in-place"), **VALUES))
    reason = "branch splitting cannot be applied to relax: all its sites do the same in this phase"
    assert refusal(lambda: site_splitting.apply(before, spans=True)) == reason
    first = simplified(reference_kernel(relax, relaxing("pull", fresh=True), **VALUES))
    assert refusal(lambda: site_splitting.apply(first, spans=True)) == reason


def test_one_plan_serves_all_phases():
    """A plan for the whole form is no error in a phase that has nothing to split."""
    even = reference_kernel(relax, relaxing("in-place"), **VALUES)
    assert [k.name for k in lowered(even, Plan(branches="apart"), "cpu")] == ["relax"]
    odd = reference_kernel(relax, relaxing("in-place", steps=1), **VALUES)
    assert [k.name for k in lowered(odd, Plan(branches="apart"), "cpu")] == ["relax_bulk", "relax_special"]


def test_dense_boxes_have_no_bulk():
    sites = relaxing(edges={"x": "wall"})
    sites.marks, sites.dense = None, True
    before = simplified(reference_kernel(relax, sites, **VALUES))
    assert refusal(lambda: site_splitting.apply(before, spans=True)) == (
        "branch splitting cannot be applied to relax: so many of its sites are special that each reads its flags"
    )


def test_other_kernels_are_refused():
    given = simple(case("kick_drift"))
    assert refusal(lambda: site_splitting.apply(given, spans=True)) == (
        "branch splitting cannot be applied to kick_drift: it has no sites of several classes"
    )


def test_mapped_kernels_are_refused():
    mapped = thread_mapping.apply(simplified(reference_kernel(relax, relaxing(), **VALUES)), 32)
    assert refusal(lambda: site_splitting.apply(mapped, spans=False)) == (
        "branch splitting cannot be applied to relax: its elements are already mapped to threads"
    )


def test_the_plan_of_other_kernels_takes_the_other_pass():
    text = refusal(lambda: program(case("kick_drift"), lw.SoA(), Plan(branches="apart"), "cuda"))
    assert text == "branch splitting cannot be applied to kick_drift: its function has no branch outside of loops"
