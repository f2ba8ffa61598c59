"""The verifier: what is consistent passes, and every kind of inconsistency is found, with its own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise.ir import nodes as ir
from lanewise.ir.verify import verify_function, verify_kernel
from lanewise.language.record import Leaf
from lanewise.language.types import BOOL, F32, F64, I32, I64, U32, LocalArray
from lanewise.layouts import AoS
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.support.errors import VerificationError

X, Y, N, FLAG = ir.Local("x", F32), ir.Local("y", F64), ir.Local("n", I32), ir.Local("flag", BOOL)
ONE, TWO = ir.Literal(1, I32), ir.Literal(2, I32)
HALF = ir.Literal(0.5, F32)
PARAMETERS = tuple(ir.Parameter(v.name, v.type) for v in (X, Y, N, FLAG))
ARRAY = ir.DeclareArray("a", LocalArray(F32, 4))


def function(*body: ir.Statement, results: tuple[ir.Parameter, ...] = ()) -> ir.Function:
    return ir.Function("f", PARAMETERS, results, body)


def message(check, *arguments) -> str:
    with pytest.raises(VerificationError) as error:
        check(*arguments)
    return str(error.value)


def test_a_sound_function_passes():
    body = (
        ARRAY,
        ir.SetElement("a", ONE, X),
        ir.Assign("z", ir.Binary("+", ir.Element("a", N, F32), HALF, F32)),
        ir.For("k", ONE, N, TWO, (ir.If(FLAG, (ir.Break(),)), ir.Assign("z", ir.Unary("-", ir.Local("z", F32), F32)))),
        ir.While(ir.Logical("and", FLAG, ir.Compare("<", N, ONE)), (ir.Continue(),)),
        ir.If(ir.Call("isnan", (X,), BOOL), (ir.Return((HALF,)),), (ir.Return((ir.Select(FLAG, X, HALF, F32),)),)),
    )
    verify_function(function(*body, results=(ir.Parameter("result", F32),)))


EXPRESSIONS = [
    (ir.Local("z", F32), "z: f32 is unknown"),
    (ir.Local("x", F64), "x: f64 is f32"),
    (ir.Literal(1, F32), "1 is no f32"),
    (ir.Literal(1.0, I32), "1.0 is no i32"),
    (ir.Literal(True, I32), "True is no i32"),
    (ir.Literal(1, BOOL), "1 is no bool"),
    (ir.Literal(2**31, I32), "2147483648 is no i32"),
    (ir.Literal(-1, U32), "-1 is no u32"),
    (ir.Literal(2**63, I64), "9223372036854775808 is no i64"),
    (ir.Binary("+", X, Y, F32), "x + y mixes f32, f64 and f32"),
    (ir.Binary("+", X, X, F64), "x + x mixes f32, f32 and f64"),
    (ir.Binary("/", N, N, I32), "n / n is not defined for i32"),
    (ir.Binary("&", X, X, F32), "x & x is not defined for f32"),
    (ir.Binary("<<", X, X, F32), "x << x is not defined for f32"),
    (ir.Binary("+", FLAG, FLAG, BOOL), "flag + flag is not defined for bool"),
    (ir.Unary("-", X, F64), "-x changes its type"),
    (ir.Unary("-", FLAG, BOOL), "-flag is not defined for bool"),
    (ir.Unary("~", X, F32), "~x is not defined for f32"),
    (ir.Unary("not", N, I32), "not n is not defined for i32"),
    (ir.Compare("<", X, Y), "x < y compares f32 with f64"),
    (ir.Logical("and", FLAG, N), "flag and n needs booleans"),
    (ir.Select(FLAG, X, Y, F32), "x if flag else y mixes types"),
    (ir.Select(N, X, X, F32), "x if n else x mixes types"),
    (ir.Call("cbrrt", (X,), F32), "cbrrt(x) is no intrinsic"),
    (ir.Call("sqrt", (X, X), F32), "sqrt(x, x) is no intrinsic"),
    (ir.Call("sqrt", (X,), F64), "sqrt(x) mixes types"),
    (ir.Call("sqrt", (N,), I32), "sqrt(n) mixes types"),
    (ir.Call("hypot", (X, Y), F64), "hypot(x, y) mixes types"),
    (ir.Call("isnan", (X,), F32), "isnan(x) mixes types"),
    (ir.Call("max", (FLAG, FLAG), BOOL), "max(flag, flag) mixes types"),
    (ir.Element("x", ONE, F32), "x[1] does not fit x: f32"),
    (ir.Element("b", ONE, F32), "b[1] does not fit b: unknown"),
    (ir.Element("a", ONE, F64), "a[1] does not fit a: f32[4]"),
    (ir.Element("a", X, F32), "a[x] does not fit a: f32[4]"),
    (ir.Builtin("thread", I32), "@thread outside a grid"),
]


@pytest.mark.parametrize(("e", "problem"), EXPRESSIONS, ids=[p for _, p in EXPRESSIONS])
def test_expressions(e, problem):
    first = message(verify_function, function(ARRAY, ir.Assign("w", e))).splitlines()[0]
    assert first == f"function f: {problem} in"


def test_the_statement_is_shown():
    text = message(verify_function, function(ir.Assign("w", ir.Binary("*", X, ir.Local("lost", F32), F32))))
    assert text == "function f: lost: f32 is unknown in\n  w: f32 = x * lost"


HELPER = ir.Function(
    "h", (ir.Parameter("v", F32, True), ir.Parameter("m", I32)), (ir.Parameter("result", F32),), (ir.Return((HALF,)),)
)
STATEMENTS = [
    ((ir.Assign("w", X), ir.Assign("w", N)), "w was f32 and becomes i32"),
    ((ARRAY, ir.Assign("a", X)), "a was f32[4] and becomes f32"),
    ((ir.DeclareArray("b", LocalArray(F32, 0)),), "an empty local array"),
    ((ir.SetElement("a", ONE, X),), "f32 at i32 does not fit a: unknown"),
    ((ARRAY, ir.SetElement("a", ONE, Y)), "f64 at i32 does not fit a: f32[4]"),
    ((ARRAY, ir.SetElement("a", X, X)), "f32 at f32 does not fit a: f32[4]"),
    ((ir.If(N, ()),), "the condition is i32, not a boolean,"),
    ((ir.While(N, ()),), "the condition is i32, not a boolean,"),
    ((ir.For("k", ONE, ir.Literal(2, I64), ONE, ()),), "the bounds are not integers of one type"),
    ((ir.For("k", HALF, HALF, HALF, ()),), "the bounds are not integers of one type"),
    ((ir.For("k", ONE, TWO, ir.Literal(0, I32), ()),), "a step of 0"),
    ((ir.Assign("k", ONE), ir.For("k", ir.Local("k", I32), TWO, ONE, ())), "the bounds read k, the loop's own variable,"),
    ((ir.Assign("k", ONE), ir.For("k", ONE, ir.Local("k", I32), ONE, ())), "the bounds read k, the loop's own variable,"),
    ((ir.For("k", ONE, TWO, ONE, (ir.Assign("k", TWO),)),), "the variable k of a loop around is changed"),
    ((ir.For("k", ONE, TWO, ONE, (ir.For("k", ONE, TWO, ONE, ()),)),), "the variable k of a loop around is changed"),
    ((ir.Break(),), "no loop"),
    ((ir.If(FLAG, (ir.Continue(),)),), "no loop"),
    ((ir.Return((X,)),), "the results should be none"),
    ((ir.Apply(HELPER, (X,), ("r",)),), "the arguments do not fit the parameters"),
    ((ir.Apply(HELPER, (X, Y), ("r",)),), "the arguments do not fit the parameters"),
    ((ir.Apply(HELPER, (HALF, N), ("r",)),), "the mutable parameter v needs a variable"),
    ((ir.Apply(HELPER, (X, N), ()),), "1 results go to 0 variables"),
    ((ir.Apply(HELPER, (X, N), ("n",)),), "n was i32 and becomes f32"),
    ((ir.Apply(HELPER, (X, N), ("r",)), ir.Apply(replace(HELPER, body=(ir.Return((X,)),)), (X, N), ("r",))), "there is another function h"),
    ((ir.LoadRecord("a", ONE, ()),), "memory is touched by a pure function"),
    ((ir.Barrier(),), "memory is touched by a pure function"),
    ((ir.Parallel("k", N, ()),), "memory is touched by a pure function"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "problem"), STATEMENTS, ids=[p for _, p in STATEMENTS])
def test_statements(body, problem):
    assert message(verify_function, function(*body)).splitlines()[0] == f"function f: {problem} in"


def test_wrong_and_missing_returns():
    result = (ir.Parameter("result", F32),)
    text = message(verify_function, function(ir.Return((N,)), results=result)).splitlines()[0]
    assert text == "function f: the results should be f32 in"
    assert message(verify_function, function(results=result)) == "function f: a path ends without a return"
    half = function(ir.If(FLAG, (ir.Return((X,)),)), results=result)
    assert message(verify_function, half) == "function f: a path ends without a return"


def test_two_parameters_of_one_name():
    twice = ir.Function("f", (PARAMETERS[0], PARAMETERS[0]), (), ())
    assert message(verify_function, twice) == "function f: two parameters of one name in ['x', 'x']"


def test_an_error_in_a_helper_names_the_helper():
    bad = replace(HELPER, body=(ir.Return((ir.Local("lost", F32),)),))
    text = message(verify_function, function(ir.Apply(bad, (X, N), ("r",))))
    assert text == "function h: lost: f32 is unknown in\n  return lost"


# ---------------------------------------------------------------- kernels

LEAVES = (Leaf("p.x", F32), Leaf("m", I32))
SOURCE = ir.ArrayArgument("source", LEAVES, AoS().arrange(LEAVES))
OUT = replace(SOURCE, name="$result", written=True)
COUNT = ir.Parameter("$count", I32)
I = ir.Local("$i", I32)  # noqa: E741
FETCH = ir.LoadRecord("source", I, (("p.x", "source.p.x"), ("m", "source.m")))
COMMIT = ir.StoreRecord("$result", I, (("p.x", ir.Local("source.p.x", F32)),))
BUFFER = ir.BufferArgument("source", "source", 0, F32, 2, written=False)
GRID = ir.Grid(ir.Local("$count", I32), 32, 32)


def kernel(*body: ir.Statement, **changes) -> ir.Kernel:
    loop = ir.Parallel("$i", ir.Local("$count", I32), body)
    whole = ir.Kernel("k", ELEMENTWISE, (SOURCE, OUT), (ir.Parameter("scale", F32),), (COUNT,), (loop,))
    return replace(whole, **changes)


def test_a_sound_kernel_passes():
    verify_kernel(kernel(FETCH, ir.Assign("$twice", ir.Local("scale", F32)), COMMIT))
    verify_kernel(kernel(body=(ir.Assign("$i", ir.Builtin("thread", I32)), FETCH, ir.Barrier(), COMMIT), grid=GRID))


IN_KERNELS = [
    ((ir.LoadRecord("sink", I, ()),), "no array sink"),
    ((replace(FETCH, index=ir.Local("scale", F32)),), "an index of type f32"),
    ((ir.LoadRecord("source", I, (("q", "source.q"),)),), "source has no leaf q"),
    ((FETCH, ir.LoadRecord("source", I, (("m", "source.p.x"),))), "source.p.x was f32 and becomes i32"),
    (
        (ir.LoadRecord("source", I, (("p.x", "$a"), ("m", "$b")), across=2),),
        "the leaves are not those of 2 records, one after the other",
    ),
    ((FETCH, replace(COMMIT, array="source")), "the writes do not fit source"),
    ((FETCH, ir.StoreRecord("$result", I, (("m", ir.Local("source.p.x", F32)),))), "the writes do not fit $result"),
    ((ir.StoreRecord("$result", I, (("q", ONE),)),), "$result has no leaf q"),
    ((ir.Load("source", I, ("$a", "$b")),), "no buffer source"),
    ((ir.Store("source", I, (ONE,)),), "no buffer source"),
    ((ir.PrefetchElement("source", (I,)),), "no array source in global memory with 1 dimension"),
    ((ir.PrefetchElement("source", (ir.Local("scale", F32),)),), "a place that is not an integer"),
    ((ir.Prefetch("source", I),), "no buffer source in global memory"),
    ((ir.Return(()),), "the results should be none"),
    ((ir.Assign("free", ONE),), "free is neither a user's name nor one of lanewise's own"),
    (
        (ir.Apply(HELPER, (ir.Local("scale", F32), I), ("result",)),),
        "result is neither a user's name nor one of lanewise's own",
    ),
    ((ir.For("j", ONE, TWO, ONE, ()),), "j is neither a user's name nor one of lanewise's own"),
    ((ir.For("$j", ONE, TWO, ONE, (ir.Parallel("$k", ONE, ()),)),), "a parallel loop within threads or a loop"),
]


@pytest.mark.parametrize(("body", "problem"), IN_KERNELS, ids=[p for _, p in IN_KERNELS])
def test_statements_of_kernels(body, problem):
    assert message(verify_kernel, kernel(*body)).splitlines()[0] == f"kernel k: {problem} in"


LOADS = [
    (ir.Load("source", I, ("$a",)), "source has 2 lanes"),
    (ir.Load("source", ir.Local("scale", F32), ("$a", "")), "an index of type f32"),
    (ir.Load("source", I, ("$i", "")), "$i was i32 and becomes f32"),
    (ir.Store("source", I, (HALF, HALF)), "the values do not fit source"),
    (ir.Store("out", I, (HALF,)), "the values do not fit out"),
    (ir.Store("out", I, (HALF, ONE)), "the values do not fit out"),
]


@pytest.mark.parametrize(("s", "problem"), LOADS, ids=[p for _, p in LOADS])
def test_loads_and_stores(s, problem):
    buffers = (BUFFER, replace(BUFFER, name="out", array="$result", written=True))
    assert message(verify_kernel, kernel(s, buffers=buffers)).splitlines()[0] == f"kernel k: {problem} in"


def test_arguments_of_kernels():
    assert (
        message(verify_kernel, kernel(arrays=(SOURCE, SOURCE)))
        == "kernel k: two arrays of one name in ['source', 'source']"
    )
    two = (ir.Parameter("scale", F32), ir.Parameter("scale", F32))
    assert (
        message(verify_kernel, kernel(uniforms=two))
        == "kernel k: two uniforms of one name in ['scale', 'scale', '$count']"
    )
    text = "kernel k: the count n: i32 should be an integer with a name that lanewise introduced"
    assert message(verify_kernel, kernel(counts=(ir.Parameter("n", I32),))) == text
    orphan = replace(BUFFER, array="lost")
    assert message(verify_kernel, kernel(buffers=(orphan,))) == "kernel k: the buffer source belongs to no array"


def test_barriers_and_coordinates_need_threads():
    assert (
        message(verify_kernel, kernel(body=(ir.Barrier(),))).splitlines()[0] == "kernel k: a barrier without threads in"
    )
    place = ir.Assign("$i", ir.Builtin("block", I32))
    assert message(verify_kernel, kernel(body=(place,))).splitlines()[0] == "kernel k: @block outside a grid in"
    text = message(verify_kernel, kernel(grid=GRID)).splitlines()[0]
    assert text == "kernel k: a parallel loop within threads or a loop in"


# ---------------------------------------------------------------- the least of a warp

LANE, GROUP, PLACE, NEAR = (ir.Local(n, I32) for n in ("$thread", "$group", "$place", "$near"))
OWN, FOUND = ir.Local("$own", F32), ir.Local("$found", F32)
LEAST = ir.Least("$found", OWN)
BEGIN = (ir.Assign("$own", ir.Cast(LANE, F32)), ir.Assign("$found", HALF), ir.Assign("$near", GROUP))


def lanes(*body: ir.Statement) -> ir.Kernel:
    """Groups of 32 lanes, as on a CPU."""
    inner = ir.Parallel("$thread", ir.Literal(32, I32), (*BEGIN, *body))
    return kernel(body=(ir.Parallel("$group", ir.Local("$count", I32), (inner,)),))


def warps(*body: ir.Statement, of: int = 32, begin: int = 64) -> ir.Kernel:
    """Groups of `of` threads of a GPU."""
    first = ir.Binary("*", ir.Builtin("block", I32), ir.Literal(begin, I32), I32)
    place = ir.Assign("$place", ir.Binary("+", first, ir.Builtin("thread", I32), I32))
    group = ir.Assign("$group", ir.Binary("//", PLACE, ir.Literal(of, I32), I32))
    lane = ir.Assign("$thread", ir.Binary("%", PLACE, ir.Literal(32, I32), I32))
    guard = ir.If(less(GROUP, ir.Local("$count", I32)), (*BEGIN, *body))
    return kernel(body=(place, group, lane, guard), grid=GRID)


def less(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    return ir.Compare("<", a, b)


TOGETHER = {
    "straight": (LEAST,),
    "a condition of the group": (ir.If(less(GROUP, TWO), (LEAST,)),),
    "a condition of what was found": (LEAST, ir.If(less(FOUND, HALF), (LEAST,), (LEAST,))),
    "a loop of the group": (ir.For("$j", ONE, GROUP, ONE, (LEAST,)),),
    "a loop that ends by what was found": (
        ir.While(less(FOUND, HALF), (LEAST, ir.If(less(FOUND, HALF), (ir.Break(),)))),
    ),
    "lanes apart before and behind": (
        ir.If(less(OWN, HALF), (ir.Assign("$own", HALF),)), LEAST, ir.If(less(OWN, HALF), (ir.Assign("$own", HALF),)),
    ),
}  # fmt: skip
DIVIDED = {
    "a condition of the lane": ((ir.If(less(LANE, TWO), (LEAST,)),), "$thread"),
    "otherwise": ((ir.If(less(LANE, TWO), (), (LEAST,)),), "$thread"),
    "of what a lane has": ((ir.If(less(GROUP, TWO), (ir.If(less(OWN, HALF), (LEAST,)),)),), "$own"),
    "of what only some assign": (
        (ir.If(less(OWN, HALF), (ir.Assign("$near", TWO),)), ir.If(less(NEAR, TWO), (LEAST,))), "$near",
    ),
    "a loop of the lane": ((ir.For("$j", ONE, LANE, ONE, (LEAST,)),), "$thread"),
    "a loop while the lane asks": ((ir.While(less(OWN, FOUND), (LEAST,)),), "$own"),
    "a loop that some leave": (
        (ir.For("$j", ONE, GROUP, ONE, (ir.If(less(OWN, HALF), (ir.Break(),)), LEAST)),), "$own",
    ),
    "a step that some skip": (
        (ir.For("$j", ONE, GROUP, ONE, (ir.If(less(OWN, HALF), (ir.Continue(),)), LEAST)),), "$own",
    ),
    "one of two": ((LEAST, ir.If(less(LANE, TWO), (LEAST,))), "$thread"),
}  # fmt: skip


@pytest.mark.parametrize("made", [lanes, warps])
@pytest.mark.parametrize("name", TOGETHER)
def test_all_of_a_warp_ask_for_the_least(name, made):
    verify_kernel(made(*TOGETHER[name]))


@pytest.mark.parametrize("made", [lanes, warps])
@pytest.mark.parametrize("name", DIVIDED)
def test_some_of_a_warp_ask_for_the_least(name, made):
    body, variable = DIVIDED[name]
    first = message(verify_kernel, made(*body)).splitlines()[0]
    wanted = "kernel k: not all threads of a warp come here: it depends on "
    assert first.startswith(wanted)
    assert first.removesuffix(" in").removeprefix(wanted) in {variable, "$found", "$j"}


def test_groups_that_are_no_warps():
    for changes in ({"of": 16}, {"begin": 48}):
        text = message(verify_kernel, warps(LEAST, **changes)).splitlines()[0]
        assert text == "kernel k: not all threads of a warp come here: it depends on $group in"
    asked = ir.If(less(ir.Builtin("thread", I32), TWO), (LEAST,))
    text = message(verify_kernel, warps(asked)).splitlines()[0]
    assert text == "kernel k: not all threads of a warp come here: it depends on the thread in"


def test_the_least_of_what_and_where():
    whole = ir.Least("$found", ir.Local("$near", I32))
    assert message(verify_kernel, lanes(whole)).splitlines()[0] == "kernel k: the least of i32 in"
    mixed = ir.Least("$found", OWN, (ir.Local("$near", I32),))
    assert message(verify_kernel, lanes(mixed)).splitlines()[0] == "kernel k: the least of f32 and i32 in"
    alone = kernel(ir.Assign("$own", HALF), LEAST)
    assert message(verify_kernel, alone).splitlines()[0] == "kernel k: Least without blocks of whole warps in"
    odd = message(verify_kernel, lanes(ir.Least("$near", OWN))).splitlines()[0]
    assert odd == "kernel k: $near was i32 and becomes f32 in"
