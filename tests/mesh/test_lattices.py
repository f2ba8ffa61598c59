"""Sites on a mesh have the bits of sites on one device, whatever the number of parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw
from lanewise import Mesh, SplitArray
from lanewise.patterns.sitewise.blocks import Cut, blocks_of, cut_box
from lanewise.patterns.sitewise.flags import mark_shared_sectors
from lanewise.patterns.sitewise.fractions import WallFractions
from lanewise.patterns.sitewise.site_state import held_bytes, hold_bytes, parts_of
from lanewise.patterns.sitewise.streaming import FORMS, TWO_COPIES
from lanewise.sims.lbm.operators import find_operator
from lanewise.support.errors import ArgumentError
from tests.lbm.boxes import D3Q15, LID, WALL
from tests.lbm.kernels import INLET, Pair, colliding, exact, moments_of
from tests.sites.fields import ATTRACTION, density, two_phases

PARTS = (1, 2, 3, 5)
ON_GPU = pytest.param("cuda:0", marks=pytest.mark.cuda)
LAYOUTS = {"cpu": (None, lw.AoS(), lw.AoSoA(8), lw.SoA()), "cuda:0": (None, lw.SoA(), lw.AoSoA(32), lw.AoS())}
QUICK = 3
"""Seeds of the quick cases."""


def host(value: Any) -> NDArray[Any]:
    if isinstance(value, SplitArray):
        return value.numpy()
    return value.get() if hasattr(value, "get") else np.asarray(value)


def mesh_of(device: str, parts: int) -> Mesh:
    return Mesh(device, parts=parts)


@dataclass(frozen=True)
class Case:
    """A flow in a box, and how it is stored."""

    pair: Pair
    look: Any
    shape: tuple[int, ...]
    mask: NDArray[Any]
    edges: Mapping[str, Any]
    streaming: str
    layout: lw.Layout | None
    storage: str
    values: Mapping[str, Any]
    curved: bool
    plan: lw.Plan | None = None

    def start(self) -> NDArray[Any]:
        rng, size = np.random.default_rng(5), self.pair.flow.lattice.size
        if not self.pair.deviations:
            return rng.integers(0, 40, (size, *self.shape)).astype(np.float32)
        return 0.01 * rng.standard_normal((size, *self.shape))

    def sites(self, device: Any) -> Any:
        flow = self.pair.flow
        made = {
            "mask": self.mask, "edges": self.edges, "streaming": self.streaming, "layout": self.layout,
            "storage": self.storage, "device": device,
        }  # fmt: skip
        if self.curved:
            made["fractions"] = fractions(flow.sites(self.shape, **{**made, "device": "cpu", "storage": "f32"}))
        sites = flow.sites(self.shape, **made)
        flow.set_populations(sites, self.start())
        return sites


@cache
def observer_of(lattice: lw.Lattice, kind: Callable[[lw.Lattice], Pair]) -> Any:
    return kind(lattice).flow.observer(moments_of(lattice))


def fractions(sites: Any) -> WallFractions:
    """Somewhere on every cut link of sites that are no walls, and half-way on some."""
    rng, flags, kinds = np.random.default_rng(3), host(sites.flags), sites.kinds.ravel()
    size = sites.lattice.size
    cuts = np.stack([flags >> max(q - 1, 0) & (q > 0) for q in range(size)], axis=1).astype(bool)
    places = np.flatnonzero(cuts.any(axis=1) & ~np.isin(kinds, (WALL, LID)))
    found = np.where(cuts[places], rng.random((len(places), size)), np.nan)
    return WallFractions(places, np.where(found > 0.9, np.nan, found))


def case(seed: int, device: str) -> Case:
    """Every choice by itself, and those that walls that move allow."""
    rng = np.random.default_rng(seed)

    def one(of: Any) -> Any:
        return of[int(rng.integers(len(of)))]

    lattices = (lw.D2Q9, lw.D3Q19, D3Q15, lw.D3Q27)
    lattice = lattices[seed % 4]
    collides = bool(rng.random() < 0.7)
    kind = colliding if collides else exact
    pair = kind(lattice)
    axes = "xyz"[: lattice.dimension]
    slow = axes[-1]
    shape = (int(rng.integers(40, 50)), *(int(n) for n in rng.integers(2, 8, lattice.dimension - 1)))
    if rng.random() < 0.3:
        shape = (*shape[:-1], 8)
    storage = "f16" if device != "cpu" and rng.random() < 0.4 else "f32"
    masked = seed % 3 > 0
    kinds = (0, 0, 0, 0, WALL, *pair.kinds)
    mask = rng.choice(kinds, shape) if masked else np.zeros(shape, int)
    faces = ["periodic", "slip", "wall"]
    edges: dict[str, Any] = {a: one(faces) for a in axes}
    edges[slow] = one(["periodic", "periodic", "slip", "wall", ("wall", "lid"), ("slip", "wall"), ("lid", "slip")])
    if collides and rng.random() < 0.4:
        edges[one(axes)] = one(["outflow", ("wall", "outflow"), ("outflow", "slip")])
    curved = collides and masked and bool(rng.random() < 0.5)
    moves = (0.05, *[0.0] * (lattice.dimension - 1)) if collides else (36.0, *[0.0] * (lattice.dimension - 1))
    values: dict[str, Any] = {**pair.values, "lid_velocity": moves}
    if edges["x"] == "slip" and "lid" in edges[slow]:
        edges["x"] = "wall"
    if collides and rng.random() < 0.5:
        values["omega"] = rng.uniform(0.8, 1.5, shape).astype(np.float32)
    return Case(
        pair, observer_of(lattice, kind), shape, mask, edges, list(FORMS)[seed % 5 % 3], one(LAYOUTS[device]), storage,
        values, curved, lw.Plan(branches="together") if rng.random() < 0.4 else None,
    )  # fmt: skip


def follow(c: Case, device: Any) -> list[NDArray[Any]]:
    """What is seen of some steps."""
    flow, sites, seen = c.pair.flow, c.sites(device), list[Any]()
    walls = {"lid_velocity": c.values["lid_velocity"]}
    for steps in (1, 1, 2, 3):
        flow.run(sites, steps, plan=c.plan, **c.values)
        seen += [flow.populations(sites, **walls), *c.look(sites, **walls)]
        if c.pair.deviations:
            seen.append(flow.force(sites, ["wall", "lid"], weights=True, **walls))
    assert sites.step == 7
    return [host(x) for x in (*seen, held_bytes(sites))]


def check(seed: int, device: str, parts: tuple[int, ...] = PARTS) -> None:
    c = case(seed, device)
    wanted = follow(c, device)
    assert np.ptp(wanted[0]) > 0
    for n in parts:
        for one, other in zip(follow(c, mesh_of(device, n)), wanted, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other, err_msg=f"{n} parts of {c}")


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("seed", range(QUICK))
def test_flows_have_the_bits_of_one_device(seed: int) -> None:
    check(seed, "cpu", (2, 5) if seed % 2 else (1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(QUICK, 120))
def test_many_flows_have_the_bits_of_one_device(seed: int) -> None:
    check(seed, "cpu")


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(200, 248))
def test_flows_on_parts_of_one_gpu_have_the_bits_of_one(seed: int) -> None:
    check(seed, "cuda:0", (2, 3))


def test_257_layers_on_four_parts() -> None:
    pair = colliding(lw.D2Q9)
    c = replace(case(0, "cpu"), pair=pair, shape=(257, 5), mask=np.zeros((257, 5), int), edges={}, values=pair.values)
    c = replace(c, look=observer_of(lw.D2Q9, colliding), curved=False)
    for form in FORMS:
        one, four = (follow(replace(c, streaming=form), d) for d in ("cpu", mesh_of("cpu", 4)))
        for a, b in zip(one, four, strict=True):
            np.testing.assert_array_equal(a, b)
    assert [len(p) for p in host_parts(c)] == [64 * 5, 64 * 5, 64 * 5, 65 * 5]


def host_parts(c: Case) -> list[Any]:
    seen, _ = c.look(c.sites(mesh_of("cpu", 4)), lid_velocity=(0.0, 0.0))
    return list(seen.parts)


@pytest.mark.quick("in-place")
@pytest.mark.parametrize("form", FORMS)
def test_the_interpreter_has_parts_too(form: str) -> None:
    pair, shape = exact(lw.D2Q9), (17, 2)
    mask = np.random.default_rng(0).choice((0, 0, 0, WALL, *pair.kinds), shape)
    c = replace(case(0, "cpu"), pair=pair, shape=shape, mask=mask, edges={"x": "slip"}, streaming=form)
    c = replace(c, look=observer_of(lw.D2Q9, exact), values=pair.values, curved=False, layout=None)
    one, two = (follow(c, d) for d in ("cpu", mesh_of("python", 2)))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------- fields, stencils, couplings


@lw.stencil(lw.D2Q5)
def heat(t: lw.Field[lw.f32], rate: lw.f32, source: lw.Field[lw.f32]) -> lw.f32:
    around = t[1] + t[2] + t[3] + t[4] - 4 * t[0]
    return t[0] + rate * around + 0.01 * (source[1] - source[3])


heat.wall(1, "hot", t="warmth")
heat.wall(2, "cold")


@heat.kind(3, "heater")
def heater(t: lw.Field[lw.f32], rate: lw.f32, source: lw.Field[lw.f32]) -> lw.f32:
    return 0.5 * t[0] + 0.25 * (t[2] + t[4])


@heat.observer
def slope(t: lw.Field[lw.f32]) -> lw.vec2:
    return lw.vec2(t[1] - t[3], t[2] - t[4])


@pytest.mark.parametrize("edges", [{}, {"y": "slip"}], ids=str)
def test_a_stepper_keeps_the_values_of_its_sites(edges: Mapping[str, Any]) -> None:
    """What is written to them later no part sees, as the documents say, and not some of them."""
    rng = np.random.default_rng(1)
    t, before = rng.random((41, 5), "f4"), rng.random((41, 5), "f4")
    left: list[Any] = []
    for parts in PARTS:
        source, rate = before.copy(), np.full(before.shape, 0.1, "f4")
        sites = heat.sites(t.shape, t=t, edges=edges, device=mesh_of("cpu", parts))
        stepper = heat.stepper(sites, rate=rate, source=source)
        stepper.run(1)
        source[...], rate[...] = 7, 0.2
        stepper.run(2)
        heat.run(sites, 1, rate=rate, source=source)
        left.append(host(heat.field(sites, "t")))
    for found in left[1:]:
        np.testing.assert_array_equal(found, left[0])


D1Q3 = (
    lw.Lattice("D1Q3", ((0,), (1,), (-1,)), (2 / 3, 1 / 6, 1 / 6), isotropy=2) if not hasattr(lw, "D1Q3") else lw.D1Q3
)


@lw.stencil(D1Q3)
def wave(u: lw.Field[lw.f64], v: lw.Field[lw.f64], speed: lw.f64) -> tuple[lw.f64, lw.f64]:
    new = v[0] + speed * (u[1] + u[2] - 2 * u[0])
    return u[0] + new, new


@lw.sitewise(D1Q3)
def spread(f: lw.dpopulations, omega: lw.f64):
    total = f[0] + f[1] + f[2]
    for q in D1Q3:
        f[q] += omega * (q.weight * total - f[q])


@lw.sitewise(lw.D2Q5)
def dye(g: lw.populations, rho: lw.f32):
    for q in lw.D2Q5:
        g[q] = g[q] * (1 - 0.1 * rho) + 0.01 * q.weight


@lw.stencil(lw.D2Q9)
def wet(t: lw.Field[lw.f32], rho: lw.Field[lw.f32]) -> lw.f32:
    return 0.5 * t[0] + 0.25 * (rho[1] + rho[4])


def heated(device: Any, edges: Mapping[str, Any], masked: bool, shape: tuple[int, int] = (43, 9)) -> list[Any]:
    rng = np.random.default_rng(4)
    mask = rng.choice((0, 0, 0, 1, 2, 3), shape) if masked else None
    t = rng.random(shape).astype(np.float32)
    sites = heat.sites(shape, mask=mask, edges=edges, t=t, device=device)
    values = {"rate": 0.2, "source": rng.random(shape).astype(np.float32), "warmth": 1.0}
    seen: list[Any] = []
    for steps in (1, 4):
        heat.run(sites, steps, **values)
        seen += [heat.field(sites, "t"), slope(sites, warmth=1.0)]
    heat.set_fields(sites, t=t)
    stepper = heat.stepper(sites, **values)
    stepper.run(3)
    assert sites.step == 8
    return [host(x) for x in (*seen, heat.field(sites, "t"))]


EDGES: tuple[Mapping[str, Any], ...] = (
    {},
    {"y": ("hot", "cold")},
    {"y": "slip", "x": "cold"},
    {"y": ("outflow", "hot")},
)


@pytest.mark.grid(every=100)
@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("edges", EDGES, ids=str)
def test_stencils_have_the_bits_of_one_device(edges: Mapping[str, Any], masked: bool, device: str) -> None:
    wanted = heated(device, edges, masked)
    for parts in PARTS:
        for one, other in zip(heated(mesh_of(device, parts), edges, masked), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("edge", ["periodic", "slip"])
def test_lines_have_the_bits_of_one_device(edge: str, device: str) -> None:
    def run(where: Any) -> list[Any]:
        rng = np.random.default_rng(0)
        line = wave.sites((57,), edges={"x": edge}, u=rng.random(57), device=where)
        wave.run(line, 9, speed=0.3)
        seen = [wave.field(line, "u"), wave.field(line, "v")]
        for form in FORMS:
            rod = spread.sites((57,), edges={"x": edge}, streaming=form, device=where)
            spread.set_populations(rod, rng.random((3, 57)))
            spread.run(rod, 5, omega=1.2)
            seen.append(spread.populations(rod))
        return [host(x) for x in seen]

    wanted = run(device)
    for parts in PARTS:
        for one, other in zip(run(mesh_of(device, parts)), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def coupled(
    device: Any, forms: tuple[str, str], edges: Mapping[str, Any], shape: tuple[int, int] = (41, 8)
) -> list[Any]:
    """A flow that reads its own field at neighbours, and two others that read what is observed of it."""
    start = np.abs(np.random.default_rng(2).standard_normal((9, *shape))).astype(np.float32)
    fluid = two_phases.sites(shape, edges=edges, streaming=forms[0], device=device)
    two_phases.set_populations(fluid, start)
    two_phases.run(fluid, 1, attraction=ATTRACTION, wetting=0.5)
    spot = dye.sites(shape, streaming=forms[1], edges=_as_slip(edges), device=device)
    cloth = wet.sites(shape, t=1.0, edges=_as_slip(edges), device=device)
    seen = density.of(fluid)
    together = lw.couple(
        two_phases.stepper(fluid, attraction=ATTRACTION, wetting=0.5),
        dye.stepper(spot, rho=seen),
        wet.stepper(cloth, rho=seen),
    )
    together.run(1)
    together.run(4)
    assert (fluid.step, spot.step, cloth.step) == (6, 5, 5)
    return [
        host(x) for x in (two_phases.populations(fluid), dye.populations(spot), wet.field(cloth, "t"), density(fluid))
    ]


def _as_slip(edges: Mapping[str, Any]) -> dict[str, str]:
    return dict.fromkeys(edges, "slip")


@pytest.mark.grid(every=100)
@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("edges", [{}, {"y": ("dry", "wet")}], ids=str)
@pytest.mark.parametrize("forms", [("pull", "in-place"), ("in-place", "pull"), ("push", "push"), ("in-place", "push")])
def test_coupled_lattices_share_a_cut(forms: tuple[str, str], edges: Mapping[str, Any], device: str) -> None:
    wanted = coupled(device, forms, edges)
    for parts in (1, 2, 5):
        for one, other in zip(coupled(mesh_of(device, parts), forms, edges), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_loop_of_steppers_on_a_mesh_explains_itself() -> None:
    loop = lw.steps([FLOW.stepper(plain(), **OMEGA)])
    loop.run(2)
    assert "collide" in str(loop.explain())


def test_a_loop_takes_steppers_on_a_mesh() -> None:
    def run(device: Any) -> Any:
        c = replace(case(3, "cpu"), edges={}, curved=False)
        values = {n: v for n, v in c.values.items() if n != "omega"} | {"omega": 1.2}
        sites = c.sites(device)
        lw.steps([colliding(c.pair.flow.lattice).flow.stepper(sites, **values)]).run(7)
        return c.pair.flow.populations(sites, lid_velocity=values["lid_velocity"])

    if not case(3, "cpu").pair.deviations:
        pytest.skip("the case permutes")
    np.testing.assert_array_equal(run(mesh_of("cpu", 3)), run("cpu"))


# ---------------------------------------------------------------- states, slabs, refusals


@pytest.mark.slow_cases("1-pull")
@pytest.mark.grid(every=4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("steps", [1, 2])
def test_a_state_goes_on_on_other_parts(form: str, steps: int) -> None:
    c = replace(case(3, "cpu"), streaming=form, edges={"x": "slip"}, curved=False, layout=lw.AoSoA(8))
    flow, wanted = c.pair.flow, c.sites("cpu")
    flow.run(wanted, steps + 3, **c.values)
    for first, then in ((2, 3), (1, 5), (5, 1)):
        one, two = c.sites(mesh_of("cpu", first)), c.sites(mesh_of("cpu", then))
        flow.run(one, steps, **c.values)
        two.step, two.fresh = one.step, one.fresh
        hold_bytes(two, held_bytes(one))
        flow.run(two, 3, **c.values)
        np.testing.assert_array_equal(held_bytes(two), held_bytes(wanted))


@pytest.mark.quick("push")
@pytest.mark.parametrize("form", FORMS)
def test_forces_on_interpolated_walls_follow_at_once(form: str) -> None:
    """What a part has put into its ghosts belongs to a state, although no file has it."""
    c = replace(case(11, "cpu"), streaming=form)
    flow, walls = c.pair.flow, {"lid_velocity": c.values["lid_velocity"]}

    def force(device: Any, steps: int) -> Any:
        one, two = c.sites(device), c.sites(device)
        flow.run(one, steps, **c.values)
        two.step, two.fresh = one.step, one.fresh
        hold_bytes(two, held_bytes(one))
        return flow.force(two, ["wall", "lid"], weights=True, **walls)

    for steps in (1, 2):
        np.testing.assert_array_equal(force(mesh_of("cpu", 3), steps), force("cpu", steps))


@pytest.mark.parametrize("form", [*FORMS.values(), TWO_COPIES], ids=lambda f: f.name)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("box", [40, 43, 257])
def test_slabs_have_every_layer_once(box: int, periodic: bool, form: Any) -> None:
    for parts in PARTS:
        cut = cut_box(mesh_of("cpu", parts), (box, 3), (periodic, True))
        blocks = blocks_of(cut, form, (periodic, True), frozenset({0}))
        slabs = [block.spans[0] for block in blocks]
        assert all(block.is_slab and block.spans[1].numbers.tolist() == [0, 1, 2] for block in blocks)
        assert [n for s in slabs for n in s.owned] == list(range(box))
        assert max(len(s.owned) for s in slabs) - min(len(s.owned) for s in slabs) <= 1
        for n, s in enumerate(slabs):
            assert list(s.numbers[s.inner()]) == list(s.owned)
            assert (s.below > 0) == (parts > 1 and (periodic or n > 0))
            assert (s.above > 0) == (parts > 1 and (periodic or n < parts - 1))


@pytest.mark.parametrize(
    ("storage", "layout", "width", "row"),
    [
        ("f32", lw.SoA(), 256, 512), ("f32", lw.SoA(), 8, 32), ("f32", lw.SoA(), 6, 8), ("f32", lw.SoA(), 5, 4),
        ("f32", lw.AoS(), 8, 4), ("f32", lw.AoSoA(8), 8, 32), ("f32", lw.AoSoA(8), 5, 4), ("f64", lw.SoA(), 6, 16),
        ("f64", lw.SoA(), 5, 8),
    ],
    ids=str,
)  # fmt: skip
def test_ghosts_are_copied_in_rows(storage: str, layout: lw.Layout, width: int, row: int) -> None:
    """Of as many bytes as lie together in both parts."""
    flow = lw.sitewise(lw.D2Q9)(find_operator("bgk").make(lw.D2Q9, storage))
    sites = flow.sites((21, width), storage=storage, layout=layout, device=lw.Mesh("cpu", parts=2))
    exchange = sites.exchange(sites.form.phases[-1], 0)
    assert {a.came[0].nbytes for a in exchange.arrivals} == {row}
    assert (
        sum(a.came.nbytes for a in exchange.arrivals)
        == exchange.nbytes
        == exchange.law(Cut((21, width), (2, 1))).total("ab")
    )


@pytest.mark.parametrize("first", [0, 3, 8, 29])
@pytest.mark.parametrize("sites", [4, 8, 16])
def test_sectors_of_a_slab_are_those_of_the_box(sites: int, first: int) -> None:
    """So that walls hold the same bytes, wherever a slab begins."""
    rng = np.random.default_rng(first)
    solid = rng.random(101) < 0.7
    flags = np.where(solid, 1, 0).astype(np.uint32)
    own = flags[first:].copy()
    mark_shared_sectors(flags, solid, sites)
    mark_shared_sectors(own, solid[first:], sites, first % sites)
    inside = slice(first + sites, None)  # a slab has ghosts before the sites that it owns
    np.testing.assert_array_equal(own[sites:], flags[inside])


@pytest.mark.cuda
@pytest.mark.parametrize("storage", ["f16", "f32"])
@pytest.mark.parametrize("form", FORMS)
def test_many_walls_on_a_gpu_hold_the_same_bytes(form: str, storage: str) -> None:
    """Parts decide as the whole box does whether each site reads its flags."""
    pair, shape = colliding(lw.D3Q19), (66, 41, 39)
    mask = np.random.default_rng(0).choice((0, 0, 0, 0, WALL, INLET), shape)
    c = Case(
        pair, observer_of(lw.D3Q19, colliding), shape, mask, {"z": ("wall", "lid")}, form, None, storage,
        {**pair.values, "lid_velocity": (0.05, 0.0, 0.0)}, curved=False,
    )  # fmt: skip
    wanted = follow(c, "cuda:0")
    for parts in (2, 3):
        for one, other in zip(follow(c, mesh_of("cuda:0", parts)), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


FLOW = colliding(lw.D2Q9).flow
MESH = Mesh("cpu", parts=3)


@lw.sitewise(lw.D2Q9)
def looked_up(f: lw.populations, table: lw.Array1[lw.f32]):
    for q in lw.D2Q9:
        f[q] *= table[0]


@lw.sitewise(lw.D2Q9)
def numbered(f: lw.populations):
    f[0] = lw.f32(lw.index_of(f))


def plain(**given: Any) -> Any:
    return FLOW.sites((30, 4), **{"device": MESH, **given})


OMEGA = {"omega": 1.2}


LAYERS = (
    "sites of shape (23, 4) have 23 layers along y, and a mesh of 3 parts (3 x cpu) needs 8 for each: wanted a mesh"
)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: FLOW.sites((23, 4), device=MESH), f"{LAYERS} of at most 2 parts, or at least 24 layers"),
    (lambda: FLOW.sites((9, 4), device=MESH), "needs 8 for each: wanted one device, or at least 24 layers"),
    (lambda: heat.sites((9, 4), device=MESH), "needs 8 for each: wanted one device, or at least 24 layers"),
    (
        lambda: looked_up.run(looked_up.sites((30, 4), device=MESH), 1, table=np.ones(3, np.float32)),
        "tables (table) are",
    ),
    (lambda: numbered.run(numbered.sites((30, 4), device=MESH), 1), "lw.index_of, which parts would count anew, is"),
    (
        lambda: FLOW.compile(plain(), **OMEGA),
        "collide: a call is compiled where sites lie on one device, and these lie",
    ),
    (lambda: FLOW.tune(plain(), **OMEGA), "collide: plans are tuned where sites lie on one device"),
    (lambda: FLOW.stepper(plain(), **OMEGA).sequence(), "collide: tasks of steps are read where sites lie on one"),
    (
        lambda: FLOW.run(plain(), 1, omega=np.ones(17, np.float32)),
        "collide: 'omega' must be an f32, or an array of shape (30, 4) with one per site; found",
    ),
    (
        lambda: lw.couple(FLOW.stepper(plain(), **OMEGA), FLOW.stepper(plain(device="cpu"), **OMEGA)),
        "lw.couple: wanted sites on one device, found a mesh (3 x cpu) and cpu",
    ),
    (
        lambda: dye.stepper(dye.sites((30, 4), device="cpu"), rho=density.of(two_phases.sites((30, 4), device=MESH))),
        "is observed of <4 x 30 sites of D2Q9, f32, in-place, SoA on a mesh (3 x cpu)>; wanted a box of shape (30, 4)",
    ),
    (
        lambda: dye.stepper(dye.sites((30, 4), device=MESH), rho=density.of(two_phases.sites((31, 4), device=MESH))),
        "wanted a box of shape (30, 4) on a mesh (3 x cpu), as its reader has",
    ),
    (
        lambda: dye.stepper(
            dye.sites((30, 4), edges={"y": "slip"}, device=MESH), rho=density.of(two_phases.sites((30, 4), device=MESH))
        ),
        "wanted edges along the slowest axis that are both periodic, or both not, as its reader has",
    ),
    (lambda: FLOW.set_populations(plain(), np.ones((9, 10, 4))), "populations have the shape (9, 30, 4), found"),
    (lambda: plain(mask=np.full((30, 4), 9)), "the mask has kind 9 120 times"),
]


@pytest.mark.parametrize(("attempt", "text"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_sites_on_a_mesh_do_not_do_is_refused_by_name(attempt: Callable[[], Any], text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        attempt()
    assert text in str(error.value)


def test_sites_on_a_mesh_name_it() -> None:
    sites = plain()
    assert repr(sites) == "<4 x 30 sites of D2Q9, f32, in-place, SoA on a mesh (3 x cpu)>"
    assert sites.nbytes > FLOW.sites((30, 4)).nbytes
    np.testing.assert_array_equal(sites.kinds, np.zeros((30, 4)))
    assert len(parts_of(sites)) == 3
    assert repr(FLOW.sites((30, 4), device="cpu*3")) == repr(sites)
    mask = np.zeros((30, 4), int)
    mask[7] = INLET
    np.testing.assert_array_equal(plain(mask=mask).kinds, mask)
