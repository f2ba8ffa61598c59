"""A user's name may be any identifier: a word of C++, CUDA, Python or LLVM, or what lanewise itself calls something."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import WORDS as WORDS_OF_LLVM
from lanewise.emit.names import CUDA_WORDS, Names
from lanewise.ir.names import numbered, own
from lanewise.planning.plan import Plan
from lanewise.runtime.nvrtc import compile_cubin
from tests.corpus import Case
from tests.harness import Input, program, run_kernels, run_public

OF_LANEWISE = "i j k block tile part lane thread slice sum total result result0 same count begin end first last from_ other staged loaded zero partial combine sums piece"
OF_CPP = "float double int bool unsigned auto this new delete template typename operator register struct union namespace export float4 int2 dim3 make_float4"
OF_CUDA = "threadIdx blockIdx warpSize sqrtf rsqrt fminf fmin min max abs clock printf NULL INFINITY NAN isnan assert lw_rsqrt lw_min size_t"
OF_PYTHON = "math np f32 f64 i32 i64 u32 bool_ range print type object"
WORDS = [w for w in f"{OF_LANEWISE} {OF_CPP} {OF_CUDA} {OF_PYTHON}".split() if not keyword.iskeyword(w)]


def define(text: str, name: str, **known: Any) -> Any:
    """A function from text that inspect can read, as from a file."""
    import linecache

    file = f"<clash {name} {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"lw": lw, **known}
    exec(compile(text, file, "exec"), scope)
    return scope[name]


def check(case: Case, given: Input, wanted: Any) -> None:
    """Interpreter, CPU and CUDA compiler all take it."""
    layout = lw.SoAoAS()
    for kind in ("cpu", "cuda"):
        p = program(case, layout, Plan(targets=2), kind, same=given.same)
        for kernels in ((p.reference,), p.kernels):
            np.testing.assert_allclose(run_kernels(kernels, given, layout)[0], wanted, rtol=1e-6)
    for k in p.kernels:
        cubin = compile_cubin(emit_cuda(k, ""), k.name, "sm_90")
        assert "warning" not in cubin.log
    np.testing.assert_allclose(run_public(given, layout, "cpu")[0], wanted, rtol=1e-6)


def random(names: list[str]) -> Callable[..., dict[str, Any]]:
    return lambda rng, n: {name: rng.random(n).astype("f4") for name in names}


@pytest.mark.parametrize("start", range(0, len(WORDS), 34))
def test_as_names_of_parameters(start):
    names = WORDS[start : start + 34]
    total = " + ".join(f"{n + 1}.0 * {name}" for n, name in enumerate(names))
    text = f"def clash({', '.join(f'{n}: lw_.f32' for n in names)}) -> lw_.f32:\n    return {total}\n"
    kernel = lw.elementwise(define(text, "clash", lw_=lw))
    case = Case("clash", kernel, (), lambda rng, n: {}, lambda **a: (), arrays=random(names))
    given = Input(case, 5)
    check(case, given, sum((n + 1.0) * given.arrays[name] for n, name in enumerate(names)))


@pytest.mark.parametrize("start", range(0, len(WORDS), 34))
def test_as_names_of_uniforms(start):
    names = WORDS[start : start + 34]
    total = " + ".join(f"{n + 1}.0 * {name}" for n, name in enumerate(names))
    text = f"def clash(value_: lw_.f32, {', '.join(f'{n}: lw_.f32' for n in names)}) -> lw_.f32:\n    return value_ + {total}\n"
    kernel = lw.elementwise(define(text, "clash", lw_=lw))
    values = {name: 0.5 * n for n, name in enumerate(names)}
    case = Case("clash", kernel, (), lambda rng, n: {}, lambda **a: (), values, random(["value_"]))
    given = Input(case, 5)
    check(case, given, given.arrays["value_"] + sum((n + 1.0) * values[name] for n, name in enumerate(names)))


@pytest.mark.parametrize("start", range(0, len(WORDS), 50))
def test_as_names_of_local_variables(start):
    names = WORDS[start : start + 50]
    lines = [f"    {name} = value_ * {n + 1}.0" for n, name in enumerate(names)]
    changes = [f"    if value_ < 0.5:\n        {name} += 1.0" for name in names]
    text = "\n".join(
        ["def clash(value_: lw_.f32) -> lw_.f32:", *lines, *changes, f"    return {' + '.join(names)}", ""]
    )
    kernel = lw.elementwise(define(text, "clash", lw_=lw))
    case = Case("clash", kernel, (), lambda rng, n: {}, lambda **a: (), arrays=random(["value_"]))
    given = Input(case, 5)
    x = given.arrays["value_"]
    check(case, given, x * sum(range(1, len(names) + 1)) + np.where(x < 0.5, len(names), 0))


FIELDS = [w for w in WORDS if w not in ("layout", "array")]


@pytest.mark.quick("50")
@pytest.mark.parametrize("start", range(0, len(FIELDS), 50))
def test_as_names_of_fields(start):
    names = FIELDS[start : start + 50]
    record = lw.record(type("Clash", (), {"__annotations__": dict.fromkeys(names, lw.f32)}))
    total = " + ".join(f"{n + 1}.0 * source.{name} * target.{names[-1 - n]}" for n, name in enumerate(names))
    text = f"def clash(target: Clash, source: Clash) -> lw_.f32:\n    return {total}\n"
    kernel = lw.pairwise(define(text, "clash", lw_=lw, Clash=record))
    case = Case("clash", kernel, (record, record), random(names), lambda *a: ())
    given = Input(case, 3, 4)
    t, s = given.fields
    check(case, given, sum((n + 1.0) * t[names[-1 - n]] * s[name].sum() for n, name in enumerate(names)))


@lw.record
class Same:
    same: lw.f32
    count: lw.f32
    result: lw.f32


@lw.pairwise
def source(same: Same, result: Same, count: lw.f32, i: lw.f32) -> tuple[lw.f32, lw.f32]:
    """Parameters, fields, locals, results and the kernel itself share their names with each other and with lanewise's own."""
    sum = result.same - same.same
    tile = sum if not lw.same(same, result) else 0.0
    j = same.count * result.count * count
    return tile + i, j + sum


