"""Parts of a flock get those agents of other parts that may come near, and no part misses one.

Each way in which agents can come near is one that a wrong list would miss: these tests fail where it is left out.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.launch.executable import switches_of
from lanewise.layouts import default_layout
from lanewise.patterns.elementwise.build import ELEMENTWISE, ElementwiseArguments, build_elementwise, build_reduction
from lanewise.patterns.search import automatic
from lanewise.patterns.search.gather import build_gather
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.sims.boids import Flock, mesh_steering
from lanewise.sims.boids.mesh_steering import MeshSteering
from lanewise.sims.boids.reach import CoarseGrid, grid_over, make_reach
from lanewise.sims.boids.rules import BOUNDED, BOX, OPEN, RECORDS, SPHERE
from tests.mesh import interpreted_gpu
from tests.mesh.test_flocks import left

AGENTS, STEPS, DT = 1600, 70, 1 / 24  # brought into order in steps 0, 32 and 64

# agents that fly far between two lists; those of spheres come back at the opposite side
FLOCKS: dict[str, dict[str, Any]] = {
    "sphere": {"radius": 4.0},
    "sphere, some nearest": {"semantics": "thesis", "radius": 4.0, "world": 45.0},
    "walls": {"boundary": "inside-sphere", "radius": 4.0, "k": 5},
    "box": {"boundary": "periodic"},
    "box in two dimensions": {"boundary": "periodic", "dimension": 2, "radius": 3.0, "world": 150.0},
    "open": {"boundary": "open", "radius": 4.0},
    "open in float64": {"boundary": "open", "radius": 4.0, "precision": "f64"},
    "bounded": {"boundary": "bounded", "radius": 4.0, "start_radius": 40.0, "start": "ball", "world": 300.0},
}


def flock(place: Any, **chosen: Any) -> Flock:
    given = {"agents": AGENTS, "world": 60.0, "start": "world", "seed": 3, "search": "static-grid", **chosen}
    return Flock(device=place, **given)


def steering(f: Flock) -> MeshSteering:
    near = f._engine.semantics._near  # type: ignore[attr-defined]
    assert isinstance(near, MeshSteering)
    return near


@cache
def of_one_device(kind: str) -> list[Any]:
    return left(flock("cpu", **FLOCKS[kind]).run(STEPS, DT))


SLOW = ("open in float64", "box in two dimensions", "walls")


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in FLOCKS])
def test_bits_are_those_of_one_device(kind: str) -> None:
    for parts in (2, 5):
        f = flock(f"cpu*{parts}", **FLOCKS[kind]).run(STEPS, DT)
        assert left(f) == of_one_device(kind), parts
        assert len(steering(f).counts) == parts * (parts - 1)


@pytest.mark.parametrize("side", [0.5, pytest.param(0.25, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["sphere", "box", pytest.param("open", marks=pytest.mark.slow)])
def test_cells_may_be_narrower_than_the_radius(monkeypatch: pytest.MonkeyPatch, kind: str, side: float) -> None:
    """As those that a flock chooses for itself on GPUs."""
    monkeypatch.setattr(automatic, "_side", lambda *_: side)
    chosen = {**FLOCKS[kind], "search": "auto"}
    wanted = flock("cpu", **chosen).run(STEPS, DT)
    assert f"side={side:g}" in str(wanted.search)
    for parts in (2, 5):
        f = flock(f"cpu*{parts}", **chosen).run(STEPS, DT)
        assert left(f) == left(wanted), parts
        assert len(steering(f).counts) == parts * (parts - 1)


@pytest.mark.parametrize("kind", ["open", "box"])
def test_parts_get_some_agents_of_others(kind: str) -> None:
    f = flock("cpu*2", **FLOCKS[kind]).run(40, 1 / 60)
    assert all(0 < count < AGENTS // 2 for count in steering(f).counts.values())


def without_flight(boxes: Any, end: int, radius: float, drift: float, world: float, agents: int) -> CoarseGrid:
    del drift, agents
    return grid_over(boxes, end, radius, 0.0, world, 1 << 20)  # in small cells, which hide nothing


def without_mirror(*given: Any) -> CoarseGrid:
    return replace(grid_over(*given), shell2=1e30)


@pytest.mark.parametrize(
    ("wrong", "kind"), [(without_flight, "box"), (without_mirror, "sphere")], ids=["flight", "mirror images"]
)
def test_shorter_lists_miss_some(wrong: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flocks of these tests see what a list lacks."""
    monkeypatch.setattr(mesh_steering, "grid_over", wrong)
    assert left(flock("cpu*2", **FLOCKS[kind]).run(STEPS, DT)) != of_one_device(kind)


