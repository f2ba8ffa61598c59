"""Which operations the lanes of SIMD registers do together on a CPU; `emit/llvm_vectors.py` has
them.
"""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import blocks, expressions, reads, statements, subexpressions, writes
from lanewise.language.types import BOOL
from lanewise.runtime.mathematics import library as mathematics

FUNCTIONS = frozenset(
    ("min", "max", "clamp", "mix", "abs", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round", "fma")
) | frozenset(mathematics.FUNCTIONS)

PREDICATES = frozenset(("isnan", "isinf", "isfinite"))


def counts_apart(s: ir.For) -> str:
    """Why lanes cannot go round a loop together whose variable differs between them."""
    return (
        f"{s.variable} is the variable of a loop, and has values elsewhere that differ between "
        "lanes"
    )


def why_not_together(s: ir.Statement) -> str:
    """Why lanes cannot run a statement of this kind together."""
    match s:
        case ir.Break():
            what = "a loop is left early by break"
        case ir.Continue():
            what = (
                "rounds of a loop end early by continue (a branch around the rest of a round would "
                "do)"
            )
        case ir.While():
            what = "how often a while loop runs differs"
        case ir.DeclareArray() | ir.SetElement():
            what = "it has local arrays"
        case ir.Apply():
            what = f"it calls {s.function.name}, which takes the numbers of one thread"
        case _:
            what = f"it has a {type(s).__name__}"
    return f"{what}, and lanes run together"


def problem(
    e: ir.Expression, varying: set[str], *, once: bool = False, arrays: bool = False
) -> str | None:
    """Why an expression whose value differs between lanes has no SIMD instructions here, or None.

    once: its value is the same in all lanes after all, though the analysis does not see it, and is
    computed in one of them. arrays: whether lanes have local arrays, of which all of them touch the
    same place.
    """
    for x in subexpressions(e):
        if varying.isdisjoint(reads(x)):
            continue
        if arrays and isinstance(x, ir.Element) and varying.isdisjoint(reads(x.index)):
            continue
        if isinstance(x, ir.Element | ir.Builtin):
            return "it indexes local arrays"
        if not once and (reason := no_instruction(x)):
            return reason
    return None


def scalar_calls(functions: Iterable[ir.Function]) -> list[str]:
    """The functions that a CPU takes of one number after the other, with their lines: loops that
    call them have no lanes.
    """
    lines: dict[str, dict[int, None]] = {}
    for f in functions:
        for s in statements(f.body):
            for x in (x for e in expressions(s) for x in subexpressions(e)):
                if isinstance(x, ir.Call) and x.intrinsic not in FUNCTIONS | PREDICATES:
                    lines.setdefault(x.intrinsic, {})[x.location.line] = None
    return [
        f"lw.{name}, line{'s' * (len(found) > 1)} {', '.join(map(str, found))}: one number after "
        "the other, and no lanes for the loop around it"
        for name, found in lines.items()
    ]


def array_problem(body: ir.Block, varying: set[str], inside: ir.Block | None = None) -> str | None:
    """Why lanes cannot have the local arrays of a thread, or None. inside: a branch of it."""
    for s in body if inside is None else inside:
        match s:
            case ir.DeclareArray() if s.type.element == BOOL:
                return f"the array {s.name} holds booleans, which take a bit each in a register"
            case ir.DeclareArray() if inside is not None and _uses(body, s.name) != _uses(
                inside, s.name
            ):
                return f"the array {s.name} is made in a branch and used outside of it"
            case ir.SetElement() if not varying.isdisjoint(reads(s.index)):
                return f"lanes touch different places of {s.array}, a local array"
            case _:
                pass
        for b in blocks(s):
            if reason := array_problem(body, varying, b):
                return reason
    return None


def _uses(block: ir.Block, name: str) -> int:
    return sum(
        name in writes(s) or any(name in reads(e) for e in expressions(s))
        for s in statements(block)
    )


def no_instruction(x: ir.Expression) -> str | None:
    """Why an operation takes one number after the other, or None."""
    match x:
        case ir.Call():
            if x.intrinsic not in FUNCTIONS:
                return f"lw.{x.intrinsic} takes one number after the other"
        case ir.Binary(operator="//" | "%" as operator):
            if x.type.is_float:
                return f"{operator} of floats takes one number after the other"
            by = int(x.right.value) if isinstance(x.right, ir.Literal) else 0
            if by <= 0 or by & (by - 1):
                return f"{operator} by anything but a power of two takes one number after the other"
        case ir.Binary(operator="<<" | ">>"):
            by = x.right.value if isinstance(x.right, ir.Literal) else -1
            if not 0 <= by < 8 * x.type.size:
                return (
                    "shifts by anything but a constant less than the number of bits take one "
                    "number after the other"
                )
        case _:
            pass
    return None
