"""Lower a whole Python function to an IR `Function`, with the helpers that it calls."""

from __future__ import annotations

import ast
import types as python_types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise import types as t
from lanewise.errors import CompileError
from lanewise.frontend.scope import Retype, Scope
from lanewise.frontend.source import Source, read_source
from lanewise.frontend.statements import coerce, lower_block
from lanewise.frontend.values import Number, RecordReference, Value, settle
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import expressions, reads, statements, writes
from lanewise.record import Record, record_of
from lanewise.values import type_of_annotation

MAX_ATTEMPTS = 50  # every attempt but the last strengthens one variable
MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Signature:
    """The declared parameters of a kernel function and its result types."""

    source: Source
    parameters: dict[str, Record | t.ValueType]
    results: list[t.ValueType] | None


@dataclass(frozen=True, slots=True)
class Lowered:
    """An IR function; `uses_same` tells that its last parameter is the flag `same`."""

    function: ir.Function
    results: tuple[t.ValueType, ...]
    uses_same: bool


def read_signature(function: Callable[..., Any], *, annotated: bool = True) -> Signature:
    """The annotations of a function as language types; raises `CompileError` when one is missing or of another kind."""
    source = read_source(function)
    annotations = source.annotations()
    a = source.tree.args
    if a.vararg or a.kwarg or a.kwonlyargs or a.posonlyargs or a.defaults:
        raise source.error("a kernel function has plain parameters", source.tree, found=ast.unparse(a), wanted="name: type, ...")
    parameters: dict[str, Record | t.ValueType] = {}
    for arg in a.args:
        if arg.arg not in annotations:
            if not annotated:
                continue
            raise source.error(f"the parameter {arg.arg!r} has no type", arg, wanted=f"{arg.arg}: lw.f32, or a record class")
        annotation = annotations[arg.arg]
        kind = record_of(annotation) or type_of_annotation(annotation)
        if kind is None:
            raise source.error(
                f"the type of {arg.arg!r} is not one of lanewise", arg, found=repr(annotation), wanted="a record class, lw.f32, lw.vec3, ...",
                hint={float: "lw.f32 or lw.f64", int: "lw.i32 or lw.i64"}.get(annotation, ""),
            )  # fmt: skip
        parameters[arg.arg] = kind
    return Signature(source, parameters, _results(source, annotations))


def _results(source: Source, annotations: dict[str, Any]) -> list[t.ValueType] | None:
    annotation = annotations.get("return")
    if annotation is None:
        return [] if "return" in annotations else None
    members = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
    kinds = [type_of_annotation(m) for m in members]
    if any(k is None for k in kinds) or isinstance(annotation, python_types.EllipsisType):
        node = source.tree.returns or source.tree
        raise source.error("the result is not of a lanewise type", node, found=repr(annotation), wanted="lw.f32, lw.vec3, tuple[lw.f32, lw.vec3], ...")
    return [k for k in kinds if k is not None]


def lower_function(signature: Signature, *, mutable: str | None = None) -> Lowered:
    """Lower a kernel function. `mutable` names the record parameter that may be assigned to."""
    values = {n: _parameter(n, kind, n == mutable) for n, kind in signature.parameters.items()}
    results = signature.results
    if results is None:
        if any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(signature.source.tree)):
            raise signature.source.error("the result has no type", signature.source.tree, wanted="-> lw.vec3 (or another type) after the parameters")
        results = []
    return _Lowering().lower(signature.source, values, results, signature.source.name)


def _parameter(name: str, kind: Record | t.ValueType, mutable: bool) -> Value:
    if isinstance(kind, Record):
        return RecordReference(name, kind, mutable)
    return Number(kind, tuple(ir.Local(n, t.scalar_of(kind)) for n in t.leaves(name, kind)))


