"""Arrays beside the element of an elementwise function: scattered to in every layout, read by index, refused, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.errors import ArgumentError, CompileError, PlanError, VerificationError
from lanewise.ir.printer import print_kernel
from lanewise.launch.executable import generated_texts
from lanewise.launch.support import compile_kernel
from lanewise.pipeline import build_program
from lanewise.plan import NEUTRAL, Plan

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu", "python"]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8), lw.SoAoAS()]
BINS = 19


@lw.record
class Particle:
    cell: lw.i32
    mass: lw.f32
    position: lw.vec3


@lw.elementwise
def deposit(p: Particle, unit: lw.f32, mass: lw.Array1[lw.f32], count: lw.Array1[lw.i32], top: lw.Array2[lw.f64]):
    if p.mass > 0.0:
        lw.scatter_add(mass, p.cell, unit * p.mass)
        lw.scatter_add(count, p.cell, 1)
    for axis in range(2):
        lw.scatter_max(top, (p.cell, axis), lw.f64(p.mass))
    p.mass = p.mass + 1.0


@lw.elementwise
def weighted(place: lw.i32, v: lw.f64, total: lw.Array1[lw.f64]) -> lw.f64:
    if v > 10.0:
        return 0.0
    lw.scatter_add(total, place, v)
    return 2.0 * v


def move(device: str, *arrays: Any) -> list[Any]:
    if device != "cuda":
        return list(arrays)
    import cupy

    return [cupy.asarray(a) for a in arrays]


def host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_records_of_every_layout_scatter(device: str, layout: lw.Layout) -> None:
    rng = np.random.default_rng(1)
    n = 200 if device == "python" else 20_011
    cell, values = rng.integers(0, BINS, n).astype(np.int32), rng.normal(size=n).astype(np.float32)
    particles = Particle.array(cell=cell, mass=values, position=np.zeros((n, 3)), layout=layout, device=device)
    sums = np.zeros(BINS, np.float32), np.zeros(BINS, np.int32), np.full((BINS, 2), -np.inf)
    mass, count, top = move(device, *sums)
    deposit(particles, 0.5, mass, count, top)
    scaled, positive = np.float32(0.5) * values, values > 0
    expected = [np.float32(math.fsum(scaled[positive & (cell == b)].tolist())) for b in range(BINS)]
    assert host(mass).tolist() == expected
    assert host(count).tolist() == np.bincount(cell[positive], minlength=BINS).tolist()
    highest = [values[cell == b].max() for b in range(BINS)]
    assert host(top)[:, 0].tolist() == host(top)[:, 1].tolist() == highest
    assert (host(particles.mass) == values + np.float32(1)).all()
    deposit(particles, 0.0, mass, count, top)
    assert host(mass).tolist() == expected


@pytest.mark.parametrize("device", DEVICES)
def test_values_scatter_and_return(device: str) -> None:
    rng = np.random.default_rng(2)
    n = 100 if device == "python" else 5_000
    place, v = rng.integers(0, BINS, n).astype(np.int32), rng.normal(size=n)
    v[3] = 11.0
    places, values, total = move(device, place, v, np.zeros(BINS))
    with lw.device("cpu" if device == "cuda" else device):
        result = weighted(places, values, total)
        again = weighted(places, values, move(device, np.zeros(BINS))[0], checks=True)
    kept = v <= 10.0
    assert (host(result) == np.where(kept, 2.0 * v, 0.0)).all()
    assert (host(again) == host(result)).all()
    assert host(total).tolist() == [math.fsum(v[kept & (place == b)]) for b in range(BINS)]


@pytest.mark.parametrize("device", DEVICES)
def test_an_index_outside_is_named_with_its_element(device: str) -> None:
    place, v = np.zeros(100, np.int32), np.ones(100)
    place[[42, 50]] = 19, -1
    places, values, total = move(device, place, v, np.zeros(BINS))
    with lw.device("cpu" if device == "cuda" else device), pytest.raises(VerificationError) as error:
        weighted(places, values, total, checks=True)
    text = str(error.value)
    assert "weighted: 'total' is scattered to outside of its elements" in text
    assert "lw.scatter_add(total, place, v)" in text
    assert "the index is 19 in element 42, and 'total' has the shape (19,)" in text
    assert "0 to 18" in text
    assert not host(total).any()


@lw.elementwise
def reads(place: lw.i32, table: lw.Array2[lw.f32]) -> lw.f32:
    return table[place, 1] + lw.f32(table.shape[0])


def test_arrays_are_read_by_index() -> None:
    table, place = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([2, 0, 1], np.int32)
    assert reads(place, table).tolist() == [8.0, 4.0, 6.0]


@lw.elementwise
def no_arrays(v: lw.f64) -> lw.f64:
    return v


@lw.elementwise
def writes(place: lw.i32, v: lw.f64, total: lw.Array1[lw.f64]):
    total[place] = v


@lw.elementwise
def adds(place: lw.i32, v: lw.f64, total: lw.Array1[lw.f64]):
    total[place] += v


@lw.elementwise
def both(place: lw.i32, v: lw.f64, total: lw.Array1[lw.f64]):
    lw.scatter_add(total, place, v)
    total[place] = v


@lw.elementwise
def scatters_and_reads(place: lw.i32, v: lw.f64, total: lw.Array1[lw.f64]) -> lw.f64:
    lw.scatter_add(total, place, v)
    return total[place]


@lw.elementwise
def two_ways(place: lw.i32, v: lw.f64, total: lw.Array1[lw.f64]):
    lw.scatter_add(total, place, v)
    lw.scatter_min(total, place, v)


@pytest.mark.parametrize(
    ("kernel", "texts"),
    [
        (writes, ("the table 'total' is read only", "total[place] = v", "lw.scatter_add(total, i, value)")),
        (adds, ("the table 'total' is read only", "total[place] += v")),
        (both, ("touched by lw.scatter_add alone", "total[place], stored")),
        (scatters_and_reads, ("touched by lw.scatter_add alone", "total[place], read")),
        (two_ways, ("touched by lw.scatter_min alone", "total[place], lw.scatter_add")),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_races_are_refused(kernel: Any, texts: tuple[str, ...]) -> None:
    with pytest.raises(CompileError) as error:
        kernel(np.zeros(3, np.int32), np.ones(3), np.zeros(3))
    for text in texts:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("total", "text"),
    [
        (np.zeros(3, np.float32), "'total' must be a contiguous array of NumPy or CuPy with 1 dimension of float64"),
        (np.zeros((3, 2)), "reshape it, or declare it as lw.Array2[lw.f64]"),
        (np.zeros(6)[::2], "which is not contiguous"),
        ([0.0], "found list [0.0]"),
    ],
    ids=str,
)
def test_arrays_are_taken_as_they_are(total: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        weighted(np.zeros(3, np.int32), np.ones(3), total)
    assert text in str(error.value)


def test_what_is_scattered_to_has_memory_of_its_own() -> None:
    v = np.ones(3)
    with pytest.raises(ArgumentError, match="'total' is written, and shares memory with 'v'"):
        weighted(np.zeros(3, np.int32), v, v)


def test_there_are_no_totals_and_no_parts() -> None:
    arguments = np.zeros(3, np.int32), np.ones(3), np.zeros(3)
    with pytest.raises(ArgumentError, match="has arrays beside its elements"):
        weighted.sum(*arguments)
    with pytest.raises(PlanError):
        weighted(*arguments, plan=Plan(fission=True))
    with pytest.raises(ArgumentError, match="no_arrays has no parameter 'checks'"):
        no_arrays(np.ones(3), checks=True)
    with pytest.raises(ArgumentError, match="checks= is True or False, found 1"):
        weighted(*arguments, checks=1)


def test_the_text_of_a_scatter() -> None:
    compiled = weighted.compile(np.zeros(3, np.int32), np.ones(3), np.zeros(3))
    assert "scatter sum total[place], v" in print_kernel(compiled.reference)
    program = build_program(compiled.reference, NEUTRAL, "cpu")
    (text,) = generated_texts(program, "cpu", locations=False)
    assert "lw_scatter_sum_f64(total_array, u64(i64(place)), v)" in text
    compile_kernel(compiled.reference, Plan(block=128).filled(NEUTRAL), "cuda", arch="sm_90")
    assert "exact sum" in str(compiled.explain())
