"""choose_layout: the model against measured figures, hot and cold groups, answers for common kernels, and what is
refused.
"""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import lanewise as lw
from lanewise.advice.choose import by_components, by_frequency, hot_cold, whole_fields
from lanewise.advice.cost import CPU, ArrayUse, MemoryModel, Role, cost, memory_model
from lanewise.advice.uses import accesses_of
from lanewise.language import types as t
from lanewise.language.record import Field, Leaf, Record
from lanewise.layouts import Layout, default_layout, draw, layout_by_name, prove
from lanewise.layouts.traffic import gathered, streamed
from lanewise.models.devices import table_model
from tests.corpus_kernels import Body, DBody, gravity, gravity_f64, kick_drift
from tests.emit.operators import define

LEAVES: tuple[Leaf, ...] = Body.__record__.leaves
ALL = tuple(leaf.name for leaf in LEAVES)
HOT = ALL[:4]
SPLIT = lw.SoAoAS([("position", "mass"), ("velocity.x", "velocity.y"), ("velocity.z",)])


@lw.elementwise
def advance(body: Body, dt: lw.f32):
    body.position += body.velocity * dt


@lw.elementwise
def weigh(body: Body) -> lw.f32:
    return body.mass * lw.length(body.position)


@lw.elementwise
def everything(body: Body) -> lw.f32:
    return body.mass * lw.dot(body.position, body.velocity)


@lw.record
class Other:
    x: lw.f32
    y: lw.f32


@lw.elementwise
def other(item: Other) -> lw.f32:
    return item.x - item.y


