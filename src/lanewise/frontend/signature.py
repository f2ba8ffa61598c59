"""The declared parameters and results of a function."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise.frontend.array_parameters import array_parameter, index_parameter
from lanewise.frontend.reductions import Reduced, ReductionName
from lanewise.frontend.scattered import scattered_arrays
from lanewise.frontend.source import Source, read_source
from lanewise.frontend.values import PythonObject
from lanewise.ir.reductions import SUM, Reduction
from lanewise.language import types as t
from lanewise.language.array_types import ArrayType, is_array, is_index
from lanewise.language.record import Record, record_of
from lanewise.language.values import (
    Row,
    field_of_annotation,
    is_field,
    populations_of_annotation,
    row_of_annotation,
    type_of_annotation,
)
from lanewise.support.articles import an
from lanewise.support.errors import CompileError


@dataclass(frozen=True, slots=True)
class Signature:
    """The declared parameters of a kernel function and its result types (None: not declared).

    `populations` has the parameters that are populations, and their type, `rows` those that are
    rows of values, and the type of a value; they are not among `parameters`, nor are `fields`,
    which sites read at their neighbours. `indices` are those of a threadwise function, first of
    all; `asked` is what a call of it brings besides, by keyword. `arrays` are read and written by
    index; those of other functions are tables, which are only read, but for those that are
    `scattered` to. `reductions` says what becomes of each result over all pairs.
    """

    source: Source
    parameters: dict[str, Record | t.ValueType]
    results: list[t.ValueType] | None
    populations: dict[str, t.Scalar] = field(default_factory=dict[str, t.Scalar])
    rows: dict[str, t.ValueType] = field(default_factory=dict[str, t.ValueType])
    indices: tuple[str, ...] = ()
    arrays: dict[str, ArrayType] = field(default_factory=dict[str, ArrayType])
    asked: tuple[str, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    fields: dict[str, t.Scalar] = field(default_factory=dict[str, t.Scalar])
    scattered: frozenset[str] = frozenset()

    @property
    def tables(self) -> dict[str, ArrayType]:
        """The arrays that are only read."""
        return (
            {}
            if self.indices
            else {n: kind for n, kind in self.arrays.items() if n not in self.scattered}
        )

    @property
    def names(self) -> list[str]:
        """What a call is given: the parameters and rows, in the order of the source."""
        if not self.rows and not self.arrays:
            return [*self.parameters, *self.asked]
        both = self.parameters.keys() | self.rows.keys() | self.arrays.keys()
        return [*(a.arg for a in self.source.tree.args.args if a.arg in both), *self.asked]


def read_signature(
    function: Callable[..., Any],
    *,
    annotated: bool = True,
    populations: bool = False,
    rows: bool = False,
    threads: bool = False,
    fields: bool = False,
    tables: bool = False,
    pairs: bool = False,
    scatters: bool = False,
) -> Signature:
    """The annotations of a function as language types; raises `CompileError` when one is missing or
    of another kind.

    `populations` says that the first parameter, and no other, is the populations of a site; a
    helper (not `annotated`) may take them anywhere. `rows` says that it may take rows of values,
    `threads` that it has indices and arrays, `fields` that it is a function of a site of a lattice,
    and may read fields at its neighbours, `tables` that it has arrays to read, `scatters` that some
    of these may be scattered to, `pairs` that its results are reduced over pairs.
    """
    source = read_source(function)
    _check_plain(source)
    annotations = source.annotations()
    parameters: dict[str, Record | t.ValueType] = {}
    sites: dict[str, t.Scalar] = {}
    lists: dict[str, t.ValueType] = {}
    indices: list[str] = []
    arrays: dict[str, ArrayType] = {}
    near: dict[str, t.Scalar] = {}
    for arg in source.tree.args.args:
        if scalar := populations_of_annotation(annotations.get(arg.arg)):
            if annotated and not populations:
                where = "@lw.sitewise(lattice) above the function"
                raise _misplaced(source, arg, "another kind of kernel", where)
            sites[arg.arg] = scalar
        elif typing.get_origin(annotations.get(arg.arg)) is Row:
            lists[arg.arg] = _row_type(source, arg, annotations[arg.arg], allowed=rows)
        elif is_index(annotation := annotations.get(arg.arg)):
            indices.append(index_parameter(source, arg, allowed=threads))
        elif is_field(annotation):
            near[arg.arg] = _field_type(source, arg, annotation, allowed=fields or not annotated)
        elif is_array(annotation):
            arrays[arg.arg] = array_parameter(source, arg, annotation, allowed=threads or tables)
        elif arg.arg in annotations:
            parameters[arg.arg] = _parameter_type(source, arg, annotations[arg.arg])
        elif annotated:
            raise _untyped(source, arg)
    if annotated and populations:
        _check_populations(source, sites)
    results = _results(source, annotations)
    reductions = tuple(r for _, r in results or ())
    if pairs or rows:
        _check_gathered(source, [kind for kind, _ in results or ()])
    if not pairs:
        _check_sums(source, reductions)
    kinds = None if results is None else [kind for kind, _ in results]
    asked = ("grid",) if threads else ()
    scattered = (
        frozenset(scattered_arrays(source) & arrays.keys()) if scatters else frozenset[str]()
    )
    return Signature(
        source, parameters, kinds, sites, lists, tuple(indices), arrays, asked, reductions, near,
        scattered,
    )  # fmt: skip


def _untyped(source: Source, arg: ast.arg) -> CompileError:
    return source.error(
        f"the parameter {arg.arg!r} has no type",
        arg,
        found=arg.arg,
        wanted=f"{arg.arg}: lw.f32, or a record class",
        hint="a kernel is a plain function, not a method" if arg.arg == "self" else "",
    )


def _check_gathered(source: Source, kinds: list[t.ValueType]) -> None:
    """Refuse results of pairs and items that have too few bits for what becomes of them."""
    for kind in map(t.scalar_of, kinds):
        if kind in t.STORED:
            raise source.error(
                f"what pairs and items give is gathered in 32 or 64 bits, not in {an(kind)}",
                source.tree.returns or source.tree,
                found=ast.unparse(source.tree.returns or source.tree),
                wanted=f"lw.{t.computed(kind)}",
            )


def _check_sums(source: Source, reductions: tuple[Reduction, ...]) -> None:
    """Refuse all reductions but sums: what is none over pairs is not reduced."""
    if any(r != SUM for r in reductions):
        raise source.error(
            "a reduction belongs to a pairwise function", source.tree.returns or source.tree,
            found=f"{ast.unparse(source.tree.returns or source.tree)}, of another kind of function",
            wanted="@lw.pairwise above the function, or a plain type such as lw.f32",
        )  # fmt: skip


def _field_type(source: Source, arg: ast.arg, annotation: Any, *, allowed: bool) -> t.Scalar:
    if not allowed:
        raise source.error(
            "a field belongs to a site of a lattice",
            arg,
            found=f"{ast.unparse(arg)}, of another kind of kernel",
            wanted="@lw.stencil(lattice) or @lw.sitewise(lattice) above the function",
        )
    kind = field_of_annotation(annotation)
    if kind is None:
        raise source.error(
            "a field has one float per site",
            arg,
            found=ast.unparse(arg),
            wanted="lw.Field[lw.f32] or lw.Field[lw.f64]",
            hint="the components of a vector are separate fields",
        )
    return kind


def _row_type(source: Source, arg: ast.arg, annotation: Any, *, allowed: bool) -> t.ValueType:
    if not allowed:
        raise source.error(
            "a row belongs to a segmentwise function",
            arg,
            found=f"{ast.unparse(arg)}, of another kind of kernel",
            wanted="@lw.segmentwise above the function, or uniform arguments",
            hint="a helper takes values that were read from a row",
        )
    kind = row_of_annotation(annotation)
    if kind is None or t.scalar_of(kind) not in (t.F32, t.F64):
        raise source.error(
            "a row has floats, because what lies outside of it is not a number",
            arg,
            found=ast.unparse(arg),
            wanted="lw.Row[lw.f32], lw.Row[lw.vec2], lw.Row[lw.f64], ...",
        )
    return kind


def _check_populations(source: Source, sites: dict[str, t.Scalar]) -> None:
    arguments = source.tree.args.args
    if not arguments or arguments[0].arg not in sites:
        raise source.error(
            f"{source.name} does not take the populations of its site first",
            arguments[0] if arguments else source.tree,
            found=ast.unparse(arguments[0]) if arguments else "no parameter",
            wanted="f: lw.populations (or lw.dpopulations)",
        )
    for arg in arguments[1:]:
        if arg.arg in sites:
            raise _misplaced(
                source,
                arg,
                "a second parameter",
                "one parameter of populations, and uniform arguments",
            )


def _misplaced(source: Source, arg: ast.arg, found: str, wanted: str) -> CompileError:
    what = f"{ast.unparse(arg)}, {found}"
    return source.error("populations belong to a sitewise function", arg, found=what, wanted=wanted)


def _check_plain(source: Source) -> None:
    a = source.tree.args
    special = (
        [(x, "*") for x in (a.vararg,) if x]
        + [(x, "**") for x in (a.kwarg,) if x]
        + [(x, "*, ") for x in a.kwonlyargs]
    )
    special += [(x, "") for x in a.posonlyargs]
    for arg, prefix in special:
        raise source.error(
            "a kernel function has plain parameters",
            arg,
            found=f"{prefix}{ast.unparse(arg)}",
            wanted="name: type, ...",
        )
    if a.defaults:
        raise source.error(
            "a kernel function has no default values",
            a.defaults[0],
            found=ast.unparse(a.defaults[0]),
            wanted="the value in every call",
        )


_PRECISE = (
    (float, "lw.f32 or lw.f64"),
    (int, "lw.i32 or lw.i64"),
    (complex, "lw.vec2, of the real and the imaginary part"),
)


def _parameter_type(source: Source, arg: ast.arg, annotation: Any) -> Record | t.ValueType:
    kind = record_of(annotation) or type_of_annotation(annotation)
    if kind is None:
        raise source.error(
            f"the type of {arg.arg!r} is not one of lanewise",
            arg,
            found=PythonObject(annotation).describe(),
            wanted="a record class, lw.f32, lw.vec3, ...",
            hint=_precise(annotation),
        )
    return kind


def _precise(annotation: Any) -> str:
    """The type of lanewise for one of Python or NumPy."""
    if typing.get_origin(annotation) is np.ndarray or annotation is np.ndarray:  # also NDArray[...]
        return (
            "lw.vec3 for a vector, lw.Array1[lw.f32] or lw.Array2[lw.f32] for an array that is "
            "read by index"
        )
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return f"lw.{scalar}" if (scalar := t.from_dtype(annotation)) else ""
    return next((hint for kind, hint in _PRECISE if annotation is kind), "")


def _results(
    source: Source, annotations: dict[str, Any]
) -> list[tuple[t.ValueType, Reduction]] | None:
    annotation = annotations.get("return")
    if annotation is None:
        return [] if "return" in annotations else None
    members: tuple[Any, ...] = (
        typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
    )
    return [_result(source, annotation, m) for m in members]


def _result(source: Source, annotation: Any, member: Any) -> tuple[t.ValueType, Reduction]:
    """The type of one result, and what becomes of it over all pairs."""
    where = source.tree.returns or source.tree
    if isinstance(member, ReductionName):
        raise source.error(
            f"lw.{member.name} needs the type of what a pair gives",
            where,
            found=f"lw.{member.name}",
            wanted=member.example,
        )
    named = member.kind if isinstance(member, Reduced) else member
    kind = type_of_annotation(named)
    if kind is None:
        record = record_of(named)
        raise source.error(
            "the result is not of a lanewise type",
            where,
            found=PythonObject(annotation if named is member else named).describe(),
            wanted="lw.f32, lw.vec3, tuple[lw.f32, lw.vec3], ...",
            hint="return the fields one by one, or update the first record of an @lw.elementwise "
            "function"
            if record
            else _precise(annotation if named is member else named),
        )
    if not isinstance(member, Reduced):
        return kind, SUM
    if wanted := member.reduction.refuses(kind):
        raise source.error(
            f"lw.{member.name} does not reduce values of this type",
            where,
            found=f"lw.{member.name} of {kind}",
            wanted=wanted,
        )
    return kind, member.reduction
