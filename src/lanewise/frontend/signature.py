"""The declared parameters and results of a function."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise import types as t
from lanewise.frontend.source import Source, read_source
from lanewise.frontend.values import PythonObject
from lanewise.record import Record, record_of
from lanewise.values import type_of_annotation


@dataclass(frozen=True, slots=True)
class Signature:
    """The declared parameters of a kernel function and its result types (None: not declared)."""

    source: Source
    parameters: dict[str, Record | t.ValueType]
    results: list[t.ValueType] | None


def read_signature(function: Callable[..., Any], *, annotated: bool = True) -> Signature:
    """The annotations of a function as language types; raises `CompileError` when one is missing or of another kind."""
    source = read_source(function)
    _check_plain(source)
    annotations = source.annotations()
    parameters: dict[str, Record | t.ValueType] = {}
    for arg in source.tree.args.args:
        if arg.arg in annotations:
            parameters[arg.arg] = _parameter_type(source, arg, annotations[arg.arg])
        elif annotated:
            hint = "a kernel is a plain function, not a method" if arg.arg == "self" else ""
            raise source.error(
                f"the parameter {arg.arg!r} has no type",
                arg,
                found=arg.arg,
                wanted=f"{arg.arg}: lw.f32, or a record class",
                hint=hint,
            )
    return Signature(source, parameters, _results(source, annotations))


def _check_plain(source: Source) -> None:
    a = source.tree.args
    special = (
        [(x, "*") for x in (a.vararg,) if x] + [(x, "**") for x in (a.kwarg,) if x] + [(x, "*, ") for x in a.kwonlyargs]
    )
    special += [(x, "") for x in a.posonlyargs]
    for arg, prefix in special:
        raise source.error(
            "a kernel function has plain parameters", arg, found=f"{prefix}{ast.unparse(arg)}", wanted="name: type, ..."
        )
    if a.defaults:
        raise source.error(
            "a kernel function has no default values",
            a.defaults[0],
            found=ast.unparse(a.defaults[0]),
            wanted="the value in every call",
        )


def _parameter_type(source: Source, arg: ast.arg, annotation: Any) -> Record | t.ValueType:
    kind = record_of(annotation) or type_of_annotation(annotation)
    if kind is None:
        raise source.error(
            f"the type of {arg.arg!r} is not one of lanewise", arg, found=PythonObject(annotation).describe(),
            wanted="a record class, lw.f32, lw.vec3, ...", hint=_precise(annotation),
        )  # fmt: skip
    return kind


def _precise(annotation: Any) -> str:
    return "lw.f32 or lw.f64" if annotation is float else "lw.i32 or lw.i64" if annotation is int else ""


def _results(source: Source, annotations: dict[str, Any]) -> list[t.ValueType] | None:
    annotation = annotations.get("return")
    if annotation is None:
        return [] if "return" in annotations else None
    members: tuple[Any, ...] = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
    kinds = [type_of_annotation(m) for m in members]
    if any(k is None for k in kinds):
        record = next((r for m in members if (r := record_of(m))), None)
        raise source.error(
            "the result is not of a lanewise type",
            source.tree.returns or source.tree,
            found=PythonObject(annotation).describe(),
            wanted="lw.f32, lw.vec3, tuple[lw.f32, lw.vec3], ...",
            hint="return the fields one by one, or update the first record of an @lw.elementwise function"
            if record
            else _precise(annotation),
        )
    return [k for k in kinds if k is not None]
