"""No plan asks for what no machine has: every field has limits, and so has the code that a plan may ask for."""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import lanewise as lw
from lanewise.analysis.length import length, own_length
from lanewise.compiler.default_plans import complete_plan, decide
from lanewise.compiler.lengths import DEFAULT_LENGTH
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.explanation.calls import call_subject
from lanewise.explanation.samples import unfilled_arguments
from lanewise.ir import nodes as ir
from lanewise.language.target import Machine
from lanewise.language.types import I32
from lanewise.models.devices import table_model
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.planning.limits import MOST_LENGTH, copies_of
from lanewise.planning.plan import DECLARED, NEUTRAL, CompletePlan, Plan
from lanewise.support.errors import PlanError
from tests.fuzz.texts import executed

NUMBERS = [f.name for f in fields(Plan) if DECLARED[f.name].limits is not None]
ABSURD: list[Any] = [-1, -(2**64), 10**6 + 2**20, 2**31, 2**63, 2**64, 10**30, sys.maxsize]
WRONG: list[Any] = [1.5, "8", (4,), float("nan"), np.array([4, 8]), object()]


class Thing(lw.Record):
    x: lw.f32


@lw.pairwise
def add(a: Thing, b: Thing) -> lw.f32:
    return a.x * b.x


@lw.elementwise
def double(a: Thing) -> lw.f32:
    return 2 * a.x


@lw.threadwise
def multiply(i: lw.index, j: lw.index, x: lw.Array2[lw.f32], y: lw.Array2[lw.f32], z: lw.Array2[lw.f32]):
    total = 0.0
    for k in range(x.shape[1]):
        total += x[i, k] * y[k, j]
    z[i, j] = total


def test_every_whole_number_has_limits() -> None:
    for name, kind in get_type_hints(Plan).items():
        if name in DECLARED:
            limited = int in get_args(kind)
            assert (DECLARED[name].limits is not None) == limited, name


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beyond_the_limits_are_refused(name: str) -> None:
    limits = DECLARED[name].limits
    assert limits is not None
    least, most = limits
    for value in [*ABSURD, least - 1, most + 1]:
        with pytest.raises(PlanError, match=rf"^Plan\({name}={value}\): wanted an integer from {least:,} to {most:,}$"):
            Plan(**{name: value})
    for value in (least, most, getattr(NEUTRAL, name)):
        assert getattr(Plan(**{name: value}), name) == value
    for value in (
        v for o in (DECLARED[name],) for v in (*o.cuda, *o.cpu, *o.items, *o.items_cpu, *o.points, *o.points_cpu)
    ):
        assert least <= value <= most


@pytest.mark.parametrize("name", [f.name for f in fields(Plan)])
def test_values_of_other_types_are_refused(name: str) -> None:
    for value in WRONG:
        if name in NUMBERS or not isinstance(value, bool):
            with pytest.raises(PlanError, match=rf"Plan\({name}="):
                Plan(**{name: value})


def test_code_that_would_be_too_long_is_refused() -> None:
    with pytest.raises(PlanError) as refused:
        Plan(targets=16, rows=64, unroll=8)
    assert str(refused.value) == (
        "Plan(targets=16, rows=64, unroll=8): targets x rows x unroll are 8,192 copies of a statement; wanted at most 4,096"
    )


LONG = [
    Plan(targets=4096),
    Plan(targets=65),
    Plan(across=16, targets=16, rows=64),
    Plan(targets=64, rows=64),
    Plan(tile=2**20, targets=2),
]


@pytest.mark.parametrize("plan", LONG, ids=str)
def test_no_call_is_compiled_for_minutes(plan: Plan) -> None:
    """Where a kernel has no use for so many copies it refuses them, and compiles nothing before."""
    things, x = Thing.array(x=np.ones(10)), np.ones((40, 40), "f4")
    began = time.process_time()
    for call in (
        lambda: add(things, things, plan=plan),
        lambda: double(things, plan=plan),
        lambda: multiply(x, x.copy(), x.copy(), grid=(40, 40), plan=plan),
    ):
        with contextlib.suppress(PlanError):
            call()
    assert time.process_time() - began < 60


def helpers(depth: int) -> str:
    """Functions of which each one calls the one before twice."""
    calls = [
        f"@lw.function\ndef f{n}(x):\n    return f{n - 1}(x * {n}.5) * f{n - 1}(x + {n}.0)" for n in range(1, depth + 1)
    ]
    return "\n".join(["@lw.function\ndef f0(x):\n    return x * 0.5 + lw.sqrt(x)", *calls])


