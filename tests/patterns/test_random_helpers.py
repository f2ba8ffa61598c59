"""Random helpers: nested, shared, of one name in several scopes, given values and literals of each type. Every pattern means Python's numbers."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.support.errors import CompileError

COUNT = 5
NUMBER = itertools.count()
KINDS = {"lw.f32": "f4", "lw.f64": "f8", "lw.i32": "i4", "lw.i64": "i8"}
HELPER = """
def scope_{n}():
    @lw.function
    def {name}(q, a, b):
        {before}
        return ({body}) % 97
    return {name}

h{n} = scope_{n}()
"""
KERNELS = {
    "elementwise": """
@lw.elementwise
def kernel(q: lw.bool, v: {kind}, w: {kind}) -> {kind}:
    return {body}
""",
    "pairwise": """
class Body(lw.Record):
    v: {kind}
    q: lw.bool

@lw.pairwise
def kernel(one: Body, other: Body) -> {kind}:
    q, v, w = one.q, one.v, other.v
    return {body}
""",
    "threadwise": """
@lw.threadwise
def kernel(x: lw.index, qs: lw.Array1[lw.bool], vs: lw.Array1[{kind}], ws: lw.Array1[{kind}], c: lw.Array1[{kind}]):
    q, v, w = qs[x], vs[x], ws[x]
    c[x] = {body}
""",
    "segmentwise": """
class Item(lw.Record):
    v: {kind}
    w: {kind}
    q: lw.bool

@lw.segmentwise
def kernel(item: Item) -> {kind}:
    q, v, w = item.q, item.v, item.w
    return {body}
""",
    "stencil": """
@lw.stencil(lw.D2Q5)
def kernel(f: lw.Field[{kind}], g: lw.Field[{kind}]) -> {kind}:
    q, v, w = f[0] > 2, f[0], g[1]
    return {body}
""",
}  # fmt: skip
PLAIN = """
def plain(q, v, w):
    return {body}
