"""Settings of a flow act or refuse, and what is seen of it cannot be written to in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.profiling import Profile
from lanewise.runtime.memory import to_host
from lanewise.sims.lbm.kinds import Open, Wall
from lanewise.sims.lbm.simulation import Simulation
from lanewise.support.errors import InputError

STREAM = np.zeros((8, 12), np.uint8)
STREAM[:, 0], STREAM[3:5, 4] = 2, 1
FLOW: dict[str, Any] = {
    "shape": (8, 12), "viscosity": 0.05, "edges": {"x": "slip", "y": "slip"}, "mask": STREAM,
    "kinds": {1: Wall("wall"), 2: Open("inlet", "velocity", "x-", velocity=(0.05, 0.0))},
}  # fmt: skip
BOX: dict[str, Any] = {
    "shape": (8, 9), "viscosity": 0.05, "edges": {"x": "wall", "y": ("wall", "lid")},
    "kinds": {1: Wall("wall"), 2: Wall("lid", (0.1, 0.0))},
}  # fmt: skip
CHANGES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "viscosity": ("viscosity", 0.2, {"viscosity": 0.2}),
    "omega": ("omega", 1.25, {"viscosity": None, "omega": 1.25}),
    "collision": ("collision", "mrt", {"collision": "mrt"}),
    "parameters": ("parameters", {"magic": 0.2}, {"parameters": {"magic": 0.2}}),
    "smagorinsky": ("smagorinsky", 0.1, {"smagorinsky": 0.1}),
    "force": ("force", (1e-4, 2e-4), {"force": (1e-4, 2e-4)}),
}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def bits(flow: Simulation) -> list[bytes]:
    return [
        np.ascontiguousarray(to_host(a)).tobytes() for a in (flow.engine.arriving(), flow.density, flow.velocity)
    ]  # fmt: skip


def continued(flow: Simulation, **options: Any) -> Simulation:
    """A new simulation with these options and the populations of `flow`."""
    fresh = Simulation(**options, streaming=flow.settings.streaming, device=flow.settings.device)
    fresh.engine.restore(flow.engine.save())
    return fresh


@pytest.mark.quick("cpu-force-in-place", "cpu-parameters-in-place", "cpu-viscosity-in-place", "cpu-omega-pull")
@pytest.mark.parametrize("streaming", ["in-place", "pull"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_setting_acts_from_the_next_step_on(change: str, streaming: str, device: str) -> None:
    """To the bit as a new simulation with the same populations, there and back."""
    name, value, options = CHANGES[change]
    flow = Simulation(**BOX, streaming=streaming, device=device).run(5)
    before = getattr(flow, name)
    for wanted, given in ((value, options), (before, {"collision": "trt"} if name == "collision" else {})):
        setattr(flow, name, wanted)
        assert getattr(flow, name) == pytest.approx(wanted) if name == "viscosity" else getattr(flow, name) == wanted
        fresh = continued(flow, **{**BOX, **given})
        assert bits(flow) == bits(fresh)
        assert bits(flow.run(5)) == bits(fresh.run(5))
    assert flow.step == 15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the mean density has changed")
def test_the_speed_of_outflow_and_a_force_between_openings() -> None:
    edges = {"x": ("slip", "outflow"), "y": "slip"}
    flow = Simulation(**{**FLOW, "edges": edges}).run(6)
    flow.outflow_speed, flow.force = 0.25, (1e-5, 0.0)
    other = continued(flow, **{**FLOW, "edges": edges, "force": (1e-5, 0.0), "outflow_speed": 0.25})
    assert bits(flow) == bits(other)
    assert bits(flow.run(6)) == bits(other.run(6))


def test_a_profile_may_come_later() -> None:
    flow = Simulation(**BOX).run(4)
    profile = flow.profile = Profile()
    flow.run(6)
    assert profile.summary()["steps"]["count"] == 6
    assert bits(flow) == bits(Simulation(**BOX).run(10))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("viscosity", -0.1, "the kinematic viscosity nu is -0.1"),
        ("omega", 2.0, "the relaxation time tau is 0.5; wanted more than 0.5"),
        ("collision", "mrt2", "unknown collision operator 'mrt2'"),
        ("parameters", {"magik": 1}, "the collision operator 'trt' has no parameter 'magik'; it has magic"),
        ("force", (1e-4,), "the force is (0.0001,); wanted 2 finite components"),
        ("smagorinsky", -0.1, "the constant of Smagorinsky is -0.1; wanted zero or more"),
        ("outflow_speed", 0.0, "the outflow speed is 0"),
    ],
)
def test_a_refused_setting_changes_nothing(name: str, value: Any, message: str) -> None:
    flow = Simulation(**BOX).run(3)
    before = flow.settings
    with pytest.raises(InputError) as error:
        setattr(flow, name, value)
    assert str(error.value).startswith(message)
    assert flow.settings is before
    assert bits(flow.run(3)) == bits(Simulation(**BOX).run(6))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("viscosty", "Simulation has no attribute 'viscosty'; did you mean 'viscosity'?"),
        ("step", "Simulation.step cannot be assigned: it counts the steps that were taken"),
        ("velocity", "Simulation.velocity cannot be assigned: it follows from the populations; a new Simulation takes it as its"),
        ("density", "Simulation.density cannot be assigned: it follows from the populations;"),
        ("settings", "Simulation.settings cannot be assigned: assign the setting itself, as in simulation.viscosity = 0.02"),
        ("geometry", "Simulation.geometry cannot be assigned: make a new Simulation with mask=..., kinds=... and edges=..."),
        ("lattice", "Simulation.lattice cannot be assigned: make a new Simulation with lattice=..."),
    ],
)  # fmt: skip
def test_no_other_attribute_is_assigned(name: str, message: str) -> None:
    with pytest.raises(AttributeError) as error:
        setattr(Simulation(**BOX), name, 1)
    assert str(error.value).startswith(message)


def test_populations_that_were_replaced_are_noticed() -> None:
    """By `engine`, after a look at the fields."""
    flow, other = Simulation(**BOX).run(3), Simulation(**BOX).run(8)
    assert flow.velocity.any()
    flow.engine.set_arriving(other.engine.arriving())
    np.testing.assert_array_equal(flow.velocity, other.velocity)
    np.testing.assert_allclose(flow.run(4).velocity, other.run(4).velocity, atol=1e-7)


def test_what_is_seen_of_a_flow_is_read_only() -> None:
    flow = Simulation(**BOX).run(3)
    for field in (flow.velocity, flow.density):
        with pytest.raises(ValueError, match="read-only"):
            field[...] = 0
    with pytest.raises(TypeError, match="does not support item assignment"):
        flow.parameters["magic"] = 0.1  # type: ignore[index]
