"""Indices and arrays among the parameters of a function."""

from __future__ import annotations

import ast

from lanewise.frontend.source import Source
from lanewise.language.array_types import ArrayType, array_of_annotation
from lanewise.support.errors import CompileError

INDEXED = "@lw.threadwise above the function"
READING = "@lw.elementwise, @lw.pairwise, @lw.sitewise(...) or @lw.threadwise above the function"


def index_parameter(source: Source, arg: ast.arg, *, allowed: bool) -> str:
    """The name of a parameter that is an index."""
    if not allowed:
        raise _misplaced(
            source,
            arg,
            "an index belongs to a threadwise function",
            f"{INDEXED}, or lw.i32",
            hint="lw.index_of(element) is the index of an element of an elementwise, pairwise or "
            "sitewise function",
        )
    return arg.arg


def array_parameter(
    source: Source, arg: ast.arg, annotation: object, *, allowed: bool
) -> ArrayType:
    """The type of a parameter that is an array."""
    kind = array_of_annotation(annotation)
    if kind is None:
        raise source.error(
            "an array has elements of a scalar type", arg, found=ast.unparse(arg),
            wanted="lw.Array1[lw.f32], lw.Array2[lw.f64], lw.Array3[lw.i32], ...",
            hint="vectors are a further dimension",
        )  # fmt: skip
    if not allowed:
        raise _misplaced(
            source, arg, "an array with a shape is a parameter of a kernel's own function",
            f"{READING}, or the elements that it needs, as numbers",
        )  # fmt: skip
    return kind


def _misplaced(
    source: Source, arg: ast.arg, message: str, wanted: str, hint: str = ""
) -> CompileError:
    return source.error(
        message, arg, found=f"{ast.unparse(arg)}, of another function", wanted=wanted, hint=hint
    )
