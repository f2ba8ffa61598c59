"""Parts that share the pairs of one array, each computed once: the bits of one part, whatever the number of parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise import Mesh
from lanewise.launch.executable import build_executable
from lanewise.launch.forms import extent_of
from lanewise.passes.reciprocity import groups
from lanewise.passes.reciprocity.groups import groups_of_part, part_values
from lanewise.patterns.mesh_launch import MeshLaunch
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.support.errors import ArgumentError
from tests.mesh import interpreted_gpu
from tests.mesh.test_calls import Body, bodies, host, pull, push, same

GPU = interpreted_gpu.NAME
SHARED = lw.Plan(reciprocity="grouped", targets=1)


@pytest.fixture(autouse=True)
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreted_gpu.install(monkeypatch)


@lw.pairwise
def several(target: Body, source: Body) -> tuple[lw.f64, lw.Min[lw.f32], lw.i32, lw.vec3]:
    if lw.same(target, source):
        return 0.0, 1e30, 100, lw.vec3(0.0)
    d = source.position - target.position
    r2 = lw.dot(d, d) + 0.1
    return lw.f64(source.mass) / lw.f64(r2), r2, 1, d * lw.rsqrt(r2) ** 3


def taken(parts: int, n: int, plan: lw.Plan, layout: lw.Layout | None = None, kernel: Any = pull) -> list[Any]:
    """What calls, bound calls and loops leave."""
    b: Any = bodies(n, layout or lw.SoA(), Mesh(GPU, parts=parts))
    bound = kernel.bind(b, b, softening2=1e-3, plan=plan)
    left = [bound().numpy().copy()]
    lw.steps([bound, push.bind(b, bound.results[0], dt=1e-2)]).run(1)
    return [*map(host, left), host(bound.results[0]), *map(host, b.numpy().values())]


@pytest.mark.parametrize("n", [1, 70])
@pytest.mark.parametrize("plan", [SHARED, lw.Plan(reciprocity="grouped", targets=2, accumulate="f64")], ids=str)
def test_every_number_of_parts_has_the_bits_of_one(n: int, plan: lw.Plan) -> None:
    wanted = taken(1, n, plan)
    for parts in (2, 3, 5):
        for found, want in zip(taken(parts, n, plan), wanted, strict=True):
            same(found, want)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [lw.AoS(), lw.AoSoA(8)], ids=str)
def test_more_tiles_than_groups(layout: lw.Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of five tiles; and what parts have is what a GPU alone has with this plan."""
    monkeypatch.setattr(groups, "GROUPS", 2)
    kernel = lw.pairwise(pull.python)  # compiled anew
    wanted = taken(1, 130, SHARED, layout, kernel)
    for found, want in zip(taken(2, 130, SHARED, layout, kernel), wanted, strict=True):
        same(found, want)
    b = bodies(130, layout, GPU)
    same(wanted[0], kernel.bind(b, b, softening2=1e-3, plan=SHARED)())


