"""The combined function gives, to the last bit, what two calls of the original give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.analysis.both_ways import BothWays, both_ways, reaction_of
from lanewise.analysis.value_numbering import Value, ValueTable
from lanewise.analysis.written_values import function_of_values
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.names import own
from lanewise.ir.printer import print_function
from lanewise.ir.verify import verify_function
from lanewise.language import types as t
from lanewise.support.errors import NOWHERE
from tests.corpus import case

NAMES = ["gravity", "gravity_potential", "lennard_jones", "yukawa", "count_ranks", "gravity_f64", "gravity_mixed"]


def combined(name: str) -> BothWays:
    f = case(name).kernel.lowered.function
    found = both_ways(f, "target", "source")
    assert isinstance(found, BothWays)
    verify_function(found.function)
    return found


def test_golden(golden):
    golden("gravity", print_function(combined("gravity").function))
    golden("lennard_jones", print_function(combined("lennard_jones").function))


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 10_000))
def test_both_directions_are_those_of_two_calls(name, seed):
    f = case(name).kernel.lowered.function
    both = combined(name).function
    rng = np.random.default_rng(seed)
    values = {p.name: p.type.dtype.type(rng.integers(-4, 5) + (0.25 if p.type.is_float else 0)) for p in f.parameters}
    values |= {p.name: p.type.dtype.type(abs(rng.normal()) + 0.1) for p in f.parameters if "." not in p.name}
    for p in both.parameters:  # fields that only one side of the original reads
        values.setdefault(p.name, p.type.dtype.type(rng.integers(1, 5)))
    for p in list(values):
        other = p.replace("target.", "source.") if p.startswith("target.") else p.replace("source.", "target.")
        values.setdefault(other, values[p] + 1)
    values["$same"] = np.bool_(False)
    exchanged = {
        (n.replace("target.", "source.") if n.startswith("target.") else n.replace("source.", "target.")): v
        for n, v in values.items()
    }
    there, _ = call(f, {p.name: values[p.name] for p in f.parameters})
    back, _ = call(f, {p.name: exchanged[p.name] for p in f.parameters})
    found, _ = call(both, {p.name: values[p.name] for p in both.parameters})
    np.testing.assert_array_equal(np.array(found), np.array(there + back))
    assert [r.name for r in both.results[len(f.results) :]] == [reaction_of(r.name) for r in f.results]


def test_what_is_saved():
    assert combined("gravity").alone == 16
    assert combined("gravity").together == 20
    assert combined("yukawa").saved > 0.45


@lw.record
class Point:
    place: lw.vec2


@lw.pairwise
def loops(target: Point, source: Point) -> lw.f32:
    total = lw.f32(0)
    for _ in range(3):
        total += source.place.x
    return total


def test_loops_are_not_followed():
    assert both_ways(loops.lowered.function, "target", "source") == "loops has a loop"


@pytest.mark.parametrize("kind", ["truth", "number"])
def test_labels_that_look_like_names_of_values(kind):
    """Written functions are written again: each value keeps a name of its own."""
    table = ValueTable()
    x = table.leaf("x", t.F64)
    one = Value(table.add("literal", (), t.F64, 1.0))
    values = [x]
    for _ in range(6):
        values.append(Value(table.add("+", (values[-1].number, one.number), t.F64)))
    first, *others = values[1:]
    for n, v in enumerate(others):  # each is labelled as the next one would be called
        table.labels[v.number] = (own(f"value{others[(n + 1) % len(others)].number}"), NOWHERE)
    asked = first if kind == "number" else Value(table.add("<", (first.number, one.number), t.BOOL))
    table.labels[asked.number] = (own(f"value{others[0].number}"), NOWHERE)
    results = [(ir.Parameter(f"r{n}", table.nodes[v.number].type), v) for n, v in enumerate([asked, *others, *others])]
    made = function_of_values("made", table, [ir.Parameter("x", t.F64)], results)
    verify_function(made)
    names = [s.name for s in made.body if isinstance(s, ir.Assign)]
    assert len(names) == len(set(names))
    found, _ = call(made, {"x": np.float64(2.0)})
    assert list(found[1:6]) == [4.0, 5.0, 6.0, 7.0, 8.0]
