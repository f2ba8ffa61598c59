"""Regions of lowered kernels: how often they run, what they cost, what they touch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.regions import KernelWork, Region, analyse
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import flat_map
from lanewise.language.types import I32
from lanewise.planning.plan import NEUTRAL, Plan
from tests.corpus import CASES, LAYOUTS, case
from tests.harness import program
from tests.passes.probe import PULL

COUNTS = {"$target.count": 16_384, "$source.count": 16_384, "$count": 1 << 20, "steps": 60}
TILED = Plan(block=256, tile=256, targets=2, slices=2, unroll=8)


def work(name: str, plan: Plan, layout: lw.Layout | None = None, device: str = "cuda", counts=COUNTS) -> KernelWork:
    c = PULL if name == "pull" else case(name)
    return analyse(program(c, layout or lw.SoAoAS(), plan.filled(NEUTRAL), device).kernels[0], counts)


def text_of(found: KernelWork) -> str:
    lines = [f"{found.kernel.name}: {found.blocks} blocks of {found.threads}"]

    def visit(r: Region, depth: int) -> None:
        unroll = f", unrolled {r.unroll:g}" if r.role.startswith("loop") else ""
        lines.append(f"{'  ' * depth}{r.role}: {r.executions:g} times{unroll}: {r.instructions}")
        lines.extend(f"{'  ' * depth}  {a.buffer}: {a.pattern}, {a.sectors:g} sectors" for a in r.accesses)
        for inner in r.children:
            visit(inner, depth + 1)

    visit(found.root, 1)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("label", "name", "plan", "device"),
    [
        ("tiled", "gravity", TILED, "cuda"),
        ("untiled", "gravity", Plan(block=128), "cuda"),
        ("cpu", "gravity", Plan(targets=2), "cpu"),
        ("streamed", "kick_drift", Plan(block=256), "cuda"),
        ("branches", "march", Plan(block=256), "cuda"),
    ],
)
def test_golden(golden, label, name, plan, device):
    golden(label, text_of(work(name, plan, device=device)))


def inner(found: KernelWork) -> Region:
    assert found.inner_loop is not None
    return found.inner_loop


def test_inner_loop_of_tiled_gravity():
    """NVRTC's loop for sm_90 with four sources a turn and two targets: 120 instructions, 8 pairs (FADD 32, FMUL 32,
    FFMA 40).
    """
    loop = inner(work("gravity", Plan(block=256, tile=256, targets=2, unroll=4)))
    assert 4 * loop.instructions.slots == pytest.approx(120, abs=1)
    assert loop.instructions.arithmetic == pytest.approx(28, abs=0.5)
    assert loop.executions == 16_384


@pytest.mark.parametrize(
    ("layout", "unroll", "emitted"),
    [("SoAoAS", 1, 20), ("SoA", 1, 29), ("AoS", 1, 23), ("SoAoAS", 4, 66), ("SoA", 4, 84), ("AoS", 4, 78)],
)
def test_inner_loop_of_untiled_gravity(layout, unroll, emitted):
    """The instructions of NVRTC's loops for sm_90, one turn of which is as many sources as the plan says.

    Without its moves between registers, which no model foresees: 2, 8 and 2 of them in the loops that are not unrolled.
    """
    loop = inner(work("gravity", Plan(block=256, unroll=unroll), LAYOUTS[layout]))
    assert loop.unroll == unroll
    assert unroll * loop.instructions.slots == pytest.approx(emitted, abs=1)


@settings(max_examples=10)
@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([(1, 1), (2, 2), (1, 4)]))
def test_pairs_are_counted(targets, sources, shape):
    """All pairs of all warps, and no more than a block's targets beyond the last one."""
    merged, slices = shape
    counts = {"$target.count": targets, "$source.count": sources}
    found = work("gravity", Plan(block=128, tile=128, targets=merged, slices=slices), counts=counts)
    warps = found.blocks * 4
    pairs = sum(r.executions * r.applications for r in found.regions) * warps * 32
    padded = found.blocks * 128 // slices * merged
    assert pairs / padded == pytest.approx(sources, rel=0.35, abs=slices)
    assert pairs >= targets * sources * 0.99 or slices > 1


def test_loops_are_hoisted_and_dead_code_is_not_counted():
    """What does not change in the loop stands before it; a position nobody uses costs nothing."""
    found = work("pull", Plan(block=128))
    assert inner(found).instructions["fp32 add"] == 1
    assert inner(found).instructions["conversion"] == 1


