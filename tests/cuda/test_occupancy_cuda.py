"""The occupancy model against the driver, over a grid of registers, shared memory and block sizes."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from lanewise.models.devices import device_model
from lanewise.runtime.nvrtc import cuda_core
from lanewise.runtime.occupancy import LIMITS, resident
from tests.conftest import why_no_gpu

DEVICE = "cuda"
CAPS = (16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 144, 160, 168, 192, 200, 224, 240, 255)
BLOCKS = (32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 480, 512, 640, 672, 768, 800, 896, 928, 1024)
SHARED = (0, 1, 127, 128, 1_024, 4_000, 7_168, 8_192, 14_336, 16_384, 24_576, 32_768, 48_000, 49_152)

# More values at once than any thread has registers: what it takes is its cap, and the rest is spilled.
GREEDY = """
extern "C" __global__ void greedy(float *out, const float *in, int n)
{
    float v[250];
    #pragma unroll
    for (int k = 0; k < 250; ++k) v[k] = in[threadIdx.x + k * n];
    for (int turn = 0; turn < n; ++turn) {
        #pragma unroll
        for (int k = 0; k < 250; ++k) v[k] = v[k] * v[(k + 1) % 250] + 1.0f;
    }
    #pragma unroll
    for (int k = 0; k < 250; ++k) out[threadIdx.x + k * n] = v[k];
}
"""


@functools.cache
def greedy_cubin(arch: str, cap: int) -> bytes:
    core = cuda_core()
    options = core.ProgramOptions(name="greedy.cu", arch=arch, std="c++17", max_register_count=cap)
    return bytes(core.Program(GREEDY, "c++", options).compile("cubin").code)


class Loaded:
    """A function of the driver, and what it says of it."""

    def __init__(self, cubin: bytes) -> None:
        from cuda.bindings import driver

        cuda_core().Device(0).set_current()
        self.driver: Any = driver
        self.module = self.call(driver.cuModuleLoadData(cubin))
        self.function = self.call(driver.cuModuleGetFunction(self.module, b"greedy"))

    def call(self, result: Any) -> Any:
        status, *values = result
        assert status == self.driver.CUresult.CUDA_SUCCESS, status.name
        return values[0] if values else None

    @property
    def registers(self) -> int:
        return self.call(
            self.driver.cuFuncGetAttribute(self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, self.function)
        )

    def allow(self, shared: int) -> None:
        attribute = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call(self.driver.cuFuncSetAttribute(self.function, attribute, shared))

    def blocks(self, threads: int, shared: int) -> int:
        return self.call(self.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(self.function, threads, shared))


@pytest.fixture(scope="module")
def limits() -> Any:
    if missing := why_no_gpu():
        pytest.skip(missing)
    return device_model(DEVICE).limits


@pytest.mark.cuda
@pytest.mark.parametrize("cap", CAPS)
def test_blocks_of_a_multiprocessor(cap: int, limits: Any) -> None:
    """Every block size, with what shared memory a block gets without and with asking."""
    model = device_model(DEVICE)
    loaded = Loaded(greedy_cubin(model.arch, cap))
    most = limits.block_shared_bytes
    loaded.allow(most)
    taken = loaded.registers
    wrong: list[tuple[int, int, int, int]] = []
    for threads in BLOCKS:
        for shared in (*SHARED, 65_536, most // 2, most // 2 + 1, most - 1_024, most):
            if shared > most:
                continue
            wanted, found = loaded.blocks(threads, shared), resident(limits, threads, taken, shared).blocks
            if wanted != found:
                wrong.append((threads, shared, wanted, found))
    assert not wrong, f"{taken} registers: (threads, shared bytes, the driver's blocks, the model's) {wrong[:8]}"
    assert taken <= max(cap, 24)  # fewer than 24 registers are not given to anyone


@pytest.mark.cuda
def test_the_grid_has_many_registers(limits: Any) -> None:
    """The caps are reached: a grid of equal registers would prove little."""
    del limits
    arch = device_model(DEVICE).arch
    assert len({Loaded(greedy_cubin(arch, cap)).registers for cap in CAPS}) >= 20


@pytest.mark.cuda
def test_the_table_is_the_device(limits: Any) -> None:
    """The limits that the driver reports are those that the table has for this architecture."""
    arch = device_model(DEVICE).arch
    if arch not in LIMITS:
        pytest.skip(f"the table has no {arch}")
    assert limits == LIMITS[arch]


@pytest.mark.cuda
def test_device_model_of_this_gpu() -> None:
    """Figures of the right size, from the driver."""
    m = device_model(DEVICE)
    assert m.kind == "cuda"
    assert m.multiprocessors >= 1
    assert 5e8 < m.clock_hz < 4e9
    assert 5e10 < m.memory_bandwidth < 2e13
    assert m.l2_bytes >= 1 << 19
