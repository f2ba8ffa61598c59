"""Random typed expressions: compiled code against the interpreter, many expressions in one kernel."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontend.ways import run
from tests.written import module

FLOAT_LEAVES = st.sampled_from(["x", "d", "v.x", "v.zy.x", "0.5", "3", "lw.f32(n)", "1.25"])
WHOLE_LEAVES = st.sampled_from(["n", "w.y", "7", "-3", "lw.i64(n)", "lw.i32(u % 100)"])


def floats(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.builds(lambda p, op: f"({p[0]} {op} {p[1]})", pairs, st.sampled_from("+-*")),
        st.builds(lambda p: f"({p[0]} / (lw.abs({p[1]}) + 1.5))", pairs),
        st.builds(lambda p: f"({p[0]} if {p[0]} < {p[1]} else {p[1]} + 1)", pairs),
        st.builds(lambda p: f"lw.min({p[0]}, {p[1]})", pairs),
        st.builds(lambda p: f"lw.dot(lw.vec2({p[0]}, 2), lw.vec2({p[1]}, x))", pairs),
        st.builds(lambda e: f"lw.sin({e})", inner),
        st.builds(lambda e: f"lw.clamp({e}, -2, 2)**3", inner),
    )


def wholes(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        st.builds(lambda p, op: f"({p[0]} {op} {p[1]})", pairs, st.sampled_from(["+", "-", "*", "&", "|", "^"])),
        st.builds(
            lambda e, op, k: f"({e} {op} {k})", inner, st.sampled_from(["//", "%"]), st.sampled_from([-7, -2, 3])
        ),
        st.builds(lambda e, op, k: f"(({e}) % 1000 {op} {k})", inner, st.sampled_from(["<<", ">>"]), st.integers(0, 9)),
        st.builds(lambda p: f"lw.select({p[0]} > {p[1]} or n == 3, {p[0]}, {p[1]})", pairs),
        st.builds(lambda e: f"~({e})", inner),
    )


FLOATS = st.recursive(FLOAT_LEAVES, floats, max_leaves=6)
WHOLES = st.recursive(WHOLE_LEAVES, wholes, max_leaves=6)


@settings(max_examples=4)
@given(expressions=st.lists(st.tuples(FLOATS, WHOLES), min_size=10, max_size=10), seed=st.integers(0, 99))
def test_compiled_against_interpreted(expressions: list[tuple[str, str]], seed: int) -> None:
    pairs = [(f"lw.f64({a})", f"lw.i64({b})") for a, b in expressions]
    flat = [e for pair in pairs for e in pair]
    types = ", ".join(["lw.f64, lw.i64"] * len(pairs))
    lines = "".join(f"        {e},\n" for e in flat)
    source = (
        "@lw.elementwise\n"
        f"def kernel(x: lw.f32, d: lw.f64, n: lw.i32, u: lw.u32, v: lw.vec3, w: lw.ivec3) -> tuple[{types}]:\n"
        f"    return (\n{lines}    )\n"
    )
    kernel = module(source, "expressions.py").kernel
    rng = np.random.default_rng(seed)
    arguments = {
        "x": rng.normal(size=9).astype("f4"), "d": rng.normal(size=9), "n": rng.integers(-50, 50, 9, "i4"),
        "u": rng.integers(0, 2**32, 9, "u4"), "v": rng.normal(size=(9, 3)).astype("f4"), "w": rng.integers(-9, 9, (9, 3), "i4"),
    }  # fmt: skip
    for e, wanted, found in zip(flat, run(kernel, "python", arguments), run(kernel, "cpu", arguments), strict=True):
        if found.dtype.kind == "i":
            np.testing.assert_array_equal(found, wanted, e)
        else:  # contraction rounds once less often, and sums cancel
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=e)
