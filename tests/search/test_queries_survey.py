"""The one look at positions that a query on a GPU begins with: its kernel run on a CPU as C++ finds what
NumPy finds.
"""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.search.builders.geometry import MARGIN, TAIL, box_of
from lanewise.patterns.search.points import Points, points_of, points_of_values
from lanewise.primitives.survey import NONE, SAMPLE, THREADS, sampled, survey_text
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import ArgumentError
from tests.search.clouds import cloud
from tests.search.emulated_cuda import COMPILER, launch
from tests.search.numbered import numbered

NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="no g++")
_MINIMUM = "static unsigned atomicMin(unsigned *at, unsigned v) { const unsigned old = *at; if (v < old) *at = v; return old; }\n"


def emulated(points: Points, low: float, high: float) -> tuple[int, int, np.ndarray]:
    """What the kernel writes; all bounds alike."""
    text = survey_text(points.arrangement, points.leaves, points.precision)
    text, bounds = re.subn(r"T (low|high)_([xyz]), ", "", text)
    assert bounds == 2 * points.dimension
    defines = "".join(f"#define low_{c} T({low})\n#define high_{c} T({high})\n" for c in "xyz")
    places = sampled(points.count)
    count = points.count if places is None else len(places)
    listed = None if places is None else places.astype(np.int32)
    first, sample = np.full(2, NONE, np.uint32), np.zeros((count, points.dimension), points.precision.dtype)
    columns = [points.data.ctypes.data + points.arrangement.address(x, 0, points.count) for x in points.leaves]
    launch(
        _MINIMUM + defines + text, "survey", -(-points.count // THREADS), THREADS, *columns, points.count,
        0 if listed is None else listed.ctypes.data, count, first.ctypes.data, sample.ctypes.data,
    )  # fmt: skip
    return int(first[0]), int(first[1]), sample


@pytest.mark.grid(every=40)
@NEEDS_COMPILER
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(8)], ids=str)
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 3), ("f8", 2)])
def test_what_is_seen(dtype: str, axes: int, layout: lw.Layout) -> None:
    for count in (1, 300, SAMPLE + 700):
        x, _ = cloud("uniform", count, axes, dtype)
        points = points_of(numbered(x, layout), "position")
        unsound, outside, sample = emulated(points, -1e9, 1e9)
        assert unsound == outside == NONE
        np.testing.assert_array_equal(sample, x if count <= SAMPLE else x[sampled(count)])
        np.testing.assert_array_equal(np.stack(points.sample().columns(), axis=1), sample)


@NEEDS_COMPILER
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_that_is_no_number(value: float) -> None:
    x, _ = cloud("uniform", 900, 3, "f4")
    x[700, 0], x[411, 2], x[512, 1] = value, value, value
    assert emulated(points_of_values(x, "cpu"), -1e9, 1e9)[0] == 411


@NEEDS_COMPILER
def test_the_first_outside() -> None:
    x = np.full((700, 2), 0.5)
    x[:300] = 0, 1  # the borders belong to the world
    x[600, 0], x[650, 1] = 1 + 1e-15, -1e-300
    assert emulated(points_of_values(x, "cpu"), 0, 1)[:2] == (NONE, 600)
    x[600, 0] = 0.5
    assert emulated(points_of_values(x, "cpu"), 0, 1)[:2] == (NONE, 650)


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoSoA(32)], ids=str)
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 3), ("f8", 2)])
def test_it_compiles_without_spills(dtype: str, axes: int, layout: lw.Layout) -> None:
    points = points_of(numbered(np.zeros((3, axes), dtype), layout), "position")
    resources = compile_cubin(
        survey_text(points.arrangement, points.leaves, points.precision), "survey", "sm_90"
    ).resources
    assert resources.spill_stores == resources.spill_loads == resources.stack_bytes == 0


def test_every_element_is_sampled_once() -> None:
    assert sampled(SAMPLE) is None
    for count in (SAMPLE + 1, 5000, 10_000, 1 << 20, (1 << 31) - (1 << 16)):
        places = sampled(count)
        assert places is not None
        assert (np.diff(places) > 0).all()
        assert places[0] >= 0
        assert places[-1] < count


def test_a_bounded_world_of_other_axes() -> None:
    x = np.zeros((5, 3), "f4")
    with pytest.raises(ArgumentError, match="the world has 2 axes, and the positions have 3"):
        lw.nearest(x, 2, world=lw.Bounded((0, 0), (1, 1)))


@given(
    count=st.integers(1, 5000), seed=st.integers(0, 99), kind=st.sampled_from(["even", "few", "far", "sorted", "one"])
)
def test_the_box_is_that_of_sorted_positions(count: int, seed: int, kind: str) -> None:
    """The hundredth of the positions on each side, and how far the others reach, whatever a guess at them misses."""
    r = np.random.default_rng(seed)
    x = r.random((count, 2))
    match kind:
        case "few":
            x = np.floor(3 * x)
        case "far":
            x = np.where(x < 0.02, -1e9 * x, x)
        case "sorted":
            x = np.sort(x, axis=0)[::-1]
        case "one":
            x[:, 1] = 7
        case _:
            pass
    x = x.astype("f4")
    low, extent = box_of(lw.Open(), points_of_values(x, "cpu"))
    for axis in range(2):
        v, cut = np.sort(x[:, axis]).astype("f8"), int(count * TAIL)
        wider = (v[-1 - cut] - v[cut]) * MARGIN
        ends = max(v[0], v[cut] - wider), min(v[-1], v[-1 - cut] + wider)
        assert (low[axis], extent[axis]) == (ends[0], ends[1] - ends[0])
