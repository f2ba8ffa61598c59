"""Arrays beside the element of an elementwise function: scattered to in every layout, read by index, refused,
checked.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir.printer import print_kernel
from lanewise.launch.executable import generated_texts
from lanewise.launch.support import compile_kernel
from lanewise.patterns.elementwise import scattered
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.support.errors import ArgumentError, CompileError, PlanError, VerificationError

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


@pytest.mark.grid(every=40)
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
    assert "weighted: 'total' is written outside of its elements" in text
    assert "lw.scatter_add(total, place, v)" in text
    assert "the index is 19 in the element 42, and 'total' has the shape (19,)" in text
    assert "0 to 18" in text
    assert not host(total).any()


@lw.elementwise
def reads(place: lw.i32, table: lw.Array2[lw.f32]) -> lw.f32:
    return table[place, 1] + lw.f32(table.shape[0])


def test_arrays_are_read_by_index() -> None:
    table, place = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([2, 0, 1], np.int32)
    assert reads(place, table).tolist() == [8.0, 4.0, 6.0]


@lw.elementwise
def deposit_by_kind(
    p: Particle, charge: lw.Array2[lw.f64], seed: lw.i32, total: lw.Array2[lw.f64], last: lw.Array1[lw.i32]
):
    if p.cell < total.shape[0]:
        lw.scatter_add(total, (p.cell, lw.index_of(p) % 2), charge[p.cell, 1] * lw.f64(p.mass))
    else:
        seed = seed + 1
    lw.scatter_max(last, 0, lw.index_of(p) + seed)
    p.mass = lw.f32(charge[p.cell, 0])


def by_kind(device: str, cells: list[int]) -> tuple[Any, ...]:
    cell = np.array(cells, np.int32)
    particles = Particle.array(cell=cell, mass=np.arange(len(cell)), position=np.zeros((len(cell), 3)), device=device)
    charge, total, last = move(device, np.arange(8.0).reshape(4, 2), np.zeros((3, 2)), np.zeros(1, np.int32))
    return particles, charge, 10, total, last


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("checks", [False, True], ids=["", "checks"])
def test_tables_and_indices_beside_scatters(device: str, checks: bool) -> None:
    cells = [2, 0, 3, 2, 0]
    particles, charge, seed, total, last = by_kind(device, cells)
    deposit_by_kind(particles, charge, seed, total, last, checks=checks)
    expected = np.zeros((3, 2))
    for i, c in enumerate(cells):
        if c < 3:
            expected[c, i % 2] += (2 * c + 1) * i
    assert (host(total) == expected).all()
    assert host(last).tolist() == [14]
    assert host(particles.mass).tolist() == [2.0 * c for c in cells]


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_is_changed_where_an_index_is_outside(device: str) -> None:
    particles, charge, seed, total, last = by_kind(device, [2, 0, 4, -1, 0])
    with pytest.raises(VerificationError, match=r"'charge' is read outside .*(?s:.)*index 0 is 4 in the element 2"):
        deposit_by_kind(particles, charge, seed, total, last, checks=True)
    assert not host(total).any()
    assert not host(last).any()
    assert host(particles.mass).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


@lw.sitewise(lw.D2Q9)
def of_sites(f: lw.populations, t: lw.Array1[lw.i32]) -> None:
    lw.scatter_add(t, 0, 1)


@lw.pairwise
def of_pairs(a: Particle, b: Particle, t: lw.Array1[lw.i32]) -> lw.f32:
    lw.scatter_add(t, a.cell, 1)
    return b.mass


def test_pairs_and_sites_do_not_scatter() -> None:
    t = np.zeros(3, np.int32)
    particles, *_ = by_kind("cpu", [0, 1])
    with pytest.raises(CompileError) as of_a_pair:
        of_pairs(particles, particles, t)
    with pytest.raises(CompileError) as of_a_site:
        of_sites(of_sites.sites((4, 4)), t=t)
    for error, line in ((of_a_pair, "lw.scatter_add(t, a.cell, 1)"), (of_a_site, "lw.scatter_add(t, 0, 1)")):
        assert "the table 't' is read only" in str(error.value)
        assert line in str(error.value)


def test_what_surely_is_outside_is_refused() -> None:
    particles, charge, seed, total, _ = by_kind("cpu", [0, 1])
    with pytest.raises(ArgumentError, match=r"'last' is written outside .*(?s:.)*'last' has the shape \(0,\)"):
        deposit_by_kind(particles, charge, seed, total, np.zeros(0, np.int32))


@pytest.mark.parametrize("device", DEVICES)
def test_lengths_of_64_bits(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattered, "NARROW", 1)
    test_tables_and_indices_beside_scatters(device, True)
    test_nothing_is_changed_where_an_index_is_outside(device)
    compiled = deposit_by_kind.compile(*by_kind(device, [2, 0]))
    lengths = {c.name: str(c.type) for c in compiled.reference.counts if ".shape" in c.name}
    assert set(lengths.values()) == {"i64", "i32"}
    compile_kernel(compiled.reference, Plan(block=128).filled(NEUTRAL), "cuda", arch="sm_90")


def test_results_have_memory_of_their_own() -> None:
    memory = np.zeros(6)
    for _ in range(2):
        with pytest.raises(ArgumentError, match="out shares memory with the array 'total'"):
            weighted(np.zeros(3, np.int32), np.ones(3), memory[:4], out=memory[3:])


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
        (writes, ("the table 'total' is read only", "total[place] = v", "may lw.scatter_add(total, i, value)")),
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


@lw.elementwise
def shifted(p: Particle):
    p.mass += 1.0


@pytest.mark.parametrize("name", ["sum", "min", "max"])
def test_functions_without_results_have_no_totals(name: str) -> None:
    with pytest.raises(ArgumentError) as error:
        getattr(shifted, name)(Particle.zeros(3))
    assert (
        str(error.value) == f"shifted has no return value, so .{name}() is undefined: return the value of one element"
    )


def test_there_are_no_totals_and_no_parts() -> None:
    arguments = np.zeros(3, np.int32), np.ones(3), np.zeros(3)
    with pytest.raises(ArgumentError, match="weighted scatters to total, and has no sum"):
        weighted.sum(*arguments)
    with pytest.raises(PlanError):
        weighted(*arguments, plan=Plan(fission=True))
    with pytest.raises(ArgumentError, match="checks=True tests the indices into tables, and no_arrays has none"):
        no_arrays(np.ones(3), checks=True)
    with pytest.raises(ArgumentError, match="checks= is True or False, found 1"):
        weighted(*arguments, checks=1)


def test_the_text_of_a_scatter() -> None:
    compiled = weighted.compile(np.zeros(3, np.int32), np.ones(3), np.zeros(3))
    assert "scatter sum total[place], v" in print_kernel(compiled.reference)
    program = build_program(compiled.reference, NEUTRAL, "cpu")
    (text,) = generated_texts(program, "cpu", locations=False)
    assert re.search(r"call void @lw_scatter_sum_f64\(ptr %total_array, i64 %total_size, i64 %\S+, double %\S+\)", text)
    compile_kernel(compiled.reference, Plan(block=128).filled(NEUTRAL), "cuda", arch="sm_90")
    assert "exact sum" in str(compiled.explain())
