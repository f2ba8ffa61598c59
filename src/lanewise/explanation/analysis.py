"""What the function of a kernel does: operations, accesses, symmetry."""

from __future__ import annotations

from typing import Any

from lanewise.analysis.counts import count_operations
from lanewise.analysis.reciprocity import reciprocity
from lanewise.explanation.report import Analysis
from lanewise.explanation.subject import Subject
from lanewise.ir.functions import functions


def analyse(subject: Subject) -> Analysis:
    """The analysis as lines for people and as facts for programs."""
    function = list(functions(subject.naive.body).values())[-1]  # helpers come before their users
    operations = dict(sorted(count_operations(function).items()))
    lines = [("operations", ", ".join(f"{n} {name}" for name, n in operations.items()) or "none")]
    facts: dict[str, Any] = {"operations": operations}
    if subject.naive.pattern == "pairwise":
        target, source = list(subject.layouts)[:2]
        found = reciprocity(function, target, source)
        if isinstance(found, str):
            text, facts["symmetry"] = f"not known: {found}", {"known": False, "reason": found}
        else:
            shared = 2 * found.alone - found.together
            text = f"the two directions of a pair share {shared} of {found.alone} operations"
            facts["symmetry"] = {"known": True, "operations": found.alone, "shared": shared}
        lines.append(("third law", text))
    return Analysis(tuple(lines), facts)
