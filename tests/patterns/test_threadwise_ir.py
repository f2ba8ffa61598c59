"""Elements of arrays in the IR: accesses with an index for each dimension, from the reference to the places of a
buffer.
"""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_kernel
from lanewise.ir.verify import verify_kernel
from lanewise.language.types import BOOL, F32, I32, I64
from lanewise.launch.executable import generated_texts
from lanewise.passes.points.mapping import block_shape
from lanewise.patterns.tables.returns import without_returns
from lanewise.patterns.threadwise.build import ThreadwiseArguments, build_threadwise
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import CompileError, Location, VerificationError
from tests.patterns.threadwise import interpret

X, Y, K = ir.Local("x", I32), ir.Local("y", I32), ir.Local("k", I32)
S = ir.Local("s", F32)
MATRICES = dict.fromkeys("abc", (F32, 2))


def number(value, kind=I32):
    return ir.Literal(value, kind)


def plus(a, b):
    return ir.Binary("+", a, b, a.type)


def kernel(*body, indices=("y", "x"), arrays=None, uniforms=(), index=I32, narrow=True):
    f = ir.Function("work", tuple(ir.Parameter(n, k) for n, k in uniforms), (), body, Location("user.py", 1))
    arguments = ThreadwiseArguments(indices, MATRICES if arrays is None else arrays, dict(uniforms), index, narrow)
    return build_threadwise(f, arguments)


def matmul(**options):
    product = ir.Binary("*", ir.Local("a_1", F32), ir.Local("b_1", F32), F32)
    rounds = (
        ir.LoadElement("a", (Y, K), "a_1"),
        ir.LoadElement("b", (K, X), "b_1"),
        ir.Assign("s", plus(S, product)),
    )
    loop = ir.For("k", number(0), ir.Local("$a.shape1", I32), number(1), rounds)
    return kernel(ir.Assign("s", number(0.0, F32)), loop, ir.StoreElement("c", (Y, X), S), **options)


def inputs(m, k, n):
    rng = np.random.default_rng(5)
    return {
        "a": rng.normal(size=(m, k)).astype(np.float32), "b": rng.normal(size=(k, n)).astype(np.float32),
        "c": np.full((m, n), np.nan, np.float32),
    }  # fmt: skip


def test_the_reference_is_the_function_in_parallel_loops():
    verify_kernel(matmul())
    assert print_kernel(matmul()) == (
        "kernel work  # threadwise\n"
        "  array a[$a.shape0, $a.shape1]: value: f32\n"
        "  array b[$b.shape0, $b.shape1]: value: f32\n"
        "  array c[$c.shape0, $c.shape1] written: value: f32\n"
        "  uniform $y.extent: i32, $x.extent: i32, $a.shape0: i32, $a.shape1: i32, $b.shape0: i32, $b.shape1: i32, "
        "$c.shape0: i32, $c.shape1: i32\n"
        "  parallel for y in range($y.extent):\n"
        "    parallel for x in range($x.extent):\n"
        "      s: f32 = 0.0\n"
        "      for k in range(0, $a.shape1):  # user\n"
        "        load a[y, k]: a_1\n"
        "        load b[k, x]: b_1\n"
        "        s: f32 = s + a_1 * b_1\n"
        "      store c[y, x] = s\n"
    )


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (17, 2, 33), (4, 0, 3), (0, 3, 2)])
def test_every_stage_computes_the_same(shape):
    def run(kernel):
        given = inputs(*shape)
        interpret(kernel, given, (shape[0], shape[2]))
        return given

    expected = run(matmul())
    np.testing.assert_allclose(expected["c"], expected["a"] @ expected["b"], rtol=1e-5, atol=1e-6)
    for device, plan in (("cpu", Plan()), ("cuda", Plan(block=32))):
        stages: list[ir.Kernel] = []
        build_program(matmul(), plan.filled(NEUTRAL), device, lambda stage, k, to=stages: to.append(k))
        for stage in stages:
            np.testing.assert_array_equal(run(stage)["c"], expected["c"])


@pytest.mark.parametrize(
    ("index", "narrow", "word"), [(I32, True, "int"), (I32, False, "long long"), (I64, False, "long long")]
)
def test_places_have_64_bits_unless_they_are_surely_small(index, narrow, word):
    program = build_program(matmul(narrow=narrow) if index == I32 else wide(), Plan(block=256).filled(NEUTRAL), "cuda")
    (text,) = generated_texts(program, "cuda", locations=False)
    assert ("(long long)" in text) == (word == "long long")
    assert "shape0" not in text, "lengths that no place is made of are no arguments"
    assert compile_cubin(text, "work", "sm_90").resources.registers > 0


