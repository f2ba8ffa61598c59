"""Simulations on several GPUs: the bits of as many parts on one, whatever device is the current one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids import Flock
from lanewise.sims.boids.mesh_steering import READ
from lanewise.sims.common.searches import bytes_in_rooms
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.diagnostics import to_row
from tests.fuzz.commands import Ended, command
from tests.mesh.test_gravity import data_sets

pytestmark = pytest.mark.cuda


@pytest.fixture
def cp() -> Any:
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    before = cupy.cuda.runtime.getDevice()
    yield cupy
    assert cupy.cuda.runtime.getDevice() == before


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


PLACES = ("cuda:0,1", "cuda:1,0", "cuda:*")


def on_host(values: Any) -> np.ndarray[Any, Any]:
    """NumPy's copy of numbers, of an array of one GPU (CuPy refuses to be converted) or of a mesh."""
    return np.array(values.get() if hasattr(values, "get") else values)


def moved(place: str, integrator: str, precision: str, layout: lw.Layout | None) -> list[bytes]:
    particles = make_initial_conditions("plummer", 3001, 3)
    bodies = make_bodies(particles, precision=precision, layout=layout, device=place)
    s = Simulation(bodies, softening=0.05, integrator=integrator)
    left: list[Any] = []
    for steps in (1, 7, 40):
        s.advance(steps, 1e-3)
        left += [on_host(s.acceleration), np.array(to_row(s.diagnostics())), *s.bodies.numpy().values()]
        s.bodies.velocity = s.bodies.velocity * 0.999
    return [on_host(values).tobytes() for values in left]


@pytest.mark.parametrize("integrator", ["leapfrog", "euler", "yoshida4"])
@pytest.mark.parametrize(
    ("precision", "layout"), [("f32", None), ("f32", lw.AoS()), ("mixed", None), ("f64", lw.AoSoA(32))]
)
def test_gravity_has_the_bits_of_one_gpu(cp: Any, integrator: str, precision: str, layout: lw.Layout | None) -> None:
    wanted = moved("cuda:0*2", integrator, precision, layout)
    assert moved("cuda:0*3", integrator, precision, layout) == wanted
    for number, place in ((0, PLACES[0]), (1, PLACES[0]), (0, PLACES[1]), (1, PLACES[2])):
        with cp.cuda.Device(number):
            assert moved(place, integrator, precision, layout) == wanted


TREES = [
    lw.Tree(order=2),
    lw.Tree(accuracy=1e-3),
    lw.Tree(order=3, leaf=64, method="dual"),
    lw.Tree(order=2, leaf=16, method="dual"),
]


def moved_by_a_tree(place: str, search: lw.Tree, precision: str, layout: lw.Layout | None) -> list[bytes]:
    particles = make_initial_conditions("plummer", 30_001, 3)
    bodies = make_bodies(particles, precision=precision, layout=layout, device=place)
    s = Simulation(bodies, softening=0.05, search=search)
    left: list[Any] = []
    for steps in (1, 30, 14):
        s.advance(steps, 1e-3)
        left += [
            on_host(s.acceleration),
            np.array(to_row(s.diagnostics())),
            *s.bodies.numpy().values(),
            s.tree_order,
        ]
        s.bodies.velocity = s.bodies.velocity * 0.999
    return [on_host(values).tobytes() for values in left]


@pytest.mark.parametrize("search", TREES, ids=lw.Tree.describe)
@pytest.mark.parametrize(("precision", "layout"), [("f32", None), ("mixed", lw.AoS()), ("f64", lw.AoSoA(32))])
def test_trees_have_the_bits_of_one_gpu(cp: Any, search: lw.Tree, precision: str, layout: lw.Layout | None) -> None:
    wanted = moved_by_a_tree("cuda:0", search, precision, layout)
    for place in ("cuda:0*2", "cuda:0*3"):
        assert moved_by_a_tree(place, search, precision, layout) == wanted
    for number, place in ((0, PLACES[0]), (1, PLACES[0]), (0, PLACES[1]), (1, PLACES[2])):
        with cp.cuda.Device(number):
            assert moved_by_a_tree(place, search, precision, layout) == wanted


class Charge(lw.Record):
    position: lw.dvec3
    charge: lw.f64


@lw.pairwise(search=lw.Tree(theta=0.5))
def coulomb(target: Charge, source: Charge) -> tuple[lw.f64, lw.dvec3]:
    if lw.same(target, source):
        return 0.0, lw.dvec3(0.0)
    d = source.position - target.position
    inverse = lw.rsqrt(lw.dot(d, d) + 1e-2)
    return source.charge * inverse, source.charge * inverse**3 * d


