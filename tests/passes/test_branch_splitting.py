from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.passes import branch_splitting
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import LAYOUTS, Case, case
from tests.emit.test_cubins import check as check_compiled
from tests.harness import Input, program, run_kernels, run_public
from tests.passes.probe import PROBE, Bead, assert_equal, before_and_after, check, layouts, refusal, simple


@lw.elementwise
def collide(bead: Bead, force: lw.vec2, wall: lw.i32) -> lw.f32:
    """A cell is a wall or not; the two sides read and write different fields, and both return something."""
    kind = bead.level % 3
    if kind == wall:
        bead.place = -bead.place
        return bead.place.x
    for n in range(2):
        bead.weight += lw.f64(force.x) * lw.f64(n)
    return lw.f32(bead.weight)


@lw.elementwise
def bounce(bead: Bead, force: lw.vec2):
    """The then side changes what the condition reads, so the other side has to run first."""
    if bead.level > 0 and bead.place.x < 3.0:
        bead.level = -bead.level
        bead.place += force
    else:
        bead.weight = bead.weight + 1.0
    bead.weight = bead.weight * 2.0 + lw.f64(force.y)


@lw.elementwise
def early(bead: Bead) -> lw.f32:
    """A return inside a loop, before the only branch."""
    for n in range(3):
        if bead.level == n:
            return bead.place.x
    if bead.level > 3:
        return 1.0
    return 2.0


@lw.elementwise
def quiet(bead: Bead):
    if bead.level > 0:
        bead.weight = 0.0


@lw.elementwise
def both(bead: Bead):
    if bead.level > 0:
        bead.level = bead.level - 1
    else:
        bead.level = bead.level + 1


@lw.elementwise
def first_then_test(bead: Bead):
    bead.level += 1
    if bead.level > 0:
        bead.weight = 0.0


@lw.elementwise
def twice(bead: Bead):
    if bead.level > 0:
        bead.weight = 0.0
    if bead.weight > 0.0:
        bead.level = 0


@lw.elementwise
def near(bead: Bead, radius2: lw.f32):
    if lw.dot(bead.place, bead.place) < radius2:
        bead.weight = 0.0


@lw.elementwise
def far(bead: Bead, radius: lw.f32):
    if lw.length(bead.place) > radius:
        bead.weight = 0.0


@lw.elementwise
def wrap(bead: Bead, size: lw.f32):
    if bead.place.x % size > 0.5:
        bead.weight = 0.0


@lw.elementwise
def light_and_heavy(bead: Bead, force: lw.vec2):
    if bead.level == 0:
        bead.place += force
    else:
        a, b, c, d = bead.place.x, bead.place.y, force.x, force.y
        for _ in range(3):
            p, q, r, s = lw.sin(a + d), lw.exp(b - c), lw.cos(c * a), lw.log(lw.abs(d) + 1.0)
            a, b, c, d = p * q + r, q * r - s, r * s + p, s * p - q
        bead.place = lw.vec2(a * b + c, b * c - d)


def elements(kernel, **values) -> Case:
    arrays = "force" in kernel.signature.parameters
    return Case(
        kernel.__name__, kernel, (Bead,), PROBE.fill, lambda *_: (), values,
        arrays=lambda rng, n: {"force": rng.integers(-8, 9, (n, 2)).astype("f4")} if arrays else {},
    )  # fmt: skip


COLLIDE, BOUNCE = elements(collide, wall=1), elements(bounce)


@pytest.mark.parametrize("c", [COLLIDE, BOUNCE], ids=lambda c: c.name)
def test_golden(golden, c):
    before = simple(c)
    golden(c.name, before_and_after(before, *branch_splitting.apply(before), functions=True))


@settings(max_examples=30)
@examples(st.sampled_from([COLLIDE, BOUNCE]), layouts, st.integers(1, 24), st.integers(0, 99))
def test_meaning_is_kept(c, layout, count, seed):
    given = Input(c, count, seed=seed)
    before = simple(c, layout=layout)
    check(given, before, branch_splitting.apply(before), layout)
    for kind in ("cpu", "cuda"):
        p = program(c, layout, Plan(branches="apart", block=32), kind)
        assert len(p.kernels) == 2
        assert_equal(run_kernels(p.kernels, given, layout), run_kernels((p.reference,), given, layout))


def test_each_side_has_its_own_code_and_data():
    first, second = branch_splitting.apply(simple(COLLIDE))
    assert (first.name, second.name) == ("collide_if", "collide_else")
    assert [a.name for a in first.arrays if a.written] == ["bead", "$result"]
    assert "force" not in [a.name for a in first.arrays]
    assert "force" in [a.name for a in second.arrays]


def test_the_side_that_changes_the_condition_runs_last():
    assert [k.name for k in branch_splitting.apply(simple(BOUNCE))] == ["bounce_else", "bounce_if"]


