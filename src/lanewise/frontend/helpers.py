"""`@lw.function`: a helper that kernels call, and that stays an ordinary Python function.

It is lowered once for every set of argument types.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from lanewise.frontend.places import coerce
from lanewise.frontend.promotion import settle
from lanewise.frontend.scope import Scope
from lanewise.frontend.signature import Signature, read_signature
from lanewise.frontend.values import (
    ElementsReference,
    Number,
    PopulationsReference,
    PythonObject,
    RecordReference,
    Several,
    Value,
    formal_parameter,
    leaves_of,
    literal_values,
)
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.lattices.base import Direction
from lanewise.language.record import Record
from lanewise.support.attributes import sealed
from lanewise.support.checks import plain_function
from lanewise.support.errors import CompileError
from lanewise.support.naming import by_name


class LoweredHelper(Protocol):
    """What lowering a helper gives."""

    @property
    def function(self) -> ir.Function: ...
    @property
    def results(self) -> tuple[t.ValueType, ...]: ...


class Helpers:
    """The helpers of one kernel function. `lower_body` lowers a function for given parameters."""

    def __init__(self, lower_body: Callable[..., LoweredHelper]) -> None:
        self._lower_body = lower_body
        self._done: dict[Any, LoweredHelper] = {}
        self._running: list[Any] = []

    def call(self, caller: Scope, helper: Any, arguments: list[Value], node: ast.AST) -> Value:
        """Lower a call: the results are new variables of the caller."""
        function = helper.function
        signature = read_signature(function, annotated=False)
        names = [a.arg for a in signature.source.tree.args.args]
        if len(names) != len(arguments):
            plural = "" if len(names) == 1 else "s"
            raise caller.error(
                f"{function.__name__} takes {len(names)} argument{plural}",
                node,
                found=f"{len(arguments)} given",
                wanted=", ".join(names) or "none",
            )
        pairs = zip(names, arguments, strict=True)
        passed = {n: _argument(caller, signature, n, a, node) for n, a in pairs}
        lowered = self._lowered(caller, signature, passed, node)
        actual = {leaf: e for n, a in passed.items() for leaf, e in leaves_of(n, a)}
        results = tuple(caller.fresh(function.__name__) for _ in lowered.function.results)
        where = caller.location(node)
        caller.emit(
            ir.Apply(
                lowered.function,
                tuple(actual[p.name] for p in lowered.function.parameters),
                results,
                where,
            )
        )
        locals_ = iter(
            [
                ir.Local(r, p.type, where)
                for r, p in zip(results, lowered.function.results, strict=True)
            ]
        )
        # While an argument is open the result is: it may become as wide as that.
        is_open = (
            bool(arguments)
            and all(isinstance(a, Number) and a.weak for a in arguments)
            and any(isinstance(a, Number) and a.open for a in arguments)
        )
        values = [
            Number(
                k,
                tuple(next(locals_) for _ in t.leaves("", k)),
                open=is_open and signature.results is None,
            )
            for k in lowered.results
        ]
        if not values:
            raise caller.error(
                f"{function.__name__} returns nothing",
                node,
                found="a call without effect",
                wanted="a helper that returns a value",
            )
        return values[0] if len(values) == 1 else Several(tuple(values))

    def _lowered(
        self, caller: Scope, signature: Signature, values: dict[str, Value], node: ast.AST
    ) -> LoweredHelper:
        source = signature.source
        key = (source.function, *(_kind(a) for a in values.values()))
        if key not in self._done:
            if source.function in self._running:
                raise caller.error(
                    f"{source.name} calls itself", node, found="a recursive call", wanted="a loop"
                )
            self._done[key] = self._lower(caller, signature, values, node)
        return self._done[key]

    def _lower(
        self, caller: Scope, signature: Signature, values: dict[str, Value], node: ast.AST
    ) -> LoweredHelper:
        source = signature.source
        self._running.append(source.function)
        formal = {n: _formal(n, a) for n, a in values.items()}
        try:
            return self._lower_body(source, formal, signature.results, self.call)
        except CompileError as error:
            types = ", ".join(f"{n}: {_described(a)}" for n, a in values.items())
            raise error.in_call(f"{source.name}({types}) in {caller.location(node)}") from None
        finally:
            self._running.pop()


def _argument(caller: Scope, signature: Signature, name: str, value: Value, node: ast.AST) -> Value:
    """Coerce an argument to the helper's annotation.

    Without one a Python number stays weak, unless the helper assigns to it, and what has 8 or 16
    bits is as wide as in every other variable.
    """
    declared = signature.parameters.get(name)
    if name in signature.fields:
        if (
            isinstance(value, PopulationsReference)
            and value.field
            and value.type == signature.fields[name]
        ):
            return value
        wanted = f"a field of type {signature.fields[name]}"
        raise caller.error(
            f"the argument {name!r} does not fit", node, found=value.describe(), wanted=wanted
        )
    if name in signature.populations or (
        isinstance(value, PopulationsReference) and declared is not None
    ):
        return _populations(caller, name, signature.populations.get(name), declared, value, node)
    if isinstance(value, PopulationsReference) or _is_direction(value, declared):
        return value
    if isinstance(value, RecordReference):
        if declared is not None and declared != value.record:
            raise caller.error(
                f"the argument {name!r} is another record",
                node,
                found=value.describe(),
                wanted=_name(declared),
            )
        return value
    if not isinstance(value, Number) or isinstance(declared, Record):
        raise caller.error(
            f"the argument {name!r} does not fit",
            node,
            found=value.describe(),
            wanted=_name(declared)
            if declared
            else "a scalar, a vector, a record, populations or a direction",
            hint=f"one of its elements, such as {value.example}"
            if isinstance(value, ElementsReference)
            else "",
        )
    if declared:
        return coerce(caller, value, declared, node, f"the argument {name!r}")
    assigned = {
        n.id
        for n in ast.walk(signature.source.tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    if value.known and name not in assigned:
        return value
    return settle(value, t.computed(value.scalar))


def _populations(
    caller: Scope,
    name: str,
    scalar: t.Scalar | None,
    declared: Record | t.ValueType | None,
    value: Value,
    node: ast.AST,
) -> Value:
    """Populations for a parameter that says so; every other combination is refused."""
    if isinstance(value, PopulationsReference) and scalar == value.type and not value.field:
        return value
    asked = _name(declared) if declared else f"populations of type {scalar}"
    raise caller.error(
        f"the argument {name!r} does not fit", node, found=value.describe(), wanted=asked
    )


def _is_direction(value: Value, declared: Record | t.ValueType | None) -> bool:
    return (
        declared is None and isinstance(value, PythonObject) and isinstance(value.value, Direction)
    )


def _described(value: Value) -> str:
    match value:
        case RecordReference(record=record):
            return record.name
        case PopulationsReference(lattice=lattice):
            return f"{'a field' if value.field else 'populations'} of {lattice.name}"
        case Number() if value.known:
            return repr(value.constant) if value.constant is not None else _literal(value)
        case Number():
            return str(value.type)
        case _:
            return value.describe()


def _literal(value: Number) -> str:
    return f"({', '.join(map(str, literal_values(value)))})"


def _name(kind: Record | t.ValueType) -> str:
    return f"a record {kind.name}" if isinstance(kind, Record) else f"a value of type {kind}"


def _kind(value: Value) -> Any:
    if isinstance(value, RecordReference):
        return value.record
    if isinstance(value, PopulationsReference):
        return value.lattice, value.type, value.field
    if isinstance(value, PythonObject):
        return value.value
    assert isinstance(value, Number)
    return value.type, type(value.constant), _described(value), value.exact


def _formal(name: str, value: Value) -> Value:
    if isinstance(value, RecordReference):
        return formal_parameter(name, value.record, False)
    if isinstance(value, PopulationsReference):
        return replace(value, name=name, mutable=False)
    if isinstance(value, PythonObject):
        return value
    assert isinstance(value, Number)
    return value if value.known else formal_parameter(name, value.type, False)


@sealed()
class HelperFunction:
    """A function that kernels may call. Parameters without a type take the type of the argument."""

    __lanewise_function__ = True
    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function, updated=())

    @property
    def function(self) -> Callable[..., Any]:
        """The function, as it was written."""
        return self._function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __repr__(self) -> str:
        return f"<lanewise function {self.__name__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return by_name(self, (HelperFunction, (self.function,)))

    def __copy__(self) -> HelperFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> HelperFunction:
        return self


def function(python_function: Callable[..., Any]) -> HelperFunction:
    """Make a function a helper that kernels can call.

        @lw.function
        def squared(v):
            return lw.dot(v, v)

    Annotations are optional: without them the helper is compiled for the types of each call. It
    takes and returns numbers, vectors, records and tuples of them. In ordinary Python it is the
    function itself. Errors in it raise `CompileError` when a kernel that calls it is compiled.
    """
    return HelperFunction(plain_function("function", python_function))
