"""Particles for the tests of the file formats."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lanewise.io.particles import Particles
from lanewise.io.sums import put_sum

# float32 values survive every format exactly.
NUMBERS = st.floats(-(2.0**99), 2.0**99, width=32)


def mixed(bodies: int = 40, softening: float | None = 0.125) -> Particles:
    """Bodies of all six types in random order, with ids that are not 0..n-1; values exact in float32."""
    random = np.random.default_rng(7)
    return Particles.of(
        random.standard_normal((bodies, 3)).astype(np.float32),
        random.standard_normal((bodies, 3)).astype(np.float32),
        random.random(bodies).astype(np.float32),
        ids=random.permutation(bodies) + 1_000_000,
        component=random.permutation(np.arange(bodies) % 6),
        time=2.5,
        softening=softening,
    )


@st.composite
def particles(draw: st.DrawFn) -> Particles:
    """Any particles that every format can hold but for order, ids, time and softening."""
    n = draw(st.integers(1, 12))
    return Particles.of(
        draw(hnp.arrays(np.float64, (n, 3), elements=NUMBERS)),
        draw(hnp.arrays(np.float64, (n, 3), elements=NUMBERS)),
        draw(hnp.arrays(np.float64, n, elements=st.floats(0, 2.0**99, width=32))),
        ids=draw(hnp.arrays(np.int64, n, elements=st.integers(-(2**63), 2**63 - 1), unique=True)),
        component=draw(hnp.arrays(np.uint8, n, elements=st.integers(0, 5))),
        time=draw(st.floats(-1e300, 1e300)),
        softening=draw(st.none() | st.floats(2.0**-99, 2.0**99, width=32)),
    )


def renew_sums(file: Any) -> None:
    """Give every dataset of an open file the sum of what it holds now: for lies that damage could not tell."""

    def renew(_: str, held: Any) -> None:
        if isinstance(held, h5py.Dataset) and held.shape is not None and not held.dtype.hasobject:
            put_sum(held, np.asarray(held[()]))

    file.visititems(renew)


def assert_same_bodies(found: Particles, wanted: Particles) -> None:
    np.testing.assert_array_equal(found.position, wanted.position)
    np.testing.assert_array_equal(found.velocity, wanted.velocity)
    np.testing.assert_array_equal(found.mass, wanted.mass)


def assert_same(found: Particles, wanted: Particles) -> None:
    assert_same_bodies(found, wanted)
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_array_equal(found.component, wanted.component)
    assert (found.time, found.softening) == (wanted.time, wanted.softening)