"""


@st.composite
def expression(
    draw: st.DrawFn, q: str, values: tuple[str, ...], literals: tuple[str, ...], helpers: int, depth: int = 0
) -> str:
    """An integer below 97, of values, literals and calls of the first helpers."""
    part = expression(q, values, literals, helpers, depth + 1)
    form = draw(st.integers(0, 5 if depth < 2 else 1))
    match form:
        case 0:
            return draw(st.sampled_from(values))
        case 1:
            return draw(st.sampled_from((*values, *literals)))
        case 2:
            return f"(({draw(part)} {draw(st.sampled_from('+-*'))} {draw(part)}) % 97)"
        case 3:
            return f"({draw(part)} if {q} else {draw(st.sampled_from(values))})"
        case _ if helpers:
            truth = draw(st.sampled_from((q, "True", "False", f"{draw(st.sampled_from(values))} > 3")))
            return f"h{draw(st.integers(0, helpers - 1))}({truth}, {draw(part)}, {draw(part)})"
        case _:
            return f"lw.max({draw(st.sampled_from(values))}, {draw(part)})"


BEFORE = ("c = a", "b = b + a", "a = a * 2", "s = a\n        for k in range(3):\n            s += a\n        b = s - b")


@st.composite
def program(draw: st.DrawFn, pattern: str) -> tuple[str, str]:
    """The type of the values, and the text of a module with helpers and a kernel."""
    kind = draw(st.sampled_from([k for k in KINDS if "f" in k or pattern != "stencil"]))
    literals = ("0", "1", "2", "5", "-3") + (("2.0", "7.0", "-0.0") if "f" in kind else ())
    texts = ["import lanewise as lw\n"]
    count = draw(st.integers(1, 4))
    for n in range(count):
        body = draw(expression("q", ("a", "b"), literals, n))
        name, before = draw(st.sampled_from(("f", "g", "kernel"))), draw(st.sampled_from(BEFORE))
        texts.append(HELPER.format(n=n, name=name, before=before, body=body))
    given_values = st.sampled_from(("v", "w", *literals))
    terms = [
        f"h{draw(st.integers(0, count - 1))}(q, {draw(given_values)}, {draw(given_values)})"
        for _ in range(draw(st.integers(1, 3)))
    ]
    if draw(st.integers(0, 2)):  # two forms of one helper, of which a literal makes two
        terms = ["h0(q, v, w)", f"h0(q, v, {draw(st.sampled_from(literals))})", *terms]
    body = " + ".join(("v", *terms, draw(expression("q", ("v", "w"), literals, count))))
    texts += [KERNELS[pattern].format(kind=kind, body=body), PLAIN.format(body=body)]
    return kind, "".join(texts)


def load(text: str, folder: Path) -> Any:
    """The module of a text."""
    path = folder / f"random_helpers_{next(NUMBER)}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def check(pattern: str, kind: str, module: Any) -> None:
    """The kernel's numbers are those of the text as plain Python, with numbers of Python."""
    dtype, kernel = KINDS[kind], module.kernel
    q, v, w = np.array([1, 0, 0, 1, 1], bool), np.array([3, 1, 7, 2, 0], dtype), np.array([4, 2, 5, 0, 6], dtype)

    def plain(q: Any, v: Any, w: Any) -> list[float]:
        return [module.plain(*x) for x in zip(q.tolist(), v.tolist(), w.tolist(), strict=True)]

    match pattern:
        case "elementwise":
            found, wanted = kernel(q, v, w), plain(q, v, w)
        case "pairwise":
            bodies = module.Body.array(v=v, q=q)
            found = kernel(bodies, bodies)
            wanted = [sum(plain(np.full(COUNT, a), np.full(COUNT, b), v)) for a, b in zip(q, v, strict=True)]
        case "threadwise":
            found = np.zeros(COUNT, dtype)
            kernel(q, v, w, found, grid=COUNT)
            wanted = plain(q, v, w)
        case "segmentwise":
            found = kernel(lw.ragged(module.Item.array(v=v, w=w, q=q), counts=[2, 0, 3]))
            each = plain(q, v, w)
            wanted = [sum(each[:2]), 0, sum(each[2:])]
        case _:
            f, g = np.arange(12).reshape(3, 4) % 5, np.arange(12).reshape(3, 4)[::-1] % 7
            sites = kernel.sites((3, 4), f=f, storage=kind[-3:])
            kernel.run(sites, 1, g=g.astype(dtype))
            found = np.asarray(kernel.field(sites, "f")).ravel()
            beside = np.roll(g, -1, 1).astype(dtype)  # direction 1 leads to the next site
            wanted = plain((f > 2).ravel(), f.astype(dtype).ravel(), beside.ravel())
    np.testing.assert_array_equal(np.asarray(found), np.array(wanted, dtype))


def campaign(pattern: str, folder: Path, count: int, devices: tuple[str, ...]) -> None:
    """Try programs; those that mix types, which is refused with its place, are left out."""
    tried = [0, 0]

    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(program(pattern))
    def holds(made: tuple[str, str]) -> None:
        kind, text = made
        module = load(text, folder)
        for device in devices:
            with lw.device(device):
                try:
                    check(pattern, kind, module)
                except CompileError as error:
                    if "type" not in str(error):
                        raise
                    tried[1] += 1
                    return
        tried[0] += 1

    holds()
    assert tried[0] >= count // 3, tried


@pytest.mark.parametrize("pattern", KERNELS)
def test_helpers_mean_what_python_does(pattern: str, tmp_path: Path) -> None:
    campaign(pattern, tmp_path, 16, ("python",))


@pytest.mark.slow
@pytest.mark.parametrize("pattern", KERNELS)
def test_compiled_helpers_mean_what_python_does(pattern: str, tmp_path: Path) -> None:
    campaign(pattern, tmp_path, 150, ("python", "cpu"))
