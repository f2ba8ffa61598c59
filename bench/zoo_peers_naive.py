"""Kernels of the zoo as Numba, Warp and Taichi spell them: a thread per point, loops as written."""

from __future__ import annotations

import ast
import importlib.util
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Spelling:
    """A language of kernels in Python.

    Attributes:
        head: the lines before the body, of indices and arrays with their types; the last one ends
        in the indentation of the body.
        names: of functions.
        number: what makes a 32-bit float of a value, where a constant is none by itself.
        variables: whether a variable that begins as a constant has to say that it varies.
        leave: what makes the statement that ends a point.
    """

    head: Callable[[list[str], dict[str, str]], str]
    names: dict[str, str]
    number: str = ""
    variables: bool = False
    leave: Callable[[], ast.stmt] = ast.Return


def _numba(indices: list[str], arrays: dict[str, str]) -> str:
    ends = [f"n_{i}" for i in indices]
    inside = " and ".join(f"{i} < {n}" for i, n in zip(indices, ends, strict=True))
    return (
        "import math\nfrom numba import cuda, float32\n\n@cuda.jit\n"
        f"def kernel({', '.join([*arrays, *ends])}):\n"
        f"    {', '.join(reversed(indices))} = cuda.grid({len(indices)})\n"
        f"    if {inside}:\n        "
    )


def _warp(indices: list[str], arrays: dict[str, str]) -> str:
    named = {"f32": "wp.float32", "i32": "wp.int32"}
    typed = (f"{n}: wp.array{t[0]}d(dtype={named[t[1:]]})" for n, t in arrays.items())
    return (
        "import warp as wp\n\n@wp.kernel(enable_backward=False)\n"
        f"def kernel({', '.join(typed)}):\n    {', '.join(indices)} = wp.tid()\n    "
    )


def _taichi(indices: list[str], arrays: dict[str, str]) -> str:
    typed = [f"{n}: ti.types.ndarray(dtype=ti.{t[1:]}, ndim={t[0]})" for n, t in arrays.items()]
    ends = [f"n_{i}" for i in indices]
    loop = f"ti.ndrange({', '.join(ends)})" if len(ends) > 1 else f"range({ends[0]})"
    return (
        "import taichi as ti\n\n@ti.kernel\n"
        f"def kernel({', '.join([*typed, *(f'{n}: ti.i32' for n in ends)])}):\n"
        f"    for {', '.join(indices)} in {loop}:\n        "
    )


PLAIN = {"max": "max", "min": "min", "abs": "abs"}
NUMBA = Spelling(
    _numba, {**PLAIN, "exp": "math.exp", "log": "math.log", "f32": "float32"}, "float32"
)
WARP = Spelling(
    _warp,
    {n: f"wp.{n}" for n in ("max", "min", "abs", "exp", "log", "clamp")} | {"f32": "float"},
    "float",
    variables=True,
)
TAICHI = Spelling(
    _taichi, {**PLAIN, "exp": "ti.exp", "log": "ti.log", "f32": "ti.f32"}, leave=ast.Continue
)


class _Spelled(ast.NodeTransformer):
    """Expressions and statements of the zoo's texts, spelled anew."""

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = ast.unparse(node.func).removeprefix("lw.")
        if name == "clamp" and name not in self.spelling.names:
            value, low, high = map(ast.unparse, node.args)
            return _expression(f"min(max({value}, {low}), {high})")
        node.func = _expression(self.spelling.names.get(name, name))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """What meets a float may be an integer, which promotes both to 64 bits, or to nothing."""
        floats = [
            isinstance(n, ast.Constant) and isinstance(n.value, float)
            for n in (node.left, node.right)
        ]
        self.generic_visit(node)
        if self.spelling.number and any(floats) and not all(floats):
            side = "right" if floats[0] else "left"
            setattr(node, side, self._number(getattr(node, side)))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        # Warp's constants are 32 bits wide
        if isinstance(node.value, float) and self.spelling.number == "float32":
            return self._number(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        value = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
        if isinstance(value, ast.Constant) and self.spelling.variables:
            node.value = _expression(f"{type(value.value).__name__}({ast.unparse(node.value)})")
            return node
        self.generic_visit(node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return self.spelling.leave()

    def _number(self, node: ast.expr) -> ast.expr:
        return _expression(f"{self.spelling.number}({ast.unparse(node)})")


def _expression(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def spelled(text: str, spelling: Spelling) -> str:
    """A kernel of the zoo as a module of another language, whose function is `kernel`."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    annotations = {a.arg: ast.unparse(a.annotation) for a in function.args.args if a.annotation}
    indices = [n for n, kind in annotations.items() if kind == "lw.index"]
    arrays = {
        n: kind.removeprefix("lw.Array").replace("[lw.", "").removesuffix("]")
        for n, kind in annotations.items()
        if kind != "lw.index"
    }
    head = spelling.head(indices, arrays)
    margin = head.rsplit("\n", 1)[1]
    body = [
        ast.unparse(ast.fix_missing_locations(_Spelled(spelling).visit(s))) for s in function.body
    ]
    return head + "\n".join(body).replace("\n", f"\n{margin}") + "\n"


def module_of(text: str, name: str) -> ModuleType:
    """The module of a text, in a file: Warp and Taichi read their kernels from one."""
    path = Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
