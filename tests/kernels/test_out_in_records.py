"""`out=` in the memory of the records of a call: taken where no element reads what another one's result overwrites,
refused where one might.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.memory import to_host
from lanewise.support.errors import ArgumentError

DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
every_device = pytest.mark.parametrize("device", DEVICES)


@lw.record
class Grain:
    """A mass at a position, and what is computed of it."""

    position: lw.vec2
    mass: lw.f32
    density: lw.f32


@lw.pairwise
def mass_of_all(target: Grain, source: Grain) -> lw.f32:
    return source.mass


@lw.pairwise(search=lw.StaticGrid(radius=0.5, world=lw.Periodic((1, 1))))
def mass_around(target: Grain, source: Grain) -> tuple[lw.f32, lw.f32]:
    return source.mass, 2 * source.mass


@lw.elementwise
def doubled(grain: Grain) -> lw.f32:
    return 2 * grain.mass


@lw.elementwise
def grown(grain: Grain) -> lw.f32:
    grain.mass += 1
    return grain.mass


def grains(device: str) -> Any:
    places = np.random.default_rng(1).random((40, 2))
    return Grain.array(position=places, mass=np.ones(40), layout=lw.SoA(), device=device)


@every_device
def test_a_field_that_the_kernel_does_not_use_takes_results(device: str) -> None:
    array = grains(device)
    for kernel in (mass_of_all, mass_of_all, mass_of_all.bind):  # a first call, a call like it, and a bound one
        array.density = np.zeros(40, "f4")
        result = kernel(array, array, out=array.density)
        if kernel is not mass_of_all:
            result()
        np.testing.assert_array_equal(to_host(array.density), 40)


@every_device
def test_an_element_replaces_its_own_field(device: str) -> None:
    array = grains(device)
    for expected in (2, 4, 8):
        doubled(array, out=array.mass)
        np.testing.assert_array_equal(to_host(array.mass), expected)


@every_device
def test_what_other_elements_read_is_not_overwritten(device: str) -> None:
    array = grains(device)
    own = array.density
    reads = "shares memory with {}, which the kernel reads for other elements; give it its own memory"
    for _ in range(2):  # also where an earlier call was like this one
        mass_of_all(array, array)
        with pytest.raises(ArgumentError, match=f"mass_of_all: out {reads.format('source.mass')}"):
            mass_of_all(array, array, out=array.mass)
        doubled(array[:-1])
        with pytest.raises(ArgumentError, match=f"doubled: out {reads.format('grain.mass')}"):
            doubled(array[:-1], out=array.mass[1:])
        with pytest.raises(ArgumentError, match=r"grown: out shares memory with grain\.mass, which the kernel changes"):
            grown(array, out=array.mass)
        mass_around(array, array)
        with pytest.raises(ArgumentError, match=f"mass_around: out {reads.format('source.mass')}"):
            mass_around(array, array, out=(own, array.mass))
        with pytest.raises(ArgumentError, match="mass_around: two arrays of out share memory"):
            mass_around(array, array, out=(own, own))
    np.testing.assert_array_equal(to_host(array.mass), 1)
    np.testing.assert_array_equal(to_host(array.density), 0)
