"""The interpreter: what every node means, and that it finds out-of-bounds accesses and threads that part at a
barrier.
"""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.ir import interpret
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call, evaluate
from lanewise.ir.interpreter import ArrayMemory, Interpreter
from lanewise.language.record import Leaf
from lanewise.language.types import BOOL, F32, F64, I32, I64, U32, LocalArray, Scalar
from lanewise.layouts import AoSoA
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.support.errors import VerificationError

INT_MIN = -(2**31)


def number(value, kind: Scalar) -> ir.Literal:
    return ir.Literal(value, kind)


def binary(operator, a, b, kind):
    with np.errstate(all="ignore"):
        return evaluate(ir.Binary(operator, number(a, kind), number(b, kind), kind), {})


@pytest.mark.parametrize(
    ("operator", "a", "b", "kind", "result"),
    [
        ("//", -7, 2, I32, -4), ("%", -7, 2, I32, 1), ("//", 7, -2, I32, -4), ("%", 7, -2, I32, -1),
        ("//", 7.5, -2.0, F64, -4.0), ("%", 7.5, -2.0, F64, -0.5), ("//", 1.0, 0.1, F64, 9.0),
        ("//", 5, 0, I32, 0), ("%", 5, 0, I32, 0), ("/", 1.0, 0.0, F32, np.inf),
        ("+", 2**31 - 1, 1, I32, INT_MIN), ("*", 2**31, 2, U32, 0), ("-", 0, 1, U32, 2**32 - 1),
        ("//", INT_MIN, -1, I32, INT_MIN), ("<<", 1, 31, U32, 2**31), (">>", -8, 1, I32, -4), (">>", 2**31, 31, U32, 1),
        ("&", 12, 10, I64, 8), ("|", True, False, BOOL, True), ("^", True, True, BOOL, False),
    ],
)  # fmt: skip
def test_arithmetic(operator, a, b, kind, result):
    value = binary(operator, a, b, kind)
    assert value == result
    assert value.dtype == kind.dtype


OPERATORS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift, "==": np.equal, "!=": np.not_equal,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
COMPARISONS, WHOLE_ALONE = ("==", "!=", "<", "<=", ">", ">="), ("&", "|", "^", "<<", ">>")


def special(kind: Scalar) -> np.ndarray:
    """Where operators differ if they differ at all: ends of the range, zeros of both signs, what is no number, wide
    shifts.
    """
    if kind in (F32, F64):
        limits = np.finfo(kind.dtype)
        values = [
            0.0,
            limits.smallest_subnormal,
            limits.tiny,
            limits.eps,
            0.1,
            0.5,
            1,
            3,
            1e9,
            limits.max,
            np.inf,
            np.nan,
        ]
    else:
        limits = np.iinfo(kind.dtype)
        values = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 1000, limits.max - 1, limits.max, limits.min, limits.min + 1]
    with np.errstate(all="ignore"):
        array = np.array(values, kind.dtype)
        return np.concatenate([array, -array[array == array]])  # which of two NaNs comes out is nobody's promise


@pytest.mark.parametrize("kind", [F32, F64, I32, I64, U32], ids=str)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_are_those_of_arrays(operator, kind):
    """Single numbers take another way through NumPy than arrays; both give the same bits and the same type."""
    if (kind in (F32, F64) and operator in WHOLE_ALONE) or (kind not in (F32, F64) and operator == "/"):
        return
    values, operands = special(kind), (ir.Local("a", kind), ir.Local("b", kind))
    two = ir.Compare(operator, *operands) if operator in COMPARISONS else ir.Binary(operator, *operands, kind)
    with np.errstate(all="ignore"):
        table = OPERATORS[operator](values[:, None], values[None, :])
        for (i, j), wanted in np.ndenumerate(table):
            found = evaluate(two, {"a": values[i], "b": values[j]})
            assert found.dtype == wanted.dtype
            assert found.tobytes() == wanted.tobytes(), (values[i], operator, values[j])


@pytest.mark.parametrize(
    ("value", "kind", "to", "result"),
    [
        (2.9, F64, I32, 2), (-2.9, F32, I64, -2), (2**31 + 5, I64, I32, INT_MIN + 5), (-1, I32, U32, 2**32 - 1), (0.25, F32, BOOL, True),
        (0, I32, BOOL, False), (True, BOOL, F32, 1.0), (0.1, F64, F32, np.float32(0.1)), (1e300, F64, F32, np.inf), (2**32 - 1, U32, F32, 2.0**32),
    ],
)  # fmt: skip
def test_casts(value, kind, to, result):
    with np.errstate(all="ignore"):
        found = evaluate(ir.Cast(number(value, kind), to), {})
    assert found == result
    assert found.dtype == to.dtype


