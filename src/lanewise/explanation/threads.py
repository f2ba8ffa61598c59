"""The accesses of a threadwise kernel next to the lines that make them: what threads and rounds
share, what lies side by side.
"""

from __future__ import annotations

import linecache
from typing import Any

from lanewise.analysis.affine import AffineAccess, nest_of
from lanewise.analysis.passed_edges import EdgedAccess, edged_accesses
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_expression
from lanewise.ir.traverse import adds_in_order
from lanewise.patterns.plain_sums import bucket_sentence
from lanewise.support.errors import NOWHERE

WAYS = {
    "same": "broadcast",
    "next": "coalesced",
    "apart": "strided",
    "row": "strided by rows",
    "unknown": "gathered",
}
EDGES = {"wraps": "wraps along", "ends": "stays at the edges of"}


def body_function(reference: ir.Kernel) -> ir.Function:
    """The body of a kernel whose function was inlined, as a function."""
    _, body = nest_of(reference)
    return ir.Function(reference.name, (), (), body, reference.location)


def thread_accesses(reference: ir.Kernel) -> tuple[list[str], list[dict[str, Any]]]:
    """A text for each access, below the line of the source that makes it; and the same as facts."""
    indices, body = nest_of(reference)
    texts: list[str] = []
    facts: list[dict[str, Any]] = []
    last = 0
    for edged in edged_accesses(body, indices):
        a = edged.access
        where = a.statement.location
        if where != NOWHERE and where.line != last:
            last = where.line
            texts.append(f"line {where.line}: {linecache.getline(where.file, where.line).strip()}")
        facts.append(_facts(edged, indices))
        texts.append(_text(a, facts[-1]))
    if besides := bucket_sentence(reference):
        texts.append(f"  {besides}")
    return texts, facts


def _facts(edged: EdgedAccess, indices: tuple[str, ...]) -> dict[str, Any]:
    a, inner = edged.access, edged.inner
    loops = tuple(x.variable for x in a.loops if x.variable)
    return {
        "array": a.array,
        "place": f"{a.array}[{', '.join(print_expression(i) for i in a.statement.indices)}]",
        "line": a.statement.location.line,
        "written": a.is_store,
        "pattern": WAYS[inner.way(indices[-1])],
        "stride": inner.stride(indices[-1]),
        "edges": edged.edges,
        "shared": list(inner.reused(indices)),
        "rounds": list(inner.reused(loops)),
        "guards": [i for i in indices if i in a.guards],
        "scattered": a.is_scatter,
        "apart": a.keeps_apart(indices) if a.is_store and not a.is_scatter else None,
    }


def _text(a: AffineAccess, f: dict[str, Any]) -> str:
    pattern = f["pattern"] if f["pattern"] != "strided" else f"strided by {abs(f['stride'])}"
    parts = [
        f"{f['place']} {'scattered to' if a.is_scatter else 'written' if a.is_store else 'read'}",
        pattern,
    ]
    for edge, words in EDGES.items():
        if along := [i for i, kind in f["edges"].items() if kind == edge]:
            parts.append(f"{words} {' and '.join(along)}")
    if isinstance(a.statement, ir.ScatterElement) and a.statement.operation == "sum":
        parts.append("an exact sum in words next to the array, rounded once after the kernel")
    if adds_in_order((a.statement,)):
        parts.append("sums rounded one after the other, in an order that the plan fixes")
    if f["shared"] and not a.is_store:
        parts.append(f"shared by threads along {' and '.join(f['shared'])}")
    if f["rounds"]:
        parts.append(f"the same in rounds of {' and '.join(f['rounds'])}")
    if f["apart"] is False:
        parts.append("not proved to be written by one thread only")
    if f["guards"]:
        parts.append(f"under conditions on {' and '.join(f['guards'])}")
    return f"  {', '.join(parts)}"