def wide():
    x, extent = ir.Local("x", I64), ir.Literal(2, I64)
    return kernel(
        ir.LoadElement("a", (extent, x), "a_1"), ir.StoreElement("c", (x, x), ir.Local("a_1", F32)),
        indices=("x",), index=I64, narrow=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ((Y, plus(X, number(1))), "a is read at 3, index 1 of [0, 3], outside of 0 to 2"),
        ((plus(Y, number(-1)), X), "a is read at -1, index 0 of [-1, 0], outside of 0 to 3"),
    ],
)
def test_an_index_outside_is_found(indices, message):
    k = kernel(ir.LoadElement("a", indices, "a_1"), ir.StoreElement("c", (Y, X), ir.Local("a_1", F32)))
    with pytest.raises(VerificationError) as error:
        interpret(k, {n: np.zeros((4, 3), np.float32) for n in "abc"}, (4, 3))
    assert str(error.value) == message


def test_an_index_that_wraps_is_found():
    far = number(2**31 - 1)
    back = ir.Binary("-", ir.Local("i", I32), far, I32)  # which would lead back into the array
    body = ir.Assign("i", plus(Y, far)), ir.LoadElement("a", (back, X), "a_1")
    k = kernel(*body, ir.StoreElement("c", (Y, X), ir.Local("a_1", F32)))
    with pytest.raises(VerificationError, match="of an index is beyond i32"):
        interpret(k, {n: np.zeros((2**4, 3), np.float32) for n in "abc"}, (4, 3))


def where(line):
    return Location("user.py", line)


RACES = [
    ((ir.StoreElement("c", (Y, number(0)), number(1.0, F32), where(7)),),
     "a race at c[0, 0]: (y, x) = (0, 0) writes it in line 7 and (y, x) = (0, 1) writes it in line 7, and nothing orders them"
     "; sums, minima and maxima that meet are lw.scatter_add, scatter_min and scatter_max"),
    ((ir.LoadElement("c", (Y, number(0)), "c_1", where(3)), ir.StoreElement("c", (Y, X), ir.Local("c_1", F32), where(4))),
     "a race at c[0, 0]: (y, x) = (0, 0) writes it in line 4 and (y, x) = (0, 1) reads it in line 3, and nothing orders them"),
    ((ir.LoadElement("c", (Y, ir.Binary("-", number(2), X, I32)), "c_1", where(3)), ir.StoreElement("c", (Y, X), ir.Local("c_1", F32), where(4))),
     "a race at c[0, 0]: (y, x) = (0, 0) writes it in line 4 and (y, x) = (0, 2) reads it in line 3, and nothing orders them"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), RACES)
def test_races_are_found(body, message):
    with pytest.raises(VerificationError) as error:
        interpret(kernel(*body), {n: np.zeros((4, 3), np.float32) for n in "abc"}, (4, 3))
    assert str(error.value) == message


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_races_are_found_after_lowering(device):
    race = kernel(ir.StoreElement("c", (number(0), X), number(1.0, F32)))
    program = build_program(race, Plan(block=32 if device == "cuda" else 0).filled(NEUTRAL), device)
    with pytest.raises(VerificationError, match="a race at c"):
        interpret(program.kernels[0], {n: np.zeros((40, 3), np.float32) for n in "abc"}, (40, 3))


def test_a_thread_may_read_what_it_wrote():
    body = (
        ir.StoreElement("c", (Y, X), number(1.0, F32)), ir.LoadElement("c", (Y, X), "c_1"),
        ir.StoreElement("c", (Y, X), plus(ir.Local("c_1", F32), number(1.0, F32))),
    )  # fmt: skip
    given = {n: np.zeros((4, 3), np.float32) for n in "abc"}
    interpret(kernel(*body), given, (4, 3))
    assert (given["c"] == 2).all()


def test_what_a_barrier_orders_is_no_race():
    """Threads of one block, after the map to threads."""
    thread, i = ir.Local("$thread", I32), ir.Binary("-", number(31), ir.Local("$thread", I32), I32)
    grid = ir.Grid(number(1), 1, 32)
    body = (ir.Assign("$thread", ir.Builtin("thread", I32)), ir.StoreElement("a", (thread,), number(2.0, F32)), ir.Barrier(),
            ir.LoadElement("a", (i,), "a_1"), ir.Barrier(), ir.StoreElement("a", (i,), plus(ir.Local("a_1", F32), number(1.0, F32))))  # fmt: skip
    k = kernel(*body, indices=("x",), arrays={"a": (F32, 1)})
    (outer,) = k.body
    assert isinstance(outer, ir.Parallel)

    def run(statements):
        given = {"a": np.zeros(32, np.float32)}
        mapped = ir.Kernel(k.name, k.pattern, k.arrays, (), k.counts, statements, grid)
        verify_kernel(mapped)
        interpret(mapped, given, (32,))
        return given["a"]

    assert (run(outer.body) == 3).all()
    with pytest.raises(VerificationError, match=r"a race at a\[.*block 0, thread"):
        run(tuple(s for s in outer.body if not isinstance(s, ir.Barrier)))


