"""What the thesis says in words and tables of its searches: the figures beside those that are measured.

J. Breitbart, Case studies on GPU usage and data structure design, University of Kassel (2008), chapters 5 to 7: a GeForce 8800 GTS with
96 processors, an Athlon 64 3700+. Most of its measurements are drawn as curves without numbers; only what it states is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GPU = "GeForce 8800 GTS"
SOURCE = (
    f"J. Breitbart, Case studies on GPU usage and data structure design (2008), chapters 5 to 7, {GPU}; what it states in words and "
    "tables (its curves carry no numbers)"
)

ALL = "all pairs"
HOST, CONSTANT, DEVICE = "static grid, host", "static grid, constant memory", "static grid, device"
SORT, ONE, THREE, AROUND = (f"dynamic grid, {x}" for x in ("sort", "1-D", "3-D", "3-D around"))
EIGHT = (ALL, HOST, CONSTANT, DEVICE, SORT, ONE, THREE, AROUND)
"""Its eight searches, in its order."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A statement about one search. `agents` and `world` are None where it does not depend on them, or the thesis does not say.

    factor: over the rung that this one is compared with. steps: simulated in a second. idle: threads without an agent.
    """

    rung: str
    text: str
    where: str
    agents: int | None = None
    world: float | None = None
    factor: float | None = None
    steps: float | None = None
    idle: int | None = None


FIGURES = (
    Figure(HOST, "35 x all pairs", "chapter 7, footnote 1", 2**17, 200.0, factor=35.0),
    Figure(HOST, "> 5 steps/s", "section 7.4, figure 7.3", 2**18, 200.0, steps=5.0),
    Figure(HOST, "about 60 steps/s", "section 7.4, figure 7.3", 2**15, 200.0, steps=60.0),
    Figure(CONSTANT, "at most 1.02 x host", "section 6.2.3"),
    Figure(DEVICE, "slower than host", "section 6.3.2"),
    Figure(SORT, "slower than static grid", "section 7.3"),
    Figure(ONE, "slower than static grid", "section 7.3"),
    Figure(ONE, "11,152 idle", "table 7.1", 2**14, idle=11_152),
    Figure(THREE, "slower than static grid", "section 7.3"),
    Figure(THREE, "9,821 idle", "table 7.1", 2**14, idle=9_821),
    Figure(AROUND, "1.15 x static grid", "section 7.3, figure 7.3", 2**13, 200.0, factor=1.15),
    Figure(AROUND, "> 5 steps/s", "section 7.4, figure 7.3", 2**18, 200.0, steps=5.0),
)


def figures_of(rung: str, agents: int, world: float) -> tuple[Figure, ...]:
    """What the thesis says of this rung at this size."""
    return tuple(
        f for f in FIGURES if f.rung == rung and f.agents in (None, agents) and f.world in (None, world)
    )  # fmt: skip


def paper_of(rung: str, agents: int, world: float) -> Mapping[str, float] | None:
    """The thesis's factor over the rung that this one is compared with, by machine."""
    found = [f.factor for f in figures_of(rung, agents, world) if f.factor is not None]
    return {GPU: found[0]} if found else None


def as_extra(rung: str, agents: int, world: float) -> dict[str, float | int | str | None]:
    """All that it says, as extra numbers and words of the rung; None for what it does not say."""
    found = figures_of(rung, agents, world)
    return {
        "thesis": "; ".join(f.text for f in found) or None, "thesis_where": "; ".join(f.where for f in found) or None,
        "thesis_steps_per_second": next((f.steps for f in found if f.steps is not None), None),
        "thesis_idle_threads": next((f.idle for f in found if f.idle is not None), None),
    }  # fmt: skip
