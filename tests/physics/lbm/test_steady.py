"""A steady flow is steady at every site, whatever number of steps lies between two looks: odd or even.

Every kind of opening that there is takes part, those of masks and those of edges, as inlet and as outlet: many channels
in one box, each between walls of its own and with a lonely wall in it, so that nothing at its ends is parallel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lanewise.patterns.sitewise.kinds import RULES
from lanewise.runtime.memory import to_host
from lanewise.sims.lbm import Open, Simulation, Wall
from lanewise.sims.lbm.boundaries.registry import BOUNDARIES
from lanewise.sims.lbm.operators import OPERATORS

LATTICES = ("D2Q9", "D3Q19", "D3Q27")
EDGES = tuple(r for r in RULES if r not in ("periodic", "slip"))
"""Rules of edges that let something through."""
HEIGHT, LENGTH = 8, 12
DENSE = 1.004
"""At the low face; 1 at the high one: a pressure that drives a flow about as fast as the given velocity."""


@dataclass(frozen=True)
class Ends:
    """What is at the low and at the high face of x in a channel; `back`: a given velocity points to the low face."""

    low: str
    high: str
    back: bool = False

    def given(self, what: str) -> bool:
        """Whether one of them takes a "density" or a "velocity"."""
        return any(what in BOUNDARIES[n].parameters for n in (self.low, self.high) if n in BOUNDARIES)

    @property
    def at_rest(self) -> bool:
        """An outflow holds nothing: what an inlet does that holds more than a velocity makes a flow between
        walls stop.
        """
        return self.high in EDGES


def pairs(highs: tuple[str, ...], backs: tuple[bool, ...]) -> tuple[Ends, ...]:
    """Ends that have a steady flow between walls: one holds a density, or populations grow by a factor for ever."""
    every = (Ends(low, high, back) for low in BOUNDARIES for high in highs for back in backs)
    return tuple(e for e in every if e.given("density") and not (e.back and (e.at_rest or not e.given("velocity"))))


ALL = pairs((*BOUNDARIES, *EDGES), (False,))
"""Every inlet with every outlet."""
EACH = pairs(("velocity", "pressure"), (False, True))
"""Every opening as an inlet and as an outlet, with few at the other end: less to compile."""


@dataclass(frozen=True)
class Channels:
    """A box of channels along x, one above the other. `edge`: the rule of the high face, where a channel has one."""

    lattice: str
    ends: tuple[Ends, ...]
    edge: str = EDGES[0]

    @property
    def shape(self) -> tuple[int, ...]:
        rows = len(self.ends) * (HEIGHT + 1) + 1
        return (rows, LENGTH) if self.lattice == "D2Q9" else (2, rows, LENGTH)

    def rows(self, channel: int) -> slice:
        """Those of its fluid."""
        first = channel * (HEIGHT + 1) + 1
        return slice(first, first + HEIGHT)

    def flow(self, collision: str, device: str = "cpu", **options: Any) -> Simulation:
        mask, profile = np.zeros(self.shape, np.int32), np.zeros(self.shape)
        y = (np.arange(HEIGHT) + 0.5) / HEIGHT
        along = (0.03, *[0.0] * (len(self.shape) - 1))
        mask[..., :: HEIGHT + 1, :] = 1
        kinds: dict[int, Any] = {1: Wall("wall")}
        numbers: dict[tuple[str, str], int] = {}
        for n, ends in enumerate(self.ends):
            rows = self.rows(n)
            profile[..., rows, :] = ((-1 if ends.back else 1) * 4 * y * (1 - y))[:, None]
            mask[..., rows.start + 2, 4] = 1
            for name, face, column in ((ends.low, "x-", 0), (ends.high, "x+", -1)):
                if name in BOUNDARIES:
                    mask[..., rows, column] = numbers.setdefault((name, face), len(numbers) + 2)
        for (name, face), number in numbers.items():
            values = {"velocity": along, "profile": profile, "density": DENSE if face == "x-" else 1.0}
            taken: Any = {p: values[p] for p in BOUNDARIES[name].parameters}
            kinds[number] = Open(f"{name} {face}", name, face, **taken)
        return Simulation(
            shape=self.shape, lattice=self.lattice, viscosity=0.04, collision=collision, precision="f64", mask=mask,
            edges={"x": ("wall", self.edge)}, kinds=kinds, device=device, **options,
        )  # fmt: skip

    def check(self, flow: Simulation, steps: int) -> None:
        """It is steady after so many steps, and flows in every channel."""
        changes = changes_after(flow, steps)
        unsteady = {
            e: found for n, e in enumerate(self.ends) if not (found := changes[..., self.rows(n), :].max()) < 1e-7
        }
        assert not unsteady, unsteady
        for n, ends in enumerate(self.ends):
            speed = (-1 if ends.back else 1) * float(to_host(flow.velocity)[..., self.rows(n), :, 0].mean())
            assert ends.at_rest or speed > 0.002, (ends, speed)


def changes_after(flow: Simulation, steps: int) -> Any:
    """(*shape): how much the velocity of a site changes at most in 1, 2, 7 and 10 more steps, relative to the
    largest.
    """
    flow.run(steps)
    before, found = to_host(flow.velocity), []
    for count in (1, 2, 7, 10):
        flow.run(count)
        now = to_host(flow.velocity)
        found.append(np.abs(now - before).max(axis=-1) / np.abs(now).max())
        before = now
    return np.max(found, axis=0)


STREAMING = tuple(n for n, b in BOUNDARIES.items() if "velocity" in b.parameters and "density" not in b.parameters)
"""What may stand before an outflow: inlets of given velocity."""


def check_stream(lattice: str, collision: str, edge: str, device: str = "cpu") -> None:
    """A stream past a body, without friction at its sides, from all those inlets, one beside the other, to an edge that
    lets it out.

    Nothing holds its density, and still it stays.
    """
    shape = (4 * len(STREAMING), 14) if lattice == "D2Q9" else (2, 4 * len(STREAMING), 14)
    mask = np.zeros(shape, np.int32)
    mask[..., 3:5, 5] = 1
    along = (0.03, *[0.0] * (len(shape) - 1))
    kinds: dict[int, Any] = {1: Wall("body")}
    for n, name in enumerate(STREAMING):
        mask[..., 4 * n : 4 * n + 4, 0] = n + 2
        kinds[n + 2] = Open(name, name, "x-", velocity=along)
    flow = Simulation(
        shape=shape, lattice=lattice, viscosity=0.04, collision=collision, precision="f64", mask=mask, kinds=kinds,
        edges={"x": ("body", edge), "y": "slip"}, velocity=along, device=device,
    )  # fmt: skip
    assert changes_after(flow, 5000).max() < 1e-7
    velocity, density = to_host(flow.velocity), to_host(flow.density)
    assert velocity[..., -1, 0].mean() == pytest.approx(0.03, rel=0.05)
    flow.run(2000)
    np.testing.assert_allclose(to_host(flow.density), density, rtol=0, atol=1e-9)


def test_an_outlet_does_not_alternate() -> None:
    channels = Channels("D2Q9", (Ends("velocity", "pressure"),))
    channels.check(channels.flow("bgk"), 6000)


def test_a_new_opening_takes_part() -> None:
    """Every one lets a flow in and lets one out, in both lists."""
    for ends in (ALL, EACH):
        assert {e.high if e.back else e.low for e in ends} == {*BOUNDARIES}
        assert {e.low if e.back else e.high for e in ends if not e.at_rest} == {*BOUNDARIES}
    assert {e.high for e in ALL if e.at_rest} == {*EDGES}


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("collision", OPERATORS)
def test_every_inlet_with_every_outlet_is_steady(collision: str, edge: str) -> None:
    channels = Channels("D2Q9", tuple(e for e in ALL if e.high in (*BOUNDARIES, edge)), edge)
    channels.check(channels.flow(collision), 15000)  # a far field before an outflow comes to rest slowly


@pytest.mark.slow
@pytest.mark.parametrize("lattice", LATTICES[1:])
@pytest.mark.parametrize("collision", OPERATORS)
def test_every_opening_of_a_box_is_steady(collision: str, lattice: str) -> None:
    """With a force, which openings have a part of their own for."""
    channels = Channels(lattice, EACH)
    channels.check(channels.flow(collision, streaming="pull", force=(1e-6, 0.0, 0.0)), 7000)


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("collision", OPERATORS)
def test_every_edge_that_lets_a_stream_out_is_steady(collision: str, lattice: str, edge: str) -> None:
    check_stream(lattice, collision, edge)


@pytest.mark.slow
@pytest.mark.parametrize("streaming", ["pull", "push"])
def test_every_opening_is_steady_however_populations_are_streamed(streaming: str) -> None:
    channels = Channels("D2Q9", EACH)
    channels.check(channels.flow("trt", streaming=streaming, force=(1e-6, 0.0)), 9000)


@pytest.mark.cuda
@pytest.mark.parametrize("edge", EDGES)
def test_every_opening_is_steady_on_a_gpu(edge: str) -> None:
    channels = Channels("D3Q19", EACH)
    channels.check(channels.flow("mrt", "cuda"), 7000)
    check_stream("D3Q19", "mrt", edge, "cuda")
