"""The mass of a closed box stays what it is, for any mask and edges; walls that cannot move so are refused by name."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.sitewise.balance import wall_balance
from lanewise.patterns.sitewise.kinds import read_edges
from lanewise.sims.lbm import Simulation
from lanewise.sims.lbm import Wall as SimulationWall
from lanewise.sims.lbm.operators import OPERATORS
from lanewise.support.errors import InputError
from tests.lbm.boxes import LATTICES, LID, WALL, Box, boxes, populations
from tests.lbm.kernels import colliding
from tests.lbm.links import EDGE
from tests.lbm.reference import Reference, Wall

SPEEDS = (0.0, 0.0, 0.05, -0.03)
MOTION = st.tuples(*[st.sampled_from(SPEEDS)] * 3)
NAMES = {WALL: "wall", LID: "lid"}
UP = 1
"""Another wall, that moves, too."""


def refusal(box: Box, velocities: dict[int, tuple[float, ...]]) -> str | None:
    """What a closed box is refused for; None where its walls can move so."""
    numbers = {"wall": WALL, "lid": LID, "up": UP}
    edges = read_edges(dict(box.edges), box.lattice.dimension, numbers)
    balance = wall_balance(box.lattice, box.mask.astype(np.uint8), edges, frozenset(numbers.values()), velocities)
    return balance.refusal(velocities, {n: name for name, n in numbers.items()})


def reference(box: Box, velocities: dict[int, tuple[float, ...]]) -> Reference:
    walls = {WALL: Wall("wall"), LID: Wall("lid", velocities[LID]), UP: Wall("up", velocities.get(UP))}
    found = Reference(box.lattice, box.shape, box.mask, box.edges, {0: lambda f: None, **walls})
    found.f = np.where(found.fluid, populations(box), 0.0)
    return found


def parts(box: Box, flow: Reference) -> np.ndarray[Any, Any]:
    """(*shape): a label for every part of the fluid, those of the sites that anything from one of them may come to; 0
    in walls.
    """
    labels = np.where(flow.fluid, np.arange(1, flow.fluid.size + 1).reshape(box.shape), 0)
    while True:
        before, kept = labels.copy(), flow.f
        flow.f = np.broadcast_to(labels, kept.shape).astype(float).copy()
        flow.run(1)
        met = np.where(flow.fluid, flow.f.max(axis=0), 0).astype(int)
        flow.f = kept
        labels = np.maximum(labels, met)
        if (labels == before).all():
            return labels


def check_reference(box: Box, velocities: dict[int, tuple[float, ...]]) -> None:
    """In the independent solver the mass of every part of the box stays, or it changes in a step by what the refusal
    says.
    """
    flow = reference(box, velocities)
    labels = parts(box, reference(box, dict.fromkeys(velocities, (0.0,) * box.lattice.dimension)))
    apart = [labels == n for n in np.unique(labels[labels > 0])]
    before = [flow.f[:, part].sum() for part in apart]
    flow.run(3)
    changes = [(flow.f[:, part].sum() - b) / 3 for part, b in zip(apart, before, strict=True)]
    reason = refusal(box, velocities)
    if reason is None:
        assert max(map(abs, changes)) < 1e-13 * (1 + sum(before)), box
    elif "slip" not in reason:
        (told,) = re.findall(r"would change by (\S+) in every step", reason)
        assert any(told == f"{change:.3g}" for change in changes), (reason, changes)
        assert ("the box is closed" in reason) == (len(apart) == 1), reason


@given(boxes(kinds=(0, 0, WALL, LID), most=5), MOTION)
def test_any_mask_keeps_its_mass_or_is_refused(box: Box, motion: tuple[float, ...]) -> None:
    check_reference(box, {LID: motion[: box.lattice.dimension]})


@settings(max_examples=3 * settings().max_examples)
@given(boxes(kinds=(0, 0, WALL, LID, UP), faces=("periodic", "slip", "wall", "lid", "up"), most=4), MOTION, MOTION)
def test_two_walls_that_move(box: Box, one: tuple[float, ...], other: tuple[float, ...]) -> None:
    d = box.lattice.dimension
    check_reference(box, {LID: one[:d], UP: other[:d]})


@settings(max_examples=3 * settings().max_examples)
@given(boxes(kinds=(0, WALL), faces=("periodic", "wall", "slip"), most=5), st.data())
def test_no_mask_stops_a_lid_that_moves_along_itself(box: Box, data: st.DataObject) -> None:
    """Whatever stands below a lid: it is not refused, and the mass stays."""
    axis = data.draw(st.integers(0, box.lattice.dimension - 1))
    axes = box.axes
    motion = tuple(0.0 if n == axis or "slip" in _faces(box, a) else 0.05 for n, a in enumerate(axes))
    lidded = Box(box.lattice, box.shape, box.mask, {**box.edges, axes[axis]: ("wall", "lid")})
    assert refusal(lidded, {LID: motion}) is None
    check_reference(lidded, {LID: motion})


def _faces(box: Box, axis: str) -> tuple[str, ...]:
    edge = box.edges.get(axis, "periodic")
    return (edge,) if isinstance(edge, str) else edge


def drift(flow: Simulation, steps: int) -> float:
    before = flow.mass
    flow.run(steps)
    return abs(flow.mass / before - 1)


def corner(lattice: str, edges: dict[str, EDGE], **options: Any) -> Simulation:
    """A box with a lid and one solid site below an end of it."""
    shape = (7, 9) if lattice == "D2Q9" else (3, 7, 9)
    mask = np.zeros(shape, np.int32)
    mask[..., -1, -1] = 1
    lid = SimulationWall("lid", velocity=(0.05, *[0.0] * (len(shape) - 1)))
    return Simulation(
        shape=shape, lattice=lattice, viscosity=0.05, precision="f64", mask=mask, edges=edges,
        kinds={1: SimulationWall("w"), 2: lid}, **options,
    )  # fmt: skip


CLOSED: dict[str, EDGE] = {"x": "w", "y": ("w", "lid")}


def test_a_solid_corner_below_a_lid_keeps_the_mass() -> None:
    flow = corner("D2Q9", CLOSED)
    assert drift(flow, 1000) < 1e-12
    solid = flow.force_on("lid")[0]
    cavity = Simulation(
        shape=(7, 8), viscosity=0.05, precision="f64", edges=CLOSED,
        kinds={1: SimulationWall("w"), 2: SimulationWall("lid", velocity=(0.05, 0.0))},
    )  # fmt: skip
    cavity.run(1000)
    assert solid == pytest.approx(cavity.force_on("lid")[0], rel=0.1)


@pytest.mark.parametrize("lattice", ["D3Q19", "D3Q27"])
def test_a_solid_below_the_edge_where_a_lid_meets_itself_keeps_the_mass(lattice: str) -> None:
    """A link through two faces of one moving wall passes by what stands beside both: mirrored it meets an
    end's wall.
    """
    mask = np.zeros((4, 4, 6), np.int32)
    mask[-1, 1, 1] = mask[1, -1, 3] = 1
    mask[-1, -1, 4:] = 1
    edges: dict[str, EDGE] = {"x": "w", "y": ("w", "lid"), "z": ("w", "lid")}
    flow = Simulation(
        shape=mask.shape, lattice=lattice, viscosity=0.05, precision="f64", mask=mask, edges=edges,
        kinds={1: SimulationWall("w"), 2: SimulationWall("lid", velocity=(0.05, 0.0, 0.0))},
    )  # fmt: skip
    assert drift(flow, 100) < 1e-13


STREAMINGS = ("in-place", "pull", "push")
EVERY = [(n, c, s) for n in ("D2Q9", "D3Q19", "D3Q27") for c in OPERATORS for s in STREAMINGS]


@pytest.mark.slow
@pytest.mark.parametrize(("lattice", "collision", "streaming"), EVERY)
def test_every_lattice_collision_and_streaming_keeps_the_mass(lattice: str, collision: str, streaming: str) -> None:
    assert drift(corner(lattice, CLOSED, collision=collision, streaming=streaming), 1000) < 1e-12


ANY_FACE = ("periodic", "slip", "wall", "lid", "up")


@st.composite
def closed_boxes(draw: st.DrawFn, lattice: lw.Lattice) -> tuple[Box, dict[int, tuple[float, ...]]]:
    """A box of any mask and edges, and how two of its walls move, that keeps its mass: at rest where it would not."""
    most = 7 if lattice.dimension == 2 else 5
    box = draw(boxes(lattices=(lattice,), kinds=(0, 0, 0, 0, WALL, LID, UP), faces=ANY_FACE, most=most))
    for moving in ((LID, UP), (LID,), (UP,)):
        velocities = {
            n: draw(MOTION)[: lattice.dimension] if n in moving else (0.0,) * lattice.dimension for n in (LID, UP)
        }
        if refusal(box, velocities) is None:
            return box, velocities
    return box, dict.fromkeys((LID, UP), (0.0,) * lattice.dimension)


@pytest.mark.slow
@pytest.mark.parametrize("collision", OPERATORS)
@pytest.mark.parametrize("lattice", ["D2Q9", "D3Q19", "D3Q27"])
@settings(max_examples=6)
@given(st.data(), st.sampled_from(STREAMINGS))
def test_any_box_keeps_its_mass_for_long(lattice: str, collision: str, data: st.DataObject, streaming: str) -> None:
    box, velocities = data.draw(closed_boxes(next(a for a in LATTICES if a.name == lattice)))
    rng = np.random.default_rng(1)
    flow = Simulation(
        shape=box.shape, lattice=lattice, viscosity=0.06, precision="f64", mask=box.mask, edges=box.edges,
        kinds={
            WALL: SimulationWall("wall"), LID: SimulationWall("lid", velocity=velocities[LID]),
            UP: SimulationWall("up", velocity=velocities[UP]),
        },
        density=rng.uniform(0.97, 1.03, box.shape), velocity=rng.uniform(-0.03, 0.03, (*box.shape, len(box.shape))),
        collision=collision, streaming=streaming, device="cpu",
    )  # fmt: skip
    assert drift(flow, 1000) < 1e-12, (box, velocities)
    assert np.isfinite(flow.velocity).all()


@pytest.mark.slow
@pytest.mark.parametrize("lattice", LATTICES, ids=lambda a: a.name)
@pytest.mark.parametrize("form", ["in-place", "pull", "push"])
@settings(max_examples=8)
@given(st.data())
def test_sitewise_functions_keep_the_mass_of_any_box(lattice: lw.Lattice, form: str, data: st.DataObject) -> None:
    """With two kinds of walls, one of which moves."""
    pair = colliding(lattice, "f64")
    most = 7 if lattice.dimension == 2 else 5
    box = data.draw(boxes(lattices=(lattice,), kinds=(0, 0, 0, 0, WALL, LID), most=most))
    motion = data.draw(MOTION)[: lattice.dimension]
    if refusal(box, {LID: motion}) is not None:
        motion = (0.0,) * lattice.dimension
    sites = pair.flow.sites(box.shape, mask=box.mask, edges=box.edges, storage="f64", streaming=form)
    weights = np.array([float(w) for w in lattice.weights]).reshape(-1, *[1] * lattice.dimension)
    fluid = ~np.isin(box.mask, (WALL, LID))
    begin = np.where(fluid, populations(box) - weights, 0.0)
    pair.flow.set_populations(sites, begin)
    pair.flow.run(sites, 1000, omega=1.3, lid_velocity=motion)
    after = pair.flow.populations(sites, lid_velocity=motion)
    assert np.isfinite(after).all()
    assert abs(after.sum() - begin.sum()) < 1e-11 * sites.count, (box, motion)


def test_what_cannot_conserve_mass_is_refused_by_name() -> None:
    walls = {1: SimulationWall("w"), 2: SimulationWall("lid", velocity=(0.05, 0.0))}

    def make(edges: dict[str, EDGE], kinds: Any = walls, **options: Any) -> Simulation:
        return Simulation(shape=(8, 9), viscosity=0.05, edges=edges, kinds=kinds, **options)

    with pytest.raises(
        InputError, match=r"the wall 'lid' moves with \(0.05, 0.0\), across the slip face x\+ that it lies"
    ):
        make({"x": ("w", "slip"), "y": ("w", "lid")})
    with pytest.raises(InputError, match="across the slip face x-"):
        make({"x": "slip", "y": ("w", "lid")})
    down = {1: SimulationWall("w"), 2: SimulationWall("lid", velocity=(0.0, -0.05))}
    with pytest.raises(
        InputError, match=r"'lid' moves .*along y: the box is closed, and its mass would change by .* in every"
    ):
        make({"x": "w", "y": ("w", "lid")}, down)
    make({"x": "w", "y": ("outflow", "lid")}, down)  # what comes in can leave


def test_what_one_part_of_a_box_gains_does_not_help_another() -> None:
    """Two rooms whose outer walls move one way: the mass of the whole stays, that of both rooms does not."""
    mask = np.zeros((8, 9), np.int32)
    mask[:, 4] = 1
    kinds: Any = {1: SimulationWall("w"), 2: SimulationWall("wind", velocity=(-0.03, 0.0))}
    room: Any = {"shape": mask.shape, "viscosity": 0.06, "edges": {"x": "wind", "y": "w"}, "kinds": kinds}
    found = r"'wind' moves .* along x: its part around site \(y, x\) = \(0, 0\) is closed, and its mass would change by"
    with pytest.raises(InputError, match=found):
        Simulation(mask=mask, **room)
    mask[3:5, 4] = 0
    Simulation(mask=mask, **room)  # a door
    mask[3:5, 4], mask[:, 5] = 1, 1
    with pytest.raises(InputError, match="its part around site"):
        Simulation(mask=mask, **room)


def test_a_part_with_an_opening_may_gain_mass_and_one_without_may_not() -> None:
    pair = colliding(lw.D2Q9, "f32")
    mask = np.zeros((5, 9), np.int32)
    mask[:, 4] = WALL
    for edge, answer in ((("outflow", "lid"), "its part around site"), (("lid", "outflow"), "its part around site")):
        sites = pair.flow.sites((5, 9), mask=mask, edges={"x": edge, "y": "wall"})
        with pytest.raises(lw.ArgumentError, match=answer):
            pair.flow.run(sites, 1, omega=1.0, lid_velocity=(0.05, 0.0))
    sites = pair.flow.sites((5, 9), edges={"x": ("outflow", "lid"), "y": "wall"})
    pair.flow.run(sites, 1, omega=1.0, lid_velocity=(0.05, 0.0))


def test_a_sitewise_function_refuses_it_too() -> None:
    pair = colliding(lw.D2Q9, "f32")
    sites = pair.flow.sites((5, 6), edges={"x": ("wall", "slip"), "y": ("wall", "lid")})
    with pytest.raises(lw.ArgumentError, match=r"collide: the wall 'lid' moves with .* across the slip face x\+"):
        pair.flow.run(sites, 1, omega=1.0, lid_velocity=(0.05, 0.0))
    sites = pair.flow.sites((5, 6), edges={"x": "wall", "y": ("wall", "lid")})
    with pytest.raises(lw.ArgumentError, match=r"'lid' moves .* the box is closed, and its mass would change by"):
        pair.flow.run(sites, 1, omega=1.0, lid_velocity=(0.0, 0.05))
    pair.flow.run(sites, 1, omega=1.0, lid_velocity=(0.05, 0.0))
