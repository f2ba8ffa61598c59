"""The ladder `boids`: flocks of the thesis's rules over its eight searches and over ours.

Every rung simulates the same agents; only what finds their flockmates differs. A flock is a number
of agents in a world of some radius.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from lanewise.ladders.boids_run import REST, FlockRunner, parts_of
from lanewise.ladders.boids_versions import AUTOMATIC, IN_TURN, SOURCE, Version, versions
from lanewise.ladders.run import duration, skipped
from lanewise.ladders.rung import (
    NOTHING,
    Column,
    Ladder,
    Options,
    Rate,
    Rung,
    Sizes,
    digits,
    factor_text,
    number,
    number_text,
    seconds_text,
)
from lanewise.sims.common.devices import target_of
from lanewise.support.numerals import counted

RATE = Rate("agent_steps_per_second", "millions of agents per second", 1e6)
NOISE = 1.03  # a rung that is slower by less is as fast


def _time(seconds: float) -> str:
    return seconds_text(seconds or None)  # all pairs build nothing


def _part(stage: str) -> Callable[[Rung], str]:
    """The cell of a stage, where the stages are parts of the step."""

    def text(rung: Rung) -> str:
        parts = parts_of(rung)
        return NOTHING if parts is None else _time(parts[stage])

    return text


def _fused(part: str) -> Callable[[Rung], str]:
    """The cell of a part of the stage "search"."""

    def text(rung: Rung) -> str:
        seconds = number(rung, f"{part}_seconds")
        return NOTHING if parts_of(rung) is None or seconds is None else _time(seconds)

    return text


COLUMNS = (
    Column("over all pairs", number_text("over_all_pairs", factor_text)),
    Column("build", _part("build")),
    Column("search", _part("search")),
    Column("without steering", _fused("search_alone")),
    Column("steering", _fused("steering")),
    Column("update", _part("update")),
    Column("rest", _part(REST)),
    Column("steps/s", number_text("steps_per_second", digits)),
    Column("idle", number_text("idle_share", "{:.1%}".format)),
    Column("active idle", number_text("active_idle_threads", "{:,.0f}".format)),
    Column("thesis", lambda r: str(r.extra.get("thesis") or NOTHING)),
)


def summary(rungs: list[Rung]) -> list[str]:
    """For every flock the fastest search, and whether the automatic choice is as fast; and what the
    parts of a step are.
    """
    lines: list[str] = []
    for agents, world in dict.fromkeys((r.bodies, r.extra["world"]) for r in rungs):
        by_search = {
            r.name.partition(", ")[2]: r
            for r in rungs
            if (r.bodies, r.extra["world"]) == (agents, world)
        }
        timed = {
            n: r.seconds for n, r in by_search.items() if r.seconds is not None and n != IN_TURN
        }
        if timed:
            best = min(timed, key=timed.__getitem__)
            lines.append(
                f"{counted(agents, 'agent', 'agents')}, world {world:g}: fastest is {best!r}, "
                f"{seconds_text(timed[best])} per step"
                f"{_verdict(by_search.get(AUTOMATIC), timed, best)}"
            )
    if any(parts_of(r) for r in rungs):
        lines.append(
            "build, search, update: of the profile of a second flock, with dashes where they are "
            "longer than the step together; rest: what they leave of it"
        )
    return lines


def _verdict(automatic: Rung | None, timed: dict[str, float], best: str) -> str:
    """Whether the automatic choice is (nearly) the fastest; a rung that was not measured again
    names the one that it is.
    """
    if automatic is None:
        return ""
    same = [n for n in timed if automatic.skipped is not None and repr(n) in automatic.skipped]
    chosen = AUTOMATIC if AUTOMATIC in timed else same[0] if same else None
    if chosen is None:
        return ""
    slower = timed[chosen] / timed[best]
    if chosen == best:
        return "; it is lanewise's automatic choice" if chosen != AUTOMATIC else ""
    what = "the automatic choice" if chosen == AUTOMATIC else f"the automatic choice, {chosen!r},"
    return (
        f"; {what} is as fast" if slower < NOISE else f"; {what} takes {slower:.2f} times as long"
    )


THESIS_AGENTS = tuple(2**n for n in range(12, 19))
MILLIONS = 2**22
WORLD = 200.0  # of the thesis's comparison of agents, figure 7.3
WORLDS = {2**14: (WORLD, 50.0), 2**16: (WORLD, 50.0, 100.0, 400.0), MILLIONS: (400.0,)}
"""Radii of worlds by agents where it compares worlds (figures 7.1 and 7.2), and of the flock beyond
it.
"""
QUICK = {"cpu": {2**12: (WORLD,), 2**14: (50.0,)}, "cuda": {2**14: (50.0,), 2**17: (WORLD,)}}
# that the flocks of the default may take on a GPU: what is then left is skipped
GPU_SECONDS = 240.0


# The thesis's 2^12 to 2^18 agents, and 2^22 on a GPU.
SIZES = Sizes(
    gpu=(*THESIS_AGENTS, MILLIONS),
    cpu=THESIS_AGENTS,
    quick_gpu=tuple(QUICK["cuda"]),
    quick_cpu=tuple(QUICK["cpu"]),
)


def flocks(options: Options) -> list[tuple[int, float]]:
    """Agents and radii of worlds: all combinations of those that are requested, without worlds
    those of the thesis.
    """
    if options.worlds:
        return [(n, w) for n in options.bodies for w in options.worlds]
    usual = QUICK[target_of(options.device).pipeline] if options.quick else WORLDS
    every = {n: usual.get(n, (WORLD,)) for n in options.bodies}
    first = [(n, worlds[0]) for n, worlds in every.items()]
    return first + [(n, w) for n, worlds in every.items() for w in worlds[1:]]


def climb(options: Options) -> Iterator[Rung]:
    """The rungs of every flock, each as soon as it is measured."""
    pairs: dict[bool, float] = {}
    start, limited = time.perf_counter(), is_limited(options)
    for agents, world in flocks(options):
        runner, earlier = FlockRunner(options, agents, world, pairs), dict[str, Rung]()
        for version in versions(world, options.device):
            over = limited and time.perf_counter() - start > GPU_SECONDS
            rung = (
                _left_out(version, options, agents, world)
                if over
                else runner.measure(version, earlier)
            )
            earlier[version.name] = rung
            yield _named(world, rung)


def is_limited(options: Options) -> bool:
    """Whether the flocks are the default ones, on a GPU, for which users pay."""
    return options.on_gpu and not options.worlds and options.bodies == SIZES(options.device, False)


def _left_out(version: Version, options: Options, agents: int, world: float) -> Rung:
    blank = Rung(
        name=version.name,
        bodies=agents,
        device=options.device,
        skipped="not run",
        extra={"world": world},
    )
    reason = (
        f"the ladder has taken {duration(GPU_SECONDS)}: --agents {agents} --world {world:g} "
        "measures it"
    )
    return skipped(blank, "too long", reason)


def _named(world: float, rung: Rung) -> Rung:
    """Names begin with the world, as flocks of as many agents live in several."""
    prefix = f"W={world:g}"
    return replace(
        rung,
        name=f"{prefix}, {rung.name}",
        over=None if rung.over is None else f"{prefix}, {rung.over}",
    )


def _draw(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    from lanewise.ladders.boids_plot import plot_boids

    plot_boids(path, ladder, rungs, machine)


LADDER = Ladder(
    name="boids",
    title="flocks over search structures",
    source=SOURCE,
    sizes=SIZES,
    climb=climb,
    columns=COLUMNS,
    summary=summary,
    elements="agents",
    rate=RATE,
    draw=_draw,
)
