from __future__ import annotations

import platform
from dataclasses import replace

import pytest

from lanewise.language.target import architecture_number
from lanewise.models.devices import device_model, table_model
from lanewise.runtime.occupancy import LIMITS
from lanewise.runtime.preferred_width import preferred_bits
from lanewise.support.errors import DeviceError


@pytest.mark.parametrize("arch", LIMITS)
def test_table(arch):
    """A typical device of every architecture that occupancy knows, with figures of the right size."""
    m = table_model(arch)
    assert (m.arch, m.kind, m.limits) == (arch, "cuda", LIMITS[arch])
    assert 1e12 < 2 * m.fp32_operations < 1e15
    assert m.fp64_lanes <= m.fp32_lanes
    assert 1e11 < m.memory_bandwidth < m.l2_bandwidth < 1e14


def test_h200():
    m = table_model("sm_90")
    assert (m.name, m.multiprocessors, m.clock_hz, m.memory_bandwidth) == ("NVIDIA H200", 132, 1.98e9, 4.28e12)
    assert m.fp32_operations / 13 == pytest.approx(2.573e12, rel=1e-3)  # pairs of gravity at 13 issue slots


@pytest.mark.parametrize(
    ("arch", "number"),
    [("sm_75", 75), ("sm_90", 90), ("sm_90a", 90), ("sm_100f", 100), ("sm_120", 120), ("sm_121a", 121)],
)
def test_architectures_of_all_names(arch, number):
    """A letter behind the number says what else code may use, and not which device it is."""
    m = replace(table_model("sm_90"), arch=arch)
    assert architecture_number(arch) == number
    assert m.takes_three == (number >= 100)
    assert m.machine.copies == (number >= 80)


def test_unknown_architecture():
    with pytest.raises(
        DeviceError,
        match=r"no device model of the architecture 'sm_12'; did you mean 'sm_121'\? known are sm_75, .*sm_121",
    ):
        table_model("sm_12")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of processors with x86")
@pytest.mark.parametrize(
    ("processor", "bits"),
    [("x86-64", 128), ("haswell", 256), ("skylake-avx512", 256), ("sapphirerapids", 256), ("znver4", 512)],
)
def test_the_compiler_says_which_width_it_takes(processor, bits):
    assert preferred_bits(processor) == bits


def test_this_cpu():
    m = device_model("cpu")
    assert m.kind == "cpu"
    assert m.limits is None
    assert m is device_model("cpu")  # measured once
    assert 5e8 < m.clock_hz < 1e10
    assert m.vector_bits in (128, 256, 512)
    assert m.preferred_bits <= m.vector_bits
    assert 1e8 < m.memory_bandwidth < 1e13
    assert m.multiprocessors >= 1
    assert m.name