def test_everything_at_once():
    values = {"count": 2.0, "i": 0.25}
    case = Case("source", source, (Same, Same), random(["same", "count", "result"]), lambda *a: (), values)
    given = Input(case, 4)
    f = {n: a.astype("f8") for n, a in given.fields[0].items()}
    check(case, given, (f["same"].sum() - 4 * f["same"]) + 4 * 0.25)


@lw.function
def gravity_kernel(x):
    return x + 1.0


@lw.function
def sqrt(x):
    return lw.sqrt(x) * 2.0


@lw.function
def math(x):
    return lw.rsqrt(x) + lw.exp(x)


@lw.elementwise
def gravity(gravity: lw.f32, sqrt_: lw.f32) -> lw.f32:
    """A kernel whose parameter, helper and entry have one name."""
    return gravity_kernel(gravity) + sqrt(sqrt_) + math(sqrt_)


def test_names_of_functions():
    case = Case("gravity", gravity, (), lambda rng, n: {}, lambda **a: (), arrays=random(["gravity", "sqrt_"]))
    given = Input(case, 4)
    g, s = given.arrays["gravity"].astype("f8"), given.arrays["sqrt_"].astype("f8")
    check(case, given, g + 1 + 2 * np.sqrt(s) + 1 / np.sqrt(s) + np.exp(s))


@lw.elementwise
def größe(α: lw.f32, ß: lw.f32) -> lw.f32:
    é = α * 2.0
    return é + ß


def test_letters_beyond_ascii():
    case = Case("größe", größe, (), lambda rng, n: {}, lambda **a: (), arrays=random(["α", "ß"]))
    given = Input(case, 4)
    check(case, given, 2 * given.arrays["α"] + given.arrays["ß"])


@pytest.mark.parametrize("words", [CUDA_WORDS, WORDS_OF_LLVM], ids=["cuda", "llvm"])
def test_identifiers_are_distinct_and_the_user_comes_first(words):
    mine = ["i", "sum.x", "sum_x", "i_", "sum_x_", "float", "float_", "x#1", "x_1"]
    names = Names(words, taken=["helper"], first=mine)
    all_names = [*mine, *(own(n) for n in mine), *(numbered(own(n), 0) for n in mine), "helper"]
    identifiers = [names(n) for n in all_names]
    assert len(set(identifiers)) == len(all_names)
    assert not words & set(identifiers)
    assert "helper" not in identifiers
    assert identifiers[0] == "i"
    assert identifiers == [names(n) for n in all_names]
