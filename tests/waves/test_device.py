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
from lanewise.errors import DeviceError, InputError
from lanewise.launch.support import compile_kernel
from lanewise.plan import NEUTRAL, Plan
from lanewise.runtime.memory import array_module, to_host
from lanewise.sims import waves
from lanewise.sims.waves.demodulation import f_statistic
from lanewise.sims.waves.device import maps as maps_module
from lanewise.sims.waves.device import statistic
from lanewise.sims.waves.device.fetching import DoubleBuffer, fetch
from lanewise.sims.waves.device.hough_kernels import Pixel, Place, Stack, StackMatrix, f_of_amplitudes, hough
from lanewise.sims.waves.device.maps import HoughDevice
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.device.spectra import records
from lanewise.sims.waves.device.top import highest
from lanewise.sims.waves.hierarchical import (
    MapMaker,
    candidates,
    hierarchical_search,
    hough_maps,
    search_maps,
    set_up,
)
from lanewise.sims.waves.prepared import prepare, search_margin
from lanewise.sims.waves.sft import load_sfts
from lanewise.sims.waves.timing import Ephemeris, Orbit
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
        monkeypatch.setattr(maps_module, "CELLS", cells)
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
    work = MapMaker(grids, ephemeris).work(*points[0])
    alone = HoughDevice(grids.data, "cpu", 8, buffers=1).memory(work)
    assert (alone.data, 2 * alone.vectors) == (memory.data, memory.vectors)
    monkeypatch.setattr("lanewise.sims.waves.device.memory.available_memory", _half_of(memory))
    with pytest.raises(
        InputError, match=r"the search needs .* MiB on cpu .*, and .* MiB are available: search a narrower"
    ):
        list(search_maps(grids, ephemeris, points, 5, device="cpu"))


def _half_of(memory: Memory) -> Callable[[str], int]:
    return lambda device: memory.total // 2


def test_an_error_of_the_host_ends_the_search() -> None:
    grids, ephemeris, points = search_of_noise()
    bad = [*points[:2], (0.1, 9.0, float("nan")), points[2]]
    with pytest.raises((InputError, ValueError, FloatingPointError)):
        list(search_maps(grids, ephemeris, bad, 5, device="cpu"))
    with pytest.raises(InputError, match="method is 'fft'; wanted one of demod, resamp"):
        list(search_maps(grids, ephemeris, points, 5, device="cpu", method="fft"))


@pytest.mark.parametrize("name", ["f", "hough"])
def test_compiles_for_a_gpu(name: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    stacks, bins = 3, 40
    numbers = np.arange(stacks, dtype=np.int32)
    zeros = np.zeros(stacks)
    uniforms: dict[str, Any] = {}
    if name == "f":
        matrix: Any = records(StackMatrix, a=zeros, b=zeros, c=zeros, number=numbers, usable=numbers)
        places = lw.ragged(records(Place, number=np.arange(bins, dtype=np.int32)), counts=np.ones(bins, int))
        rows = lw.ragged(np.zeros((bins * stacks, 4), np.float32), counts=[stacks] * bins)
        reference = reference_kernel(f_of_amplitudes, (matrix, places, rows), uniforms)
    else:
        cells: Any = records(Pixel, frequency=numbers, pixel=numbers, residual=numbers)
        items = lw.ragged(records(Stack, weight=zeros), counts=[stacks])
        shifts = lw.ragged(np.zeros(stacks * 4, np.float32), counts=[4] * stacks)
        f = lw.ragged(np.zeros(stacks * bins), counts=[bins] * stacks)
        reference = reference_kernel(hough, (cells, items, shifts, shifts, f), {"threshold": np.float64(2.6)})
    for plan in (Plan(block=128), Plan(block=128, slices=4), Plan(block=128, targets=2)):
        taken = compile_kernel(reference, plan.filled(NEUTRAL), "cuda", arch="sm_90").cubins[0].resources
        assert (taken.spill_stores, taken.stack_bytes) == (0, 0)


# ---------------------------------------------------------------- parts


@given(
    values=st.lists(st.integers(0, 4), min_size=1, max_size=60).map(lambda x: np.array(x, float)),
    most=st.integers(1, 70),
)
@settings(deadline=None)
def test_the_highest(values: Any, most: int) -> None:
    np.testing.assert_array_equal(highest(values, most), np.argsort(-values, kind="stable")[:most])


@pytest.mark.cuda
def test_the_highest_on_a_gpu() -> None:
    cupy = array_module("cuda")
    values = np.random.default_rng(1).integers(0, 9, 50_000).astype(float)
    found = to_host(highest(cupy.asarray(values), 300))
    np.testing.assert_array_equal(found, np.argsort(-values, kind="stable")[:300])
    np.testing.assert_array_equal(fetch(cupy.asarray(values))(), values)


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
