"""The bodies of the other tests on a GPU: every structure over every cloud, world and layout meets the sources of all
pairs.
"""

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.search import test_dynamic_grid as dynamic
from tests.search import test_structures as static
from tests.search.clouds import CLOUDS, cloud

pytestmark = pytest.mark.cuda
DEVICE = "cuda"
COUNT = 3000
PERIODIC = lw.Periodic((1.0, 1.0, 1.0))


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 3), ("f8", 2)])
def test_static_grids(name: str, dtype: str, axes: int) -> None:
    x, radius = cloud(name, static.COUNT, axes, dtype)
    for wanted in static.WANTED:
        static.check(lw.StaticGrid(**static.scaled(wanted, radius)), x, device=DEVICE)
        static.check(lw.StaticGrid(**static.scaled(wanted, radius), build="host"), x, device=DEVICE)
    static.check(lw.StaticGrid(radius=radius, k=4, cells=6, index="constant"), x, device=DEVICE)


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("way", [*dynamic.WAYS, dynamic.AROUND], ids=str)
def test_dynamic_grids(name: str, way: dict[str, Any]) -> None:
    x, radius = cloud(name, COUNT, 3, "f4", seed=12)
    for wanted in dynamic.finds(way, radius):
        dynamic.check(lw.DynamicGrid(**wanted, **way), x, device=DEVICE)


@pytest.mark.parametrize("k", [None, 4])
@pytest.mark.parametrize("search", [lw.StaticGrid, lw.DynamicGrid])
def test_periodic_worlds(search: Any, k: int | None) -> None:
    x, _ = cloud("uniform", COUNT, 3, "f4", seed=5)
    x[:40] = np.random.default_rng(6).choice(np.array([0, 1, 0.5, 1 - 2**-24, 2**-24, 1e-3], "f4"), (40, 3))
    dynamic.check(search(radius=0.1, k=k, world=PERIODIC), x + 3 * (np.arange(COUNT) % 2)[:, None], device=DEVICE)


@pytest.mark.parametrize("layout", static.LAYOUTS, ids=str)
@pytest.mark.parametrize("search", [lw.StaticGrid, lw.DynamicGrid])
def test_layouts_and_other_targets(search: Any, layout: Any) -> None:
    x, radius = cloud("uniform", 500, 3, "f4", seed=2)
    y, _ = cloud("clusters", COUNT, 3, "f4", seed=3)
    for wanted in static.WANTED:
        static.check(search(**static.scaled(wanted, radius)), x, y.astype("f4"), layout=layout, device=DEVICE)
