"""The kernels that fill cells, run on a CPU as C++: every cell has its members, in the order of their indices."""

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.builders.cells import host_cells
from lanewise.patterns.search.builders.cells_device import kernel_texts, launch_list, memory_sizes
from lanewise.patterns.search.builders.geometry import Geometry, fitted
from lanewise.patterns.search.points import Points, points_of
from lanewise.runtime.nvrtc import compile_cubin
from tests.search.clouds import CLOUDS, cloud
from tests.search.emulated_builds import cell_kernels
from tests.search.emulated_cuda import COMPILER
from tests.search.numbered import numbered


def emulated(geometry: Geometry, sources: Points) -> dict[str, np.ndarray]:
    """The memory of the kernels after two builds."""
    kernels = cell_kernels(sources, periodic=geometry.periodic)
    memory = {name: np.zeros(length, np.int32) for name, length in memory_sizes(geometry, sources.count).items()}
    columns = [sources.data.ctypes.data + sources.arrangement.address(x, 0, sources.count) for x in sources.leaves]
    for _ in range(2):
        for x in launch_list(geometry, sources, columns):
            given = tuple(memory[a].ctypes.data if isinstance(a, str) else a for a in x.arguments)
            kernels[x.kernel].launch((x.blocks, 1), given)
    return memory


def check(geometry: Geometry, sources: Points) -> None:
    memory, host = emulated(geometry, sources), host_cells(geometry, sources)
    for task in host.tasks:
        task.run()
    np.testing.assert_array_equal(memory["starts"][: geometry.total + 1], host.starts)
    np.testing.assert_array_equal(memory["order"], host.order)
    assert not memory["counts"].any()  # for the next build


needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) on this machine")


@pytest.mark.quick("uniform", "clusters", "outliers", "single place")
@needs_compiler
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud(name):
    x, radius = cloud(name, 700, 3, "f4")
    low, high = x.min(axis=0).astype(float), x.max(axis=0).astype(float)
    geometry = fitted(tuple(low), tuple(np.minimum(high - low, 20.0)), radius, 1400, periodic=False)
    check(geometry, points_of(numbered(x), "position"))


@needs_compiler
@pytest.mark.parametrize(
    ("dtype", "axes", "layout"), [("f8", 2, lw.AoSoA(8)), ("f4", 2, lw.AoS()), ("f8", 3, lw.SoAoAS())]
)
def test_layouts_and_periodic_worlds(dtype, axes, layout):
    x, _ = cloud("uniform", 500, axes, dtype)
    sources = points_of(numbered(x * 3 - 1, layout), "position")
    check(Geometry((0.0,) * axes, (0.125,) * axes, (8, 4, 8)[:axes], periodic=True), sources)


@needs_compiler
def test_many_cells_and_crowded_ones():
    """Several tiles of the scan, and cells that are sorted: eight neighbours in shared memory, and one beyond it."""
    x, _ = cloud("uniform", 12_000, 3, "f4")
    x[:9000] = 0.5
    x[9000:9400] = 0.775
    x[9000:9400, 0] = 0.05 * (np.arange(400) % 8) + 0.025
    x = np.random.default_rng(1).permutation(x)
    check(
        Geometry((0.0, 0.0, 0.0), (0.05, 0.05, 0.05), (20, 20, 23), periodic=False), points_of(numbered(x), "position")
    )


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoSoA(32)], ids=str)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 3), ("f8", 2)])
def test_they_compile_without_spills(dtype, axes, periodic, layout):
    sources = points_of(numbered(np.zeros((3, axes), dtype), layout), "position")
    for name, text in kernel_texts(sources.arrangement, sources.leaves, sources.precision, periodic=periodic).items():
        resources = compile_cubin(text, name, "sm_90").resources
        assert resources.spill_stores == resources.spill_loads == resources.stack_bytes == 0
        assert resources.registers <= 40
