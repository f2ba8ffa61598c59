"""How often a byte that was loaded from global memory is used before it is loaded again."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.analysis.access import layout_traffic
from lanewise.analysis.regions import KernelWork


@dataclass(frozen=True, slots=True)
class Reuse:
    """`wanted` bytes by all applications of the kernel's functions, `loaded` bytes by its loads of global memory."""

    array: str
    wanted: float
    loaded: float

    @property
    def factor(self) -> float:
        """Uses of each loaded byte: 1 without any reuse."""
        return self.wanted / self.loaded if self.loaded else 0.0


def reuse(work: KernelWork) -> tuple[Reuse, ...]:
    """The reuse of every array that a lowered kernel reads from global memory.

    Each application of the user's function wants the leaves of every array that the kernel reads of it. What shared
    memory and registers keep for more than one application is loaded once: a source staged for a block by as many as
    the block has targets.
    """
    lanes = min(32, work.threads)
    warps = work.blocks * -(-work.threads // 32)
    applications = sum(r.executions * r.applications for r in work.regions) * warps * lanes
    record: dict[str, dict[str, int]] = {}
    arrays = {b.name: b for b in work.kernel.buffers}
    for r in work.regions:
        for a in r.accesses:
            if a.space == "global" and not a.write:
                b = arrays[a.buffer]
                slots = record.setdefault(b.array, {})
                for name in a.names:
                    if name:
                        slots[name.partition("#")[0].rpartition(".staged")[2]] = b.type.size
    rows: list[Reuse] = []
    for t in layout_traffic(work):
        if t.array in record and applications:
            leaves: dict[str, int] = {}
            for name, size in record[t.array].items():
                leaves[_leaf(name)] = size
            rows.append(Reuse(t.array, applications * sum(leaves.values()), t.useful))
    return tuple(rows)


def _leaf(name: str) -> str:
    """A variable without the array or stage that it was loaded for: `position.x` of `$staged.position.x`."""
    return name.partition(".")[2] or name
