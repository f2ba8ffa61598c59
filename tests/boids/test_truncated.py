"""Forces and speeds have a largest length, to the last bits: what is hardly longer is shortened, what is not stays as
it is.
"""

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids.rules import truncated


@lw.elementwise
def single(v: lw.vec3, most: lw.f32) -> lw.vec3:
    return truncated(v, most)


@lw.elementwise
def double(v: lw.dvec3, most: lw.f64) -> lw.dvec3:
    return truncated(v, most)


@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("precision", ["f4", "f8"])
def test_nothing_is_longer_than_most(precision: str, device: str) -> None:
    rng = np.random.default_rng(4)
    directions = rng.normal(size=(40, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    close = 1e-6 if precision == "f4" else 1e-14
    excess = np.tile([-0.5, -1e-2, -10 * close, 10 * close, 1e-4, 5e-3, 0.5, 1e3], 5)
    v, most = (directions * 2.75 * (1 + excess)[:, None]).astype(precision), np.dtype(precision).type(2.75)
    given = pytest.importorskip("cupy").asarray(v) if device == "cuda" else v
    with lw.device(device):
        found = (single if precision == "f4" else double)(given, most)
    found = found.get() if hasattr(found, "get") else np.asarray(found)
    long = excess > 0
    assert (found[~long] == v[~long]).all()
    np.testing.assert_allclose(np.linalg.norm(found[long].astype("f8"), axis=1), 2.75, rtol=2 * close)
    np.testing.assert_allclose(found[long], directions[long] * 2.75, rtol=0, atol=10 * close)