DECLARED_THINGS = "class Thing(lw.Record):\n    x: lw.f32\n"
FUNCTIONS = {
    "elementwise": "@lw.elementwise\ndef kernel(a: Thing) -> lw.f32:\n    return F(a.x)\n\ndef run(plan=None):\n    kernel(things, plan=plan)",
    "pairwise": (
        "@lw.pairwise\ndef kernel(a: Thing, b: Thing) -> lw.f32:\n    return F(a.x - b.x)\n\n"
        "def run(plan=None):\n    kernel(things, things, plan=plan)"
    ),
    "threadwise": (
        "@lw.threadwise\ndef kernel(i: lw.index, x: lw.Array1[lw.f32]):\n    x[i] = F(x[i])\n\n"
        "def run(plan=None):\n    kernel(np.ones(9, 'f4'), grid=9, plan=plan)"
    ),
}


@pytest.mark.parametrize("pattern", FUNCTIONS)
@pytest.mark.parametrize("depth", [12, 40])
def test_calls_that_double_are_refused_before_they_are_written_out(pattern: str, depth: int) -> None:
    text = f"{DECLARED_THINGS}\n{helpers(depth)}\n{FUNCTIONS[pattern].replace('F(', f'f{depth}(')}\n"
    with (
        executed(text + "\nthings = Thing.array(x=np.ones(9))\n", f"nests_{pattern}_{depth}.py") as names,
        lw.device("cpu"),
    ):
        with pytest.raises(lw.CompileError, match="the calls of kernel come to too much code") as refused:
            names.run()
    assert "wanted: at most 30,000" in str(refused.value)
    assert refused.value.found.startswith({12: "40,9", 40: "10,995,116,2"}[depth])
    assert f"nests_{pattern}_{depth}.py" in str(refused.value)


LONG_BODY = "\n".join(f"    v = v * {k}.5 + lw.sqrt(v + w)\n    w = w * v + {k}.0" for k in range(1, 101))
LONG_PAIR = f"""
class Thing(lw.Record):
    x: lw.f32

@lw.pairwise
def kernel(a: Thing, b: Thing) -> lw.f32:
    v = a.x - b.x
    w = b.x
{LONG_BODY}
    return w
"""


def test_a_long_function_is_planned_with_fewer_copies() -> None:
    """Of seven hundred operations a GPU's default plan wrote out 64 copies."""
    with executed(LONG_PAIR, "long_pair.py") as names:
        reference, found = planned(names.kernel)
    wish = Plan(targets=16, unroll=16, reciprocity="off")
    with pytest.raises(
        PlanError, match=r"^Plan\(targets=16, unroll=16\) writes out [\d,]+ operations of kernel; "
    ) as refused:
        build_program(reference, planned_as(reference, wish), "cuda", between=False)
    assert str(refused.value).endswith("; wanted at most 30,000: fewer of targets and unroll")
    assert 1 < copies_of(found) <= DEFAULT_LENGTH / 700
    why = decide(None, Machine("cuda", 132), describe_work(reference, 100_000)).why
    assert why("unroll") == "fewer copies, as the function is long"
    assert all(length(k) < MOST_LENGTH for k in build_program(reference, found, "cuda", between=False).kernels)
    assert copies_of(planned(add)[1]) == 64


def planned_as(reference: ir.Kernel, wish: Plan | None = None) -> CompletePlan:
    return complete_plan(wish, Machine("cuda", 132), describe_work(reference, 100_000))


def planned(kernel: Any) -> tuple[ir.Kernel, CompletePlan]:
    """Its reference kernel for a GPU, and the default plan."""
    samples = unfilled_arguments(kernel, 1000, "cuda", layout=lw.SoAoAS())
    model = table_model("sm_90")
    reference = call_subject(kernel, (), samples.named, "cuda", model)[0].reference
    return reference, planned_as(reference)


def test_the_length_is_a_product_over_loops_that_are_written_out() -> None:
    def loop(body: ir.Block, unroll: int, rounds: int = 100) -> ir.For:
        literal = [ir.Literal(n, I32) for n in (0, rounds, 1)]
        return ir.For("k", *literal, body, unroll=unroll)

    step: ir.Block = (ir.Assign("v", ir.Binary("*", ir.Local("v", I32), ir.Local("v", I32), I32)),)
    kernel = ir.Kernel("kernel", ELEMENTWISE, (), (), (), step)
    assert length(kernel) == 2
    assert length(replace(kernel, body=(loop(step, 8),))) == 1 + 8 * 2
    assert length(replace(kernel, body=(loop((loop(step, 8),), 4),))) == 1 + 4 * (1 + 8 * 2)
    assert length(replace(kernel, body=(loop((loop(step, 0, 7),), 0, 5),))) == 1 + 5 * (1 + 7 * 2)
    function = ir.Function("f", (), (), step * 3)
    assert length(replace(kernel, body=(loop((ir.Apply(function, (), ()),), 2),))) == 1 + 2 * (1 + 6)
    assert own_length(replace(kernel, body=(loop((ir.Apply(function, (), ()),), 2),))) == 1 + 1 + 6