@pytest.mark.parametrize("layout", [lw.AoS(), lw.SoA(), lw.AoSoA(32)], ids=str)
def test_calls_over_a_tree_have_the_bits_of_one_gpu(cp: Any, layout: lw.Layout) -> None:
    """Of other targets, too; plain calls, bound ones and loops."""

    def left(place: str) -> list[Any]:
        made: list[Any] = []
        for count in (20_001, 1_500):
            rng = np.random.default_rng(count)
            fields: dict[str, Any] = {"position": rng.normal(size=(count, 3)), "charge": rng.normal(size=count)}
            made.append(Charge.array(**fields, layout=layout, device=place))
        sources, targets = made
        bound = coulomb.bind(targets, sources)
        found = [*coulomb(sources, sources), *coulomb(targets, sources), *bound()]
        lw.steps([bound]).run(40)
        return [on_host(x) for x in (*found, *bound.results)]

    wanted = left("cuda:0")
    for place in ("cuda:0*2", "cuda:0*5", *PLACES):
        for one, other in zip(left(place), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def flown(place: str, **chosen: Any) -> list[bytes]:
    f = Flock(agents=5000, device=place, world=60.0, seed=2, **chosen)
    for steps in (1, 39, 60):
        f.run(steps)
    state = f.state
    return [getattr(state, name).tobytes() for name in ("position", "forward", "speed")]


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"search": "dynamic-grid"},
        {"search": "all-pairs"},
        {"k": 7},
        {"boundary": "periodic"},
        {"semantics": "thesis", "search": "static-grid"},
        {"search": "static-grid", "start": "world", "radius": 4.0},
        {"search": "static-grid", "start": "cube", "radius": 4.0, "boundary": "periodic"},
        {"search": "static-grid", "start": "world", "radius": 4.0, "boundary": "open", "precision": "f64"},
    ],
    ids=str,
)
def test_flocks_have_the_bits_of_one_gpu(cp: Any, chosen: dict[str, Any]) -> None:
    wanted = flown("cuda:0", **chosen)
    assert flown("cuda:0*2", **chosen) == wanted
    for number, place in ((0, PLACES[0]), (1, PLACES[0]), (0, PLACES[1])):
        with cp.cuda.Device(number):
            assert flown(place, **chosen) == wanted


@pytest.mark.parametrize("boundary", ["wrap", "periodic"])
def test_flocks_say_what_their_parts_bring(cp: Any, boundary: str) -> None:
    """Cells of lists are counted on the host there, and on the GPUs here: last places of positions may differ."""
    given: dict[str, Any] = {"boundary": boundary, "radius": 2.0, "start": "world", "search": "static-grid"}
    f = Flock(agents=40_000, device="cuda:0,1", world=100.0, seed=2, **given)
    said = f.explain().mesh
    assert said is not None
    near, order = said.step.sent
    f.run(4)
    steering = f._engine.semantics._near  # type: ignore[attr-defined]
    each = bytes_in_rooms(f.boids, READ)
    assert near.total(said.devices) == pytest.approx(each * sum(steering.counts.values()), rel=0.01)
    assert near.total(said.devices) < each * 40_000 / 2
    assert order.every == 32
    assert {(link.source, link.target) for link in said.links} == {("cuda", "cuda:1"), ("cuda:1", "cuda")}
    assert all(link.known == "measured now" and link.rate and link.rate > 1e9 for link in said.links)
    assert set(said.efficiency) == {2, 4, 8}


def test_a_run_by_a_tree_goes_from_one_gpu_to_two_and_back(cp: Any) -> None:
    begin = ("--bodies", 30_000, "--softening", 0.05, "--diagnostics-every", 10, "--method", "tree")
    run = ("gravity", "run")
    assert command(*run, *begin, "--steps", 60, "--out", "whole.h5", "--device", "cuda:0").code == 0
    assert command(*run, *begin, "--steps", 20, "--out", "on.h5", "--device", "cuda:0,1").code == 0
    for steps, place in ((15, "cuda:0"), (20, "cuda:1,0"), (5, "cuda:0*3")):
        assert command(*run, "--resume", "on.h5", "--steps", steps, "--device", place).code == 0
    one, other = data_sets("on.h5"), data_sets("whole.h5")
    differ = {n for n in one.keys() | other.keys() if one.get(n) != other.get(n)}
    assert {n for n in differ if not n.endswith("@settings")} == set()


@pytest.mark.parametrize("product", ["gravity", "boids"])
def test_a_run_on_two_gpus_goes_on_on_one(cp: Any, product: str) -> None:
    begin = {
        "gravity": ("--bodies", 3000, "--softening", 0.05, "--diagnostics-every", 10),
        "boids": ("--agents", 3000, "--every", 10),
    }[product]
    run = (product, "run")
    assert command(*run, *begin, "--steps", 60, "--out", "whole.h5", "--device", "cuda:0*2").code == 0
    assert command(*run, *begin, "--steps", 20, "--out", "begun.h5", "--device", "cuda:0,1") == Ended(0, "")
    for place in ("cuda:0,1", "cuda:1,0", "cuda:0*3"):
        on = ("--resume", "begun.h5", "--steps", 40, "--out", "on.h5", "--overwrite", "--device", place)
        assert command(*run, *on).code == 0
        one, other = data_sets("on.h5"), data_sets("whole.h5")
        assert one.keys() == other.keys()
        assert {n for n in one if one[n] != other[n] and not n.endswith("@settings")} == set()


def test_profiles_do_not_change_bits(cp: Any) -> None:
    run = ("gravity", "run", "--bodies", 3000, "--steps", 40, "--device", "cuda:0,1")
    assert command(*run, "--out", "plain.h5").code == 0
    assert command(*run, "--out", "profiled.h5", "--profile", "trace.json").code == 0
    assert data_sets("plain.h5") == data_sets("profiled.h5")


def test_what_is_said_of_devices(cp: Any) -> None:
    ended = command("gravity", "run", "--bodies", 256, "--steps", 2, "--device", "cuda:0,0")
    assert ended == Ended(0, "note: cuda has 2 parts, one after the other\n")
    ended = command("gravity", "run", "--device", "cuda:0-99")
    assert ended.code == 2
    assert "does not exist: this machine has" in ended.errors
    assert command("info", "--devices").code == 0
