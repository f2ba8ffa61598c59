"""Particles.of converts, fills in and refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lanewise.io.particles import Particles, concatenate
from lanewise.support.errors import InputError
from tests.io.samples import mixed

ZEROS = np.zeros((3, 3))


def with_value(shape: tuple[int, ...], index: Any, value: float) -> np.ndarray:
    array = np.zeros(shape)
    array[index] = value
    return array


def test_defaults_and_conversion() -> None:
    bodies = Particles.of([[1, 2, 3], [4, 5, 6]], np.zeros((2, 3), np.float32), 0.5)
    assert bodies.position.dtype == bodies.velocity.dtype == bodies.mass.dtype == np.float64
    assert (bodies.ids.dtype, bodies.component.dtype) == (np.int64, np.uint8)
    assert bodies.mass.tolist() == [0.5, 0.5]
    assert bodies.ids.tolist() == [0, 1]
    assert bodies.component.tolist() == [1, 1]
    assert (bodies.time, bodies.softening, len(bodies)) == (0.0, None, 2)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"position": with_value((3, 3), (1, 2), np.nan)}, "position of body 1 is nan in z; wanted a finite number"),
        ({"velocity": with_value((3, 3), (2, 0), -np.inf)}, "velocity of body 2 is -inf in x; wanted a finite number"),
        ({"mass": with_value((3,), 1, np.inf)}, "mass of body 1 is inf; wanted a finite number"),
        ({"mass": with_value((3,), 2, -1.5)}, "mass of body 2 is -1.5; wanted zero or more"),
        ({"position": np.zeros((0, 3))}, "there are no bodies; at least one is wanted"),
        ({"position": np.zeros((3, 2))}, "position has shape (3, 2); wanted (n, 3)"),
        ({"position": 1.0}, "position has shape (); wanted (n, 3)"),
        ({"velocity": np.zeros((2, 3))}, "velocity has shape (2, 3); wanted (3, 3)"),
        ({"mass": np.zeros(4)}, "mass has shape (4,); wanted (3,)"),
        ({"position": np.zeros((3, 3), complex)}, "position has dtype complex128; wanted real numbers"),
        ({"mass": ["a", "b", "c"]}, "mass has dtype <U1; wanted real numbers"),
        ({"position": [[1.0, 2.0, 3.0], [1.0]]}, "position is not an array of numbers: "),
        ({"ids": [0.0, 1.0, 2.0]}, "ids has dtype float64; wanted integers"),
        ({"ids": [0, 1]}, "ids has shape (2,); wanted (3,)"),
        ({"ids": np.full(3, 2**63, np.uint64)}, f"ids has the value {2**63}; wanted at most {2**63 - 1}"),
        ({"component": [1, 1, 6]}, "component of body 2 is 6; wanted 0 to 5"),
        ({"component": -1}, "component of body 0 is -1; wanted 0 to 5"),
        ({"time": np.nan}, "time is nan; wanted a finite number"),
        ({"softening": -0.1}, "softening is -0.1; wanted 0 or more"),
    ],
)
def test_refused(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"position": ZEROS, "velocity": ZEROS, "mass": np.ones(3)}
    with pytest.raises(InputError, match="^" + re.escape(message)):
        Particles.of(**(good | fields))


def test_concatenate() -> None:
    first, second = mixed(5), mixed(7)
    both = concatenate([first, second])
    np.testing.assert_array_equal(both.position, np.concatenate([first.position, second.position]))
    np.testing.assert_array_equal(both.component, np.concatenate([first.component, second.component]))
    assert both.ids.tolist() == list(range(12))
    assert (both.time, both.softening) == (2.5, 0.125)
    assert concatenate([first, mixed(2, softening=None)]).softening is None
    with pytest.raises(InputError, match="there are no bodies"):
        concatenate([])