def test_logic_is_lazy():
    array = np.zeros(2, "f4")
    outside = ir.Compare("<", ir.Element("a", number(7, I32), F32), number(1.0, F32))
    for operator, first in (("and", False), ("or", True)):
        assert evaluate(ir.Logical(operator, number(first, BOOL), outside), {"a": array}) == first
    with pytest.raises(VerificationError, match=r"^index 7 outside a local array of 2$"):
        evaluate(ir.Logical("and", number(True, BOOL), outside), {"a": array})
    chosen = ir.Select(number(False, BOOL), ir.Element("a", number(7, I32), F32), number(3.0, F32), F32)
    assert evaluate(chosen, {"a": array}) == 3.0


def intrinsic(name, *values, kind=F32, result=None):
    with np.errstate(all="ignore"):
        return evaluate(ir.Call(name, tuple(number(v, kind) for v in values), result or kind), {})


def test_intrinsics():
    nan, inf = float("nan"), float("inf")
    assert np.isnan(intrinsic("min", nan, 1.0))
    assert np.isnan(intrinsic("max", 1.0, nan))
    assert intrinsic("min", 3, -2, kind=I32) == -2
    assert intrinsic("clamp", 5.0, 0.0, 2.0) == 2.0
    assert intrinsic("abs", INT_MIN, kind=I32) == INT_MIN
    assert intrinsic("mix", 1.0, 3.0, 0.25) == 1.5
    assert intrinsic("fma", 2.0, 3.0, 1.0) == 7.0
    assert intrinsic("rsqrt", 4.0) == 0.5
    assert intrinsic("rsqrt", 0.0) == inf
    assert intrinsic("pow", 2.0, 10.0) == 1024.0
    assert intrinsic("isnan", nan, result=BOOL)
    assert not intrinsic("isfinite", inf, result=BOOL)
    assert intrinsic("atan2", 1.0, -1.0).dtype == np.float32


def run(*body, results=("f32",), **arguments):
    kinds = {"f32": F32, "i32": I32}
    f = ir.Function(
        "f",
        tuple(ir.Parameter(n, F32) for n in arguments),
        tuple(ir.Parameter(f"r{i}", kinds[k]) for i, k in enumerate(results)),
        body,
    )
    return call(f, {n: np.float32(v) for n, v in arguments.items()})


N, ONE, ZERO = ir.Local("n", I32), number(1, I32), number(0, I32)


def count(*extra):
    return ir.Assign("n", ir.Binary("+", N, ONE, I32)), *extra


def test_loops_with_break_continue_and_return():
    k = ir.Local("k", I32)
    skip = ir.If(ir.Compare("==", ir.Binary("%", k, number(2, I32), I32), ZERO), (ir.Continue(),))
    stop = ir.If(ir.Compare(">", k, number(6, I32)), (ir.Break(),))
    loop = ir.For("k", ZERO, number(100, I32), ONE, (skip, stop, *count()))
    assert run(ir.Assign("n", ZERO), loop, ir.Return((N,)), results=("i32",))[0] == [3]
    down = ir.For("k", number(5, I32), ZERO, number(-2, I32), count())
    assert run(ir.Assign("n", ZERO), down, ir.Return((N,)), results=("i32",))[0] == [3]
    early = ir.While(number(True, BOOL), count(ir.If(ir.Compare(">", N, number(4, I32)), (ir.Return((N,)),))))
    assert run(ir.Assign("n", ZERO), early, results=("i32",))[0] == [5]
    inner = ir.While(number(True, BOOL), (*count(), ir.Break()))
    twice = ir.For("k", ZERO, number(3, I32), ONE, (inner,))
    assert run(ir.Assign("n", ZERO), twice, ir.Return((N,)), results=("i32",))[0] == [3]


def test_an_endless_loop_ends(monkeypatch):
    monkeypatch.setattr(interpret, "MAX_STEPS", 100)
    with pytest.raises(VerificationError, match=r"^the while loop at <generated>:0 ran 100 times$"):
        run(ir.While(number(True, BOOL), ()))


def test_local_arrays_start_at_zero_each_time():
    body = (
        ir.DeclareArray("a", LocalArray(F32, 2)),
        ir.SetElement("a", ONE, ir.Binary("+", ir.Element("a", ONE, F32), number(1.0, F32), F32)),
    )
    loop = ir.For("k", ZERO, number(3, I32), ONE, body)
    assert run(loop, ir.Return((ir.Element("a", ONE, F32),)))[0] == [1.0]
    with pytest.raises(VerificationError, match=r"^index -1 outside a local array of 2$"):
        run(ir.DeclareArray("a", LocalArray(F32, 2)), ir.SetElement("a", number(-1, I32), number(1.0, F32)))


