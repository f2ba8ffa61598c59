"""What is refused before a flow starts."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.language.lattices.d2q9 import D2Q9
from lanewise.language.lattices.d3q19 import D3Q19
from lanewise.sims.lbm.checks import check_mach, check_memory, check_tau, memory_bytes, wall_error
from lanewise.support.errors import DeviceError, InputError


def refused(message: str, kind: type[Exception] = InputError) -> Any:
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("tau", ["0.5", "0.3", "-1", "nan", "inf"])
def test_tau_at_or_below_one_half(tau: str) -> None:
    with refused(
        f"the relaxation time tau is {tau}; wanted more than 0.5, since the viscosity is (tau - 1/2) / 3: a lower Reynolds number, "
        "more sites or a higher lattice velocity raise it"
    ):
        check_tau(float(tau))


def test_tau_that_float32_cannot_tell_from_one_half() -> None:
    check_tau(0.5000001)
    check_tau(1e4)
    with refused(
        "the relaxation time tau is 0.5 + 1e-09, which float32 cannot tell from 0.5; a lower Reynolds number, more sites or a higher "
        "lattice velocity raise it"
    ):
        check_tau(0.5 + 1e-9)


def test_mach() -> None:
    check_mach((0.1, 0.0))
    check_mach((0.3 / math.sqrt(3) * (1 - 1e-12), 0.0, 0.0))
    check_mach(np.zeros((4, 5, 2)))
    with refused(
        "the lid velocity is 0.25 sites per step, Mach 0.43; wanted at most 0.1732, Mach 0.3: choose a lower lattice velocity "
        "(the same flow then takes more steps)"
    ):
        check_mach((0.15, 0.2), "lid velocity")
    field = np.full((4, 5, 6, 3), 0.1, np.float32)
    field[1, 2, 3] = 0.2
    with refused(
        "the velocity at site (z, y, x) = (1, 2, 3) is 0.3464 sites per step, Mach 0.6; wanted at most 0.1732, Mach 0.3: choose a lower "
        "lattice velocity (the same flow then takes more steps)"
    ):
        check_mach(field)
    field[3, 0, 1, 2] = math.nan
    with refused("the velocity at site (z, y, x) = (3, 0, 1) is not finite; wanted numbers of sites per step"):
        check_mach(field)


@given(st.floats(0, 1), st.floats(0, 2 * math.pi))
def test_the_limit_is_on_the_speed(speed: float, angle: float) -> None:
    velocity = (speed * math.cos(angle), speed * math.sin(angle))
    if speed * math.sqrt(3) < 0.3 * (1 - 1e-9):
        check_mach(velocity)
    elif speed * math.sqrt(3) > 0.3 * (1 + 1e-9):
        with pytest.raises(InputError):
            check_mach(velocity)


def test_walls_of_bgk_are_exact_at_one_relaxation_time() -> None:
    assert wall_error(0.5 + math.sqrt(3 / 16), 10) == pytest.approx(0, abs=1e-15)
    assert wall_error(1.0, 10) == pytest.approx(1 / 300)


def test_bytes_a_site() -> None:
    sites = 100 * 200 * 300
    assert memory_bytes((100, 200, 300), D3Q19, "f32", "in-place") == 80 * sites
    assert memory_bytes((100, 200, 300), D3Q19, "f16", "in-place") == 42 * sites
    assert memory_bytes((100, 200, 300), D3Q19, "f32", "pull") == 156 * sites
    assert memory_bytes((100, 200, 300), D3Q19, "f64", "push") == 308 * sites
    assert memory_bytes((100, 200), D2Q9, "f32", "pull", extra=12) == 88 * 100 * 200


def test_what_does_not_fit_is_refused_with_a_way_out() -> None:
    check_memory((64, 64, 64), D3Q19, "f32", "pull", 156 * 64**3)
    with refused(
        "1024 x 1024 x 1024 sites of D3Q19 stored as f32 with pull streaming need 168 GB, and 100 GB are available; "
        "use f32 storage with in-place streaming (85.9 GB) or f16 storage with in-place streaming (45.1 GB) or "
        "a box of 862 x 862 x 862 sites",
        DeviceError,
    ):
        check_memory((1024, 1024, 1024), D3Q19, "f32", "pull", 100_000_000_000)
    with refused(
        "4096 x 2048 x 1024 sites of D3Q19 stored as f16 with in-place streaming need 361 GB, and 140 GB are available; "
        "use at most 2987 x 1493 x 746 sites",
        DeviceError,
    ):
        check_memory((1024, 2048, 4096), D3Q19, "f16", "in-place", 140_000_000_000)
    with refused(
        "10 x 10 sites of D2Q9 stored as f64 with push streaming need 1.48e-05 GB, and 0 GB are available; use another device",
        DeviceError,
    ):
        check_memory((10, 10), D2Q9, "f64", "push", 0)


@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 3000)),
    st.sampled_from(["f16", "f32", "f64"]),
    st.sampled_from(["in-place", "pull"]),
    st.integers(10**3, 10**12),
)
def test_the_suggested_box_fits(shape: tuple[int, ...], storage: str, streaming: str, available: int) -> None:
    if memory_bytes(shape, D3Q19, storage, streaming) <= available:
        check_memory(shape, D3Q19, storage, streaming, available)
        return
    with pytest.raises(DeviceError) as error:
        check_memory(shape, D3Q19, storage, streaming, available)
    if sizes := re.search(r"(\d+) x (\d+) x (\d+) sites$", str(error.value)):
        check_memory([int(n) for n in sizes.groups()][::-1], D3Q19, storage, streaming, available)
    else:
        assert str(error.value).endswith(("use another device", "GB)"))


def test_unknown_choices() -> None:
    with refused("unknown storage 'f8'; wanted one of f16, f32, f64"):
        memory_bytes((8, 8), D2Q9, "f8", "pull")
    with refused("unknown streaming 'twice'; wanted one of in-place, pull, push"):
        memory_bytes((8, 8), D2Q9, "f32", "twice")
