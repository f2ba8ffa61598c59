"""What a gradient is taken by: names such as "position", "source.mass" or "softening2", found
among the parameters of a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name
from lanewise.ir.reductions import SUM
from lanewise.ir.traverse import expressions, statements, subexpressions
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.support.articles import an
from lanewise.support.attributes import near
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError, CompileError

COTANGENT = "cotangent"


@dataclass(frozen=True, slots=True)
class Variable:
    """One name that was requested.

    records: the record parameters that it is a field of and that the function reads it of, none for
    a parameter that is a value itself.
    """

    name: str
    kind: t.ValueType
    records: tuple[str, ...]
    field: str

    def leaves(self, record: str = "") -> tuple[str, ...]:
        """The scalars of it, as parameters of the typed function; `record`: of that one."""
        return t.leaves(f"{record}.{self.field}" if record else self.field, self.kind)


def names_of(kernel: str, wrt: Any) -> tuple[str, ...]:
    """The names that were requested; raises `ArgumentError` for anything else, for none and for one
    that comes twice.
    """
    try:
        names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    except Exception:  # no sequence, or one of the user's class that fails
        names = ()
    if not names or not all(isinstance(n, str) for n in names):
        raise ArgumentError(
            f'{kernel}.gradient: wrt is a name or several, such as wrt="position" or '
            f'wrt=("position", "mass"), found {shown(wrt)}'
        )
    if len(set(names)) < len(names):
        raise ArgumentError(f"{kernel}.gradient: wrt has a name twice: {', '.join(names)}")
    return names


def variables(names: Iterable[str], signature: Signature, lowered: Lowered) -> tuple[Variable, ...]:
    """What the names stand for.

    Raises `ArgumentError` for unknown or unread ones, `CompileError` for integers.
    """
    check_results(signature, lowered)
    return tuple(_variable(n, signature, lowered) for n in names)


def check_results(signature: Signature, lowered: Lowered) -> None:
    """Raise `CompileError` for functions that return nothing, no float, or no sums, and for those
    that read tables or indices.
    """
    source = signature.source
    if any(reduction != SUM for _, reduction in lowered.reduced):
        annotation = source.tree.returns or source.tree
        raise source.error(
            f"{source.name} has no gradient: a result is no sum over pairs",
            annotation,
            found=ast.unparse(annotation),
            wanted="sums, whose annotations are plain types: -> lw.f32, -> lw.vec3, ...",
            hint="write a pairwise function that returns the sums alone, and take its gradient",
        )
    if not lowered.results or any(p.mutable for p in lowered.function.parameters):
        raise source.error(
            f"{source.name} has no gradient: it changes its record in place",
            source.tree,
            found="assignments to fields",
            wanted="a function that returns what it computes",
        )
    if not any(t.scalar_of(k).is_float for k in lowered.results):
        raise source.error(
            f"{source.name} has no gradient: its results are integers or booleans",
            source.tree.returns or source.tree,
            found=", ".join(map(str, lowered.results)),
            wanted="at least one float among the results",
        )
    _check_elements_alone(signature, lowered)


def _check_elements_alone(signature: Signature, lowered: Lowered) -> None:
    """Raise `CompileError` for functions that depend on more than fields and values: on tables, or
    on indices of elements.
    """
    source, wanted = signature.source, "a function of fields and values"
    for name in signature.arrays:
        parameter = next(a for a in source.tree.args.args if a.arg == name)
        body = () if lowered.indexed is None else lowered.indexed.body
        read = next(
            (
                s.location
                for s in statements(body)
                if isinstance(s, ir.LoadElement) and s.array == name
            ),
            None,
        )
        raise CompileError(
            f"{source.name} has no gradient: it {'reads' if read else 'takes'} a table",
            read or source.location(parameter),
            found=ast.unparse(parameter),
            wanted=wanted,
            hint=f"read {name} in a separate kernel, and pass what it gives as a field of a "
            "record (to an elementwise kernel also as an array)",
        )
    for name in lowered.numbered:
        values = (
            x
            for s in statements(lowered.function.body)
            for e in expressions(s)
            for x in subexpressions(e)
        )
        index = next(x for x in values if isinstance(x, ir.Local) and x.name == index_name(name))
        raise CompileError(
            f"{source.name} has no gradient: it asks for the index of an element",
            index.location,
            found=f"the index of {name}",
            wanted=wanted,
            hint="keep the index in a field of integers: number: lw.i32 (for an elementwise "
            "kernel also in an array)",
        )


def _variable(name: str, signature: Signature, lowered: Lowered) -> Variable:
    parameters, kernel = signature.parameters, signature.source.name
    records = {n: k for n, k in parameters.items() if isinstance(k, Record)}
    owner, dot, field = name.partition(".")
    if not dot or owner not in parameters:
        kind = parameters.get(name)
        if isinstance(kind, Record):
            raise ArgumentError(
                f"{kernel}.gradient: {name!r} is a record; name a field of it: "
                f"{', '.join(f'{name}.{f.name}' for f in kind)}"
            )
        if kind is not None:
            return _checked(Variable(name, kind, (), name), signature, lowered)
        owners, field = tuple(n for n, k in records.items() if k.field(name) is not None), name
        _check_field(kernel, name, records, name)
    else:
        _check_field(kernel, name, {owner: parameters[owner]}, field)
        owners = (owner,) if owner in records and records[owner].field(field) is not None else ()
    kinds = dict.fromkeys(f.type for n in owners if (f := records[n].field(field)) is not None)
    if not kinds:
        component = _component(name, signature)
        asked = f"; {component}" if component else near(name, _known(signature))
        raise ArgumentError(
            f"{kernel}.gradient: {name!r} is no field and no parameter{asked or ';'} wanted one of "
            f"{', '.join(_known(signature))}"
        )
    if len(kinds) > 1:
        types = (
            f"{n}.{field} is {an(f.type)}"
            for n in owners
            if (f := records[n].field(field)) is not None
        )
        raise ArgumentError(
            f"{kernel}.gradient: {name!r} is of different types: {', '.join(types)}"
        )
    return _checked(Variable(name, next(iter(kinds)), owners, field), signature, lowered)


def _check_field(
    kernel: str, name: str, records: Mapping[str, Record | t.ValueType], field: str
) -> None:
    """Refuse a record within a record, which has fields to name."""
    for owner, record in records.items():
        part = record.part(field) if isinstance(record, Record) else None
        if part is not None:
            of = name if name != field else f"{owner}.{name}"
            raise ArgumentError(
                f"{kernel}.gradient: {name!r} is a record; name a field of it: "
                f"{', '.join(f'{of}.{f.name}' for f in part)}"
            )


def _component(name: str, signature: Signature) -> str:
    """What to ask for instead of a component, whose vector may be named without its record."""
    whole, _, last = name.rpartition(".")
    vectors = [n for n, kind in _known(signature).items() if t.shape_of(kind)]
    named = whole in vectors or any(n.endswith(f".{whole}") for n in vectors)
    is_one = bool(whole) and len(last) == 1 and last in t.COMPONENTS and named
    return f"gradients are of whole vectors: wrt={whole!r};" if is_one else ""


def _known(signature: Signature) -> dict[str, Any]:
    """The types of what may be named, by name."""
    known: dict[str, Any] = {}
    for n, kind in signature.parameters.items():
        known |= {f"{n}.{f.name}": f.type for f in kind} if isinstance(kind, Record) else {n: kind}
    return known


def _checked(v: Variable, signature: Signature, lowered: Lowered) -> Variable:
    """The variable, of the records of which the function reads it."""
    source, scalar = signature.source, t.scalar_of(v.kind)
    if not scalar.is_float or scalar in t.STORED:
        where = v.records[0] if v.records else v.name
        argument: ast.AST = next(a for a in source.tree.args.args if a.arg == where)
        what = "a boolean" if scalar == t.BOOL else "an integer"
        what = "a float of 16 bits" if scalar.is_float else what
        raise source.error(
            f"{v.name} is {what}, which has no derivative",
            argument,
            found=f"{v.field}: {v.kind}"
            + (f" of {signature.parameters[where]}" if v.records else ""),
            wanted="a float: lw.f32, lw.vec3, lw.f64, ...",
            hint=f"derivatives exist with respect to {', '.join(_read(signature, lowered))}",
        )
    used = {p.name for p in lowered.function.parameters}
    reading = tuple(n for n in v.records if used & set(v.leaves(n)))
    if not (reading if v.records else used & set(v.leaves())):
        raise ArgumentError(
            f"{source.name}.gradient: {source.name} does not read {v.name}, so its derivative is "
            f"zero; it reads {', '.join(_read(signature, lowered)) or 'no floats'}"
        )
    return Variable(v.name, v.kind, reading, v.field)


def _read(signature: Signature, lowered: Lowered) -> list[str]:
    """What the function reads and a gradient could be taken by."""
    used = {p.name for p in lowered.function.parameters}
    kinds: dict[str, t.ValueType] = {}
    for n, kind in signature.parameters.items():
        kinds |= {f"{n}.{f.name}": f.type for f in kind} if isinstance(kind, Record) else {n: kind}
    return [
        n
        for n, k in kinds.items()
        if t.scalar_of(k) in (t.F32, t.F64) and used & set(t.leaves(n, k))
    ]


def cotangent_kinds(lowered: Lowered) -> dict[str, t.ValueType]:
    """The names and types of the cotangents, one for each result that is a float; `cotangent` where
    there is one result.
    """
    single = len(lowered.results) == 1
    named = ((COTANGENT if single else f"{COTANGENT}{n}", k) for n, k in enumerate(lowered.results))
    return {n: k for n, k in named if t.scalar_of(k).is_float}


def cotangent_leaves(lowered: Lowered) -> tuple[str | None, ...]:
    """The name of the cotangent of each scalar of the results; None for integers."""
    single = len(lowered.results) == 1
    names: list[str | None] = []
    for n, k in enumerate(lowered.results):
        leaves = t.leaves(COTANGENT if single else f"{COTANGENT}{n}", k)
        names += leaves if t.scalar_of(k).is_float else [None] * len(leaves)
    return tuple(names)


def cotangents_of(kernel: str, lowered: Lowered, cotangent: Any) -> dict[str, Any]:
    """The cotangents of a call by their names, zero for a result whose cotangent is None."""
    kinds = cotangent_kinds(lowered)
    if len(lowered.results) == 1:
        return {COTANGENT: cotangent}
    values = cotangent if isinstance(cotangent, tuple) else (cotangent,)
    if len(values) != len(lowered.results):
        raise ArgumentError(
            f"{kernel}.gradient: cotangent is a tuple with one entry for each of the "
            f"{len(lowered.results)} results "
            f"(None for one that does not count), found {shown(cotangent)}"
        )
    result: dict[str, Any] = {}
    for n, value in enumerate(values):
        name = f"{COTANGENT}{n}"
        if name in kinds:
            kind = kinds[name]
            zero = [0.0] * kind.length if isinstance(kind, t.Vector) else 0.0
            result[name] = zero if value is None else value
        elif value is not None:
            raise ArgumentError(
                f"{kernel}.gradient: result {n} is a {lowered.results[n]}, which has no "
                "derivative: its cotangent is None, "
                f"found {shown(value)}"
            )
    return result
