"""A slice of a function gives what the whole function gives, whatever its loops, branches and early returns are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.functions import with_distinct_functions
from lanewise.ir.interpret import call
from lanewise.ir.printer import print_function
from lanewise.ir.traverse import statements
from lanewise.ir.verify import verify_function
from lanewise.passes import dead_code
from lanewise.passes.outputs import keep_outputs
from lanewise.patterns.elements import ELEMENTWISE
from tests.frontend.test_random_programs import HEAD, block
from tests.passes.probe import Bead
from tests.written import module


def distinct(f: ir.Function) -> ir.Function:
    """With a name of its own for each helper of a type, as the first stage of the pipeline gives them."""
    applied = ir.Apply(f, tuple(ir.Local(p.name, p.type) for p in f.parameters), tuple(r.name for r in f.results))
    (whole,) = with_distinct_functions(ir.Kernel("kernel", ELEMENTWISE, (), (), (), (applied,))).body
    assert isinstance(whole, ir.Apply)
    return whole.function


@given(
    lines=block(3, False),
    results=st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True).map(sorted),
    seed=st.integers(0, 9),
)
def test_a_slice_of_any_program_gives_the_same(lines, results, seed):
    body = [*lines, "return x + v.z, y, n + m, a[0] + 10 * a[1] + 100 * a[2] + 1000 * a[3] + k"]
    f = distinct(module(HEAD + "\n".join(f"    {line}" for line in body) + "\n").kernel.lowered.function)
    part = dead_code.clean_function(keep_outputs(f, results, set()))
    verify_function(part)
    rng = np.random.default_rng(seed)
    arguments = {p.name: p.type.dtype.type(rng.integers(-16, 16) / (8 if p.type.is_float else 1)) for p in f.parameters}
    wanted, _ = call(f, arguments)
    found, _ = call(part, {p.name: arguments[p.name] for p in part.parameters})
    assert found == [wanted[n] for n in results]


@lw.elementwise
def count(bead: Bead, limit: lw.i32):
    """Two loops, of which each field needs one, and a jump that decides how often one runs."""
    n = 0
    while n < limit:
        n += 1
        if n * n > bead.level:
            break
        bead.weight += 1.0
    for k in range(limit):
        if k == 2:
            continue
        bead.place += lw.vec2(1.0, 0.0)


def names(f: ir.Function) -> set[type]:
    return {type(s) for s in statements(f.body)}


def test_loops_and_jumps_stay_where_something_needs_them(golden):
    f = count.lowered.function
    weight = dead_code.clean_function(keep_outputs(f, [], {"bead.weight"}))
    place = dead_code.clean_function(keep_outputs(f, [], {"bead.place.x"}))
    level = dead_code.clean_function(keep_outputs(f, [], {"bead.level"}))
    assert {ir.While, ir.Break} <= names(weight)
    assert ir.Continue not in names(weight)
    assert {ir.For, ir.Continue} <= names(place)
    assert ir.While not in names(place)
    assert level.body == ()
    golden("count", "\n\n".join(map(print_function, (f, weight, place, level))))
