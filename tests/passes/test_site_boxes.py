"""Boxes of sites for each thread: they compute what single sites do, and read less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_kernel
from lanewise.language.target import Machine
from lanewise.language.types import I32
from lanewise.layouts import SoA
from lanewise.patterns.sitewise.passes import boxes
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.sites import row_block_of
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError
from tests.emit.bodies import cuda_bodies
from tests.passes.test_site_merging import simplified
from tests.patterns.sitewise import after, lowered, read_by_place, reference_kernel, relax
from tests.sites.fields import blur
from tests.sites.test_fields_and_tables import RATES, paint

GPU = Machine("cuda", 132)
EDGES = [{}, {"x": ("hot", "slip"), "y": "hot"}, {"x": "insulated", "y": ("slip", "insulated")}]


@lw.stencil(lw.D3Q7)
def heat(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] + t[5] + t[6] - 6 * t[0])


@lw.stencil(lw.D3Q19)
def spread(t: lw.Field[lw.f64], rate: lw.f64) -> lw.f64:
    total = lw.f64(0)
    for q in lw.D3Q19:
        total += q.weight * t[q]
    return t[0] + rate * (total - t[0])


@lw.stencil(lw.D2Q5)
def flat(t: lw.Field[lw.f32]) -> lw.f32:
    return t[1] + t[2] + t[3] + t[4]


heat.wall(1, "hot", t="hot")
spread.wall(1, "hot", t="hot")


def placed(
    kernel: Any,
    shape: tuple[int, ...],
    edges: dict[str, Any] | None = None,
    layout: lw.Layout | None = None,
    **options: Any,
) -> Any:
    """Sites as a GPU has them, with small integers."""
    rng = np.random.default_rng(len(shape))
    fields = {n: rng.integers(0, 9, shape) for n in kernel.fields}
    layout = layout or SoA()
    made = read_by_place(kernel.sites(shape, layout=layout, edges=edges, device="python", **fields, **options))
    made.row_block = row_block_of(layout, shape[-1], plain=True)
    return made


def values_of(kernel: Any, edges: dict[str, Any] | None) -> dict[str, float]:
    rate = {} if kernel is flat else {"rate": 0.25}
    return rate | ({"hot": 2.0} if "hot" in str(edges) else {})


def reference(kernel: Any, box: Any, **values: Any) -> ir.Kernel:
    return simplified(reference_kernel(kernel, box, **values))


def loads(kernel: ir.Kernel) -> list[int]:
    """How many records each load reads."""
    return sorted(s.across for s in statements(kernel.body) if isinstance(s, ir.LoadRecord))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("edges", EDGES, ids=str)
@pytest.mark.parametrize(
    ("shape", "layout", "plan"),
    [
        ((5, 16), lw.SoA(), Plan(targets=4, rows=2, across=8, block=32)),
        ((7, 24), lw.AoSoA(8), Plan(targets=4, rows=4, across=4, block=32)),
        ((4, 12), lw.SoA(), Plan(targets=2, rows=4, across=2, block=32)),
        ((5, 7), lw.SoA(), Plan(targets=1, rows=2, across=8, block=32)),
        ((2, 8), lw.SoA(), Plan(targets=2, rows=1, across=16, block=32)),
    ],
    ids=str,
)
def test_rows_compute_the_same(edges: Any, shape: Any, layout: Any, plan: Plan) -> None:
    box, values = placed(blur, shape, edges, layout), values_of(blur, edges)
    before = reference(blur, box, **values)
    expected = after(blur, box, before, (before,), **values)
    assert after(blur, box, before, lowered(before, plan, "cuda"), **values) == expected


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kernel", [heat, spread], ids=lambda k: k.__name__)
@pytest.mark.parametrize("edges", [{}, {"z": "hot", "y": ("slip", "hot"), "x": ("hot", "slip")}], ids=str)
@pytest.mark.parametrize(
    ("shape", "plan"),
    [
        ((5, 3, 8), Plan(targets=4, rows=2, layers=4, across=4, down=2, block=32)),
        ((3, 4, 12), Plan(targets=2, rows=1, layers=2, across=2, down=4, block=32)),
        ((2, 5, 4), Plan(targets=4, rows=4, layers=1, across=2, block=32)),
    ],
    ids=str,
)
def test_layers_compute_the_same(kernel: Any, edges: Any, shape: Any, plan: Plan) -> None:
    box, values = placed(kernel, shape, edges), values_of(kernel, edges)
    before = reference(kernel, box, **values)
    if kernel is spread:  # two of its float64 are a vector
        plan = replace(plan, targets=2)
    merged = boxes.apply(before, (plan.targets or 1, plan.rows or 1, plan.layers or 1))
    verify_kernel(merged)
    expected = after(kernel, box, before, (before,), **values)
    assert after(kernel, box, before, (merged,), **values) == expected
    assert after(kernel, box, before, lowered(before, plan, "cuda"), **values) == expected


def test_boxes_read_tables_at_each_site() -> None:
    rng = np.random.default_rng(2)
    tables = {"rates": RATES, "source": rng.random((5, 16)).astype(np.float32)}
    u = rng.integers(0, 4, (5, 16))
    box = placed(paint, (5, 16))
    paint.set_fields(box, u=u)
    before = reference(paint, box, **tables)
    expected = after(paint, box, before, (before,), **tables)
    plan = Plan(targets=4, rows=2, across=4, block=32)
    assert after(paint, box, before, lowered(before, plan, "cuda"), **tables) == expected


@pytest.mark.parametrize(
    ("points", "rows", "single"),
    [((4, 1, 1), 5, 2), ((4, 2, 1), 8, 4), ((4, 1, 4), 14, 8), ((4, 2, 4), 20, 16), ((2, 2, 2), 12, 8)],
)
def test_what_several_sites_read_is_loaded_once(points: Any, rows: int, single: int) -> None:
    """Of a box of rows: the box itself and its faces along y and z, and the ends of its rows."""
    box = placed(heat, (8, 8, 16))
    merged = boxes.apply(reference(heat, box, rate=0.25), points)
    assert loads(merged) == [1] * single + [points[0]] * rows


def test_rows_are_loaded_as_a_whole_where_only_their_sites_neighbours_are_read() -> None:
    merged = boxes.apply(reference(flat, placed(flat, (8, 16))), (4, 2, 1))
    assert loads(merged) == [1] * 4 + [4] * 4


def test_edges_of_a_box_are_loaded_once_too() -> None:
    """Diagonal neighbours of different sites are one place: around a row of two in a box of 2 x 2 rows are 12
    others.
    """
    box = placed(spread, (8, 8, 16))
    merged = boxes.apply(reference(spread, box, rate=0.25), (2, 2, 2))
    assert loads(merged) == [1] * 2 * 12 + [2] * 16


def test_golden(golden: Any) -> None:
    box = placed(flat, (6, 16), {"y": "slip"})
    golden("boxes", print_kernel(boxes.apply(reference(flat, box), (2, 2, 1))))
    plan = complete_site_plan(Plan(targets=2, rows=2, across=8, block=32), GPU, (kernel := reference_kernel(flat, box)))
    golden("boxes_cuda", cuda_bodies(build_program(kernel, plan, "cuda")))


# ------------------------------------------------------------ refusals


def refusal(kernel: ir.Kernel, plan: Plan) -> str:
    with pytest.raises(PlanError) as caught:
        lowered(kernel, plan, "cuda")
    return str(caught.value)


def test_populations_have_nothing_to_share() -> None:
    box = read_by_place(relax.sites((4, 32), layout=lw.AoSoA(32), device="python", streaming="pull"))
    box.step, box.fresh = 1, False
    told = refusal(reference_kernel(relax, box, omega=0.5), Plan(rows=2, across=8, block=32))
    assert told.endswith("its populations arrive each at one site: rows have nothing to share")


def test_marked_sites_stay_in_rows() -> None:
    mask = np.zeros((6, 16), int)
    mask[2, 3] = 1
    kernel = reference_kernel(blur, placed(blur, (6, 16), mask=mask), rate=0.1)
    assert refusal(kernel, Plan(rows=2, across=8, block=32)).endswith(boxes.MARKED)
    assert complete_site_plan(None, GPU, kernel, 1 << 26, (8192, 8192)).rows == 1


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (Plan(targets=4, layers=2, across=8, block=32), "its box has 2 axes"),
        (
            Plan(targets=4, rows=16, across=8, block=32),
            "a thread updates at most 32 sites, 8 along an axis; 4 x 16 x 1 were requested",
        ),
        (Plan(targets=8, rows=2, across=8, block=32), "a thread updates 1, 2 or 4 sites; 8 were requested"),
        (Plan(targets=4, rows=2, across=24, block=32), "the threads of a block make no rows of 24"),
    ],
    ids=str,
)
def test_shapes_that_are_none(plan: Plan, told: str) -> None:
    assert told in refusal(reference_kernel(flat, placed(flat, (6, 16))), plan)


def test_a_cpu_has_no_blocks() -> None:
    with pytest.raises(PlanError, match="points of an index space"):
        lowered(reference_kernel(flat, placed(flat, (6, 16))), Plan(rows=2), "cpu")


def test_a_box_has_as_many_rows_as_a_thread() -> None:
    plan = complete_site_plan(Plan(rows=4, across=8), GPU, reference_kernel(flat, placed(flat, (6, 16))))
    boxes.check_extents(plan, (4, 16))
    with pytest.raises(PlanError) as caught:
        boxes.check_extents(plan, (3, 16))
    assert str(caught.value) == "Plan(rows=4): the box has 3 sites along y; wanted at most as many rows per thread"


# ------------------------------------------------------------ default plans


def default(kernel: Any, shape: tuple[int, ...], box: Any = None, **values: Any) -> Plan:
    box = box or placed(kernel, tuple(min(n, 16) for n in shape))
    return complete_site_plan(None, GPU, reference_kernel(kernel, box, **values), int(np.prod(shape)), shape)


def test_large_boxes_have_rows_and_layers_by_default() -> None:
    plan = default(heat, (512, 512, 512), rate=0.1)
    assert (plan.targets, plan.rows, plan.layers, plan.block, plan.across, plan.down) == (4, 2, 4, 256, 32, 4)
    plan = default(flat, (1024, 1024))
    assert (plan.targets, plan.rows, plan.across, plan.block) == (4, 4, 64, 256)
    plan = default(spread, (256, 256, 256), rate=0.1)
    assert (plan.targets, plan.rows, plan.layers) == (2, 2, 4)
    plan = default(flat, (1023, 1023), placed(flat, (15, 15)))  # rows of no whole vectors
    assert (plan.targets, plan.rows, plan.across) == (1, 8, 128)


@pytest.mark.parametrize("shape", [(3, 512, 512), (1, 1024, 1024), (32, 32, 32)])
def test_boxes_that_are_thin_or_small_have_none(shape: tuple[int, ...]) -> None:
    assert (default(heat, shape, rate=0.1).rows, default(heat, shape, rate=0.1).layers) == (1, 1)


def test_a_wish_for_sites_in_a_row_is_kept() -> None:
    box = placed(heat, (8, 8, 16))
    plan = complete_site_plan(Plan(targets=4), GPU, reference_kernel(heat, box, rate=0.1), 1 << 27, (512, 512, 512))
    assert (plan.targets, plan.rows, plan.block) == (4, 1, 256)


def test_default_plans_compile_without_spills() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from tests.emit.test_cubins import check

    for kernel, shape in ((heat, (512, 512, 512)), (spread, (256, 256, 256)), (blur, (1024, 1024))):
        box = placed(kernel, tuple(min(n, 16) for n in shape))
        made = reference_kernel(kernel, box, index=I32, rate=0.1)
        check(build_program(made, complete_site_plan(None, GPU, made, 1 << 24, shape), "cuda"), "sm_90")
