"""Against values of NVIDIA's occupancy calculator that follow from the published limits; a GPU's own answers are in
tests/cuda.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.runtime.occupancy import LIMITS, occupancy, resident

KIB = 1024

# architecture, threads, registers, shared bytes -> blocks, share, limiter
PUBLISHED = [
    ("sm_90", 256, 32, 0, 8, 1.0, "threads"),
    ("sm_90", 256, 64, 0, 4, 0.5, "registers"),
    ("sm_90", 256, 59, 7_168, 4, 0.5, "registers"),
    ("sm_90", 512, 40, 14_336, 3, 0.75, "registers"),
    ("sm_90", 256, 48, 4_096, 5, 0.625, "registers"),
    ("sm_90", 512, 113, 8_192, 1, 0.25, "registers"),
    ("sm_90", 128, 255, 0, 2, 0.125, "registers"),
    ("sm_90", 32, 16, 0, 32, 0.5, "blocks"),
    ("sm_90", 1024, 64, 0, 1, 0.5, "registers"),
    ("sm_90", 1024, 65, 0, 0, 0.0, "registers"),
    ("sm_90", 256, 32, 48 * KIB, 4, 0.5, "shared memory"),
    ("sm_90", 256, 32, 227 * KIB, 1, 0.125, "shared memory"),
    ("sm_90", 256, 32, 227 * KIB + 1, 0, 0.0, "shared memory"),
    ("sm_80", 1024, 32, 0, 2, 1.0, "threads"),
    ("sm_80", 256, 32, 48 * KIB, 3, 0.375, "shared memory"),
    ("sm_80", 64, 32, 4 * KIB, 32, 1.0, "threads"),
    ("sm_86", 1024, 32, 0, 1, 32 / 48, "threads"),
    ("sm_86", 256, 32, 48 * KIB, 2, 16 / 48, "shared memory"),
    ("sm_86", 64, 32, 0, 16, 32 / 48, "blocks"),
    ("sm_89", 64, 32, 0, 24, 1.0, "threads"),
    ("sm_89", 256, 40, 0, 6, 1.0, "threads"),
    ("sm_75", 1024, 64, 0, 1, 1.0, "threads"),
    ("sm_75", 256, 32, 48 * KIB, 1, 0.25, "shared memory"),
    ("sm_75", 64, 32, 0, 16, 1.0, "threads"),
    ("sm_100", 256, 32, 100 * KIB, 2, 0.25, "shared memory"),
    ("sm_120", 256, 40, 0, 6, 1.0, "threads"),
    ("sm_120", 128, 72, 0, 7, 28 / 48, "registers"),
]


@pytest.mark.parametrize(("arch", "threads", "registers", "shared", "blocks", "share", "limiter"), PUBLISHED)
def test_published(arch, threads, registers, shared, blocks, share, limiter):
    found = resident(arch, threads, registers, shared)
    assert (found.blocks, found.share, found.limiter) == (blocks, pytest.approx(share), limiter)
    assert found.warps == blocks * -(-threads // 32)
    assert occupancy(arch, threads, registers, shared) == found.share


def test_registers_come_in_units_of_a_warp():
    """33 registers take as many as 40, and warps share four quarters of the registers."""
    assert resident("sm_90", 128, 33, 0) == resident("sm_90", 128, 40, 0)
    assert resident("sm_90", 160, 40, 0).blocks == 48 // 5


def test_a_block_of_odd_warps_is_held_to_whole_quarters():
    """29 warps of 72 registers would fit 65,536 registers, and 32 do not."""
    assert 29 * 72 * 32 > 65_536 // 2
    assert resident("sm_90", 29 * 32, 72, 0).blocks == 0
    assert resident("sm_90", 28 * 32, 72, 0).blocks == 1


archs = st.sampled_from(sorted(LIMITS))
blocks_of_threads = st.integers(1, 32).map(lambda w: 32 * w)


@given(archs, blocks_of_threads, st.integers(1, 254), st.integers(0, 100_000))
def test_more_registers_never_fit_more(arch, threads, registers, shared):
    assert resident(arch, threads, registers + 1, shared).blocks <= resident(arch, threads, registers, shared).blocks


@given(archs, blocks_of_threads, st.integers(1, 255), st.integers(0, 100_000), st.integers(1, 5_000))
def test_more_shared_memory_never_fits_more(arch, threads, registers, shared, more):
    assert resident(arch, threads, registers, shared + more).blocks <= resident(arch, threads, registers, shared).blocks


@given(archs, blocks_of_threads, st.integers(1, 255), st.integers(0, 100_000))
def test_what_is_resident_fits(arch, threads, registers, shared):
    found, limits = resident(arch, threads, registers, shared), LIMITS[arch]
    assert 0 <= found.share <= 1
    assert found.blocks <= limits.blocks
    assert found.warps <= limits.warps
    assert found.warps * 32 * registers <= limits.registers
    assert found.blocks * shared <= limits.shared_bytes
