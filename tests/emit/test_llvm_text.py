"""LLVM's text of the corpus: read line by line where it says something, and run where lanes differ."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.emit.llvm import emit_llvm
from lanewise.launch.executable import generated_texts
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime import cpu
from lanewise.support.errors import PlanError
from tests.corpus import case
from tests.harness import program
from tests.patterns.test_threadwise import arguments, check, copies
from tests.patterns.threadwise_kernels import CASES as NAIVE

PLANS = (Plan(targets=1), Plan(targets=4), Plan(targets=2, tile=16, accumulate="f64"), Plan(targets=4, fast_math=True))


def text_of(name: str, layout: lw.Layout, plan: Plan) -> str:
    made = program(case(name), layout, plan, "cpu")
    return "\n".join(emit_llvm(k, "head", fast_math=plan.fast_math or False) for k in made.kernels)


def test_the_text_has_the_users_names_and_lines():
    text = text_of("gravity", lw.SoA(), Plan(targets=1))
    assert re.search(r"%d_x = alloca float", text)
    assert re.search(
        r"  ; d_x: f32 = source_position_x - target_position_x  # corpus_kernels.py:\d+\n"
        r"  %\.1 = fsub contract float %source_position_x, %target_position_x\n",
        text,
    )


def test_what_is_read_tells_the_loops_and_branches_as_python():
    """Comments are a program of its own: what is inside stands further right."""
    said = [line[4:] for line in text_of("gravity", lw.SoA(), Plan(targets=1)).splitlines() if line.startswith("  ; ")]
    entry = said[said.index("for block in range(range_begin, range_end):") :]
    assert entry[1] == "  i: i64 = block"
    assert "  for j in range(source_count):  # sources" in [re.sub(r"range\(0, ", "range(", line) for line in entry]
    assert any(re.fullmatch(r"    result_x, result_y, result_z = gravity\(.*\)", line) for line in entry)
    assert entry[-4:-3] == ["  if i < target_count:"]
    assert all(re.fullmatch(r"    result_array\[i \* 3.*\] = sum_[xyz]", line) for line in entry[-3:])


def test_flags_stand_on_single_instructions():
    text = text_of("gravity", lw.SoA(), Plan(targets=1))
    assert "fadd reassoc nsz contract float %sum_x" in text  # the sum over sources, in any order
    assert "call reassoc nsz arcp contract afn float @llvm.sqrt.f32" in text
    function = text[text.index("@user.gravity(") : text.index("@gravity_range(")]
    assert "reassoc nsz contract" not in function.replace("reassoc nsz arcp contract afn", "")
    assert not re.search(r"\b(nnan|ninf)\b", text)
    assert "fsub fast float" in text_of("gravity", lw.SoA(), Plan(targets=1, fast_math=True))


def test_arrays_that_lie_apart_say_so_as_parameters():
    """Of what is inlined LLVM would forget it: the kernel itself is called."""
    made = program(case("gravity"), lw.SoA(), Plan(targets=1), "cpu")
    k = made.kernels[0]
    assert "noalias" not in emit_llvm(k, "head")
    apart = replace(k, pattern=replace(k.pattern, host=replace(k.pattern.host, separate=True)))
    text = emit_llvm(apart, "head")
    entry = text[text.index("define internal i32 @gravity_range(") :].splitlines()[0]
    assert entry.count("ptr noalias ") == 8
    assert "noinline" in entry


def test_words_of_llvm_and_letters_beyond_ascii_are_names_like_others():

    @lw.elementwise
    def entry(ptr: lw.f32, größe: lw.f32) -> lw.f32:
        define = ptr * größe
        return define + größe

    found = entry(np.arange(5, dtype="f4"), np.float32(2.0))
    np.testing.assert_array_equal(found, np.arange(5, dtype="f4") * 2 + 2)


def test_what_is_compiled_has_no_lines_of_the_users_file():
    made = program(case("gravity"), lw.SoA(), Plan(targets=1), "cpu")
    (text,) = generated_texts(made, "cpu", locations=False)
    assert ".py:" not in text
    assert cpu.load_kernel(text, "gravity") is cpu.load_kernel(text, "gravity")


LANES = {
    "lanes": Plan(across=16), "tiles": Plan(across=4, rows=4, tile=8), "slices": Plan(slices=16),
    "rows": Plan(across=8, rows=3, targets=2), "square": Plan(across=4, rows=4),
}  # fmt: skip
SLOW = ("rows", "square")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in LANES])
def test_lanes_compute_what_numpy_does(name):
    """Points and rounds of naive kernels in the lanes of SIMD registers, over sizes with edges."""
    fitting = 0
    for naive in NAIVE:
        kernel = lw.threadwise(naive.kernel.python)  # with no program from before
        data, grid = arguments(naive, tuple(min(n, 37) for n in naive.sizes))
        found = copies(data)
        with contextlib.suppress(PlanError):  # one that does not fit the kernel
            kernel(**found, grid=grid, plan=LANES[name])
            check(naive, found, data)
            fitting += 1
    assert fitting


def test_what_lanes_write_past_the_caches_and_ask_for_ahead():
    case = next(c for c in NAIVE if c.name == "smooth")
    data, grid = arguments(case, case.sizes)
    compiled = case.kernel.compile(**data, grid=grid, plan=Plan(across=0))
    (kernel,) = build_program(compiled.reference, Plan(across=16).filled(NEUTRAL), "cpu").kernels
    text = emit_llvm(kernel, "head", vector_bits=512)
    assert '"prefer-vector-width"="512"' in text
    assert re.search(r"store <16 x float> %\S+, ptr %\S+, align 64, !nontemporal", text)
    assert "call <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %" in text
    assert text.index("@llvm.prefetch.p0(ptr %") < text.index("fence seq_cst")


def test_names_of_blocks_are_no_names_of_variables():
    """Values and blocks share their names in LLVM's language."""

    @lw.elementwise
    def named(rest: lw.f32, then: lw.f32) -> lw.f32:
        behind = rest
        for value in range(3):
            if behind > then:
                behind = behind * rest - then
            else:
                behind += lw.f32(value)
        return behind

    x = np.arange(9, dtype="f4")
    text = named.compile(x, np.float32(4)).source
    blocks = set(re.findall(r"^(\S+):$", text, re.MULTILINE))
    assert all(b.startswith(".") or b in ("entry", "return") for b in blocks)
    assert blocks.isdisjoint(re.findall(r"^  %(\S+) = ", text, re.MULTILINE))
    with lw.device("python"):
        expected = named(x, np.float32(4))
    np.testing.assert_allclose(named(x, np.float32(4)), expected, rtol=1e-6)


