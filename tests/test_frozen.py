"""What is frozen says so: assignments are refused in words, also to names that are misspelt."""

from __future__ import annotations

from typing import Any

import pytest

import lanewise as lw
from lanewise.sims import gravity, lbm
from lanewise.sims.boids.obstacles import Plane, Sphere
from lanewise.sims.boids.parameters import Parameters

FROZEN: dict[str, tuple[Any, str]] = {
    "plan": (lw.Plan(), "targets"),
    "all pairs": (lw.AllPairs(), "radius"),
    "static grid": (lw.StaticGrid(radius=1.0), "radius"),
    "dynamic grid": (lw.DynamicGrid(radius=1.0), "radius"),
    "neighbors": (lw.Neighbors(radius=1.0), "radius"),
    "nearest": (lw.Nearest(k=1), "k"),
    "bounded": (lw.Bounded((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), "low"),
    "periodic": (lw.Periodic((1.0, 1.0, 1.0)), "size"),
    "aosoa": (lw.AoSoA(4), "width"),
    "lattice": (lw.D2Q9, "velocities"),
    "wall": (lbm.Wall("wall"), "velocity"),
    "parameters": (Parameters(), "radius"),
    "sphere": (Sphere((0.0, 0.0, 0.0), 1.0), "radius"),
    "plane": (Plane((0.0, 0.0, 0.0)), "normal"),
    "particles": (gravity.make_initial_conditions("plummer", 3, 1), "position"),
    "settings of a flow": (lbm.Simulation(shape=(5, 5), viscosity=0.1).settings, "omega"),
}


@pytest.mark.parametrize("what", FROZEN)
def test_frozen_objects_refuse_in_words(what: str) -> None:
    thing, name = FROZEN[what]
    cls = type(thing).__name__
    with pytest.raises(AttributeError) as error:
        setattr(thing, name, 3)
    assert (
        str(error.value) == f"{cls}.{name} cannot be assigned: dataclasses.replace(..., {name}=...) makes another {cls}"
    )
    with pytest.raises(AttributeError) as error:
        setattr(thing, f"{name}s", 3)
    assert str(error.value) == f"{cls} has no field '{name}s' and is frozen; did you mean {name!r}?"
    with pytest.raises(AttributeError) as error:
        thing.qqq = 3
    assert str(error.value).startswith(f"{cls} has no field 'qqq' and is frozen; its fields are ")
    with pytest.raises(AttributeError, match=f"{cls} is frozen: '{name}' cannot be deleted"):
        delattr(thing, name)


@pytest.mark.parametrize("thing", [lw.Open(), lw.SoA(), lw.AoS()], ids=str)
def test_what_has_no_fields_says_so(thing: Any) -> None:
    with pytest.raises(AttributeError, match="has no field 'width' and is frozen; it has no fields"):
        thing.width = 3


def test_a_profile_gets_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match=r"Profile has no attribute 'total'; did you mean 'totals'\?"):
        lw.Profile().total = 1  # type: ignore[attr-defined]


@lw.function
def twice(x):  # type: ignore[no-untyped-def]
    return 2 * x


@lw.elementwise
def doubled(x: lw.f32) -> lw.f32:
    return twice(x)


@lw.sitewise(lw.D2Q9)
def still(f: lw.populations):  # type: ignore[no-untyped-def]
    for q in lw.D2Q9:
        f[q] = 0


@pytest.mark.parametrize(
    ("thing", "name", "message"),
    [
        (twice, "weight", "HelperFunction has no attribute 'weight'"),
        (twice, "function", "HelperFunction.function cannot be assigned"),
        (doubled, "plan", "Elementwise has no attribute 'plan'"),
        (doubled, "python", "Elementwise.python cannot be assigned"),
        (still, "walls", "Sitewise.walls cannot be assigned"),
    ],
)
def test_a_kernel_gets_no_attributes(thing: Any, name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=f"^{message}"):
        setattr(thing, name, 1)


def test_the_geometry_of_a_flow_stays_as_it_is() -> None:
    """Its kernels are made for it; what it was made of may change."""
    import numpy as np

    mask, kinds = np.zeros((6, 7), np.uint8), {1: lbm.Wall("wall")}
    mask[2, 2] = 1
    flow = lbm.Simulation(shape=(6, 7), viscosity=0.1, mask=mask, kinds=kinds)
    mask[3, 3] = 1
    kinds[2] = lbm.Wall("other")
    assert (int(flow.solid.sum()), list(flow.geometry.kinds)) == (1, [1])
    with pytest.raises(ValueError, match="read-only"):
        flow.geometry.mask[3, 3] = 1  # type: ignore[index]
    with pytest.raises(TypeError, match="does not support item assignment"):
        flow.geometry.kinds[2] = lbm.Wall("other")  # type: ignore[index]