class _Lowering:
    """Lowers one kernel function and, once for each set of argument types, every helper that it calls."""

    def __init__(self) -> None:
        self._helpers: dict[tuple[Any, ...], Lowered] = {}
        self._names: dict[str, int] = {}
        self._depth = 0

    def lower(self, source: Source, parameters: dict[str, Value], results: list[t.ValueType] | None, name: str) -> Lowered:
        known: dict[str, Any] = {}
        for _ in range(MAX_ATTEMPTS):
            scope = Scope(source, parameters, list(results) if results is not None else None, self.helper, known)
            scope.globals = source.names()
            scope.assignment_counts = _assignments(source.tree)
            scope.defined = set(parameters)
            try:
                ends = lower_block(scope, source.tree.body)
            except Retype:
                continue
            return _finish(scope, ends, name)
        raise source.error("the types of the variables of this function do not settle", source.tree, hint="declare them: x: lw.f32 = 0")

    def helper(self, caller: Scope, python_function: Any, arguments: list[Value], node: ast.AST) -> Number:
        """Lower a call of an `@lw.function` helper for the types at hand."""
        function = python_function.function
        signature = read_signature(function, annotated=False)
        names = [a.arg for a in signature.source.tree.args.args]
        if len(names) != len(arguments):
            raise caller.error(f"{function.__name__} takes {len(names)} arguments", node, found=str(len(arguments)), wanted=", ".join(names))
        given = {n: _argument(caller, n, a, signature.parameters.get(n), node) for n, a in zip(names, arguments, strict=True)}
        key = (function, *(_kind(a) for a in given.values()))
        if key not in self._helpers:
            self._helpers[key] = self._lower_helper(caller, signature, given, node)
        lowered = self._helpers[key]
        actual = {leaf: e for n, a in given.items() for leaf, e in _leaves_of(n, a)}
        results = tuple(caller.fresh(function.__name__) for _ in lowered.function.results)
        arguments_ir = tuple(actual[p.name] for p in lowered.function.parameters)
        caller.emit(ir.Apply(lowered.function, arguments_ir, results, caller.location(node)))
        if len(lowered.results) != 1:
            raise caller.error(f"{function.__name__} does not return one value", node, found=f"{len(lowered.results)} values", wanted="one value")
        parts = tuple(ir.Local(r, p.type, caller.location(node)) for r, p in zip(results, lowered.function.results, strict=True))
        return Number(lowered.results[0], parts)

    def _lower_helper(self, caller: Scope, signature: Signature, given: dict[str, Value], node: ast.AST) -> Lowered:
        name = signature.source.name
        if self._depth >= MAX_DEPTH:
            raise caller.error(f"{name} calls itself", node, found="a recursive call", wanted="a loop")
        self._names[name] = self._names.get(name, 0) + 1
        unique = name if self._names[name] == 1 else f"{name}_{self._names[name]}"
        formal = {n: _formal(n, a) for n, a in given.items()}
        self._depth += 1
        try:
            return self.lower(signature.source, formal, signature.results, unique)
        finally:
            self._depth -= 1


def _argument(caller: Scope, name: str, value: Value, wanted: Record | t.ValueType | None, node: ast.AST) -> Value:
    """Coerce an argument to the helper's annotation, or give a weak number the type that it has alone."""
    if isinstance(value, RecordReference):
        if wanted is not None and wanted != value.record:
            raise caller.error(f"the argument {name!r} is another record", node, found=value.describe(), wanted=str(wanted))
        return value
    if not isinstance(value, Number) or isinstance(wanted, Record):
        raise caller.error(f"the argument {name!r} does not fit", node, found=value.describe(), wanted=str(wanted or "a scalar, vector or record"))
    kept = coerce(caller, value, wanted, node, f"the argument {name!r}") if wanted else settle(value, value.scalar)
    return kept


def _kind(value: Value) -> Any:
    return value.record if isinstance(value, RecordReference) else value.type if isinstance(value, Number) else None


def _formal(name: str, value: Value) -> Value:
    if isinstance(value, RecordReference):
        return RecordReference(name, value.record, False)
    assert isinstance(value, Number)
    return _parameter(name, value.type, False)


def _leaves_of(name: str, value: Value) -> list[tuple[str, ir.Expression]]:
    """(formal leaf, actual expression) of one argument."""
    if isinstance(value, RecordReference):
        return [(f"{name}.{leaf.name}", ir.Local(f"{value.name}.{leaf.name}", leaf.type)) for leaf in value.record.leaves]
    assert isinstance(value, Number)
    return list(zip(t.leaves(name, value.type), value.parts, strict=True))


def _assignments(tree: ast.FunctionDef) -> dict[str, int]:
    """How often each name is assigned in the function (loop variables not counted)."""
    loops = {n.target.id for n in ast.walk(tree) if isinstance(n, ast.For) and isinstance(n.target, ast.Name)}
    counts: dict[str, int] = {}
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id not in loops:
            counts[n.id] = counts.get(n.id, 0) + 1
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            counts[n.target.id] = counts.get(n.target.id, 0) + 1
    return counts


def _finish(scope: Scope, end_reached: bool, name: str) -> Lowered:
    """Close the function: check that it returns, and keep the parameters that it uses."""
    source = scope.source
    results = scope.result_types or []
    body = tuple(scope.block)
    if results and end_reached:
        raise CompileError(
            f"{source.name} can end without a return", source.location(source.tree.body[-1]), found="a path that reaches the end",
            wanted=f"return a value of type {', '.join(map(str, results))} on every path",
        )  # fmt: skip
    written = {n for s in statements(body) for n in writes(s)}
    used = {n for s in statements(body) for e in expressions(s) for n in reads(e)}
    parameters = []
    for parameter, value in scope.parameters.items():
        for leaf, e in _leaves_of(parameter, value):
            changed = leaf in written and isinstance(value, RecordReference)
            if leaf in used or leaf in written:
                parameters.append(ir.Parameter(leaf, e.type, changed))
    if scope.uses_same:
        parameters.append(ir.Parameter("same", t.BOOL))
    names = ["result"] if len(results) == 1 else [f"result{i}" for i in range(len(results))]
    outputs = tuple(ir.Parameter(leaf, t.scalar_of(k)) for n, k in zip(names, results, strict=True) for leaf in t.leaves(n, k))
    function = ir.Function(name, tuple(parameters), outputs, body, source.location(source.tree))
    return Lowered(function, tuple(results), scope.uses_same)
