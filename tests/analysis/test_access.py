from __future__ import annotations

import pytest

import lanewise as lw
from lanewise.analysis.access import field_accesses, layout_traffic, reuse
from lanewise.analysis.regions import analyse
from lanewise.planning.plan import NEUTRAL, Plan
from tests.corpus import LAYOUTS, case
from tests.harness import program, reference_kernel

N = 16_384
COUNTS = {"$target.count": N, "$source.count": 2 * N, "$count": 1 << 20}


def rows(name: str) -> str:
    found = field_accesses(reference_kernel(case(name), lw.SoA(), "cuda"), COUNTS)
    return "\n".join(
        f"{a.array}.{a.field} ({a.role}): {'read' * a.read}{' and ' * (a.read and a.written)}{'written' * a.written}, "
        f"{a.pattern}, {a.times:g} times, {a.bytes} bytes, with {' '.join(a.together)}"
        for a in found
    )


@pytest.mark.parametrize("name", ["gravity", "yukawa", "kick_drift", "grow"])
def test_fields(golden, name):
    golden(name, rows(name))


def test_hot_and_cold_fields_of_gravity():
    """Positions and masses are read for every pair, velocities never: what a layout is chosen by."""
    found = {(a.array, a.field): a for a in field_accesses(reference_kernel(case("gravity"), lw.SoA(), "cuda"), COUNTS)}
    assert ("source", "velocity") not in found
    assert found["source", "mass"].times == N
    assert found["target", "position"].times == 1
    assert found["source", "position"].together == ("position", "mass")


def work(name: str, layout: str, plan: Plan):
    return analyse(program(case(name), LAYOUTS[layout], plan.filled(NEUTRAL), "cuda").kernels[0], COUNTS)


@pytest.mark.parametrize(
    ("layout", "requested", "moved"), [("SoA", 28, 28), ("AoS", 28, 28), ("AoAS", 32, 32), ("SoAoAS", 32, 32)]
)
def test_bytes_of_a_body(layout, requested, moved):
    """`grow` of a body: all 7 floats read. Padding is loaded with its vector, and moved with its sector."""
    found = {t.array: t for t in layout_traffic(work("kick_drift", layout, Plan(block=256)))}
    elements = 1 << 20
    body = found["body"]
    assert body.read
    assert body.written
    vectors = layout in ("AoAS", "SoAoAS")
    assert body.requested / elements == (2 * requested if vectors else 2 * 24)
    assert body.moved / elements == (2 * moved if layout != "SoA" else 2 * 24)
    assert body.useful / body.moved > 0.8


@pytest.mark.parametrize("layout", ["SoA", "AoS", "SoAoAS", "AoAS"])
def test_bytes_of_reading_one_field(layout):
    """Only the velocity of a body: an array of structures moves all of it."""
    found = {t.array: t for t in layout_traffic(work("speed", layout, Plan(block=256)))}
    body = found["body"]
    assert body.moved / (1 << 20) in (16.0, 28.0, 32.0)


def test_reuse_of_sources():
    """A source that a block stages serves all its targets; one that a thread loads by itself serves that thread's."""
    plans = {1: Plan(block=256), 512: Plan(block=256, tile=256, targets=4, slices=2)}
    for factor, plan in plans.items():
        found = {r.array: r for r in reuse(work("gravity", "SoAoAS", plan))}
        assert found["source"].factor == pytest.approx(factor)
    merged = {r.array: r for r in reuse(work("gravity", "SoA", Plan(block=256, targets=4)))}
    assert merged["source"].factor == pytest.approx(4)


def test_no_reuse_of_elements():
    found = {r.array: r for r in reuse(work("speed", "SoA", Plan(block=256)))}
    assert found["body"].factor == pytest.approx(1.0)
