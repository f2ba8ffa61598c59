"""Whatever lanewise gives can be copied and pickled into something of its own, or refuses: a copy never changes what it
was made of.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.sitewise.split_sites import SplitSites
from tests.pickled_kernels import Grain, grow, near, warm
from tests.public_calls import PLACES, public_names
from tests.public_calls import _flock as flock
from tests.public_calls import _flow as flow
from tests.public_calls import _gravity as gravity


def through(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


COPIERS = (copy.copy, copy.deepcopy, through)
PARTS = lw.Mesh("cpu", parts=2)


def grains(device: Any = "cpu") -> Any:
    return Grain.array(position=np.arange(15.0).reshape(5, 3), mass=np.arange(5.0), device=device)


def to_grains(masses: list[float]) -> Any:
    return Grain.array(mass=masses)


def to_lists(masses: list[float]) -> Any:
    return lw.ragged(Grain.array(mass=masses), counts=[1, len(masses) - 1])


def of_grains(found: Any) -> list[float]:
    return found.mass.tolist()


def of_lists(found: Any) -> list[float]:
    return found.data.mass.tolist()


def forms(way: str, touched: int) -> Any:
    """Two forms of which nothing, the device's, or the device's changed by a kernel is there."""
    made = {"grains": (to_grains, of_grains), "lists": (to_lists, of_lists)}[way]
    two = lw.TwoForms([1.0, 2.0, 3.0], to_device=made[0], to_host=made[1])
    if touched:
        two.device  # noqa: B018  (made now)
    if touched > 1:
        fatten(two)
    return two


def fatten(two: Any) -> None:
    device = two.device
    grow(device.data if isinstance(device, lw.RaggedArray) else device, by=1.0)


@pytest.mark.parametrize("touched", [0, 1, 2])
@pytest.mark.parametrize("way", ["grains", "lists"])
@pytest.mark.parametrize("copied", COPIERS, ids=["copy", "deepcopy", "pickle"])
def test_a_copy_of_two_forms_follows_its_own_memory(copied: Callable[[Any], Any], way: str, touched: int) -> None:
    two, more = forms(way, touched), 2.0 if touched > 1 else 0.0
    other = copied(two)
    first = [1.0 + more, 2.0 + more, 3.0 + more]
    for n in (1, 2):
        fatten(other)
        assert other.host == [x + 2.0 * n for x in first]
    assert two.host == first
    fatten(two)
    assert (two.host, other.host) == ([x + 2.0 for x in first], [x + 4.0 for x in first])
    with other.changing() as value:
        value[0] = 9.0
    other.host = [*other.host, 7.0]
    assert of_grains(to_grains(two.host)) == [x + 2.0 for x in first]
    assert (of_grains if way == "grains" else of_lists)(two.device) == [x + 2.0 for x in first]


@pytest.mark.parametrize("copied", COPIERS, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("device", ["cpu", PARTS], ids=str)
def test_a_copy_of_a_field_has_memory_of_its_own(device: Any, copied: Callable[[Any], Any]) -> None:
    array = grains(device)
    other = copied(array.mass)
    other += 1
    np.testing.assert_array_equal(array.numpy()["mass"], np.arange(5.0))
    np.testing.assert_array_equal(np.asarray(other), np.arange(5.0) + 1)
    if device is PARTS:
        kept = array.mass.copy()
        array.mass += 1
        np.testing.assert_array_equal(np.asarray(kept), np.arange(5.0))


def sites(device: Any) -> Any:
    return warm.sites((16, 8), t=np.ones((16, 8), np.float32), device=device)


LIVE: dict[str, Callable[[], Any]] = {
    "bound": lambda: grow.bind(grains(), 1.0),
    "bound search": lambda: near.bind(*[grains()] * 2),
    "bound on a mesh": lambda: grow.bind(grains(PARTS), 1.0),
    "every": lambda: lw.every(2, grow.bind(grains(), 1.0)),
    "loop": lambda: lw.steps([grow.bind(grains(), 1.0)]),
    "sites": lambda: sites("cpu"),
    "sites on a mesh": lambda: sites(PARTS),
    "stepper": lambda: warm.stepper(sites("cpu")),
    "gravity": gravity,
    "flow": flow,
    "flock": flock,
}


@pytest.mark.parametrize("name", LIVE)
def test_what_steps_memory_is_not_copied(name: str) -> None:
    """A copy would change the same memory, and each would count steps of its own."""
    copiers = COPIERS[1:] if name == "every" else COPIERS  # a shallow copy of a frozen value is as the value
    for copied in copiers:
        with pytest.raises(lw.ArgumentError, match=r"is bound to its memory, and cannot be copied or pickled: \w+"):
            copied(LIVE[name]())


NO_STATE = {
    **dict.fromkeys(("Array1", "Array2", "Array3", "Field", "Row"), "annotations"),
    **dict.fromkeys(("Layout", "obstacles.Surface"), "abstract"),
    "Fate": "an enumeration",
    "Profile": "its totals are the caller's",
}


def test_every_public_class_says_what_a_copy_is() -> None:
    """It is frozen, or has its own way of copying; objects with state that Python copies field by field share what they
    hold.
    """
    classes = {"SplitSites": SplitSites}
    for name in public_names():
        place, dot, own = name.partition(".")
        found = getattr(PLACES[place], own, None) if place in PLACES and dot else getattr(lw, name, None)
        if inspect.isclass(found) and not issubclass(found, BaseException):
            classes[name] = found
    assert len(classes) > 60

    def says(kind: type) -> bool:
        frozen = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
        ours = [c for c in kind.__mro__ if c.__module__.startswith("lanewise")]
        return frozen or any(m in vars(c) for c in ours for m in ("__copy__", "__reduce__"))

    assert sorted(n for n, kind in classes.items() if not says(kind)) == sorted(NO_STATE)