def test_results_of_all_kinds() -> None:
    one = bodies(45, lw.SoA(), GPU)
    wanted = several.bind(one, one, plan=lw.Plan(reciprocity="off"))()
    for parts in (1, 2, 3):
        b = bodies(45, lw.SoA(), Mesh(GPU, parts=parts))
        left = several.bind(b, b, plan=SHARED)()
        same(left[1], wanted[1])
        same(left[2], wanted[2])
        for n in (0, 3):
            np.testing.assert_allclose(host(left[n]), host(wanted[n]), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("precision", ["f32", pytest.param("mixed", marks=pytest.mark.slow)])
def test_simulations_share_pairs(precision: str) -> None:
    """Forces and potential energies of bodies on a mesh."""

    def left(parts: int) -> list[bytes]:
        particles = make_initial_conditions("plummer", 70, 3)
        bodies_ = make_bodies(particles, precision=precision, device=Mesh(GPU, parts=parts))
        plan = lw.Plan(reciprocity="grouped", targets=1)
        s = Simulation(bodies_, softening=0.1, plan=plan, potential_plan=plan)
        s.advance(1, 1e-2)
        assert {s.plans.force.reciprocity, s.plans.potential.reciprocity} == {"grouped"}
        return [np.asarray(s.acceleration).tobytes(), np.array(s.diagnostics().potential).tobytes()]

    wanted = left(1)
    assert left(2) == wanted
    assert left(3) == wanted


def rounds(call: Any) -> int:
    assert isinstance(call.launch, MeshLaunch)
    return len(call.launch.rounds)


def test_pairs_of_one_array_are_shared_by_default_and_others_are_not() -> None:
    b = bodies(300, lw.SoA(), Mesh(GPU, parts=2))
    call = pull.bind(b, b, softening2=1e-3)
    assert call.compiled.plan.reciprocity == "grouped"
    assert rounds(call) == 2
    assert rounds(pull.bind(b, bodies(300, lw.SoA(), GPU), softening2=1e-3)) == 1
    assert rounds(pull.bind(b, b, softening2=1e-3, plan=lw.Plan(reciprocity="off"))) == 1
    few = bodies(40, lw.SoA(), Mesh(GPU, parts=2))
    assert rounds(pull.bind(few, few, softening2=1e-3)) == 1
    for way in ("scratch", "ordered"):
        with pytest.raises(ArgumentError, match=f"reciprocity='{way}'.*on a mesh it is 'grouped'.*or 'off'"):
            pull.bind(b, b, softening2=1e-3, plan=lw.Plan(reciprocity=way))


def test_explanations_list_both_exchanges() -> None:
    b = bodies(300, lw.SoA(), Mesh(GPU, parts=3))
    launch = pull.bind(b, b, softening2=1e-3, plan=SHARED).launch
    assert isinstance(launch, MeshLaunch)
    assert [name for name, _ in launch.works()] == [
        "sources of pull", *(f"pull, part {n}" for n in range(3)), "sums of pull", *(f"sums of pull, part {n}" for n in range(3)),
    ]  # fmt: skip
    divided = launch.divided()
    groups_ = 10 // 2 + 1
    assert divided.exchanges[1].nbytes == 300 * 12 * groups_
    sources, sums = (s.total(divided.devices) for s in divided.sent(divided.lengths))
    assert (sources, sums) == tuple(e.nbytes for e in divided.exchanges)


@given(st.integers(1, 10**6), st.sampled_from([1, 4, 8, 12]), st.integers(1, 40))
def test_groups_are_dealt_out(count: int, targets: int, parts: int) -> None:
    dealt = [groups_of_part(count, targets, p, parts) for p in range(parts)]
    every = [n for some in dealt for n in some]
    assert every == list(range(len(every)))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1
    assert 1 <= len(every) <= groups.GROUPS


@pytest.mark.parametrize("count", [2**18, 2**20, 5_000_011])
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5, 8])
def test_tasks_are_dealt_out_evenly(count: int, parts: int) -> None:
    """As kernels compute them: all tasks, and none twice; even where parts divide the groups."""
    few = bodies(300, lw.SoA(), Mesh(GPU, parts=2))
    plan = lw.Plan(reciprocity="grouped", targets=12)
    launch: Any = pull.bind(few, few, softening2=1e-3, plan=plan).launch
    (kernel,) = launch.rounds[0].calls[0].compiled.executable.program.kernels
    assert kernel.grid is not None
    numbers = {"$target.count": count, "$source.count": count}
    tasks = [extent_of(kernel.grid.extent)(numbers | part_values(p, parts)) for p in range(parts)]
    tiles = -(-count // (12 * 32))
    assert sum(tasks) == tiles * (tiles + 1) // 2
    if groups.GROUPS % parts == 0:
        assert max(tasks) < 1.01 * sum(tasks) / parts
    sums = next(s for s in kernel.scratch if not s.zeroed)
    assert sum(extent_of(sums.length)(numbers | part_values(p, parts)) for p in range(parts)) == groups.GROUPS * count


@pytest.mark.slow_cases("12-128")
@pytest.mark.parametrize(("targets", "registers"), [(4, 128), (8, 0), (12, 128)])
def test_kernels_of_parts_compile_for_gpus_and_take_the_registers_of_one(targets: int, registers: int) -> None:
    """So as many warps as on one GPU hide what a warp waits for."""
    plan = lw.Plan(reciprocity="grouped", targets=targets, unroll=8, registers=registers, fma=True)
    one, two = (bodies(300, lw.SoA(), place) for place in (GPU, Mesh(GPU, parts=2)))
    launch = pull.bind(two, two, softening2=1e-3, plan=plan).launch
    assert isinstance(launch, MeshLaunch)
    alone = pull.bind(one, one, softening2=1e-3, plan=replace(plan, reciprocity="ordered")).compiled.executable
    taken_: list[int] = []
    for program in (alone.program, *(r.calls[0].compiled.executable.program for r in launch.rounds)):
        made = build_executable(program, "cuda", arch="sm_90")
        assert all(c.resources.spill_stores == c.resources.stack_bytes == 0 for c in made.cubins)
        taken_.append(made.cubins[0].resources.registers)
    assert taken_[1] <= taken_[0] + 4
