"""Give every live value of a kernel to its region: instructions, addresses, registers, the longest chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lanewise.analysis.instructions import contracted, mix, node_cost
from lanewise.analysis.region import Region
from lanewise.analysis.region_values import Values
from lanewise.analysis.sequences import latency_of
from lanewise.ir import nodes as ir

Addresses = Mapping[int, list[tuple[Region, str]]]  # by the number of an index, who accesses which buffer with it
_NOT_COMPUTED = frozenset({"leaf", "literal", "negate", "cast"})


def settle(values: Values, addresses: Addresses, buffers: Mapping[str, ir.BufferArgument], *, fast_math: bool) -> None:
    """Add to the regions what their live values cost."""
    _Settling(values, addresses, buffers, fast_math).run()


class _Settling:
    def __init__(
        self, values: Values, addresses: Addresses, buffers: Mapping[str, ir.BufferArgument], fast_math: bool
    ) -> None:
        self.values, self.table, self.homes = values, values.table, values.homes
        self.addresses, self.buffers, self.fast_math = addresses, buffers, fast_math
        self.live = self.table.below({*values.roots, *addresses})
        self.gone = contracted(self.table, self.live, {n: id(self.homes[n]) for n in self.live})
        self.costs: dict[int, Counter[str]] = {}

    def run(self) -> None:
        used_as_value = self.table.below(set(self.values.roots))
        for n in self.live:
            home, cost = self.homes[n], self.cost(n)
            if n not in used_as_value and self.table.nodes[n].type.is_integer:
                cost = self.address_cost(n, home, cost)
            self.add(home, cost)
            self.note_operation(n, home)
        seen: set[tuple[int, str, int]] = set()
        for number, uses in self.addresses.items():
            for buffer in dict.fromkeys(b for _, b in uses):
                self.pointer(number, buffer, seen)
        for region in self.values.top.walk():
            region.instructions += mix(self.costs.get(id(region), {}))
            region.words, region.latency = self.words(region), self.latency(region)

    def cost(self, n: int) -> dict[str, float]:
        return node_cost(self.table, n, self.gone, fast_math=self.fast_math)

    def add(self, home: Region, cost: Mapping[str, float]) -> None:
        self.costs.setdefault(id(home), Counter()).update(cost)

    def address_cost(self, n: int, home: Region, cost: dict[str, float]) -> dict[str, float]:
        """A constant distance is part of the access; what moves on with a loop is added once for each unrolled turn."""
        node = self.table.nodes[n]
        if node.operation in ("+", "-") and any(self.table.nodes[o].operation == "literal" for o in node.operands):
            return {}
        return {k: c / home.unroll for k, c in cost.items()} if home.is_loop else cost

    def pointer(self, number: int, buffer: str, seen: set[tuple[int, str, int]]) -> None:
        """An address in global memory has 64 bits: made once for each buffer and base, moved on with the loop."""
        if self.buffers[buffer].space != "global":
            return
        base = self.base(number)
        home = self.homes[base]
        if (key := (id(home), buffer, base)) not in seen:
            seen.add(key)
            self.add(home, {"integer": 2 / home.unroll if home.role == "loop over sources" else 1.0})

    def base(self, number: int) -> int:
        """A place without the constant distances that are added to it."""
        node = self.table.nodes[number]
        if node.operation in ("+", "-"):
            for constant, other in (node.operands, node.operands[::-1]):
                if self.table.nodes[constant].operation == "literal":
                    return self.base(other)
        return number

    def note_operation(self, n: int, home: Region) -> None:
        """Operations of floats as they are written, for units that do them in one instruction."""
        node = self.table.nodes[n]
        if n in self.gone or not node.type.is_float or node.operation in _NOT_COMPUTED:
            return
        fused = node.operation in ("+", "-") and any(o in self.gone for o in node.operands)
        key = ("fused" if fused else node.operation, node.type.size)
        home.operations[key] = home.operations.get(key, 0.0) + 1

    def words(self, region: Region) -> int:
        """Values of enclosing regions that an innermost loop reads, and those that it carries: registers while it runs."""
        if not region.is_loop or any(r.is_loop for r in region.walk()[1:]):
            return 0
        inside = {n for n in self.live if self.homes[n].inside(region)}
        read = {o for n in inside for o in self.table.nodes[n].operands}
        held = (self.table.nodes[n] for n in (read - inside) | (inside & self.values.carried))
        return sum(max(1, n.type.size // 4) for n in held if n.operation != "literal")

    def latency(self, region: Region) -> float:
        """The longest chain of its own values.

        A slow path that a value may take (division, roots) keeps a compiler from interleaving: chains that share none of
        them follow each other.
        """
        ends: dict[int, tuple[float, float]] = {}  # cycles, and branches on the way
        branches = 0.0
        for n in sorted(x for x in self.live if self.homes[x] is region):
            cost = self.cost(n)
            own = cost.get("branch", 0.0)
            branches += own
            before = max((ends.get(o, (0.0, 0.0)) for o in self.table.nodes[n].operands), default=(0.0, 0.0))
            ends[n] = (before[0] + latency_of(cost), before[1] + own)
        cycles, passed = max(ends.values(), default=(0.0, 0.0))
        return cycles * (max(1.0, branches / passed) if passed else 1.0)
