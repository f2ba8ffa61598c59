"""Where the reads of tables go, next to the lines that make them: what decides the place, and which
memory holds the table.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Mapping
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.ir.names import index_name, length_of
from lanewise.ir.printer import print_expression
from lanewise.ir.traverse import expressions, reads, statements, writes
from lanewise.language.target import target_of
from lanewise.models.devices import DeviceModel
from lanewise.support.errors import NOWHERE

NEAR = {True: (128 << 10, "cached next to the threads"), False: (32 << 10, "cached next to a core")}
"""The first-level cache by whether threads come in blocks, as on a GPU.

Its bytes, and what is said of it.
"""


def table_accesses(
    reference: ir.Kernel, environment: Mapping[str, Any], device: str, model: DeviceModel | None
) -> tuple[list[str], list[dict[str, Any]]]:
    """A text for each read of a table, below the line of the source that makes it; and the same as
    facts.
    """
    arrays = {a.name: a for a in reference.arrays}
    texts: list[str | dict[str, Any]] = []
    facts: list[dict[str, Any]] = []
    last = 0
    for f, arguments in _applied(reference):
        decided = _deciding(f, arguments, reference)
        places = {s.name: s for s in statements(f.body) if isinstance(s, ir.Assign)}
        for s in statements(f.body):
            if not isinstance(s, ir.LoadRecord) or length_of(s.array, 0) not in environment:
                continue
            assign = places[reads(s.index)[0]]
            names = decided(assign.value)
            pattern = (
                "gathered" if names["data"] else "by index" if names["indices"] else "broadcast"
            )
            shape = _shape(s.array, environment)
            size = math.prod(shape) * arrays[s.array].leaves[0].type.size
            where = assign.location
            fact = {
                "array": s.array,
                "place": f"{s.array}[{print_expression(assign.value)}]",
                "line": where.line,
                "written": False,
                "pattern": pattern,
                "by": sorted(names["data"] | names["indices"]),
                "shape": list(shape),
                "bytes": size,
                "held": _held(size, device, model),
                "times": 1,
            }
            before = next((x for x in facts if _alike(x, fact)), None)
            if before is not None:
                before["times"] += 1
                continue
            facts.append(fact)
            if where != NOWHERE and where.line != last:
                last = where.line
                texts.append(
                    f"line {where.line}: {linecache.getline(where.file, where.line).strip()}"
                )
            texts.append(fact)
    return [_text(x) if isinstance(x, dict) else x for x in texts], facts


def _alike(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether two reads are reported together: those of one interpolation are."""
    return all(a[name] == b[name] for name in ("array", "line", "pattern", "by"))


def _text(f: dict[str, Any]) -> str:
    by = f" by {', '.join(f['by'])}" if f["by"] else ": all elements read the same place"
    size = f"{f['bytes'] / 1024:,.0f} KiB" if f["bytes"] >= 10_240 else f"{f['bytes']:,} bytes"
    times = "" if f["times"] == 1 else f" {f['times']} times"
    return f"  table {f['array']} read{times}, {f['pattern']}{by}; {size}, {f['held']}"


def _held(size: int, device: str, model: DeviceModel | None) -> str:
    """Which memory answers most reads of a table of this size."""
    room, near = NEAR[target_of(device).has_blocks]
    if size <= room:
        return near
    shared = getattr(model, "l2_bytes", 0) or 0
    if shared and size <= shared:
        return "cached in L2"
    return (
        "beyond the caches that are counted on: each place is a read of memory"
        if not shared
        else "larger than L2: read from memory"
    )


def _shape(name: str, environment: Mapping[str, Any]) -> tuple[int, ...]:
    lengths = (environment.get(length_of(name, d)) for d in range(3))
    return tuple(int(n) for n in lengths if n is not None)


def _applied(reference: ir.Kernel) -> list[tuple[ir.Function, dict[str, ir.Expression]]]:
    """The functions that a kernel applies to its elements, with what they are given."""
    seen: dict[int, tuple[ir.Function, dict[str, ir.Expression]]] = {}  # by identity
    for s in statements(reference.body):
        if isinstance(s, ir.Apply):
            arguments = {p.name: a for p, a in zip(s.function.parameters, s.arguments, strict=True)}
            seen.setdefault(id(s.function), (s.function, arguments))
    return list(seen.values())


def _deciding(f: ir.Function, arguments: Mapping[str, ir.Expression], reference: ir.Kernel) -> Any:
    """What tells which fields and which indices of elements an expression of a function depends
    on.
    """
    shared = {p.name for p in (*reference.uniforms, *reference.counts)}
    varying = {n for n, a in arguments.items() if not shared.issuperset(reads(a))}
    made: dict[str, set[str]] = {}
    # a loop's variable, or what a branch decides, depends on what its lines read
    for s in statements(f.body):
        for name in writes(s):
            made.setdefault(name, set()).update(n for e in expressions(s) for n in reads(e))

    def decided(e: ir.Expression) -> dict[str, set[str]]:
        names: set[str] = set()
        waiting, met = list(reads(e)), set[str]()
        while waiting:
            name = waiting.pop()
            if name in met:
                continue
            met.add(name)
            if name in varying:
                names.add(name)
            waiting += made.get(name, ())
        indices = {n for n in names if n.startswith(index_name(""))}
        return {
            "data": names - indices,
            "indices": {f"lw.index_of({n.removeprefix(index_name(''))})" for n in indices},
        }

    return decided
