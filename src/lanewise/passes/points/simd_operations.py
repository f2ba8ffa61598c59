"""Which operations the lanes of SIMD registers do together on a CPU (runtime/simd.py has them)."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads, subexpressions

FUNCTIONS = frozenset(("min", "max", "clamp", "mix", "abs", "sqrt", "rsqrt", "floor", "ceil", "trunc", "exp", "fma"))


def problem(e: ir.Expression, varying: set[str]) -> str | None:
    """Why an expression whose value differs between lanes has no SIMD instructions here, or None."""
    for x in subexpressions(e):
        if varying.isdisjoint(reads(x)):
            continue
        match x:
            case ir.Element() | ir.Builtin():
                return "it indexes arrays of its own"
            case ir.Call():
                if x.intrinsic not in FUNCTIONS:
                    return f"lw.{x.intrinsic} takes one number after the other"
                if x.intrinsic == "exp" and x.type.size != 4:
                    return "lw.exp of float64 takes one number after the other"
            case ir.Binary(operator="//" | "%" as operator):
                by = x.right.value if isinstance(x.right, ir.Literal) else 0
                if by <= 0 or int(by) != by or int(by) & (int(by) - 1):
                    return f"{operator} by what is no power of two takes one number after the other"
            case ir.Binary(operator="<<" | ">>"):
                by = x.right.value if isinstance(x.right, ir.Literal) else -1
                if not 0 <= by < 8 * x.type.size:
                    return "shifts by more than a number of bits take one number after the other"
            case _:
                pass
    return None