def test_mutable_parameters_come_back():
    f = ir.Function(
        "f", (ir.Parameter("v", F32, True), ir.Parameter("w", F32)), (ir.Parameter("r", F32),),
        (ir.Assign("v", number(2.0, F32)), ir.Assign("w", number(3.0, F32)), ir.Return((ir.Local("w", F32),))),
    )  # fmt: skip
    apply = ir.Apply(f, (ir.Local("x", F32), ir.Local("y", F32)), ("z",))
    _, env = run(apply, x=0.0, y=0.0)
    assert (env["x"], env["y"], env["z"]) == (2.0, 0.0, 3.0)


LEAVES = (Leaf("x", F32), Leaf("m", I32))
ARRANGEMENT = AoSoA(4).arrange(LEAVES)
THREAD = ir.Builtin("thread", I32)


def machine(*body, threads=32, extent=32, parts=1, shared=()):
    kernel = ir.Kernel(
        "k", ELEMENTWISE, (ir.ArrayArgument("a", LEAVES, ARRANGEMENT, written=True), *shared), (), (ir.Parameter("$n", I32),), body,
        grid=ir.Grid(ir.Local("$n", I32), threads, threads, parts),
    )  # fmt: skip
    memory = ArrayMemory(np.zeros(ARRANGEMENT.nbytes(extent), np.uint8), ARRANGEMENT, extent)
    Interpreter(kernel, {"$n": np.int32(extent)}, {"a": memory}).run()
    return [int(memory.read("m", i)) for i in range(extent)]


def test_threads_of_blocks_and_parts():
    place = ir.Binary("+", ir.Binary("*", ir.Builtin("block", I32), number(32, I32), I32), THREAD, I32)
    older = ir.LoadRecord("a", ir.Local("$i", I32), (("m", "a.m"),))
    added = ir.Binary("+", ir.Local("a.m", I32), ir.Binary("+", ir.Builtin("part", I32), ONE, I32), I32)
    write = ir.StoreRecord("a", ir.Local("$i", I32), (("m", added),))
    assert machine(ir.Assign("$i", place), older, write, extent=64, parts=3) == [6] * 64


def test_threads_meet_at_barriers():
    shared = ir.ArrayArgument(
        "$s", (Leaf("v", I32),), AoSoA(1).arrange((Leaf("v", I32),)), written=True, space="shared", length=32
    )
    neighbour = ir.Binary("%", ir.Binary("+", THREAD, ONE, I32), number(32, I32), I32)
    body = (
        ir.StoreRecord("$s", THREAD, (("v", THREAD),)), ir.Barrier(), ir.LoadRecord("$s", neighbour, (("v", "$v"),)),
        ir.StoreRecord("a", THREAD, (("m", ir.Local("$v", I32)),)),
    )  # fmt: skip
    assert machine(*body, shared=(shared,)) == [*range(1, 32), 0]
    with pytest.raises(
        VerificationError, match=r"^a race: two threads touch \$s\[1\]\.v between two barriers, and one writes$"
    ):
        machine(*(s for s in body if not isinstance(s, ir.Barrier)), shared=(shared,))
    again = (*body, ir.StoreRecord("$s", THREAD, (("v", ONE),)))  # a neighbour may not have read yet
    with pytest.raises(VerificationError, match=r"^a race: two threads touch"):
        machine(*again, shared=(shared,))
    assert machine(*body, ir.Barrier(), *again[-1:], shared=(shared,)) == [*range(1, 32), 0]


def test_a_barrier_that_some_threads_miss_is_found():
    some = ir.If(ir.Compare("<", THREAD, number(7, I32)), (ir.Barrier(),))
    with pytest.raises(VerificationError, match=r"^some threads of a block end before a barrier that others wait at$"):
        machine(some)


def test_accesses_outside_an_array_are_found():
    with pytest.raises(VerificationError, match=r"^access to m of element 31, outside 0\.\.9$"):
        machine(ir.StoreRecord("a", ir.Binary("-", number(31, I32), THREAD, I32), (("m", ONE),)), extent=10)


def test_accesses_outside_a_buffer_are_found():
    kernel = ir.Kernel("k", ELEMENTWISE, (), (), (), (ir.Load("b", number(1, I32), ("$x", "$y")),))
    with pytest.raises(VerificationError, match=r"^access to b\[2:4\], outside 0\.\.2$"):
        Interpreter(kernel, {}, {}, {"b": np.zeros(3, "f4")}).run()


def test_memory_statements_do_not_run_in_functions():
    with pytest.raises(VerificationError, match="LoadRecord in a function"):
        run(ir.LoadRecord("a", ZERO, ()))


def test_i64_is_exact():
    assert binary("+", 2**62, 2**61, I64) == 2**62 + 2**61
