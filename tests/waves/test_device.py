"""The search on a device: against the definition in float64, LALPulsar's numbers, and itself with one set of buffers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.launch.support import compile_kernel
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.memory import array_module, to_host
from lanewise.sims import waves
from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.device import buffers as buffers_module
from lanewise.sims.waves.device import maps as maps_module
from lanewise.sims.waves.device import statistic
from lanewise.sims.waves.device.fetching import DoubleBuffer, ahead, fetch
from lanewise.sims.waves.device.hough_kernels import (
    All,
    Cell,
    Entry,
    Part,
    Pixel,
    best_frequencies,
    cells_of_maps,
    f_of_amplitudes,
    peak_words,
)
from lanewise.sims.waves.device.look import TURNED, SftState, look, states, turned
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.device.spectra import records
from lanewise.sims.waves.device.top import first_cells
from lanewise.sims.waves.device.work import grouped
from lanewise.sims.waves.hierarchical import candidates, hierarchical_search, hough_maps, search_maps
from lanewise.sims.waves.hierarchical_setup import Grids, set_up
from lanewise.sims.waves.hough import pixel_offsets
from lanewise.sims.waves.kernels import Sft
from lanewise.sims.waves.map_maker import MapMaker
from lanewise.sims.waves.prepared import earth_states, geometry, prepare, search_margin
from lanewise.sims.waves.sft import load_sfts
from lanewise.sims.waves.timing import Ephemeris, Orbit
from lanewise.support.errors import DeviceError, InputError
from tests.patterns.segmentwise import reference_kernel
from tests.waves.test_f_statistic import REFERENCE, SQRT_S, made, model, some_templates
from tests.waves.test_hough import HIER, SKY, SMALL, WIDE
from tests.waves.truth import TRUTH, needs_tables, needs_truth, table

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
KERNELS = ["interpolated", "dirichlet"]


# ---------------------------------------------------------------- 2F


@needs_truth
@needs_tables
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dterms", [8, 16])
@pytest.mark.parametrize("case", ["noise", "signal", "pure"])
def test_every_template_of_the_truth(case: str, dterms: int, kernel: Any, device: str) -> None:
    t = table(f"twoF_{case}.csv")
    templates = waves.Templates(t["freq"], t["alpha"], t["delta"], t["f1dot"], t["f2dot"], reference=REFERENCE)
    sfts = load_sfts(TRUTH / f"sft_{case}" / "*.sft", (99.9, 100.1), margin=search_margin(dterms))
    data = prepare(sfts, (99.9, 100.1), dterms=dterms, sqrt_s=SQRT_S if case == "pure" else None)
    found = f_statistic(data, templates, Ephemeris.load("DE405"), dterms=dterms, device=device, kernel=kernel)
    assert len(templates) == 200
    np.testing.assert_allclose(found.two_f[0], t[f"twoF_DemodGeneric_D{dterms}"], rtol=0, atol=2e-3)
    if dterms == 8:
        np.testing.assert_allclose(abs(found.fa[0]), abs(t["Fa_re"] + 1j * t["Fa_im"]), rtol=0, atol=1e-3)
        np.testing.assert_allclose(abs(found.fb[0]), abs(t["Fb_re"] + 1j * t["Fb_im"]), rtol=0, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.filterwarnings("ignore:SFTs of")  # the orbit is fast
@pytest.mark.parametrize("orbit", [None, Orbit(1.3, 90_000.0, REFERENCE, 0.1, 0.4)])
def test_as_the_definition(kernel: Any, device: str, orbit: Orbit | None, monkeypatch: pytest.MonkeyPatch) -> None:
    data, ephemeris = prepare(made(), stacks=[made(), made(seed=3)]), model()
    few = some_templates(7, orbit=orbit)
    freq = 179970 / 1800 + np.arange(150) * 1e-5  # one direction, and more templates than a part has
    band = waves.Templates(freq, 1.0, 0.3, -1e-10, reference=few.reference, orbit=orbit)
    for templates in (few, band):
        wanted = f_statistic(data, templates, ephemeris)
        for cells in (1 << 22, 100):
            monkeypatch.setattr(statistic, "CELLS", cells)
            found = f_statistic(data, templates, ephemeris, device=device, kernel=kernel)
            for name in ("fa", "fb", "two_f", "two_f_detector"):
                # Where a template is on a bin, the definition takes that bin alone.
                np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=0, atol=2e-3)
            for name in ("a", "b", "c", "d"):
                np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_what_a_device_refuses() -> None:
    data, ephemeris = prepare(made()), model()
    with pytest.raises(InputError, match="dterms=None, the full kernel, is computed by device='numpy' alone"):
        f_statistic(data, some_templates(), ephemeris, dterms=None, device="cpu")
    third = waves.Templates(99.98, 1.0, 0.2, f3dot=1e-25, reference=REFERENCE)
    with pytest.raises(InputError, match="f3dot is computed by device='numpy' alone; wanted zero on 'cpu'"):
        f_statistic(data, third, ephemeris, device="cpu")
    outside = waves.Templates([99.98, 101.0], 1.0, 0.2, reference=REFERENCE)
    with pytest.raises(InputError, match=r"template 1 \(101 Hz\) needs .* cover a wider band"):
        f_statistic(data, outside, ephemeris, device="cpu")
    with pytest.raises(DeviceError, match="unknown device 'gpu'"):
        f_statistic(data, outside, ephemeris, device="gpu")


# ---------------------------------------------------------------- Hough maps


@needs_truth
@needs_tables
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
@pytest.mark.parametrize("threshold", [2.6, 6.0])
def test_every_pixel_as_the_definition(threshold: float, weighted: bool, kernel: Any, device: str) -> None:
    """Whose counts are those of LALPulsar, pixel by pixel."""
    grids = set_up(load_sfts(HIER / "sft" / "*.sft"), replace(SMALL, threshold=threshold, weighted=weighted))
    ephemeris, f1dot = Ephemeris.load("DE405"), float(grids.f1dot[0])
    wanted = hough_maps(grids, ephemeris, 2.0, 0.3, f1dot)
    found = hough_maps(grids, ephemeris, 2.0, 0.3, f1dot, device=device, kernel=kernel)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    np.testing.assert_array_equal(found.significance, wanted.significance)
    np.testing.assert_allclose(found.two_f, wanted.two_f, rtol=0, atol=2e-4)
    assert np.ptp(wanted.counts) >= 3


@needs_truth
@needs_tables
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("method", ["demod", "resamp"])
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
def test_lists_as_the_definition(weighted: bool, method: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one set of buffers and two, with maps in one part and in many: one list."""
    sfts, ephemeris = load_sfts(HIER / "sft" / "*.sft"), Ephemeris.load("DE405")
    search = replace(WIDE, weighted=weighted)
    wanted = hierarchical_search(sfts, search, ephemeris, SKY, most=50, method=method)
    lists = []
    for cells, buffers in ((1 << 21, 1), (1 << 21, 2), (20_000, 2)):
        for module in (maps_module, buffers_module):
            monkeypatch.setattr(module, "CELLS", cells)
        lists.append(
            hierarchical_search(sfts, search, ephemeris, SKY, most=50, device=device, method=method, buffers=buffers)
        )
        for name in ("freq", "alpha", "delta", "f1dot"):
            np.testing.assert_array_equal(lists[-1][name], wanted[name])
        for name in ("significance", "count"):  # sums of products, which a GPU fuses
            np.testing.assert_allclose(lists[-1][name], wanted[name], rtol=1e-14 if device.startswith("cuda") else 0)
        np.testing.assert_allclose(lists[-1]["twoF"], wanted["twoF"], rtol=0, atol=2e-4)
        np.testing.assert_array_equal(lists[-1], lists[0])


