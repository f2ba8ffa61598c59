"""`lw.sims.lbm.Simulation`: what it refuses, what it conserves, and flows whose solution is known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.language.lattices import D2Q9, D3Q19, D3Q27, Lattice
from lanewise.sims.boids import Flock
from lanewise.sims.lbm.checks import FlowWarning
from lanewise.sims.lbm.initial import deviations
from lanewise.sims.lbm.kinds import Open, Wall
from lanewise.sims.lbm.obstacles import disc
from lanewise.sims.lbm.settings import SiteGeometry
from lanewise.sims.lbm.simulation import Simulation
from lanewise.sims.lbm.watch import DRIFTS, check_fields, unheld_warning
from lanewise.support.errors import DeviceError, InputError

CAVITY: dict[str, Any] = {
    "shape": (9, 9), "viscosity": 0.05, "edges": {"x": "wall", "y": ("wall", "lid")},
    "kinds": {1: Wall("wall"), 2: Wall("lid", (0.1, 0.0))},
}  # fmt: skip
CHANNEL: dict[str, Any] = {"shape": (8, 4), "viscosity": 0.3, "edges": {"y": "wall"}, "force": (1e-4, 0.0)}


def masked(kind: int) -> Any:
    mask = np.zeros((9, 9), np.uint8)
    mask[4, 3:5] = kind
    return mask


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "tau": ({"viscosity": None, "omega": 2.0}, "the relaxation time tau is 0.5; wanted more than 0.5"),
    "negative viscosity": ({"viscosity": -0.1}, "the kinematic viscosity nu is -0.1"),
    "two viscosities": ({"omega": 1.0}, "the viscosity is given by viscosity and omega; wanted one of viscosity, omega, re"),
    "idle speed": (
        {"speed": 0.1},
        "the speed of a Reynolds number is given without re, next to viscosity; wanted re with speed and length, or viscosity alone",
    ),
    "idle scales": (
        {"viscosity": None, "omega": 1.0, "speed": 0.1, "length": 9},
        "the speed and the length of a Reynolds number are given without re, next to omega; wanted re with speed and length, or omega alone",
    ),
    "no viscosity": ({"viscosity": None}, "the viscosity is given by nothing; wanted one of viscosity, omega, re"),
    "re alone": ({"viscosity": None, "re": 10}, "re is a Reynolds number; wanted speed and length as well"),
    "lid": (
        {"kinds": {1: Wall("wall"), 2: Wall("lid", (0.2, 0.0))}},
        "the velocity of the wall 'lid' is 0.2 sites per step, Mach 0.35; wanted at most 0.1732, Mach 0.3",
    ),
    "initial velocity": ({"velocity": (0.3, 0.0)}, "the initial velocity is 0.3 sites per step, Mach 0.52"),
    "velocity shape": ({"velocity": np.zeros((9, 9))}, "the velocity has shape (9, 9); wanted (2,) or (9, 9, 2)"),
    "density shape": ({"density": np.ones(9)}, "the density has shape (9,); wanted a number or shape (9, 9)"),
    "density": ({"density": 0.0}, "the density holds numbers that are not finite or not positive; wanted densities about 1"),
    "mask shape": ({"mask": np.zeros((9, 8), int)}, "the mask has shape (9, 8); wanted (ny, nx) = (9, 9)"),
    "mask kind": (
        {"mask": masked(7)},
        "the mask holds kind 7 at 2 sites (first at (y, x) = (4, 3)); wanted one of the kinds 0 (fluid), 1 (wall), 2 (lid)",
    ),
    "kind number": ({"kinds": {32: Wall("wall")}}, "kind 32 (wall): wanted a number from 1 to 31; 0 is fluid"),
    "kind name": ({"kinds": {1: Wall("a"), 2: Wall("a")}}, "kinds 1 and 2 are both called 'a'; wanted different names"),
    "components": ({"kinds": {1: Wall("wall", (0.1,))}}, "the velocity of 'wall' is (0.1,); wanted 2 components"),
    "force": ({"force": (1e-4,)}, "the force is (0.0001,); wanted 2 finite components"),
    "lattice": ({"lattice": "D2Q8"}, "unknown lattice 'D2Q8'; did you mean 'D2Q9'? wanted one of D2Q9, D3Q19, D3Q27"),
    "scalars": ({"lattice": "D2Q5"}, "D2Q5 is for scalars: its weights are isotropic up to second order, a flow needs fourth; wanted D2Q9"),
    "dimension": ({"lattice": "D3Q19"}, "D3Q19 needs a box of shape (nz, ny, nx), found 2 axes"),
    "collision": ({"collision": "mrt2"}, "unknown collision operator 'mrt2'; did you mean 'mrt'? wanted one of bgk, trt, regularised, mrt, kbc"),
    "parameter": ({"parameters": {"magik": 1}}, "the collision operator 'trt' has no parameter 'magik'; it has magic"),
    "negative parameter": (
        {"parameters": {"magic": -1.0}},
        "the parameter magic of the collision operator 'trt' is -1; wanted zero or more",
    ),
    "rate": (
        {"collision": "mrt", "parameters": {"bulk_omega": 5.0}},
        "the parameter bulk_omega of the collision operator 'mrt' is 5; wanted a number from 0 to 2",
    ),
    "precision": ({"precision": "f16"}, "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64"),
    "storage": ({"storage": "f8"}, "unknown storage 'f8'; wanted one of f16, f32, f64"),
    "wide storage": ({"precision": "f32", "storage": "f64"}, "storage f64 holds more than precision f32 computes"),
    "half": ({"storage": "f16", "device": "cpu"}, "storage f16 is for GPUs, which convert float16 in one instruction"),
    "streaming": ({"streaming": "swap"}, "unknown streaming 'swap'; wanted one of pull, push, in-place"),
    "boundary": (
        {"kinds": {1: Wall("wall"), 2: Wall("lid"), 3: Open("in", "wind", "x-")}},
        "unknown boundary 'wind'; wanted one of velocity, pressure",
    ),
    "no density": (
        {"kinds": {1: Wall("wall"), 2: Wall("lid"), 3: Open("out", "pressure", "x+")}},
        "'out' has no density; the boundary 'pressure' wanted its density",
    ),
    "idle velocity": (
        {"kinds": {3: Open("out", "pressure", "x+", density=1.0, velocity=(0.1, 0.0))}},
        "'out' has a velocity; the boundary 'pressure' takes none",
    ),
    "face": ({"kinds": {3: Open("out", "pressure", "z+", density=1.0)}}, "'out' is at the face 'z+'; wanted one of x-, x+, y-, y+"),
    "place": (
        {"kinds": {3: Open("out", "pressure", "x+", density=1.0)}, "mask": masked(3)},
        "'out' has 2 sites away from the face x+, first at (y, x) = (4, 3); wanted all of them at it",
    ),
    "profile": (
        {"kinds": {3: Open("in", "velocity", "x-", velocity=(0.1, 0.0), profile=np.ones(9))}},
        "the profile of 'in' has shape (9,); wanted (9, 9)",
    ),
    "idle profile": (
        {"kinds": {3: Open("out", "pressure", "x+", density=1.0, profile=np.ones((9, 9)))}},
        "'out' has a profile, which multiplies a velocity; the boundary 'pressure' takes none",
    ),
    "fast profile": (
        {
            "kinds": {3: Open("in", "far-field", "x-", velocity=(0.1, 0.0), density=1.0, profile=np.full((9, 9), 20.0))},
            "mask": masked(3),
        },
        "the velocity of 'in' with its profile",
    ),
    "profile that is no number": (
        {
            "kinds": {3: Open("in", "far-field", "x-", velocity=(0.1, 0.0), density=1.0, profile=np.full((9, 9), np.nan))},
            "mask": masked(3),
        },
        "is not finite; wanted numbers of sites per step",
    ),
    "density of an opening": (
        {"kinds": {3: Open("out", "pressure", "x+", density=-1.0)}},
        "the density of 'out' is -1; wanted a number above zero, about 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_is_allocated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.sims.lbm.simulation.FlowEngine", lambda *_: pytest.fail("allocated"))
    options, message = REFUSED[name]
    with pytest.raises(InputError) as caught:
        Simulation(**{**CAVITY, **options})
    assert message in str(caught.value)


def test_a_size_that_does_not_fit_says_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.sims.lbm.simulation.FlowEngine", lambda *_: pytest.fail("allocated"))
    monkeypatch.setattr("lanewise.sims.common.meshes.available_memory", lambda device: 10_000_000)
    with pytest.raises(
        DeviceError, match=r"1000 x 1000 sites of D2Q9 stored as f32 with in-place streaming need 0\.04 GB"
    ):
        Simulation(shape=(1000, 1000), viscosity=0.1)


# ------------------------------------------------------------ initial populations


@pytest.mark.parametrize("lattice", [D2Q9, D3Q19, D3Q27], ids=str)
@given(st.lists(st.floats(-0.1, 0.1), min_size=6, max_size=6), st.floats(0.9, 1.1))
def test_initial_populations_have_the_moments_that_were_asked_for(
    lattice: Lattice, numbers: list[float], rho: float
) -> None:
    d = lattice.dimension
    u, force = np.array(numbers[:d]), tuple(numbers[3 : 3 + d])
    gradient = np.outer(numbers[:d], numbers[3 : 3 + d])
    gradient -= np.eye(d) * np.trace(gradient) / d  # incompressible
    shape = (2,) * d
    f = deviations(
        lattice, shape, rho, u, gradient=np.broadcast_to(gradient, (*shape, d, d)), tau=0.8, force=force
    ).reshape(len(lattice), -1)[:, 0]
    e = np.array(lattice.velocities, float)
    assert f.sum() == pytest.approx(rho - 1, abs=1e-14)
    assert e.T @ f == pytest.approx(rho * u - np.array(force) / 2, abs=1e-14)
    stress = np.einsum("q,qa,qb->ab", f, e, e) - rho * np.outer(u, u) - (rho - 1) / 3 * np.eye(d)
    assert stress == pytest.approx(-2 * 0.8 * rho / 3 * (gradient + gradient.T) / 2, abs=1e-14)


# ------------------------------------------------------------ flows


def test_a_force_gives_the_exact_parabola_and_is_borne_by_the_walls() -> None:
    flow = Simulation(**CHANNEL, precision="f64").run(3000)
    y = np.arange(8) + 0.5
    exact = 1e-4 / 0.6 * y * (8 - y)
    assert flow.velocity[:, 2, 0] == pytest.approx(exact, rel=1e-9)
    assert flow.velocity[..., 1] == pytest.approx(0, abs=1e-15)
    assert flow.force_on("wall") == pytest.approx([32 * 1e-4, 0], rel=1e-9, abs=1e-15)
    assert flow.mass == pytest.approx(32, rel=1e-14)


def test_a_moving_wall_drags_the_fluid_linearly() -> None:
    kinds = {1: Wall("wall"), 2: Wall("lid", (0.1, 0.0))}
    flow = Simulation(shape=(8, 4), viscosity=0.3, edges={"y": ("wall", "lid")}, kinds=kinds, precision="f64").run(3000)
    assert flow.velocity[:, 1, 0] == pytest.approx(0.1 * (np.arange(8) + 0.5) / 8, rel=1e-12)
    shear = flow.force_on("wall")[0]
    assert shear == pytest.approx(4 * 0.3 * 0.1 / 8, rel=1e-9)
    assert flow.force_on("lid")[0] == pytest.approx(-shear, rel=1e-9)


def test_streaming_forms_give_one_flow() -> None:
    one = Simulation(**CAVITY, mask=masked(1)).run(51)
    other = Simulation(**CAVITY, mask=masked(1), streaming="pull").run(51)
    assert other.velocity == pytest.approx(one.velocity, abs=1e-7)
    assert other.density == pytest.approx(one.density, abs=1e-6)


def test_walls_show_density_one_and_no_velocity_and_count_for_nothing() -> None:
    flow = Simulation(**CAVITY, mask=masked(1)).run(20)
    assert (flow.sites, flow.fluid_sites, int(flow.solid.sum())) == (81, 79, 2)
    assert (flow.density[flow.solid] == 1).all()
    assert (flow.velocity[flow.solid] == 0).all()
    assert flow.mass == pytest.approx(79, abs=1e-5)
    assert np.abs(flow.velocity).max() > 0.01


def test_a_mask_of_booleans_is_a_wall() -> None:
    flow = Simulation(shape=(6, 6), viscosity=0.1, mask=np.eye(6, dtype=bool))
    assert flow.fluid_sites == 30
    assert (flow.solid == np.eye(6, dtype=bool)).all()


def test_a_name_that_no_wall_has() -> None:
    flow = Simulation(**CAVITY)
    with pytest.raises(InputError, match="no wall has the name 'roof'; wanted lid, wall"):
        flow.force_on("roof")


@given(
    shape=st.tuples(st.integers(3, 12), st.integers(3, 12)),
    centre=st.tuples(st.integers(-30, 30), st.integers(-30, 30)),
    at_edge=st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_a_wall_that_is_nowhere_has_no_force(shape: tuple[int, int], centre: tuple[int, int], at_edge: bool) -> None:
    """A disc outside of the box would have the force 0, as if nothing met the flow."""
    mask = disc(shape, centre, 1.5)
    flow = Simulation(
        shape=shape,
        viscosity=0.1,
        mask=mask.astype(int),
        kinds={1: Wall("body")},
        edges={"y": "body"} if at_edge else {},
        device="cpu",
    ).run(1)
    if mask.any() or at_edge:
        assert flow.force_on("body").shape == (2,)
    else:
        with pytest.raises(InputError, match="the wall 'body' is nowhere, so it has no force: no site of the mask"):
            flow.force_on("body")


def test_the_callback_comes_after_every_so_many_steps_and_at_the_end() -> None:
    seen: list[int] = []
    flow = Simulation(**CAVITY)
    flow.run(7, lambda s: seen.append(s.step), every=3)
    assert (seen, flow.step) == ([3, 6, 7], 7)


@pytest.mark.parametrize("steps", [0, -1])
def test_no_steps_are_refused(steps: int) -> None:
    with pytest.raises(InputError, match=f"the number of steps is {steps}; wanted an integer from 1"):
        Simulation(**CAVITY).run(steps)


def test_a_flow_that_blows_up_names_site_and_steps() -> None:
    wild = np.random.default_rng(1).uniform(-0.1, 0.1, (9, 9, 2))
    with pytest.warns(FlowWarning, match="tau is 0.500003; with TRT expect instability"):
        flow = Simulation(**{**CAVITY, "viscosity": 1e-6}, velocity=wild)
    with pytest.raises(InputError) as caught:
        flow.run(20_000)
    message = str(caught.value)
    assert message.startswith("the flow blew up between step 0 and step 2,048: ")
    assert ": site (y, x) = (" in message
    assert "mass" not in message
    assert "keeps it stable" in message


@pytest.mark.slow
def test_openings_let_a_parabola_through() -> None:
    profile = np.zeros((8, 16))
    y = np.arange(8) + 0.5
    profile[:] = (4 * y * (8 - y) / 64)[:, None]
    mask = np.zeros((8, 16), int)
    mask[:, 0], mask[:, -1] = 2, 3
    kinds = {
        1: Wall("wall"), 2: Open("inlet", "velocity", "x-", velocity=(0.02, 0.0), profile=profile),
        3: Open("outlet", "pressure", "x+", density=1.0),
    }  # fmt: skip
    flow = Simulation(shape=(8, 16), viscosity=0.2, edges={"y": "wall"}, mask=mask, kinds=kinds).run(3000)
    assert flow.velocity[:, 0, 0] == pytest.approx(0.02 * profile[:, 0], abs=1e-6)
    assert flow.density[:, -1] == pytest.approx(1, abs=1e-6)
    through = flow.density * flow.velocity[..., 0]  # the fluid expands on its way: what is the same is the momentum
    assert through[:, 8] == pytest.approx(through[:, 0], rel=3e-3)
    assert flow.velocity[:, :, 1] == pytest.approx(0, abs=1e-4)


def test_the_product_is_part_of_the_package() -> None:
    assert lw.sims.lbm.Simulation is Simulation  # type: ignore[attr-defined]
    assert lw.sims.lbm.Wall is Wall  # type: ignore[attr-defined]


@pytest.mark.cuda
@pytest.mark.parametrize("storage", ["f16", "f32", "f64"])
def test_a_gpu_gives_the_flow_of_a_cpu(storage: str) -> None:
    from lanewise.sims.lbm.cases import CASES

    setup = CASES["karman"].setup(size=6, re=40)
    options: dict[str, Any] = {
        "shape": setup.shape, "viscosity": setup.viscosity, "collision": "mrt", "mask": setup.mask, "kinds": setup.kinds,
        "edges": setup.edges, "velocity": setup.velocity,
    }  # fmt: skip
    gpu = Simulation(**options, storage=storage, device="cuda").run(200)
    cpu = Simulation(**options, precision=gpu.settings.precision).run(200)
    tolerance = {"f16": 2e-3, "f32": 1e-5, "f64": 1e-12}[storage]
    assert gpu.velocity.get() == pytest.approx(cpu.velocity, abs=tolerance)
    assert gpu.density.get() == pytest.approx(cpu.density, abs=tolerance)
    assert gpu.force_on("obstacle") == pytest.approx(cpu.force_on("obstacle"), abs=30 * tolerance)
    assert gpu.mass == pytest.approx(cpu.mass, rel=tolerance)


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
def test_sites_that_are_all_walls_do_nothing(streaming: str) -> None:
    flow = Simulation(shape=(5, 5), viscosity=0.1, mask=np.ones((5, 5), int), streaming=streaming, device="cpu").run(3)
    assert (flow.step, flow.fluid_sites, flow.mass) == (3, 0, 0)
    assert not flow.velocity.any()
    assert not flow.force_on("wall").any()
    assert flow.stagger().amplitude == 0


def test_a_mass_that_runs_out_is_named() -> None:
    """Not a finer lattice or another collision helps there."""
    velocity = np.zeros((9, 2))
    with pytest.raises(InputError) as caught:
        check_fields(np.full(9, -0.95), velocity, (3, 3), "cpu", 0, 7)
    assert "the mass ran out, to 0.05 per site" in str(caught.value)
    assert "look for what takes mass out of the box" in str(caught.value)
    excess = np.zeros(9)
    for place, speed, words in (
        (-0.95, 0.0, "density is close to nothing"),
        (0.0, 2.0, "speed is above 1"),
        (np.nan, 0.0, "finite"),
    ):
        excess[4], velocity[4, 0] = place, speed
        with pytest.raises(InputError, match=words):
            check_fields(excess, velocity, (3, 3), "cpu", 0, 7)


def test_a_closed_box_that_loses_mass_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Simulation(**CAVITY)
    flow.run(3)
    monkeypatch.setitem(DRIFTS, "f32", -1.0)
    with pytest.warns(FlowWarning, match="the mass of this closed box has changed by"):
        flow.run(1)


def channel(outlet: str, side: str = "wall") -> Simulation:
    """A stream from an inlet of given velocity; `outlet` "outflow", or a boundary of given density."""
    mask = np.zeros((8, 12), np.int32)
    mask[:, 0] = 2
    mask[2, 5] = 1
    kinds: dict[int, Any] = {1: Wall("wall"), 2: Open("in", "velocity", "x-", velocity=(0.05, 0.0))}
    if outlet != "outflow":
        mask[:, -1], kinds[3] = 3, Open("out", outlet, "x+", density=1.0)
    return Simulation(
        shape=mask.shape, viscosity=0.05, precision="f64", mask=mask, kinds=kinds, velocity=(0.05, 0.0), device="cpu",
        edges={"x": ("wall", "outflow" if outlet == "outflow" else "wall"), "y": side},
    )  # fmt: skip


def test_what_holds_the_density_of_a_box() -> None:
    assert unheld_warning(1.04, 1.0) is None
    told = unheld_warning(93.0, 100.0)
    assert told is not None
    assert told.startswith("the mean density has changed by -7 % since the start: no opening of this box holds it")
    mask, kinds = np.zeros((4, 5), np.uint8), {2: Open("in", "velocity", "x-", velocity=(0.1, 0.0))}
    mask[:, 0] = 2
    for kind, held in ((Open("out", "pressure", "x+", density=1.0), True), (Wall("wall"), False)):
        given = mask.copy()
        given[:, -1] = 3
        assert SiteGeometry(given, {**kinds, 3: kind}, {}).holds_density == held
        assert not SiteGeometry(mask, {**kinds, 3: kind}, {}).holds_density  # no site is of it


@pytest.mark.slow
def test_a_density_that_nothing_holds_and_that_runs_away_is_warned_of() -> None:
    with pytest.warns(FlowWarning, match="no opening of this box holds it"):
        channel("outflow").run(4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        channel("outflow", "slip").run(4000)
        channel("pressure").run(4000)


@pytest.mark.parametrize("make", [Simulation, Flock])
def test_arguments_without_their_names_are_named(make: Any) -> None:
    with pytest.raises(InputError, match=r"takes .*; found .*; (wanted|its settings are) "):
        make((32, 32), (16, 16))


def test_a_shape_without_its_name_is_shown_with_it() -> None:
    make: Any = Simulation
    with pytest.raises(
        InputError, match=r"Simulation takes all arguments by name; found \(32, 32\); wanted shape=\(32, 32\)"
    ):
        make((32, 32), viscosity=0.1)
