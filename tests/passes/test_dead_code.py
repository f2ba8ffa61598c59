"""Dead code: unread values, unneeded leaves and parameters, unreachable statements, unneeded indices."""

from __future__ import annotations

from hypothesis import given as examples

import lanewise as lw
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_block
from lanewise.ir.verify import verify_kernel
from lanewise.language.types import BOOL, I32
from lanewise.passes import constant_folding, dead_code, thread_mapping
from lanewise.patterns.elements import ELEMENTWISE
from tests.corpus import CASES, LAYOUTS, Case
from tests.corpus_kernels import Body
from tests.harness import Input, reference_kernel, run_kernels
from tests.passes.probe import assert_equal, before_and_after, inputs, simple

SPIN = 0.0


@lw.function
def square(x):
    return x * x


@lw.elementwise
def wasteful(body: Body, dt: lw.f32, unused: lw.f32) -> lw.f32:
    kept = lw.zeros(lw.f32, 2)
    lost = lw.zeros(lw.f32, 4)
    lost[1] = body.mass
    kept[0] = body.position.x * dt
    angle = square(body.velocity.y) * unused
    if SPIN != 0.0:
        body.position = body.position + angle
    return kept[0]


WASTEFUL = Case("wasteful", wasteful, (Body,), CASES[0].fill, lambda *_: (), {"dt": 2.0, "unused": 3.0})


def test_golden(golden):
    before = constant_folding.apply(reference_kernel(WASTEFUL, lw.SoA(), "cpu"))
    after = dead_code.apply(before)
    verify_kernel(after)
    golden("drop", before_and_after(before, after, functions=True))


def test_meaning_is_kept_over_the_corpus():
    for case in (*CASES, WASTEFUL):
        given = Input(case, 4, 3 if case.pairwise else None)
        before = reference_kernel(case, LAYOUTS["AoS"], "cpu", same=False)
        after = dead_code.apply(constant_folding.apply(before))
        verify_kernel(after)
        assert_equal(run_kernels((after,), given, lw.AoS()), run_kernels((before,), given, lw.AoS()))


@examples(inputs)
def test_meaning_is_kept(given):
    before = simple(given.case, same=given.same)
    assert_equal(
        run_kernels((dead_code.apply(before),), given, lw.SoAoAS()), run_kernels((before,), given, lw.SoAoAS())
    )


def test_statements_behind_a_return_go():
    one, flag = ir.Literal(1, I32), ir.Local("flag", BOOL)
    leave = ir.If(flag, (ir.Return((one,)), ir.Assign("x", one)), (ir.Return((one,)),))
    f = ir.Function(
        "f",
        (ir.Parameter("flag", BOOL),),
        (ir.Parameter("result", I32),),
        (leave, ir.Assign("x", one), ir.Return((ir.Local("x", I32),))),
    )
    i = ir.Local("$i", I32)
    loop = ir.Parallel(
        "$i",
        ir.Local("$n", I32),
        (ir.Assign("$flag", ir.Compare("<", i, one)), ir.Apply(f, (ir.Local("$flag", BOOL),), ("$r",))),
    )
    kernel = dead_code.apply(ir.Kernel("k", ELEMENTWISE, (), (), (ir.Parameter("$n", I32),), (loop,)))
    verify_kernel(kernel)
    (apply,) = [s for s in kernel.body[0].body if isinstance(s, ir.Apply)]
    assert print_block(apply.function.body) == "  if flag:\n    return 1\n  else:\n    return 1"


def test_an_empty_branch_turns_round():
    one, flag = ir.Literal(1, I32), ir.Local("flag", BOOL)
    body = (ir.If(flag, (ir.Assign("unread", one),), (ir.Return((one,)),)), ir.Return((ir.Literal(2, I32),)))
    f = ir.Function("f", (ir.Parameter("flag", BOOL),), (ir.Parameter("result", I32),), body)
    assert print_block(dead_code.clean_function(f).body) == "  if not flag:\n    return 1\n  return 2"


def test_an_index_that_no_function_needs_goes():
    kernel = thread_mapping.apply(simple(CASES[0]), 32)
    (guard,) = [s for s in kernel.body if isinstance(s, ir.If)]
    unread = ir.Assign("$first", ir.Local("$i", I32))
    noisy = ir.Kernel(
        **{n: getattr(kernel, n) for n in ("name", "pattern", "arrays", "uniforms", "counts", "grid")},
        body=(kernel.body[0], unread, ir.Assign("$second", ir.Local("$first", I32)), guard),
    )
    assert dead_code.clean_loops(noisy).body == kernel.body
