"""What a kernel does: operations of its function, accesses by field and role, instructions by unit,
reuse, symmetry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanewise.analysis.access import field_accesses, reuse
from lanewise.analysis.both_ways import both_ways
from lanewise.analysis.instructions import count_operations
from lanewise.analysis.lanes_of_loops import kept_loops
from lanewise.analysis.regions import KernelWork
from lanewise.analysis.simd_operations import scalar_calls
from lanewise.compiler.pipeline import Program
from lanewise.explanation.partitions import partition_facts
from lanewise.explanation.report import Analysis
from lanewise.explanation.subject import Subject
from lanewise.explanation.tables import table_accesses
from lanewise.explanation.threads import body_function, thread_accesses
from lanewise.explanation.timeline import timeline_facts
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.series import typical
from lanewise.language.target import target_of
from lanewise.models.predict import Analyses
from lanewise.passes import normal_form

# The units of a machine, and the kinds of instructions that they execute (`analysis.instructions`).
UNITS = {
    "fp32": ("fp32 add", "fp32 mul", "fp32 fma"),
    "fp64": ("fp64 add", "fp64 mul", "fp64 fma"),
    "special": ("special",),
    "integer": ("integer", "compare", "select", "extreme"),
    "conversion": ("conversion", "wide conversion"),
    "shared memory": ("shared load", "shared store"),
    "global memory": ("global load", "global store"),
    "control": ("branch", "barrier", "shuffle"),
}

SHARED = 1.5  # uses of a loaded byte, from which on it is worth a line


def analyse(subject: Subject, program: Program, analyses: Analyses) -> Analysis:
    """The analysis as lines for people and as facts for programs. analyses: the work of kernels
    that is known.
    """
    inlined = subject.reference.pattern.inlined
    called = functions(subject.reference.body)
    # helpers come before their users
    function = called[-1] if called and not inlined else body_function(subject.reference)
    operations = dict(sorted(count_operations(function).items()))
    lines = [("operations", ", ".join(f"{n} {name}" for name, n in operations.items()) or "none")]
    if target_of(subject.device).host_memory:
        every = called if not inlined else [*called, function]
        lines += [("scalar", text) for text in scalar_calls(every)]
        if not inlined:
            which = "pairs" if subject.reference.pattern.over_pairs else "elements"
            lines += [("scalar", text) for text in kept_loops(called, which)]
    texts, rows = (
        thread_accesses(subject.reference)
        if inlined
        else _accesses(subject.reference, subject.environment)
    )
    of_tables, read = table_accesses(
        program.reference, subject.environment, subject.device, subject.model
    )
    texts, rows = [*texts, *of_tables], [*rows, *read]
    facts: dict[str, Any] = {"operations": operations, "accesses": rows}
    lines += [("accesses", text) for text in texts]
    if inlined and not target_of(subject.device).host_memory:
        of_blocks, facts["partitions"] = partition_facts(
            subject.reference, subject.environment, program.plan
        )
        lines += [("partitions", text) for text in of_blocks]
    normal = normal_form.apply(program.reference, target_of(subject.device), program.plan)
    if rewritten := normal_form.sentences(program.reference, normal):
        lines += [("as if written", text) for text in rewritten]
        facts["as_if_written"] = list(rewritten)
    fast = bool(program.plan.fast_math)
    works = [
        w
        for k in program.kernels
        for w in _launched(k, subject.environment, analyses, fast_math=fast)
    ]
    if inlined and subject.model is not None and subject.model.target.has_blocks:
        of_rounds, facts["timeline"] = timeline_facts(
            works[0], subject.model, program.plan.prefetch
        )
        lines += [("timeline", text) for text in of_rounds]
    pattern = subject.reference.pattern
    per = (
        "pair"
        if pattern.over_pairs
        else "cell"
        if pattern.over_items
        else "point"
        if inlined
        else "element"
    )
    units = instructions(works, _units_of_work(subject))
    facts["instructions"] = {"per": per, "units": units}
    lines.append(("instructions", _instruction_line(units, per)))
    if per == "pair":
        shared = {x.array: x.factor for x in reuse(works[0])}
        facts["reuse"] = shared
        lines += [
            ("reuse", f"a loaded byte of {n} is used {f:,.{0 if f >= 100 else 1}f} times")
            for n, f in shared.items()
            if f >= SHARED
        ]
        line, facts["symmetry"] = _symmetry(function, *list(subject.layouts)[:2])
        lines.append(("symmetry", line))
    return Analysis(tuple(lines), facts)


def _launched(
    kernel: ir.Kernel, environment: Mapping[str, Any], analyses: Analyses, *, fast_math: bool
) -> list[KernelWork]:
    """The work of each launch of a kernel; of a series each is taken for the one in the middle."""
    counts, launches = typical(kernel, environment) if kernel.series else (environment, 1)
    return [analyses.of(kernel, counts, fast_math=fast_math)] * launches


# ---------------------------------------------------------------- accesses, as the user wrote them


def _accesses(
    reference: ir.Kernel, environment: Mapping[str, Any]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Each field of each array: who it belongs to, whether it is read or written, how often in a
    launch.
    """
    rows = field_accesses(reference, environment)
    facts = [
        {
            "array": a.array.removeprefix("$"),
            "role": a.role,
            "field": a.field,
            "read": a.read,
            "written": a.written,
            "times": a.times if a.counted else None,
            "bytes": a.bytes,
            "pattern": a.pattern,
        }
        for a in rows
    ]
    groups: dict[tuple[str, str, float | None], list[str]] = {}
    for a in rows:
        array = a.array.removeprefix("$")
        # an array of values has no fields
        name = array if a.field in ("value", *"xyzw") else f"{array}.{a.field}"
        way = "read and written" if a.read and a.written else "read" if a.read else "written"
        groups.setdefault((a.array, way, a.times if a.counted else None), []).append(name)
    texts = [
        f"{', '.join(dict.fromkeys(names))} {way} {_often(times)}"
        for (_, way, times), names in groups.items()
    ]
    return texts, facts


def _often(times: float | None) -> str:
    if times is None:
        return "in loops as long as data tell"
    return "once" if times == 1 else f"{times:,.0f} times"


# -------------------- instructions, as the plan has them


def _units_of_work(subject: Subject) -> float:
    """Pairs or elements of the launch."""
    counts = list(subject.counts.values())
    return (
        float(counts[0] * counts[1]) if subject.reference.pattern.over_pairs else float(counts[0])
    )


def instructions(works: list[KernelWork], pieces: float) -> dict[str, float]:
    """Instructions of every unit for one pair or element, on average over the launch, all kernels
    together.
    """
    total: dict[str, float] = dict.fromkeys(UNITS, 0.0)
    for w in works:
        for unit, kinds in UNITS.items():
            total[unit] += sum(w.instructions[k] for k in kinds) * w.blocks * w.threads
    return {unit: n / pieces for unit, n in total.items() if n}


def _instruction_line(units: dict[str, float], per: str) -> str:
    parts = ", ".join(
        f"{n:.3g} {unit}" for unit, n in sorted(units.items(), key=lambda x: -x[1]) if n >= 0.005
    )
    return f"{sum(units.values()):.4g} per {per}: {parts}"


def _symmetry(function: ir.Function, target: str, source: str) -> tuple[str, dict[str, Any]]:
    both = both_ways(function, target, source)
    if isinstance(both, str):
        return f"not known: {both}", {"known": False, "reason": both}
    shared = 2 * both.alone - both.together
    text = f"the two directions of a pair share {shared} of {both.alone} operations"
    return text, {"known": True, "operations": both.alone, "shared": shared}