@pytest.fixture
def h200(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan for an NVIDIA H200 wherever the test runs."""
    monkeypatch.setattr("lanewise.runtime.devices.missing_for_cuda", lambda: ("no GPU",))


# ---------------------------------------------------------------- the model against measurements


MEASURED = [  # useful TB/s on an NVIDIA H200, 2^26 bodies: docs/layouts.md
    ("streamed", ALL, {"AoS": 4.40, "SoA": 4.42, "AoAS": 3.91, "SoAoAS": 3.92}),
    ("streamed", HOT, {"AoS": 2.75, "SoA": 4.19, "SoAoAS": 4.18}),
    ("gathered", HOT, {"AoS": 0.68, "SoA": 0.23, "SoAoAS": 0.87}),
]
NAMED: dict[str, Layout] = {"AoS": lw.AoS(), "SoA": lw.SoA(), "AoAS": lw.AoAS(), "SoAoAS": lw.SoAoAS()}


@pytest.mark.parametrize(("role", "read", "rates"), MEASURED)
def test_bandwidths_of_a_gpu(h200: None, role: Role, read: tuple[str, ...], rates: dict[str, float]) -> None:
    for name, rate in rates.items():
        seconds = cost(
            NAMED[name].arrange(LEAVES), ArrayUse("k", role, read, ()), memory_model("cuda"), 1 << 26
        ).seconds
        assert 4 * len(read) * (1 << 26) / seconds == pytest.approx(rate * 1e12, rel=0.1), name


def test_all_pairs_on_a_cpu() -> None:
    """Gravity of 16,384 bodies, one thread of two: bench/results/cpu_gravity.md."""
    measured = {lw.SoA(): 7.940, lw.SoAoAS(): 7.083, lw.AoAS(): 3.774, lw.AoS(): 3.743, lw.AoSoA(16): 3.478}
    access = accesses_of(Body.__record__, [gravity])[-1]
    assert access.role == "broadcast"
    for layout, rate in measured.items():
        seconds = cost(layout.arrange(LEAVES), access, CPU, 16_384).seconds
        assert 16_384**2 / seconds == pytest.approx(rate / 2 * 1e9, rel=0.15), layout


@pytest.mark.parametrize(("layout", "every", "hot", "scattered", "loads"), [
    # bytes an element: all streamed, position and mass streamed, position and mass gathered; loads of all on a GPU
    (lw.AoS(), 28, 28, 44, 7), (lw.SoA(), 28, 16, 128, 7), (lw.AoAS(), 32, 32, 32, 2), (lw.SoAoAS(), 32, 16, 32, 2),
    (SPLIT, 28, 16, 32, 3), (lw.AoSoA(32), 28, 16, 128, 7),
], ids=str)  # fmt: skip
def test_sectors(layout: Layout, every: float, hot: float, scattered: float, loads: int) -> None:
    a = layout.arrange(LEAVES)
    assert streamed(a, ALL, (), 32, vector=True).nbytes == every
    assert streamed(a, HOT, (), 32, vector=True).nbytes == hot
    assert gathered(a, HOT, (), 32, vector=True).nbytes == scattered
    assert streamed(a, ALL, (), 32, vector=True).instructions == loads


def test_stores_in_part_are_read_first() -> None:
    a = lw.AoS().arrange(LEAVES)
    assert streamed(a, (), ("mass",), 32, vector=True).nbytes == 2 * 28  # every sector is filled and written
    assert streamed(lw.SoA().arrange(LEAVES), (), ("mass",), 32, vector=True).nbytes == 4
    assert (
        streamed(lw.SoA().arrange(LEAVES), (), ("mass",), 64, vector=False).nbytes == 2 * 4
    )  # a CPU reads lines to own them
    assert gathered(lw.SoA().arrange(LEAVES), ("mass",), ("mass",), 32, vector=True).nbytes == 64


# ---------------------------------------------------------------- groups


def names(groups: list[tuple[Leaf, ...]]) -> list[tuple[str, ...]]:
    return [tuple(leaf.name for leaf in g) for g in groups]


def test_fields_of_equal_frequency_form_groups() -> None:
    accesses = accesses_of(Body.__record__, [weigh, advance])
    fields = [tuple(dict.fromkeys(n.partition(".")[0] for n in g)) for g in names(by_frequency(LEAVES, accesses))]
    assert fields == [("position",), ("mass",), ("velocity",)]
    only = by_frequency(LEAVES, accesses_of(Body.__record__, [weigh]))
    assert [len(g) for g in only] == [4, 3]  # hot first, cold last


def test_groups_are_split_at_16_bytes() -> None:
    assert [len(p) for p in whole_fields(LEAVES)] == [4, 3]
    assert names(by_components(LEAVES)) == [HOT, ("velocity.x", "velocity.y"), ("velocity.z",)]
    wide: tuple[Leaf, ...] = DBody.__record__.leaves
    assert [len(p) for p in by_components(wide)] == [2, 2, 2, 1]


def test_hot_and_cold_gathers() -> None:
    """Position and mass are gathered, velocity is streamed: three arrays without padding."""
    choice = lw.choose_layout(Body, [lw.Use(weigh, pattern="gathered"), lw.Use(everything, weight=4)], device="cuda")
    assert choice.layout == SPLIT
    assert choice.worth_changing
    assert draw(choice.layout.arrange(LEAVES)).count("padding") == 0


RECORDS = st.lists(
    st.one_of(
        st.sampled_from(t.SCALARS), st.builds(t.Vector, st.sampled_from([t.F32, t.F64, t.I32]), st.integers(2, 4))
    ),
    min_size=1,
    max_size=5,
).map(lambda kinds: Record("Any", tuple(Field(f"f{i}", k) for i, k in enumerate(kinds))))


@given(RECORDS, st.data())
@settings(max_examples=30)
def test_every_grouping_is_proven(record: Record, data: st.DataObject) -> None:
    """Any accesses to any record: the grouped layout holds every leaf once, aligned, and its name reads back."""
    leaves = [leaf.name for leaf in record.leaves]
    subsets = st.lists(st.sampled_from(leaves), min_size=1, unique=True).map(tuple)
    roles = st.sampled_from(["streamed", "gathered", "broadcast"])
    accesses = data.draw(
        st.lists(st.builds(ArrayUse, st.just("k"), roles, subsets, st.just(())), min_size=1, max_size=3)
    )
    model = data.draw(st.sampled_from([CPU, MODEL]))

    def score(layout: Layout) -> float:
        return sum(cost(layout.arrange(record.leaves), a, model, 10_000).seconds for a in accesses)

    layout = hot_cold(record.leaves, accesses, score)
    arrangement = layout.arrange(record.leaves)
    prove(arrangement, 33)
    assert sorted(s.leaf for s in arrangement.slots) == sorted(leaves)
    assert len({b.name for b in arrangement.buffers}) == len(arrangement.buffers)
    assert layout_by_name(str(layout)) == layout


MODEL = MemoryModel(
    name="a GPU", kind="cuda", unit=32, streamed=4e12, gathered=2e12, cache_bytes=50 << 20, cached_streamed=1e13,
    cached_gathered=1e13, lines=1e12, operations=3e13, clock_hz=2e9, reuse=512,
)  # fmt: skip


# ---------------------------------------------------------------- components in groups


def test_a_divided_field_is_a_copy_that_can_be_assigned() -> None:
    bodies = Body.zeros(5, layout=SPLIT)
    bodies.velocity = np.arange(15).reshape(5, 3)
    assert not bodies.velocity.flags.writeable
    np.testing.assert_array_equal(bodies.velocity, np.arange(15).reshape(5, 3))
    assert bodies.position.flags.writeable
    assert bodies.nbytes == 2 * 128 + 5 * 4


def test_two_components_in_structures_of_different_size_have_no_view() -> None:
    layout = lw.SoAoAS([("position.x", "mass"), ("position.y",), ("position.z", "velocity")])
    bodies = Body.zeros(4, layout=layout)
    bodies.position, bodies.mass = np.arange(12).reshape(4, 3), 7
    np.testing.assert_array_equal(bodies.position, np.arange(12).reshape(4, 3))
    np.testing.assert_array_equal(bodies.mass, [7] * 4)


def test_kernels_run_on_divided_fields() -> None:
    plain = Body.array(position=np.arange(12.0, dtype="f4").reshape(4, 3), mass=1.0, velocity=np.ones((4, 3), "f4"))
    split = plain.with_layout(SPLIT)
    for bodies in (plain, split):
        advance(bodies, 0.5)
    np.testing.assert_array_equal(split.position, plain.position)


def test_names_of_groups() -> None:
    arrangement = SPLIT.arrange(LEAVES)
    assert [b.name for b in arrangement.buffers] == ["position_mass", "velocity.xy", "velocity.z"]
    assert str(SPLIT) == "SoAoAS(position mass | velocity.x velocity.y | velocity.z)"
    assert layout_by_name("soaoas(position mass | velocity)") == lw.SoAoAS([("position", "mass"), ("velocity",)])
    assert SPLIT != lw.SoAoAS()
    with pytest.raises(lw.InputError, match="has an empty group; wanted names of fields between the bars"):
        layout_by_name("SoAoAS(position | )")
    with pytest.raises(lw.RecordError, match=r"'velocity.w' that is missing or named twice; left are position, mass"):
        Body.zeros(3, layout=lw.SoAoAS([["velocity.w"]]))
    with pytest.raises(lw.RecordError, match=r"'velocity' that is missing or named twice"):
        Body.zeros(3, layout=lw.SoAoAS([["velocity.x"], ["velocity"]]))


# ---------------------------------------------------------------- answers


GATHERS = [lw.Use(gravity, pattern="gathered", neighbors=60), kick_drift]


@pytest.mark.parametrize(("record", "kernels", "device", "count"), [
    (Body, [gravity, kick_drift], "cpu", 16_384), (Body, [gravity, kick_drift], "cuda", 16_384),
    (Body, [gravity, kick_drift], "cpu", 1_000_000), (Body, [gravity, kick_drift], "cuda", 1_000_000),
    (DBody, [gravity_f64], "cpu", 16_384), (DBody, [gravity_f64], "cuda", 100_000),
    (Body, [kick_drift], "cpu", 1_000_000), (Body, [weigh], "cuda", 1 << 26), (Body, [weigh], "cpu", 1 << 26),
    (Body, GATHERS, "cuda", 1_000_000), (Body, [lw.Use(weigh, "gathered")], "cuda", 1 << 26),
])  # fmt: skip
def test_the_default_is_what_common_kernels_get(
    h200: None, record: Any, kernels: list[Any], device: str, count: int
) -> None:
    choice = lw.choose_layout(record, kernels, device=device, count=count)
    assert not choice.worth_changing, str(choice)
    assert choice.layout == choice.current == default_layout(record.__record__, device)
    assert choice.verdict.startswith("no change worth making: ")


@pytest.mark.parametrize(("kernels", "device", "current", "wanted"), [
    ([everything], "cuda", None, lw.SoA()),  # 28 bytes instead of 32
    ([lw.Use(weigh, "gathered")], "cuda", lw.SoA(), lw.SoAoAS()),  # one sector instead of four
    ([gravity], "cpu", lw.AoS(), lw.SoA()), ([kick_drift], "cpu", lw.AoS(), lw.SoA()),
    (GATHERS, "cpu", None, lw.SoAoAS()),
])  # fmt: skip
def test_changes_that_pay(h200: None, kernels: list[Any], device: str, current: Layout | None, wanted: Layout) -> None:
    choice = lw.choose_layout(Body, kernels, device=device, current=current, count=1 << 24)
    assert choice.worth_changing
    assert choice.gain >= 0.05
    assert choice.layout == wanted, str(choice)
    assert choice.verdict.startswith(f"{wanted} instead of {choice.current}: ")


def test_the_best_is_the_least_of_all_candidates() -> None:
    for kernels, device in itertools.product(([gravity], [advance, weigh], GATHERS), ("cpu", "cuda")):
        choice = lw.choose_layout(Body, kernels, device=device)
        times = [c.seconds for c in choice.reasons]
        assert times[0] == pytest.approx(min(times), rel=1e-3)
        assert {type(c.layout) for c in choice.reasons} == {lw.AoS, lw.SoA, lw.AoAS, lw.SoAoAS, lw.AoSoA}


def test_an_array_brings_its_layout_device_and_length() -> None:
    bodies = Body.zeros(4096, layout=lw.AoAS(8))
    choice = lw.choose_layout(bodies, [gravity])
    assert (choice.current, choice.device, choice.count) == (lw.AoAS(8), "cpu", 4096)
    assert choice.before.layout == lw.AoAS(8)
    assert bodies.with_layout(choice.layout).layout == lw.SoA()


def test_what_the_kernels_do() -> None:
    target, source, updated = accesses_of(Body.__record__, [gravity, lw.Use(advance, weight=3)])
    assert (target.role, target.read, target.operations) == ("streamed", ALL[:3], 0)
    assert (source.role, source.read) == ("broadcast", HOT)
    assert source.operations > 10
    assert (updated.role, updated.written, updated.weight) == ("streamed", ALL[:3], 3)
    assert set(updated.read) == {*ALL[:3], *ALL[4:]}
    sources = accesses_of(Body.__record__, GATHERS)[1]
    assert (sources.role, sources.weight) == ("gathered", 60)


def test_without_a_gpu_the_table_is_named(h200: None) -> None:
    choice = lw.choose_layout(Body, [weigh], device="cuda")
    assert choice.machine == f"{table_model('sm_90').name} (from the table: there is no GPU here)"


# ---------------------------------------------------------------- how it is shown


def test_scalars_are_no_components() -> None:
    assert "other(item): streamed, reads x y\n" in str(lw.choose_layout(Other, [other]))


@lw.pairwise
def summed(target: Other, source: Other) -> lw.f32:
    return source.x


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_kernels_whose_records_take_no_time(device: str) -> None:
    """By the model: a sum of what every target reads."""
    for count in (1, 100, 1_000_000):
        choice = lw.choose_layout(Other, [summed], device=device, count=count, current=lw.AoS())
        assert choice.gain >= 0
        assert choice.as_dict()["candidates"][0]["relative"] == 1
        assert choice.verdict in str(choice)


def test_a_function_that_is_called_in_many_ways_counts_once() -> None:
    """A helper that calls another one twice, 40 times over, comes to 2^40 calls."""
    names: dict[str, Any] = {"lw": lw}
    f = define("def f0(x: lw.f32) -> lw.f32:\n    return x * x + 1", "f0", **names)
    names["f0"] = lw.function(f)
    for n in range(1, 41):
        text = f"def f{n}(x: lw.f32) -> lw.f32:\n    return f{n - 1}(x) + f{n - 1}(x + 1)"
        names[f"f{n}"] = lw.function(define(text, f"f{n}", **names))
    kernel = lw.elementwise(
        define("def kernel(e: Other) -> lw.f32:\n    return f40(e.x)", "kernel", **names, Other=Other)
    )
    assert lw.choose_layout(Other, [kernel]).accesses[0].operations > 2**40


def test_text(golden, h200: None) -> None:
    parts = [
        str(lw.choose_layout(Body, [gravity, kick_drift], device="cuda")),
        str(lw.choose_layout(Body, [lw.Use(weigh, "gathered", weight=10), everything], device="cuda", count=1 << 26)),
        str(lw.choose_layout(Body, [kick_drift], device="cpu", current=lw.AoS())),
    ]
    golden("choices", "\n\n".join(parts))


def test_dictionary_and_table() -> None:
    choice = lw.choose_layout(Body, [lw.Use(weigh, pattern="gathered", weight=10)], device="cpu")
    found = json.loads(json.dumps(choice.as_dict()))
    assert found["layout"] == str(choice.layout)
    assert found["worth_changing"] is choice.worth_changing
    assert found["accesses"] == [
        {"kernel": "weigh(body)", "pattern": "gathered", "read": list(HOT), "written": [], "weight": 10.0}
    ]
    assert [c["layout"] for c in found["candidates"]] == [str(c.layout) for c in choice.reasons]
    assert found["candidates"][0]["relative"] == 1
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(choice)
    text = console.export_text()
    assert choice.verdict in text
    assert "SoA (current)" in text


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(("make", "text"), [
    (lambda: lw.choose_layout(Body, []), "needs the kernels that use the records, found an empty list"),
    (lambda: lw.choose_layout(Body, [other]), "other reads and writes no field of Body: it says nothing about its layout"),
    (lambda: lw.choose_layout(Body, [len]), "takes kernels made by @lw.elementwise or @lw.pairwise, found <built-in"),
    (lambda: lw.choose_layout(Body.__record__, [gravity]), "takes a record class or an array of records, found Record"),
    (lambda: lw.choose_layout(Body, [gravity], device="tpu"), "plans for 'cpu' or 'cuda', found 'tpu'"),
    (lambda: lw.choose_layout(Body, [gravity], count=0), "needs the number of records, from 1 on, found 0"),
    (lambda: lw.choose_layout(Body, [lw.Use(gravity, "streamed")]), "the sources of a pairwise kernel are 'broadcast' or"),
    (lambda: lw.choose_layout(Body, [lw.Use(weigh, "broadcast")]), "only the sources of a pairwise kernel are"),
    (lambda: lw.Use(weigh, "random"), r"Use\(pattern='random'\): wanted 'streamed', 'broadcast' or 'gathered'"),
    (lambda: lw.Use(weigh, weight=0), r"Use\(weight=0\): wanted a number above zero"),
    (lambda: lw.Use(weigh, neighbors=float("inf")), r"Use\(neighbors=inf\): wanted a number above zero"),
    (lambda: lw.Use(weigh, weight=True), r"Use\(weight=True\): wanted a number above zero"),
])  # fmt: skip
def test_refused(make: Any, text: str) -> None:
    with pytest.raises(lw.ArgumentError, match=text):
        make()