def test_of_two_products_the_first_becomes_one_with_their_sum():
    """LLVM would choose by what stands around them, and a function had other bits in another kernel."""

    @lw.elementwise
    def turned(x: lw.f32, y: lw.f32, c: lw.f32, s: lw.f32) -> tuple[lw.f32, lw.f32]:
        return x * c + y * s, x + y * s

    text = turned.compile(np.ones(3, "f4"), np.ones(3, "f4"), np.float32(1), np.float32(2)).source
    assert len(re.findall(r"= fmul contract float %x, %c", text)) == 1
    assert len(re.findall(r"= fmul float %y, %s", text)) == 1
    assert len(re.findall(r"= fmul contract float %y, %s", text)) == 1


@lw.record
class Point:
    x: lw.f32


@lw.function
def tanf(x):
    return lw.tan(x) + 1.0


@lw.function
def expf(x):  # too long to be inlined
    for k in range(40):
        x = lw.exp(-x) * 0.25 + lw.sin(x) * 0.5 if x < lw.f32(k) else lw.exp(-x)
    return x


@lw.function
def named_range(x):
    return x - 2.0


@lw.pairwise
def named(a: Point, b: Point) -> lw.f32:
    return tanf(a.x) * expf(b.x) + named_range(b.x)


def test_functions_of_the_users_are_none_of_c_or_of_the_kernels():
    found = []
    for device in ("cpu", "python"):
        with lw.device(device):
            a, b = Point.array(x=np.linspace(-1, 1, 5)), Point.array(x=np.linspace(0, 1, 7))
            found.append(np.asarray(named(a, b)))
    np.testing.assert_allclose(*found, rtol=1e-4)
