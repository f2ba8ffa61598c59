"""Large and deep functions are compiled, or refused with a place and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.emit.llvm import emit_llvm
from lanewise.planning.plan import Plan
from lanewise.runtime import llvm
from tests.corpus import Case
from tests.emit.operators import define
from tests.frontend.ways import run
from tests.harness import program


@lw.record
class Item:
    a: lw.f32
    i: lw.i32


ITEM: Any = Item
ITEMS = ITEM.array(a=[1.5, -2.5, 1, 1], i=[0, 3, 55, 1000])


def kernel(result: str, body: str) -> Any:
    return lw.elementwise(define(f"def f(e: Item) -> lw.{result}:\n{body}", "f", Item=Item))


def returned(text: str) -> str:
    return f"    return {text}\n"


def branches(count: int) -> str:
    others = "".join(f"    elif e.i == {k}:\n        return {k}.0\n" for k in range(1, count))
    return f"    if e.i == 0:\n        return e.a\n{others}    return -1.0\n"


def nested(count: int) -> str:
    tests = "".join("    " * (k + 1) + f"if e.i > {k}:\n" for k in range(count))
    return f"    x = e.a\n{tests}{'    ' * (count + 1)}x = 2.0\n    return x\n"


COMPILED = {
    "terms": ("f32", returned(" + ".join(["e.a"] * 400)), [600, -1000, 400, 400]),
    "signs": ("f32", returned("-" * 601 + "e.a"), [-1.5, 2.5, -1, -1]),
    "not": ("bool", returned("not " * 601 + "(e.i > 3)"), [True, True, False, False]),
    "and": ("bool", returned(" and ".join(f"e.i > {k}" for k in range(300))), [False, False, False, True]),
    "arguments": ("f32", returned(f"lw.max({', '.join(f'e.a - {k}.0' for k in range(150))})"), [1.5, -2.5, 1, 1]),
    "elif": ("f32", branches(110), [1.5, 3, 55, -1]),
    "nested": ("f32", nested(90), [1.5, -2.5, 1, 2]),
    "conditional": ("f32", returned(" ".join(f"{k}.0 if e.i == {k} else" for k in range(40)) + " e.a"), [0, 3, 1, 1]),
}


def cuda_text(f: Any) -> str:
    none: Any = dict
    (k,) = program(Case("f", f, (Item,), none, none), lw.SoA(), Plan(block=64), "cuda").kernels
    return emit_cuda(k, "")


@pytest.mark.parametrize("name", COMPILED)
def test_large_functions_are_interpreted_and_emitted(name: str) -> None:
    result, body, wanted = COMPILED[name]
    f = kernel(result, body)
    assert run(f, "python", {"e": ITEMS})[0].tolist() == wanted
    assert "f_kernel" in cuda_text(f)
    none: Any = dict
    (k,) = program(Case("f", f, (Item,), none, none), lw.SoA(), Plan(), "cpu").kernels
    assert llvm.machine_code(emit_llvm(k, "", locations=False))


@pytest.mark.parametrize("name", ["elif"])
def test_large_functions_run_on_the_cpu(name: str) -> None:
    result, body, wanted = COMPILED[name]
    np.testing.assert_array_equal(run(kernel(result, body), "cpu", {"e": ITEMS})[0], wanted)


REFUSED = {
    "elif": ("f32", branches(400), "this is nested too deeply"),
    "conditional": ("f32", returned(" ".join(f"{k}.0 if e.i == {k} else" for k in range(150)) + " e.a"), "this is nested too deeply"),
    "conditional of 100": ("f32", returned(" ".join(f"{k}.0 if e.i == {k} else" for k in range(110)) + " e.a"), "this function is nested too deeply"),
    "comparisons": ("bool", returned(" < ".join(f"e.i + {k}" for k in range(400))), "nested too deeply"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_too_deep_is_refused_with_a_remedy(name: str) -> None:
    result, body, message = REFUSED[name]
    with pytest.raises(lw.CompileError, match=message) as refused:
        kernel(result, body)(ITEMS)
    assert "a loop" in str(refused.value)
    assert "wanted: " in str(refused.value)


def test_declarations_of_long_chains_take_no_exponential_time() -> None:
    """A chained comparison nests a branch for each operand."""
    text = cuda_text(kernel("bool", returned(" < ".join(f"e.i + {k}" for k in range(40)))))
    assert text.count("if (") > 35


def test_a_source_that_python_does_not_parse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    f = kernel("f32", returned("e.a"))

    def parse(*_: Any, **__: Any) -> None:
        raise RecursionError("maximum recursion depth exceeded during ast construction")

    with monkeypatch.context() as patch:
        patch.setattr("lanewise.frontend.source.ast.parse", parse)
        with pytest.raises(lw.CompileError, match="the source of this function is nested too deeply"):
            f(ITEMS)
