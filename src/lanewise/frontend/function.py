"""Lower a whole Python function to an IR `Function`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from lanewise.frontend.flat_tables import with_flat_tables
from lanewise.frontend.helpers import Helpers
from lanewise.frontend.scope import Inferred, NameUses, Retype, Scope
from lanewise.frontend.signature import Signature, read_signature
from lanewise.frontend.source import Source
from lanewise.frontend.statements import lower_block
from lanewise.frontend.values import (
    ElementsReference,
    PopulationsReference,
    RecordReference,
    RowReference,
    Value,
    formal_parameter,
    leaves_of,
)
from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name, own
from lanewise.ir.reductions import SUM, Reduction
from lanewise.ir.traverse import blocks, used_in, written_in
from lanewise.language import types as t
from lanewise.language.lattices.base import Lattice
from lanewise.support.errors import CompileError

__all__ = ["Lowered", "Signature", "lower_function", "read_signature"]

INDENTED = 97  # levels: Python reads 99, and the body of a function is one
DECISIONS = 5  # how often the type of one variable can change: wider twice, f64, closed, declared


@dataclass(frozen=True, slots=True)
class Lowered:
    """An IR function; `uses_same` tells that its last parameter is the flag `same`.

    numbered: the parameters whose indices it takes. indexed: of a function that reads tables or
    scatters, the same with an index for each dimension.
    reductions: of its results; none where all are sums.
    """

    function: ir.Function
    results: tuple[t.ValueType, ...]
    uses_same: bool
    numbered: tuple[str, ...] = ()
    indexed: ir.Function | None = None
    reductions: tuple[Reduction, ...] = ()

    @property
    def reduced(self) -> tuple[tuple[t.ValueType, Reduction], ...]:
        """The type of every result, and what becomes of it over all pairs: the sum, unless its
        annotation says otherwise.
        """
        return tuple(zip(self.results, self.reductions or (SUM,) * len(self.results), strict=True))


def lower_function(
    signature: Signature,
    *,
    mutable: str | None = None,
    lattice: Lattice | None = None,
    index: t.Scalar = t.I32,
    elements: frozenset[str] = frozenset(),
) -> Lowered:
    """Lower a kernel function.

    `index` is the type of the indices of threads and of the lengths of arrays.

    Tables have lengths of 32 bits. `elements`: the parameters that `lw.index_of` takes. `mutable`
    names the parameter, a record or populations, that may be assigned to; a function without one
    may use `lw.same`. `lattice` says which populations a sitewise function has: those called `f`
    become the parameters `f.q0`, `f.q1`, ... of the result, as far as they are used, before the
    others.
    """
    results = signature.results
    if results is None:
        _refuse_results(signature, mutable, lattice, index)
        results = []
    lowered = lower_body(
        signature.source,
        _formal_values(signature, mutable, lattice, index),
        results,
        Helpers(lower_body).call,
        same_allowed=mutable is None,
        indices=frozenset(signature.indices),
        elements=elements,
    )
    flat = with_flat_tables(lowered.function, signature.tables)
    if flat is not lowered.function or signature.scattered:
        lowered = replace(lowered, function=flat, indexed=lowered.function)
    sums = all(r == SUM for r in signature.reductions)
    return lowered if sums else replace(lowered, reductions=signature.reductions)


def _formal_values(
    signature: Signature, mutable: str | None, lattice: Lattice | None, index: t.Scalar
) -> dict[str, Value]:
    """What each parameter is within the function."""
    values: dict[str, Value] = {}
    if lattice is not None:
        for n, k in signature.populations.items():
            values[n] = PopulationsReference(n, lattice, k, n == mutable)
        for n, k in signature.fields.items():
            values[n] = PopulationsReference(n, lattice, k, False, field=True)
    for n, kind in signature.parameters.items():
        values[n] = formal_parameter(n, kind, n == mutable)
    values |= {n: RowReference(n, kind) for n, kind in signature.rows.items()}
    tables = signature.tables
    for n, kind in signature.arrays.items():
        values[n] = ElementsReference(n, kind, t.I32 if n in tables else index, n in tables)
    return values | {n: formal_parameter(n, index, False) for n in signature.indices}


def _refuse_results(
    signature: Signature, mutable: str | None, lattice: Lattice | None, index: t.Scalar
) -> None:
    """Raise `CompileError` where a function without a type of result returns something."""
    for n in ast.walk(signature.source.tree):
        if isinstance(n, ast.Return) and n.value is not None:
            raise signature.source.error(
                "the result has no type",
                n,
                found=ast.unparse(n),
                wanted=f"{result_annotation(signature, mutable, lattice, index)} after the "
                "parameters",
            )


def result_annotation(
    signature: Signature,
    mutable: str | None = None,
    lattice: Lattice | None = None,
    index: t.Scalar = t.I32,
) -> str:
    """What a function without a type of result lacks, as `-> lw.f32`: the type of what it
    returns, where that can be told.
    """
    try:
        lowered = lower_body(
            signature.source, _formal_values(signature, mutable, lattice, index), None,
            Helpers(lower_body).call, same_allowed=mutable is None,
            indices=frozenset(signature.indices), elements=frozenset(signature.parameters),
        )  # fmt: skip
    except CompileError:  # another mistake, which is reported once there is a type
        return "-> lw.f32 (or another type)"
    match [f"lw.{kind}" for kind in lowered.results]:
        case []:
            return "return and a type, such as -> lw.f32 or -> lw.vec3"
        case [kind]:
            return f"-> {kind}"
        case kinds:
            return f"-> tuple[{', '.join(kinds)}]"


def lower_body(
    source: Source,
    parameters: dict[str, Value],
    results: list[t.ValueType] | None,
    call_helper: Callable[..., Value],
    *,
    same_allowed: bool = False,
    indices: frozenset[str] = frozenset(),
    elements: frozenset[str] = frozenset(),
) -> Lowered:
    """Lower the statements of a function, again and again until the types of its variables are
    found.
    """
    inferred, names = Inferred(), _names(source)
    for _ in range(DECISIONS * (len(names.assignments) + 1)):
        scope = Scope(
            source,
            parameters,
            list(results) if results is not None else None,
            call_helper,
            inferred,
            names,
            same_allowed,
            indices,
            elements,
        )
        if results is None and inferred.results is not None:
            scope.result_types = [x[0] for x in inferred.results]
            scope.results_open = [x[1] for x in inferred.results]
        scope.variables = dict(inferred.variables)
        scope.defined = set(parameters)
        try:
            return _finish(scope, lower_block(scope, source.tree.body))
        except Retype:
            continue
        except RecursionError as error:
            raise source.error(
                "this function is nested too deeply",
                source.tree,
                found="more expressions one inside the other than Python's stack holds",
                wanted="shorter expressions",
                hint="a loop, a helper, or variables for parts of it",
            ) from error
    raise source.error(
        "the types of the variables of this function do not settle",
        source.tree,
        hint="declare them: x: lw.f32 = 0",
    )


def _indentation(block: ir.Block) -> int:
    """How deep blocks lie in blocks; a branch that is all of an `else` is no deeper than the branch
    that it belongs to.
    """
    deepest = 0
    for s in block:
        chain: ir.Statement | None = s
        while chain is not None:
            sides = blocks(chain)
            last: ir.Block = sides[-1] if sides else ()
            first = next(iter(last), None)
            follows = isinstance(chain, ir.If) and len(last) == 1 and isinstance(first, ir.If)
            inner = [_indentation(b) + 1 for b in (sides[:-1] if follows else sides) if b]
            deepest = max([deepest, *inner])
            chain = first if follows else None
    return deepest


def _names(source: Source) -> NameUses:
    """How often each name is assigned in the text, and which are loop variables."""
    tree = source.tree
    loops = frozenset(
        n.target.id
        for n in ast.walk(tree)
        if isinstance(n, ast.For) and isinstance(n.target, ast.Name)
    )
    counts: dict[str, int] = {}
    for n in ast.walk(tree):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id not in loops:
            counts[n.id] = counts.get(n.id, 0) + 1
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            counts[n.target.id] = counts.get(n.target.id, 0) + 1
    return NameUses(counts, loops, source.names())


def _finish(scope: Scope, end_reached: bool) -> Lowered:
    """Close the function: check that it returns, and keep the parameters that it uses."""
    source = scope.source
    results = scope.result_types or []
    body = tuple(scope.block)
    if (depth := _indentation(body)) > INDENTED:
        raise source.error(
            "this function is nested too deeply",
            source.tree,
            found=f"{depth} branches, loops and conditional expressions one inside the other",
            wanted=f"at most {INDENTED}, besides `elif`",
            hint="a loop, a helper for a part of it, or values in a local array",
        )
    if results and end_reached:
        raise CompileError(
            f"{source.name} can end without a return",
            source.location(source.tree.body[-1]),
            found="a path that reaches the end",
            wanted=f"return a value of type {', '.join(map(str, results))} on every path",
        )
    written = written_in(body)
    used = used_in(body)
    parameters: list[ir.Parameter] = []
    for parameter, value in scope.parameters.items():
        for leaf, e in leaves_of(parameter, value):
            if leaf in used or leaf in written:
                reference = isinstance(value, (RecordReference, PopulationsReference))
                parameters.append(ir.Parameter(leaf, e.type, leaf in written and reference))
    numbered = tuple(n for n in scope.numbered if index_name(n) in used)
    parameters += [ir.Parameter(index_name(n), t.I32) for n in numbered]
    if scope.uses_same:
        parameters.append(ir.Parameter(own("same"), t.BOOL))
    names = ["result"] if len(results) == 1 else [f"result{i}" for i in range(len(results))]
    outputs = tuple(
        ir.Parameter(leaf, t.scalar_of(k))
        for n, k in zip(names, results, strict=True)
        for leaf in t.leaves(n, k)
    )
    function = ir.Function(
        source.name, tuple(parameters), outputs, body, source.location(source.tree)
    )
    return Lowered(function, tuple(results), scope.uses_same, numbered)