@examples(layouts, st.integers(1, 24), st.integers(0, 99))
def test_after_loop_splitting_every_part_with_a_branch_is_split(layout, count, seed):
    given = Input(COLLIDE, count, seed=seed)
    p = program(COLLIDE, layout, Plan(fission=True, branches="apart", block=32), "cuda")
    assert [k.name.removeprefix("collide_") for k in p.kernels] == ["result_if", "result_else", "place", "weight"]
    assert_equal(run_kernels(p.kernels, given, layout), run_kernels((p.reference,), given, layout))


@pytest.mark.parametrize("c", [COLLIDE, BOUNCE], ids=lambda c: c.name)
def test_results_through_the_public_interface(c):
    given = Input(c, 100)
    for layout in (lw.SoA(), lw.AoS()):
        together = run_public(given, layout, "cpu", Plan(branches="together"))
        assert_equal(run_public(given, layout, "cpu", Plan(branches="apart")), together)


# ---------------------------------------------------------------- refusals

REFUSED = [
    (elements(quiet), "one side of its branch does nothing, which needs no kernel"),
    (elements(early), "its function may return before its branch, which belongs to neither side"),
    (elements(both), "both sides change level, which the condition reads: the second kernel would find other values"),
    (elements(first_then_test), "both sides change level, which the condition reads: the second kernel would find other values"),
    (elements(twice), "its function has 2 branches one after the other, which would make 4 kernels"),
    (elements(near, radius2=2.0), "its condition adds products, which two kernels may round in two ways"),
    (elements(far, radius=2.0), "its condition computes sqrt, which two kernels may round in two ways"),
    (elements(wrap, size=2.0), "its condition computes % of floats, which two kernels may round in two ways"),
    (case("kick_drift"), "its function has no branch outside of loops"),
    (case("lennard_jones"), "the branch is taken per pair: every target would go through its sources twice"),
]  # fmt: skip


@pytest.mark.parametrize(("c", "reason"), REFUSED, ids=lambda x: x.name if isinstance(x, Case) else "")
def test_refusals(c, reason):
    wanted = f"branch splitting cannot be applied to {c.name}: {reason}"
    assert refusal(lambda: branch_splitting.apply(simple(c))) == wanted
    assert refusal(lambda: program(c, lw.SoA(), Plan(branches="apart"), "cuda")) == wanted


def test_a_kernel_that_returns_before_its_branch_is_explained_and_tuned(tmp_path, monkeypatch):
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    beads = Bead.array(**PROBE.fill(np.random.default_rng(0), 64))
    assert "early" in str(early.compile(beads).explain())
    assert early.tune(beads, seconds=1.0).plan is not None


def test_fast_math_may_compare_floats_in_two_ways():
    plan = Plan(branches="apart", fast_math=True)
    assert refusal(lambda: program(BOUNCE, lw.SoA(), plan, "cuda")) == (
        "branch splitting cannot be applied to bounce: its condition compares floats under fast_math, "
        "which two kernels may round in two ways"
    )
    assert len(program(COLLIDE, lw.SoA(), plan, "cuda").kernels) == 2  # integers are compared in one way


@lw.elementwise
def turn(bead: Bead, force: lw.vec2, wall: lw.i32) -> lw.vec2:
    if bead.level % 3 == wall:
        bead.place = -bead.place
        return bead.place
    for n in range(2):
        bead.weight += lw.f64(force.x) * lw.f64(n)
    return force


def test_arrays_that_share_memory_are_refused():
    bead = Bead.array(**PROBE.fill(np.random.default_rng(0), 8))
    force = np.ones((8, 2), np.float32)
    turn.bind(bead, force, wall=1, out=force, plan=Plan(branches="together"))()  # each element replaces its own
    text = refusal(lambda: turn.bind(bead, force, wall=1, out=force, plan=Plan(branches="apart")))
    assert text == (
        "Plan(branches='apart') of turn: force and the result share memory, and one kernel would overwrite what another one reads; "
        "choose branches='together', or give them their own memory"
    )


# ---------------------------------------------------------------- on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("c", [COLLIDE, BOUNCE], ids=lambda c: c.name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_bits_on_a_gpu(c, layout):
    for count in (1, 100, 1000):
        given = Input(c, count)
        wanted = run_public(given, LAYOUTS[layout], "cpu")
        assert_equal(run_public(given, LAYOUTS[layout], "cuda", Plan(branches="apart", block=64)), wanted)


# ---------------------------------------------------------------- compilation


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiles_without_spills(layout):
    for c in (COLLIDE, BOUNCE):
        check_compiled(program(c, LAYOUTS[layout], Plan(branches="apart", block=128), "cuda"), "sm_90")


def test_the_light_side_takes_fewer_registers():
    """Figure 2 of the paper: together the light side pays for the heavy one."""
    c = elements(light_and_heavy)

    def registers(branches: str) -> dict[str, int]:
        kernels = program(c, lw.SoA(), Plan(branches=branches, block=128), "cuda").kernels
        return {k.name: compile_cubin(emit_cuda(k, "test"), k.name, "sm_90").resources.registers for k in kernels}

    together, apart = registers("together"), registers("apart")
    assert apart["light_and_heavy_if"] < together["light_and_heavy"]
