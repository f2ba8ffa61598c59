"""What random programs and plans could reach, and what of it they did: names as the campaign "kernels" counts them."""

from __future__ import annotations

from collections.abc import Mapping

from lanewise.ir.interpret import INTRINSICS
from lanewise.language import types as t
from tests.fuzz.plans import CHOICES, values_of
from tests.fuzz.programs import FLOATS, NUMBERS, WHOLE

STATEMENTS = ("Assign", "DeclareArray", "SetElement", "If", "For", "While", "Break", "Continue", "Return", "Apply")
LAYOUTS = ("AoS", "SoA", "AoAS", "SoAoAS", "AoSoA")


def nodes() -> set[str]:
    """Statements, operators, functions and conversions of the language, with the types that they are computed in."""
    found = set(STATEMENTS)
    for operators, kinds in (
        (("+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=", "Element"), NUMBERS), (("/",), FLOATS),
        (("&", "|", "^", "<<", ">>", "~"), WHOLE), (("&", "|", "^", "and", "or", "not"), (t.BOOL,)),
        (("Local", "Literal", "Select"), t.SCALARS),
    ):  # fmt: skip
        found |= {f"{o} {k}" for o in operators for k in kinds}
    for name, intrinsic in INTRINSICS.items():
        found |= {f"{name} {k}" for k in (NUMBERS if intrinsic.domain == "number" else FLOATS)}
    return found | {f"{a} to {b}" for a in t.SCALARS for b in t.SCALARS if a != b}


def decisions(kind: str) -> set[str]:
    """The values that random plans may take."""
    return {
        f"{kind} {o.field}={v}" for o in CHOICES for p in ("elementwise", "pairwise") for v in values_of(o, kind, p) if len(values_of(o, kind, p)) > 1
    }  # fmt: skip


def covered(counts: Mapping[str, int]) -> list[str]:
    """A line for each sort: how much was reached, and what was not."""
    sorts = {"node": nodes(), "layout": set(LAYOUTS), "plan": decisions("cpu") | decisions("cuda")}
    lines: list[str] = []
    for sort, possible in sorts.items():
        reached = {key.removeprefix(f"{sort} ") for key in counts if key.startswith(f"{sort} ")}
        never = sorted(possible - reached)
        lines.append(
            f"{sort}: {len(possible) - len(never)} of {len(possible)} reached"
            + (f"; never {', '.join(never)}" if never else "")
        )
    return lines
