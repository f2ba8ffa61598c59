"""Bytes that explanations say of a mesh are those that its parts copy: calls, loops and products."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.explanation.meshes import mesh_of_call
from lanewise.runtime.exchange import Moves
from lanewise.sims.gravity import Simulation as Gravity
from lanewise.sims.gravity import make_bodies, make_initial_conditions
from lanewise.sims.lbm import Simulation as Flow
from lanewise.sims.lbm import Wall
from tests.mesh import interpreted_gpu
from tests.mesh.test_calls import bodies, near, pull, push
from tests.mesh.test_lattices import case

pytestmark = pytest.mark.filterwarnings("ignore::lanewise.FarFieldWarning")
PARTS = (1, 2, 3, 4)
STEPS = 64


class Copied:
    """Bytes of all copies between parts."""

    def __init__(self) -> None:
        self.nbytes = 0

    def of(self, run: Callable[[], object]) -> int:
        before = self.nbytes
        run()
        return self.nbytes - before


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> Copied:
    found, run = Copied(), Moves.__call__

    def counted(self: Moves) -> None:
        found.nbytes += self.nbytes
        run(self)

    monkeypatch.setattr(Moves, "__call__", counted)
    return found


def said_of(compiled: lw.Compiled) -> float:
    assert compiled.divided is not None
    return mesh_of_call(compiled.divided).nbytes


# ------------------------------------------------------------ calls


KERNELS: dict[str, Callable[[], Any]] = {
    "all pairs": lambda: pull,
    "a grid": lambda: near.using(lw.StaticGrid(radius=0.6)),
    "nearest": lambda: near.using(lw.Nearest(k=3)),
    "a tree": lambda: pull.using(lw.Tree(order=1)),
    "a dual tree": lambda: pull.using(lw.Tree(order=1, method="dual")),
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kind", KERNELS)
def test_calls(kind: str, parts: int, copied: Copied) -> None:
    kernel = KERNELS[kind]()
    for n, others in ((301, None), (9, None), (301, 40)):
        if others and "dual" in kind:
            continue
        b = bodies(n, lw.AoS(), f"cpu*{parts}")
        sources = b if others is None else bodies(others, lw.SoA(), ["cpu", f"cpu*{parts}", "cpu*2"][parts % 3])
        values = {"softening2": 0.01} if "tree" in kind or kind == "all pairs" else {}
        call = kernel.bind(b, sources, **values)
        call()  # what is asked of a first call is asked now
        assert said_of(call.compiled) == copied.of(call) > 0


@given(st.integers(0, 90), st.integers(1, 6), st.data())
def test_slices_of_arrays_have_uneven_parts(n: int, parts: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, n))
    some = bodies(n, lw.SoA(), f"cpu*{parts}")[first : data.draw(st.integers(first, n))]
    compiled = pull.compile(some, some, softening2=0.1)
    assert compiled.divided is not None
    assert said_of(compiled) == len(some) * 16 == sum(e.nbytes for e in compiled.divided.exchanges)


def test_elements_get_nothing() -> None:
    b = bodies(20, lw.SoA(), "cpu*3")
    compiled = push.compile(b, np.ones((20, 3), "f4"), dt=0.1)
    said = compiled.explain()
    assert said_of(compiled) == said.analysis.facts["mesh"]["bytes_a_step"] == 0
    assert "nothing goes between them" in str(said)


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_parts_that_share_pairs(parts: int, copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreted_gpu.install(monkeypatch)
    b = bodies(70, lw.SoA(), lw.Mesh(interpreted_gpu.NAME, parts=parts))
    call = pull.bind(b, b, softening2=0.1, plan=lw.Plan(reciprocity="grouped", block=32, targets=1))
    said = call.compiled.divided
    assert said is not None
    assert sum(s.total(said.devices) for s in said.sent(said.lengths)) == copied.of(call)
    assert len(said.sent(said.lengths)) == 1 + (parts > 1)


# ------------------------------------------------------------ loops and products


@pytest.mark.parametrize("parts", PARTS)
def test_loops_over_arrays_of_several_lengths(parts: int, copied: Copied) -> None:
    b, few = bodies(203, lw.SoA(), f"cpu*{parts}"), bodies(31, lw.AoS(), f"cpu*{parts}")
    force, other = pull.bind(b, b, softening2=0.1), pull.bind(few, b, softening2=0.1)
    move = push.bind(b, force.results[0], dt=1e-3)
    loop = lw.steps([[force, move], [force, other, move], [force, move]], cycle=3)
    loop.run(3)
    said = loop.explain()
    assert round(said.mesh.nbytes * 12) == copied.of(lambda: loop.run(12)) > 0
    rows = json.loads(json.dumps(said.json()))["mesh"]["rows"]
    assert rows == [203 * (p + 1) // parts - 203 * p // parts for p in range(parts)]


GRAVITY: dict[str, dict[str, Any]] = {
    "direct": {},
    "yoshida": {"integrator": "yoshida4"},
    "walk": {"search": lw.Tree(order=1)},
    "dual": {"search": lw.Tree(order=1, method="dual")},
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kind", GRAVITY)
@pytest.mark.parametrize("precision", ["f32", pytest.param("mixed", marks=pytest.mark.slow)])
def test_gravity(kind: str, parts: int, precision: str, copied: Copied) -> None:
    initial = make_initial_conditions("plummer", 131, 3)
    s = Gravity(make_bodies(initial, precision=precision, device=f"cpu*{parts}"), softening=0.1, **GRAVITY[kind])
    s.advance(1, 1e-3)
    said = s.explain().mesh
    assert said is not None
    assert said.nbytes * STEPS == copied.of(lambda: s.advance(STEPS, 1e-3)) > 0


FLOWS: dict[str, dict[str, Any]] = {
    "in-place": {"streaming": "in-place"},
    "pull": {"streaming": "pull", "layout": "aos"},
    "push": {"streaming": "push", "layout": "aosoa(8)"},
    "walls": {"edges": {"z": "wall"}, "kinds": {1: Wall("wall")}},
    "outflow": {"edges": {"z": ("slip", "outflow")}},
    "in float64": {"precision": "f64", "lattice": "D3Q27"},
}


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kind", FLOWS)
def test_flows(kind: str, parts: int, copied: Copied) -> None:
    s = Flow(shape=(43, 4, 5), omega=1.2, device=f"cpu*{parts}", **FLOWS[kind])
    s.run(2)
    said = s.explain().mesh
    assert said is not None
    s.engine.run(2, lambda _: None)  # whose first step finds ghosts that looks have brought
    assert said.nbytes * 4 == copied.of(lambda: s.engine.run(4, lambda _: None))
    assert said.nbytes > 0 or parts == 1
    assert sum(said.step.rows) == 43 * 20
    assert said.strong is not None
    assert set(said.strong.found) == {2, 4}  # eight parts would be too thin
    assert "least 8 layers" in said.strong.without[8]


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 30))])
def test_random_sites(seed: int, copied: Copied) -> None:
    c = case(seed, "cpu")
    for parts in (2, 5):
        sites = c.sites(lw.Mesh("cpu", parts=parts))
        stepper = c.pair.flow.stepper(sites, **c.values)
        stepper.run(2)
        said = stepper.explain().mesh
        assert said is not None
        assert said.nbytes * 4 == copied.of(lambda stepper=stepper: stepper.run(4)) > 0