def search_of_noise(**more: Any) -> tuple[Any, Any, list[tuple[float, float, float]]]:
    search = waves.Search(
        freq=99.975, freq_band=0.002, f1dot=0.0, f1dot_band=0.0, reference=REFERENCE, stack=6000.0, residuals=3,
        patch=(0.01, 0.01), **more,
    )  # fmt: skip
    sfts = waves.make_data(
        {n: 1238166018 + 1800 * np.arange(9) for n in ("H1", "L1")},
        (99.8, 100.15),
        sqrt_s={"H1": 1e-23, "L1": 1e-23},
        seed=3,
    )
    grids = set_up(sfts, search)
    return grids, model(), [(a, 0.2, float(f)) for a in (0.3, 1.0, 2.5) for f in grids.f1dot]


def equal_but_for_two_f(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        for name in ("freq", "alpha", "delta", "f1dot", "significance", "count"):
            np.testing.assert_array_equal(one[name], other[name])
        np.testing.assert_allclose(one["twoF"], other["twoF"], rtol=0, atol=2e-4)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cells", [pytest.param(1 << 21, marks=pytest.mark.slow), 2_000, 700, 1])
def test_maps_together(cells: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions with different spin-downs, twice the same one, and parts of the band: in batches of any size, the last ones not full."""
    grids, ephemeris, _ = search_of_noise(threshold=6.0)
    spins = [0.0, -2e-9, 3e-8]
    points = [(a, 0.2, f) for a in (0.3, 1.0, 2.5, -1.0, 0.4) for f in spins] + [
        (0.3, 0.2, -2e-9),
        (0.3, 0.3, 0.0),
        (1.0, 0.2, spins[2]),
    ]
    for module in (maps_module, buffers_module):
        monkeypatch.setattr(module, "CELLS", cells)
    for part in (None, (2, 9)):
        wanted = list(search_maps(grids, ephemeris, points, 20, part=part))
        search = waves.MapSearch(grids, ephemeris, device=device, part=part)
        found = list(search.candidates(points, 20))
        equal_but_for_two_f(found, wanted)
        equal_but_for_two_f(list(search.candidates(points[4:7], 20)), wanted[4:7])
        for map_part in (part or (3, 8), (0, 1)):
            one, other = (hough_maps(grids, ephemeris, *points[2], device=d, part=map_part) for d in (device, "numpy"))
            np.testing.assert_array_equal(one.counts, other.counts)
            np.testing.assert_array_equal(one.frequencies, other.frequencies)
    with pytest.raises(InputError, match=r"the part is 3 to 99 of .* frequencies; wanted one with some of them"):
        waves.MapSearch(grids, ephemeris, part=(3, 99))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
def test_pixels_may_need_all_bins_of_a_stack(weighted: bool, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the last stack of the last map too, behind which there is nothing."""
    monkeypatch.setattr("lanewise.sims.waves.device.work.ROUND", 1)
    grids, ephemeris, points = search_of_noise(weighted=weighted)
    wanted, found = (list(search_maps(grids, ephemeris, points, 300, device=d)) for d in ("numpy", device))
    equal_but_for_two_f(found, wanted)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
@pytest.mark.parametrize("most", [1, 7, 300])
def test_one_order_of_candidates(most: int, weighted: bool, device: str) -> None:
    """Three stacks make many cells of one significance: those of the list are chosen by what they are, in any part of a map."""
    grids, ephemeris, points = search_of_noise(weighted=weighted, threshold=6.0)
    wanted = list(search_maps(grids, ephemeris, points, most))
    found = list(search_maps(grids, ephemeris, points, most, device=device))
    assert len(wanted) == len(found) == 3
    for one, other, point in zip(wanted, found, points, strict=True):
        for name in ("freq", "alpha", "delta", "f1dot", "significance", "count"):
            np.testing.assert_allclose(other[name], one[name], rtol=1e-14 if weighted else 0)
        maps = hough_maps(grids, ephemeris, *point)
        every = candidates(maps, maps.counts.size)
        np.testing.assert_array_equal(one, every[:most])
        assert weighted or most > 7 or np.sum(every["significance"] == one["significance"][-1]) > 1


def test_the_memory_is_said_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    grids, ephemeris, points = search_of_noise()
    said: list[Any] = []
    list(search_maps(grids, ephemeris, points, 5, device="cpu", announce=said.append))
    (memory,) = said
    assert memory.total == memory.data + memory.vectors + memory.maps
    assert memory.data > 17 * grids.data.data.nbytes  # a polynomial of eight terms a bin, twice while it is made
    assert " MiB on cpu (data " in str(memory)
    estimate, taken = allocated_by_buffers(grids, ephemeris, points, 5)
    assert taken <= estimate < 1.3 * taken + buffers_module.PADDING
    monkeypatch.setattr("lanewise.sims.waves.device.memory.available_memory", _half_of(memory))
    with pytest.raises(
        InputError, match=r"the search needs .* MiB on cpu .*, and .* MiB are available: search a narrower"
    ):
        list(search_maps(grids, ephemeris, points, 5, device="cpu"))


def allocated_by_buffers(grids: Grids, ephemeris: Ephemeris, points: Any, most: int) -> tuple[int, int]:
    """Bytes that are said for vectors and maps of one set of buffers, and bytes that its arrays have."""
    maker = MapMaker(grids, ephemeris)
    (group,) = maker.groups(points, most)
    hough = maker.device("cpu", buffers=1)
    hough.load(maker.shape(group, most))
    list(hough.best(maker.batches([group]), most, maker.blame))
    shape = maker.shape(group, most)
    return shape.vector_bytes + shape.map_bytes, hough.allocated


def _half_of(memory: Memory) -> Callable[[str], int]:
    return lambda device: memory.total // 2


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_not_finite_is_an_error(device: str) -> None:
    """Bins that there are not by name; values that are not finite wherever a pixel needs them."""
    grids, ephemeris, points = search_of_noise()
    outside = replace(grids, first=grids.first + 0.3)
    with pytest.raises(InputError, match=r"needs .* of the SFT at GPS .* cover a wider band"):
        list(search_maps(outside, ephemeris, points, 5, device=device))
    with pytest.raises(InputError, match=r"needs .* of the SFT at GPS .* cover a wider band"):
        hough_maps(outside, ephemeris, *points[1], device=device)
    values = grids.data.data.copy()
    values[grids.data.offset[4] : grids.data.offset[5]] = (
        np.nan
    )  # one SFT, whose stack has other values for every template
    damaged = replace(grids, data=replace(grids.data, data=values))
    with pytest.raises(InputError, match="a map has values that are not finite; so have the data"):
        list(search_maps(damaged, ephemeris, points, 5, device=device))


def test_an_error_of_the_host_ends_the_search() -> None:
    grids, ephemeris, points = search_of_noise()
    bad = [*points[:2], (0.1, 9.0, float("nan")), points[2]]
    with pytest.raises((InputError, ValueError, FloatingPointError)):
        list(search_maps(grids, ephemeris, bad, 5, device="cpu"))
    with pytest.raises(InputError, match="method is 'fft'; wanted one of demod, resamp"):
        list(search_maps(grids, ephemeris, points, 5, device="cpu", method="fft"))


def a_view() -> tuple[Any, Any]:
    """The SFTs of noise, as kernels look at them from the middle of the observation."""
    grids, ephemeris, _ = search_of_noise()
    data, zeros = grids.data, np.zeros(len(grids.data))
    sfts = records(Sft, delay=zeros, bins_per_hertz=zeros, a=zeros, b=zeros, first_bin=zeros.astype(np.int32))
    return sfts, records(SftState, **states(data, earth_states(data, ephemeris), grids.middle))


@pytest.mark.parametrize("where", ["anywhere", "through the Sun", "at a pole"])
def test_directions_as_the_definition(where: str) -> None:
    """Times to a nanosecond; antenna patterns are float32."""
    grids, ephemeris, _ = search_of_noise()
    data, (sfts, state) = grids.data, a_view()
    sun = -earth_states(data, ephemeris)["H1"].from_sun[3]
    alpha, delta = float(np.arctan2(sun[1], sun[0])), float(np.arcsin(sun[2] / np.linalg.norm(sun)))
    turns = np.random.default_rng(1).uniform(-1.5, 1.5, (9, 2)).tolist()
    close = [(alpha, delta), (alpha + 0.002, delta), (alpha, delta + 0.004), (alpha, delta + 0.006)]
    points = {"anywhere": turns, "through the Sun": close, "at a pole": [(0.3, np.pi / 2), (0.0, -np.pi / 2)]}[where]
    for a, d in points:
        seen = geometry(data, ephemeris, a, d)
        look(sfts, state, np.array([turned(0.0, 0.0), turned(a, d)]), 1, data.duration)
        np.testing.assert_allclose(sfts.delay, seen.arrival.since(grids.middle)[0], rtol=0, atol=2.1e-9)
        np.testing.assert_allclose(sfts.bins_per_hertz / data.duration, seen.arrival.rate[0], rtol=1e-15)
        np.testing.assert_allclose(sfts.a, seen.a[0], rtol=0, atol=1e-7)
        np.testing.assert_allclose(sfts.b, seen.b[0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_shifts_as_the_definition(seed: int) -> None:
    """In the axes of the patch, pixels see every stack moved by as many bins as `pixel_offsets` says, within the margin."""
    rng = np.random.default_rng(seed)
    grids, ephemeris, _ = search_of_noise()
    maker = MapMaker(grids, ephemeris)
    field = replace(maker.field, centre=float(rng.uniform(100, 2000)), resolution=10 ** rng.uniform(-6, -4))
    f1dot = float(rng.normal() * 1e-8)
    direction = maker.direction(float(rng.uniform(-3, 3)), float(np.arcsin(rng.uniform(-1, 1))))
    wanted = pixel_offsets(
        direction.patch, field.motion, field.reference, field.centre, f1dot, field.resolution
    ).reshape(grids.data.stacks, -1)
    vectors = field.shifts([f1dot])[0] @ direction.axes.T
    np.testing.assert_array_equal(np.floor(vectors @ field.grid.from_centre.T + 0.5), wanted)
    drift = abs(field.drifts).max()
    assert abs(wanted).max() + drift <= field.margin([f1dot]) < 3 * abs(wanted).max() + drift + 40
    assert np.ptp(wanted) > 1


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("weighted", [False, True], ids=["counts", "weighted"])
@pytest.mark.parametrize("name", ["look", "f", "words", "best", "cells"])
def test_compiles_for_a_gpu(name: str, weighted: bool) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    count, digits, words = (1, 53, 8) if weighted else (7, 7, 8)
    numbers, one = np.arange(3, dtype=np.int32), np.zeros(1, np.int32)
    entries: Any = records(Entry, place=numbers, amplitude=numbers, stack=numbers)
    pixels: Any = records(Pixel, from_centre=np.zeros((3, 3)), residual=numbers)
    cells: Any = records(Cell, chosen=numbers, frequency=numbers)
    every, parts = (
        lw.ragged(records(kind, **field), counts=[1])
        for kind, field in ((All, {"number": one}), (Part, {"start": one}))
    )
    row, drifts, amplitudes = (
        lw.ragged(x, counts=[len(x)]) for x in (np.zeros(99), np.zeros(9, "f4"), np.zeros((9, 4), "f4"))
    )
    sizes: dict[str, Any] = dict.fromkeys(("stacks", "bins", "residuals", "margin"), np.int32(3))
    threshold = {"threshold": np.float64(2.6)}
    if name == "look":
        compiled = look.compile(*a_view(), np.zeros((2, TURNED)), 1, 1800.0)
        taken = (
            compile_kernel(compiled.reference, Plan(block=128).filled(NEUTRAL), "cuda", arch="sm_90")
            .cubins[0]
            .resources
        )
        assert (taken.spill_stores, taken.stack_bytes) == (0, 0)
        return
    reference = {
        "f": lambda: reference_kernel(f_of_amplitudes, (entries, every, row, amplitudes), {}),
        "words": lambda: reference_kernel(peak_words(count, digits), (entries, every, row, row), threshold),
        "best": lambda: reference_kernel(
            best_frequencies(count, digits, words),
            (pixels, parts, row, drifts, row),
            sizes | {"frequencies": np.int32(99)},
        ),
        "cells": lambda: reference_kernel(cells_of_maps, (cells, parts, row, row, drifts, row, row), threshold | sizes),
    }[name]()
    for plan in (Plan(block=128), Plan(block=256), Plan(block=128, targets=2)):
        if name != "best" or plan.targets is None:
            taken = compile_kernel(reference, plan.filled(NEUTRAL), "cuda", arch="sm_90").cubins[0].resources
            assert (taken.spill_stores, taken.stack_bytes) == (0, 0)


# ---------------------------------------------------------------- parts


@given(
    values=st.lists(st.integers(0, 4), min_size=1, max_size=60).map(lambda x: np.array(x, float)),
    most=st.integers(1, 70), rows=st.integers(1, 3), seed=st.integers(0, 99), bad=st.booleans(),
)  # fmt: skip
@settings(deadline=None)
def test_the_first_cells(values: Any, most: int, rows: int, seed: int, bad: bool) -> None:
    rng = np.random.default_rng(seed)
    level = np.stack([rng.permutation(values) for _ in range(rows)])
    order = np.stack([rng.permutation(len(values)) for _ in range(rows)])
    if bad:
        level[0, 0] = np.nan
    ranked = np.where(np.isfinite(level), level, np.inf)
    wanted = np.lexsort((order, -ranked), axis=1)[:, :most]
    for largest in (4, None):  # integers, and any
        found = first_cells(level, order, most, limit=len(values), largest=largest)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.cuda
@pytest.mark.parametrize("largest", [9, None])
def test_the_first_cells_on_a_gpu(largest: int | None) -> None:
    cupy, rng = array_module("cuda"), np.random.default_rng(1)
    level, order = rng.integers(0, 9, (3, 50_000)).astype(float), np.argsort(rng.random((3, 50_000)), axis=1)
    found = first_cells(cupy.asarray(level), cupy.asarray(order), 300, limit=50_000, largest=largest)
    np.testing.assert_array_equal(to_host(found), np.lexsort((order, -level), axis=1)[:, :300])
    np.testing.assert_array_equal(fetch(cupy.asarray(level))(), level)


@given(
    points=st.lists(st.tuples(st.integers(0, 3), st.just(0.5), st.integers(0, 4)), min_size=1, max_size=40),
    most=st.integers(1, 12),
)
def test_groups_of_points(points: list[tuple[float, float, float]], most: int) -> None:
    """Every point once and in its order; no more than `most` maps, and all groups of a run with one room."""
    found = list(grouped(points, most))
    assert [(*place, f) for g in found for place in g.sky for f in g.f1dots] == points
    for g in found:
        assert 1 <= len(g.sky) <= g.room
        assert g.room * len(g.f1dots) <= max(most, len(g.f1dots))
        assert len(g.f1dots) <= most
    even = list(grouped([(float(i), 0.0, f) for i in range(45) for f in (0.0, 1.0, 2.0)], 40))
    assert [len(g.sky) for g in even] == [12, 12, 12, 9]
    assert {g.room for g in even} == {12}


def test_jobs_are_done_ahead() -> None:
    """The second job has begun when the first one is requested; results are in order, and errors come where their job stands."""
    begun = threading.Event()

    def work(job: int) -> int:
        if job == 1:
            begun.set()
        if job == 7:
            raise ArithmeticError("job 7")
        return job * job

    results = ahead(work, range(9), 2, 3)
    assert next(results) == 0
    assert begun.wait(20)
    assert [next(results) for _ in range(6)] == [1, 4, 9, 16, 25, 36]
    with pytest.raises(ArithmeticError, match="job 7"):
        next(results)
    assert list(ahead(work, range(3), 1, 0)) == [0, 1, 4]


def test_one_job_is_started_while_the_last_is_finished() -> None:
    """finish of job 0 waits for start of job 1: with one set of buffers it would wait forever."""
    second = threading.Event()
    slots: list[int] = []

    def start(job: int, slot: int) -> int:
        slots.append(slot)
        if job == 1:
            second.set()
        return job

    def finish(job: int) -> int:
        assert second.wait(20)
        return job * job

    assert list(DoubleBuffer().run(range(5), start, finish)) == [0, 1, 4, 9, 16]
    assert slots == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("buffers", [1, 2])
def test_memory_is_used_again_after_it_was_read(buffers: int) -> None:
    """Each slot is free when it is written: finish sees what its own start wrote."""
    memory = [0, 0]

    def start(job: int, slot: int) -> tuple[int, int]:
        memory[slot] = job
        return job, slot

    def kept(started: tuple[int, int]) -> bool:
        return memory[started[1]] == started[0]

    assert all(DoubleBuffer(buffers).run(range(200), start, kept))


def test_errors_of_both_steps() -> None:
    def fail(x: Any, slot: int = 0) -> Any:
        raise ArithmeticError(f"job {x}")

    def fine(x: int, slot: int) -> int:
        return x

    with pytest.raises(ArithmeticError, match="job 0"):
        list(DoubleBuffer().run(range(3), fail, int))
    with pytest.raises(ArithmeticError, match="job 0"):
        list(DoubleBuffer().run(range(3), fine, fail))
    with pytest.raises(InputError, match="there are 3 sets of buffers; wanted 1 or 2"):
        DoubleBuffer(3)


# ---------------------------------------------------------------- bins that are missing, or beyond int32


def outcome(call: Callable[..., Any], *given: Any, **more: Any) -> tuple[Any, str]:
    """What a call gives, or the error that it raises."""
    try:
        return call(*given, **more), ""
    except InputError as error:
        return None, str(error)


def first_map(*given: Any, **more: Any) -> Any:
    return next(search_maps(*given, 3, **more))


def one_sft(duration: float, freq: float, detectors: tuple[str, ...] = ("H1",)) -> waves.SftSet:
    wide = 400 / duration + 1.1e-4 * freq
    return waves.make_data(
        {name: [1238166018] for name in detectors}, (freq - wide, freq + wide), duration=duration,
        sqrt_s=dict.fromkeys(detectors, 1e-23),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:SFTs of")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("spin", [0, 1, 2])
@pytest.mark.parametrize("digits", range(27, 32))
def test_no_template_is_taken_for_another(digits: int, spin: int, kernel: Any) -> None:
    """One that lies 2^27 to 2^31 bins from those that there are, by its frequency or by what drifts."""
    data, ephemeris = prepare(one_sft(1800.0, 60.0)), model()
    seen = geometry(data, ephemeris, 1.0, 0.3)
    since = 700.0 if spin == 1 else 60_000.0
    reference = int(seen.arrival.time[0, 0]) - round(since * 1e9)
    per_bin = 1 / (1800 * seen.arrival.rate[0, 0]) / (since**spin / (1, 1, 2)[spin])
    for sign in (1, -1):
        spins = [60.0, 0.0, 0.0]
        spins[spin] += sign * 2.0**digits * per_bin
        if max(map(abs, spins[1:])) > 1 or not 0 < spins[0] <= 1e6:
            continue
        templates = waves.Templates(spins[0], 1.0, 0.3, *spins[1:], reference=reference)
        wanted, one = outcome(f_statistic, data, templates, ephemeris)
        found, other = outcome(f_statistic, data, templates, ephemeris, device="cpu", kernel=kernel)
        assert wanted is found is None, (found.fa, found.fb)
        assert one == other


@pytest.mark.filterwarnings("ignore:SFTs of")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("duration", "freq"),
    [(1e5, 1000.0), (1e6, 500.0), (1e6, 2100.0), (3000.0, 9e5), pytest.param(1e7, 1000.0, marks=pytest.mark.slow)],
)
def test_bins_of_any_number(duration: float, freq: float, kernel: Any) -> None:
    """Computed, or refused with what a device cannot: not as data that are not finite."""
    data, ephemeris = prepare(one_sft(duration, freq, ("H1", "L1"))), model()
    templates = waves.Templates(freq + np.arange(3) / duration / 7, 1.0, 0.3, reference=REFERENCE)
    wanted = f_statistic(data, templates, ephemeris)
    found, error = outcome(f_statistic, data, templates, ephemeris, device="cpu", kernel=kernel)
    if freq * duration < 2**31:
        np.testing.assert_allclose(found.fa, wanted.fa, rtol=0, atol=2e-3)
    else:
        assert "wanted less than 2,147,483,648 bins on 'cpu': device='numpy' computes more" in error


@pytest.mark.filterwarnings("ignore:SFTs of")
@pytest.mark.parametrize("f1dot", [0.0, 1e-5, -1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("detectors", [("H1",), ("H1", "L1")])
@pytest.mark.parametrize("duration", [1800.0, 1e6])
def test_maps_whose_bins_are_missing(duration: float, detectors: tuple[str, ...], f1dot: float) -> None:
    """Are refused on a device as well, also where F of a stack is the same whatever the bins hold, as one SFT does not determine it."""
    search = waves.Search(
        freq=60.0, freq_band=0.0, f1dot=0.0, f1dot_band=0.0, reference=REFERENCE, stack=duration, residuals=1, patch=(1e-3, 1e-3)
    )  # fmt: skip
    grids, ephemeris = set_up(one_sft(duration, 60.0, detectors), search), model()
    values = [f1dot]
    if f1dot == 1.0:  # what int32 takes for no drift at all
        seen = geometry(grids.data, ephemeris, 1.0, 0.3)
        delay = seen.arrival.since(grids.middle)[0, 0]
        values = [n * 2.0**28 / (duration * seen.arrival.rate[0, 0] * delay) for n in range(1, 9)]
        values = [x for x in values if abs(x) <= 1]
    for value in values:
        points = [(1.0, 0.3, value)]
        (wanted, one), (found, other) = (
            outcome(first_map, grids, ephemeris, points, device=d) for d in ("numpy", "cpu")
        )
        assert one == other
        assert (wanted is None) == (found is None)
        assert (wanted is None) == (abs(f1dot) > 1e-4) or abs(f1dot) == 1e-5


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("method", ["demod", "resamp"])
@pytest.mark.parametrize("resolution", [1e-3, 59.9, 119.9, 120.1, 1e6])
def test_any_resolution(resolution: float, method: str, device: str) -> None:
    """A map needs a bin of its own number, 1 at least: one that is coarser is refused by name."""
    search = waves.Search(
        freq=60.0, freq_band=0.0, f1dot=0.0, f1dot_band=0.0, reference=REFERENCE, stack=3600.0, residuals=1, patch=(0.01, 0.01),
        resolution=resolution,
    )  # fmt: skip
    starts = 1238166018 + 1800 * np.arange(4)
    sfts = waves.make_data(dict.fromkeys(("H1", "L1"), starts), (59.9, 60.1), sqrt_s={"H1": 1e-23, "L1": 1e-23})
    _, error = outcome(hierarchical_search, sfts, search, model(), [(1.0, 0.3)], 3, device=device, method=method)
    if resolution > 120:
        assert error.startswith(f"resolution is {resolution:.12g} Hz, and the search begins at 60 Hz, which is bin 0")
    else:
        assert not error or "cover a wider band" in error
