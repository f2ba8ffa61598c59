"""Calls as data: what their tasks read and write, and that sequences which are not sound are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import Program
from lanewise.ir import nodes as ir
from lanewise.language.types import I64
from lanewise.launch.task_verifier import verify
from lanewise.launch.tasks import Access, Host, Launch, Role, Sequence, program_sequence
from lanewise.layouts import AoS, SoA
from lanewise.planning.plan import Plan
from lanewise.support.errors import VerificationError
from tests.corpus import CASES
from tests.corpus import case as case_of
from tests.harness import CPU_PLAN, CUDA_PLAN, plan_for, program

PLANS = {
    "cpu": [CPU_PLAN],
    "cuda": [CUDA_PLAN, Plan(parts=4, tile=32).filled(CUDA_PLAN), Plan(slices=2, tile=32, block=32).filled(CUDA_PLAN)],
}
RECIPROCAL = {
    "scratch": Plan(reciprocity="scratch", targets=2, block=32, tile=0, unroll=1),
    "ordered": Plan(reciprocity="ordered", targets=2, block=32, tile=0, unroll=1),
}


def made(name: str, plan: Any = CUDA_PLAN, device: str = "cuda", layout: Any = None) -> Program:
    case = case_of(name)
    return program(case, layout or SoA(), plan_for(case, plan, device), device)


def accesses(sequence: Sequence) -> list[tuple[str, dict[str, str]]]:
    """For people: of every task its name, and "r", "w" or "rw" for each buffer."""
    shown = {(True, False): "r", (False, True): "w", (True, True): "rw"}
    return [(task.name, {a.buffer: shown[a.reads, a.writes] for a in task.accesses}) for task in sequence.tasks]


@pytest.mark.parametrize("layout", [SoA(), AoS()], ids=str)
@pytest.mark.parametrize("device", PLANS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_sequences_of_compiled_programs_are_sound(case: Any, device: str, layout: Any) -> None:
    for plan in PLANS[device][: 3 if case.pairwise else 1]:
        sequence = verify(program_sequence(program(case, layout, plan_for(case, plan, device), device)))
        assert sequence.launches
        for task in sequence.launches:
            assert all(sequence.buffers[a.buffer] for a in task.accesses)


@pytest.mark.parametrize("name", RECIPROCAL)
def test_partial_sums_of_both_sides_are_temporary_or_clean(name: str) -> None:
    sequence = verify(program_sequence(made("gravity", RECIPROCAL[name].filled(CUDA_PLAN))))
    assert [b.role for b in sequence.beside] == [Role.TEMPORARY if name == "scratch" else Role.KEPT] * len(
        sequence.beside
    )


def test_what_the_tasks_of_a_call_touch() -> None:
    sequence = verify(program_sequence(made("gravity", Plan(parts=4).filled(CUDA_PLAN))))
    (partial,) = sequence.beside
    first, second = accesses(sequence)
    assert first == ("gravity", {"target": "r", "source": "r", partial.name: "w"})
    assert second == ("gravity_combine", {partial.name: "r", "$result": "w"})
    assert sequence.buffers["$result"].role is Role.RESULT
    moved = verify(program_sequence(made("kick_drift", CPU_PLAN, "cpu")))
    assert accesses(moved) == [("kick_drift", {"body": "rw", "acceleration": "r"})]
    assert moved.changed == {"body"}


@lw.record
class Place:
    position: lw.vec2
    weight: lw.f32


@lw.pairwise(search=lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1))))
def near(target: Place, source: Place) -> lw.f32:
    return source.weight


@lw.segmentwise
def weighed(place: Place, item: Place) -> lw.f32:
    return place.weight * item.weight


@lw.threadwise
def total(i: lw.index, a: lw.Array1[lw.f32]) -> lw.f32:
    return a[i]


@lw.elementwise
def deposit(at: lw.i32, v: lw.f32, sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, at, v)


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations, omega: lw.f32):
    weight = lw.f32(0)
    for q in lw.D2Q9:
        weight += f[q]
    for q in lw.D2Q9:
        f[q] += omega * (q.weight * weight - f[q])


def test_sequences_of_all_patterns_are_sound() -> None:
    random = np.random.default_rng(1)
    places = Place.array(position=random.random((40, 2)), weight=random.random(40))
    items, values = lw.ragged(places.copy(), counts=[10, 30]), random.random(70).astype(np.float32)
    sites = flow.sites((8, 8))
    for compiled in (
        near.compile(places, places), weighed.compile(places, items), total.compile(values, grid=70),
        deposit.compile(np.zeros(70, np.int32), values, np.zeros(3, np.float32)), flow.compile(sites, omega=1.0),
    ):  # fmt: skip
        sequence = verify(compiled.executable.sequence)
        assert len(sequence.launches) == len(compiled.executable.program.kernels)


# ---------------------------------------------------------------- refused


@pytest.fixture
def sequence() -> Sequence:
    """Of two kernels, with partial sums between them."""
    return verify(program_sequence(made("gravity", Plan(parts=4).filled(CUDA_PLAN))))


def refused(sequence: Sequence, why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        verify(sequence)


def test_a_task_that_is_dropped(sequence: Sequence) -> None:
    first, second = sequence.tasks
    refused(replace(sequence, tasks=(second,)), r"gravity_combine reads '\$.*', which nothing has written before")
    refused(replace(sequence, tasks=(first,)), r"nothing writes the result '\$result'|which nothing reads after it")


def test_tasks_that_are_exchanged(sequence: Sequence) -> None:
    refused(replace(sequence, tasks=sequence.tasks[::-1]), "which nothing has written before")


def test_a_buffer_that_is_dropped_or_renamed(sequence: Sequence) -> None:
    (partial,) = sequence.beside
    others = {n: b for n, b in sequence.buffers.items() if n != partial.name}
    refused(replace(sequence, buffers=others), "which is no buffer of the call")
    refused(replace(sequence, buffers={**others, "$other": replace(partial, name="$other")}), "which is no buffer")


def test_a_buffer_that_lies_otherwise(sequence: Sequence) -> None:
    source = sequence.buffers["source"]
    leaves = next(a for a in sequence.launches[0].kernel.arrays if a.name == "source").leaves
    other = replace(source, arrangement=AoS().arrange(leaves))
    refused(replace(sequence, buffers={**sequence.buffers, "source": other}), "to lie otherwise than it does")


def test_an_argument_that_no_call_changes() -> None:
    moved = program_sequence(made("kick_drift", CPU_PLAN, "cpu"))
    refused(replace(moved, changed=frozenset()), "writes 'body', which a call does not change")


def test_sizes_that_nobody_knows_or_that_are_negative(sequence: Sequence) -> None:
    (partial,) = sequence.beside
    for length, why in (
        (ir.Local("$elsewhere", I64), r"depends on \$elsewhere, which no kernel knows"),
        (
            ir.Binary("-", ir.Local("$target.count", I64), ir.Literal(3, I64), I64),
            "has -3 elements where arrays have 0",
        ),
    ):
        wrong = replace(partial, count=length)
        refused(replace(sequence, buffers={**sequence.buffers, partial.name: wrong}), why)


def test_a_gate_behind_what_changes_arguments() -> None:
    moved = program_sequence(made("kick_drift", CPU_PLAN, "cpu"))
    gate = Host("the tests of indices", lambda: None, (Access("body", reads=True, writes=False),), gate=True)
    verify(replace(moved, tasks=(gate, *moved.tasks)))
    refused(replace(moved, tasks=(*moved.tasks, gate)), "may refuse a call after kick_drift has changed its arguments")


def test_clean_memory_that_nobody_brings_back_to_zero(sequence: Sequence) -> None:
    counters = replace(sequence.beside[0], name="$counters", role=Role.KEPT, clean=True)
    refused(replace(sequence, buffers={**sequence.buffers, "$counters": counters}), r"nothing brings '\$counters' back")


def test_a_task_that_touches_nothing(sequence: Sequence) -> None:
    idle = Host("nothing", lambda: None, (Access("source", reads=False, writes=False),))
    refused(replace(sequence, tasks=(idle, *sequence.tasks)), "neither reads nor writes 'source'")


def test_launches_know_their_extents(sequence: Sequence) -> None:
    assert all(isinstance(task, Launch) for task in sequence.tasks)
    assert [task.extent for task in sequence.launches] == [
        task.kernel.grid.extent for task in sequence.launches if task.kernel.grid
    ]