def test_branches_of_some_warps():
    """Only the first of four slices adds what the others found."""
    found = work("gravity", Plan(block=256, tile=256, slices=4, unroll=8))
    branches = [r for r in found.root.children if r.role == "branch"]
    assert [r.executions for r in branches[:1]] == [0.25]


@pytest.mark.parametrize(("unroll", "emitted"), [(1, 152), (4, 597), (8, 1189)])
@pytest.mark.parametrize("mode", ["scratch", "ordered"])
def test_reciprocity(mode, unroll, emitted):
    """Each pair once for both sides: 18 slots, which is 9 an interaction. `emitted` are the instructions of NVRTC's
    loop for sm_90.
    """
    found = work("gravity", Plan(block=32, targets=8, unroll=unroll, reciprocity=mode))
    loop = inner(found)
    assert loop.instructions.unit("fp32") + loop.instructions["special"] == 8 * 18
    assert loop.instructions["shuffle"] == 3
    assert unroll * loop.instructions.slots == pytest.approx(emitted, abs=1)
    computed = found.blocks * 32 * sum(r.executions * r.applications for r in found.regions)
    assert computed == pytest.approx(16_384 * 16_384 / 2, rel=0.05)


@pytest.mark.parametrize(("prefetch", "stages", "barriers"), [("none", 1, 2), ("registers", 0, 2), ("async", 0, 1)])
def test_prefetching_waits_for_no_load(prefetch, stages, barriers):
    found = work("gravity", Plan(block=128, tile=128, targets=2, unroll=8, prefetch=prefetch))
    tiles = next(r for r in found.regions if r.role == "loop over tiles" and r.executions)
    assert (tiles.stages, tiles.barriers) == (stages, barriers)


def test_parts_share_the_tiles():
    whole, part = (inner(work("gravity", Plan(block=256, tile=256, parts=p))).executions for p in (1, 8))
    assert whole == 8 * part


@pytest.mark.parametrize(
    ("layout", "pattern", "sectors"),
    [("SoA", "streamed", 4.0), ("AoS", "strided", 28.0), ("SoAoAS", "streamed", 16.0), ("AoAS", "strided", 32.0)],
)
def test_accesses_of_a_warp(layout, pattern, sectors):
    """32 threads: 128 bytes side by side are 4 sectors; structures of 28 bytes touch all 28 sectors that they
    lie in.
    """
    found = work("speed", Plan(block=256), LAYOUTS[layout])
    (region,) = (r for r in found.regions if r.accesses)
    loads = [a for a in region.accesses if not a.write]
    assert {a.pattern for a in loads} == {pattern}
    assert max(a.sectors for a in loads) == sectors


def test_sectors_are_counted_once():
    """Six loads of an array of structures share the sectors of 32 structures of 28 bytes."""
    found = work("kick_drift", Plan(block=256), lw.AoS())
    (region,) = (r for r in found.regions if r.accesses)
    assert region.sectors["body/0/read"] == region.sectors["body/0/write"] == 28
    assert region.sectors["acceleration/0/read"] == 12


def test_gathered_accesses():
    """An index that was loaded says nothing of where neighbours lie."""
    built = program(case("speed"), lw.SoAoAS(), Plan(block=64).filled(NEUTRAL), "cuda").kernels[0]
    index = ir.BufferArgument("order", "order", 0, I32, 1, False)

    def through(s: ir.Statement) -> ir.Block:
        match s:
            case ir.Load(buffer=b) if b.startswith("body"):
                return (ir.Load("order", s.index, ("$place",)), ir.Load(b, ir.Local("$place", I32), s.names))
            case _:
                return (s,)

    found = analyse(replace(built, body=flat_map(built.body, through), buffers=(*built.buffers, index)), COUNTS)
    patterns = {a.buffer.partition(".")[0]: a.pattern for r in found.regions for a in r.accesses if not a.write}
    assert patterns == {"order": "streamed", "body": "gathered"}


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
def test_every_kernel_has_work(c):
    """Without any counts, on both kinds of device."""
    for device, plan in (("cuda", Plan(block=64, tile=64 if c.pairwise else 0)), ("cpu", Plan())):
        found = analyse(program(c, lw.SoA(), plan.filled(NEUTRAL), device).kernels[0])
        assert found.instructions.slots > 0
        assert all(np.isfinite(r.executions) for r in found.regions)