WRONG = [
    (ir.LoadElement("a", (Y,), "a_1"), "a needs 2 integers, found ['i32']"),
    (ir.LoadElement("a", (Y, number(0.0, F32)), "a_1"), "a needs 2 integers, found ['i32', 'f32']"),
    (ir.LoadElement("d", (Y, X), "a_1"), "no array d that has a shape"),
    (ir.StoreElement("c", (Y, X), number(1)), "i32 does not fit c, or the kernel does not write it"),
]


@pytest.mark.parametrize(("statement", "message"), WRONG)
def test_the_verifier_refuses(statement, message):
    with pytest.raises(VerificationError) as error:
        verify_kernel(kernel(statement))
    assert message in str(error.value)


def test_the_verifier_checks_shapes():
    from dataclasses import replace

    k = matmul()
    with pytest.raises(VerificationError, match=r"the length \$n of a dimension of a is no number of the kernel"):
        verify_kernel(replace(k, arrays=(replace(k.arrays[0], shape=("$n", "$a.shape1")), *k.arrays[1:])))
    shared = replace(k.arrays[0], shape=(4, 4), space="shared", length=15)
    with pytest.raises(VerificationError, match=r"a in shared memory has 15 elements and the shape \(4, 4\)"):
        verify_kernel(replace(k, arrays=(shared, *k.arrays[1:])))


# ------------------------------------------------------------ early returns

FLAG, OTHER = ir.Compare("<", X, number(2)), ir.Compare(">=", Y, number(1))


def put(value):
    return ir.StoreElement("c", (Y, X), number(float(value), F32))


LEAVE = ir.Return(())
PROGRAMS = {
    "guard": (ir.If(FLAG, (LEAVE,)), put(1)),
    "after a store": (put(1), ir.If(FLAG, (put(2), LEAVE)), put(3)),
    "in else": (ir.If(FLAG, (put(2),), (LEAVE,)), ir.LoadElement("c", (Y, X), "v"), put(5)),
    "both": (ir.If(FLAG, (put(2), LEAVE), (put(4), LEAVE)), put(3)),
    "nested": (ir.If(FLAG, (ir.If(OTHER, (put(7), LEAVE)), put(8))), put(9)),
    "nested, twice": (ir.If(FLAG, (ir.If(OTHER, (LEAVE,), (put(2),)),)), ir.If(OTHER, (put(5), LEAVE)), put(9)),
    "nothing follows": (put(1), ir.If(FLAG, (ir.If(OTHER, (put(7), LEAVE)), put(8)))),
    "top": (put(1), LEAVE, put(2)),
}  # fmt: skip


def direct(block, y, x):
    """What a thread stores last, by the meaning of return; and whether it returned."""
    last = None
    for s in block:
        match s:
            case ir.Return():
                return last, True
            case ir.StoreElement(value=ir.Literal(value=v)):
                last = v
            case ir.If():
                taken = x < 2 if s.condition is FLAG else y >= 1
                inner, left = direct(s.then if taken else s.otherwise, y, x)
                last = inner if inner is not None else last
                if left:
                    return last, True
            case _:
                pass
    return last, False


@pytest.mark.parametrize("name", PROGRAMS)
def test_returns_become_conditions(name):
    body = PROGRAMS[name]
    assert not any(isinstance(s, ir.Return) for s in without_returns(body))
    k = kernel(*body)
    verify_kernel(k)
    given = {n: np.zeros((3, 4), np.float32) for n in "abc"}
    interpret(k, given, (3, 4))
    expected = [[direct(body, y, x)[0] or 0 for x in range(4)] for y in range(3)]
    np.testing.assert_array_equal(given["c"], expected)


def test_a_guard_becomes_the_opposite_comparison():
    both = ir.Logical("or", FLAG, OTHER)
    (s,) = without_returns((ir.If(both, (LEAVE,)), put(1)))
    assert isinstance(s, ir.If)
    assert s.condition == ir.Logical("and", ir.Compare(">=", X, number(2)), ir.Compare("<", Y, number(1)))
    unordered = ir.Compare("<", S, number(2.0, F32))
    (s,) = without_returns((ir.If(unordered, (LEAVE,)), put(1)))
    assert isinstance(s, ir.If)
    assert s.condition == ir.Unary("not", unordered, BOOL)


def test_a_return_in_a_loop_is_refused():
    loop = ir.For("k", number(0), number(3), number(1), (ir.If(FLAG, (ir.Return((), Location("user.py", 9)),)),))
    with pytest.raises(CompileError, match="a thread does not return from within a loop"):
        kernel(loop)


@pytest.mark.parametrize(("threads", "rank", "shape"), [(256, 1, (256,)), (256, 2, (16, 16)), (1024, 2, (32, 32)), (256, 3, (4, 8, 8)), (96, 3, (3, 4, 8)),
                                                         (32, 2, (2, 16)), (512, 3, (8, 8, 8))])  # fmt: skip
def test_shapes_of_blocks(threads, rank, shape):
    assert block_shape(threads, rank) == shape
    assert np.prod(shape) == threads