@pytest.mark.parametrize(("boundary", "start"), [("wrap", "world"), ("periodic", "cube")])
def test_whoever_comes_back_at_the_opposite_side_brings_those_near_to_it_alone(boundary: str, start: str) -> None:
    """Between two orders, when parts have some agents in the middle of others."""
    f = flock("cpu*2", boundary=boundary, start=start, agents=20_000, world=100.0, radius=2.0).run(31, 1 / 60)
    assert all(0 < count < 7_000 for count in steering(f).counts.values())


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([OPEN, BOX, SPHERE]), st.sampled_from(["f32", "f64"]))
def test_whoever_may_meet_is_in_a_marked_cell(seed: int, end: int, precision: str) -> None:
    """Agents anywhere, in any form; images and mirror images count."""
    rng = np.random.default_rng(seed)
    world, radius, drift = float(rng.uniform(1, 30)), float(rng.uniform(0.1, 1)), float(rng.uniform(0, 1))
    apart = radius + 2 * drift
    scale = (
        world * rng.choice([1, 0.3, 0], size=3, p=[0.7, 0.2, 0.1]) if end == OPEN else world / (1 if end == BOX else 2)
    )
    one, other = (np.clip(rng.normal(size=(40, 3)), -1, 1) * scale for _ in range(2))
    ways = rng.normal(size=(40, 3))
    ways *= rng.uniform(0, 1, (40, 1)) * apart / np.linalg.norm(ways, axis=1, keepdims=True)
    met = one + ways  # of the other part, near to those of this one
    if end == BOX:
        met = (met + world) % (2 * world) - world
    if end == SPHERE:  # both near the surface, at opposite sides
        edge = one / np.linalg.norm(one, axis=1, keepdims=True) * world
        deep = rng.uniform(max(0.0, 1 - apart / world), 1, (2, 40, 1))
        one, met = np.concatenate([one, edge * deep[0]]), np.concatenate([met, -edge * deep[1]])
    other = np.concatenate([other, met])
    reach, cls = make_reach(precision, end), RECORDS[precision]
    parts = [cls.array(position=p.astype({"f32": np.float32, "f64": np.float64}[precision])) for p in (one, other)]
    boxes = [np.stack([p.min(axis=0), p.max(axis=0)]) for p in (one, other)]
    grid = grid_over(boxes, end, radius, drift, world, 100_000)
    (cells, _), (mine, mirror) = (reach.cells(p, **grid.values) for p in parts)
    near = grid.marked(np, cells)
    assert near[grid.total] == 0
    found = (near[mine] | near[mirror])[40:] != 0
    assert found.all()


def test_agents_that_are_moved_by_hand_are_listed_anew() -> None:
    def moved(place: Any) -> list[Any]:
        f = flock(place, **FLOCKS["open"]).run(5)
        there = np.asarray(f.boids.position)
        f.boids.position = there[::-1].copy()
        return left(f.run(40))

    assert moved("cpu*3") == moved("cpu")


def test_agents_outside_of_the_world_are_brought_from_everywhere() -> None:
    def put_outside(place: Any, boundary: str) -> list[Any]:
        f = flock(place, boundary=boundary, radius=4.0).run(3)
        f.boids[7].position = (30.0, 95.0, -20.0)
        return left(f.run(40))

    for boundary in ("wrap", "periodic"):
        assert put_outside("cpu*3", boundary) == put_outside("cpu", boundary), boundary


def test_a_longer_step_has_longer_lists() -> None:
    def flown(place: Any) -> Flock:
        return flock(place, **FLOCKS["open"]).run(10, 1 / 60).run(10, 1 / 20)

    f = flown("cpu*2")
    assert left(f) == left(flown("cpu"))
    shorter = flock("cpu*2", **FLOCKS["open"]).run(20, 1 / 60)
    assert min(steering(f).counts.values()) > max(steering(shorter).counts.values())


def test_lists_keep_their_lengths_while_these_fit() -> None:
    f = flock("cpu*2", **FLOCKS["open"]).run(1)
    calls = steering(f)._calls
    f.run(100)
    assert steering(f)._calls is calls


@pytest.mark.parametrize("layout", ["aos", "soaoas", "aosoa(8)"])
@pytest.mark.slow
def test_layouts(layout: str) -> None:
    f = flock("cpu*3", layout=layout, **FLOCKS["open"]).run(STEPS, DT)
    assert left(f) == of_one_device("open")


def test_a_sight_is_brought_too() -> None:
    sight = lw.Sight(heading="forward", cosine=-0.5)
    search = lw.StaticGrid(radius=4.0, sight=sight, world=lw.Open())

    def flown(place: Any) -> list[Any]:
        return left(flock(place, boundary="open", radius=4.0, search=search).run(40))

    assert flown("cpu*3") == flown("cpu")


# ------------------------------------------------------------ on GPUs


def compiled(reference: Any) -> None:
    plan = complete_plan(None, Machine("cuda", 132), Work(ELEMENTWISE, 1 << 22))
    for kernel in build_program(reference, plan, "cuda").kernels:
        cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90", switches_of(plan))
        assert "warning" not in cubin.log.lower(), cubin.log
        assert (cubin.resources.spill_stores, cubin.resources.stack_bytes) == (0, 0), cubin.log


@pytest.mark.parametrize("precision", RECORDS)
def test_kernels_compile_for_gpus(precision: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    record = RECORDS[precision].__record__
    layout = default_layout(record, "cuda")
    for end in (SPHERE, OPEN, BOX, BOUNDED):
        reach = make_reach(precision, end)
        kinds: dict[str, Any] = dict(reach.cells.signature.parameters)
        given = ElementwiseArguments({"b": (record, layout)}, {}, {n: k for n, k in kinds.items() if n != "b"})
        compiled(build_elementwise(reach.cells.lowered, given, t.I32))
        given = ElementwiseArguments({"b": (record, layout)}, {}, {})
        compiled(build_reduction(reach.ends.lowered, given, t.I32, "min", strided=True))
    compiled(build_gather("own_rows", record.leaves, layout, record.leaves, layout, t.I32))


@pytest.mark.slow
def test_kernels_of_a_gpu_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreted_gpu.install(monkeypatch)

    def flown(place: Any) -> list[Any]:
        state = flock(place, agents=90, boundary="open", radius=4.0, world=20.0).run(34).state
        return [state.position.tobytes(), state.forward.tobytes(), state.speed.tobytes()]

    assert flown("interpreted*3") == flown("interpreted")
