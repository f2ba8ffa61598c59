"""What a step of sites computes and moves, as lines and as facts of its explanation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from lanewise.analysis.instructions import count_operations
from lanewise.analysis.lanes_of_loops import (
    keeps_elements_apart,
    kept_loops,
    outer_loops,
    rounds_of,
)
from lanewise.analysis.regions import analyse
from lanewise.analysis.simd_operations import scalar_calls
from lanewise.explanation.report import Analysis
from lanewise.explanation.subject import Subject
from lanewise.ir import nodes as ir
from lanewise.ir.functions import functions
from lanewise.ir.traverse import statements
from lanewise.language import types as t
from lanewise.language.target import target_of
from lanewise.models.devices import DeviceModel
from lanewise.models.roofline import ASSUMED, RooflineBound, SiteTraffic, step_time
from lanewise.patterns.sitewise.flags import SECTOR
from lanewise.patterns.sitewise.steppers import LONG_RUN
from lanewise.planning.plan import CompletePlan
from lanewise.support.numerals import counted


def analyse_step(subject: Subject) -> Analysis:
    """Operations of the function of each kind, what a site moves, and what the prediction takes for
    granted.
    """
    traffic = subject.traffic
    assert traffic is not None
    operations = {
        f.name: dict(sorted(count_operations(f).items())) for f in kinds(subject.reference)
    }
    lines = [("sites", subject.box)]
    for name, counts in operations.items():
        lines.append(
            ("operations", f"{name}: {', '.join(f'{n} {o}' for o, n in counts.items()) or 'none'}")
        )
    if target_of(subject.device).host_memory:
        called = functions(subject.reference.body)
        texts = [*scalar_calls(called), *kept_loops(called, "sites")]
        lines += [("scalar", text) for text in texts]
    rows = accesses(subject.reference, traffic)
    lines += [("accesses", text) for text, _ in rows]
    each = traffic.nbytes / traffic.fluid if traffic.fluid else None
    lines.append(("bytes", _bytes_text(traffic, each)))
    if traffic.dense:
        runs = (
            f"in runs of at least {counted(-(-LONG_RUN // traffic.sites), 'step', 'steps')}, as "
            "many sites are passed over"
        )
        lines.append(
            ("loads", f"{SECTOR} bytes at a time, half of what a GPU loads by itself, {runs}")
        )
    lines += [("assumed", text) for text in ASSUMED]
    facts: dict[str, Any] = {
        "operations": operations, "accesses": [fact for _, fact in rows], "bytes_per_site": each,
        "special_sites": traffic.special, "updated_sites": traffic.fluid, "assumed": list(ASSUMED),
    }  # fmt: skip
    return Analysis(tuple(lines), facts)


def _bytes_text(traffic: SiteTraffic, each: float | None) -> str:
    if each is None:
        return f"{traffic.nbytes:,.0f} per step, about sites that are skipped: no site is updated"
    return f"{each:.1f} per step and updated site"


def kinds(reference: ir.Kernel) -> list[ir.Function]:
    """The functions of the kinds of sites, kind 0 first."""
    applied = (s.function for s in statements(reference.body) if isinstance(s, ir.Apply))
    return list({f.name: f for f in applied}.values())


def operations_of(reference: ir.Kernel) -> tuple[int, bool]:
    """How many operations the function of kind 0 has, those of loops in every round, and whether
    they are in float64.
    """
    main = kinds(reference)[0]
    return _operations(main, main.body), any(p.type == t.F64 for p in main.parameters)


SITES = 1024  # of which the work of one is looked at
SURE = ("add", "mul", "fma")


def sure_operations(reference: ir.Kernel, *, wide: bool) -> float:
    """Instructions of float32 or float64 that every site takes: products and sums that join count
    as one, what is written twice counts once, and what data decide is left out.
    """
    work = analyse(reference, {c.name: SITES for c in reference.counts}, least=True)
    return sum(work.instructions[f"fp{64 if wide else 32} {kind}"] for kind in SURE)


def _operations(function: ir.Function, body: ir.Block) -> int:
    once = sum(count_operations(replace(function, body=body)).values())
    return once + sum(
        int(rounds_of(loop) - 1) * _operations(function, loop.body)
        for loop in outer_loops(body)
        if math.isfinite(rounds_of(loop))
    )


def predicted_step(
    reference: ir.Kernel,
    plan: CompletePlan,
    traffic: SiteTraffic,
    device: str,
    model: DeviceModel,
) -> tuple[RooflineBound, RooflineBound, float] | None:
    """The `step_time` of a kernel; None where the model of steps does not hold."""
    if not _is_foreseen(reference, device):
        return None
    operations, wide = operations_of(reference)
    sure = sure_operations(reference, wide=wide)
    return step_time(traffic, operations, wide, model, plan.targets or 1, sure)


def _is_foreseen(reference: ir.Kernel, device: str) -> bool:
    """Whether the text says how often the loops of the functions turn, and on a CPU they keep no
    sites apart.
    """
    host = target_of(device).host_memory
    return not any(
        isinstance(s, ir.While)
        or (
            isinstance(s, ir.For)
            and (not math.isfinite(rounds_of(s)) or (host and keeps_elements_apart(s)))
        )
        for f in functions(reference.body)
        for s in statements(f.body)
    )


def accesses(reference: ir.Kernel, traffic: SiteTraffic) -> list[tuple[str, dict[str, Any]]]:
    """Each array as a line and as a fact: how often it is read or written, and its bytes for a
    site.
    """
    f, rows = reference.arrays[0], list[tuple[str, dict[str, Any]]]()
    size = traffic.populations * traffic.storage

    def add(text: str, array: str, nbytes: float, times: int, *, written: bool = False) -> None:
        rows.append(
            (
                text,
                {"array": array, "read": True, "written": written, "times": times, "bytes": nbytes},
            )
        )

    kind = f"{traffic.populations} {f.leaves[0].type}"
    add(
        f"{f.name}: {kind} read and written by {traffic.fluid:,} sites",
        f.name,
        size,
        traffic.fluid,
        written=True,
    )
    if traffic.flags:
        add(f"flags: 4 bytes read by {traffic.sites:,} sites", "flags", 4, traffic.sites)
    if traffic.bits:
        add(
            f"marks: {traffic.bits} {'bits' if traffic.bits > 1 else 'bit'} read by "
            f"{traffic.sites:,} sites",
            "marks",
            traffic.bits / 8,
            traffic.sites,
        )
        add(
            f"flags: 4 bytes read by {traffic.special:,} special sites", "flags", 4, traffic.special
        )
    if traffic.values:
        add(
            f"values: {traffic.values} bytes read by {traffic.fluid:,} sites",
            "values",
            traffic.values,
            traffic.fluid,
        )
    return rows
