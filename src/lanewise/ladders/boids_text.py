"""What the ladder `boids` shows beside the columns of all ladders, and what it says below its tables."""

from __future__ import annotations

from lanewise.ladders.boids_versions import AUTOMATIC, IN_TURN
from lanewise.ladders.report import NOTHING, digits, factor_text, number_text, seconds_text
from lanewise.ladders.rung import Column, Rate, Rung

RATE = Rate("agent_steps_per_second", "millions of agents a second", 1e6)
NOISE = 1.03  # a rung that is slower by less is as fast


def _time(seconds: float) -> str:
    return seconds_text(seconds or None)  # all pairs build nothing


COLUMNS = (
    Column("over all pairs", number_text("over_all_pairs", factor_text)),
    Column("build", number_text("build_seconds", _time)),
    Column("search", number_text("search_seconds", seconds_text)),
    Column("update", number_text("update_seconds", seconds_text)),
    Column("steps/s", number_text("steps_per_second", digits)),
    Column("idle", number_text("idle_share", "{:.1%}".format)),
    Column("thesis", lambda r: str(r.extra.get("thesis") or NOTHING)),
)


def summary(rungs: list[Rung]) -> list[str]:
    """For every flock the fastest search, and whether the automatic choice is as fast."""
    lines: list[str] = []
    for agents, world in dict.fromkeys((r.bodies, r.extra["world"]) for r in rungs):
        known = {r.name.partition(", ")[2]: r for r in rungs if (r.bodies, r.extra["world"]) == (agents, world)}
        timed = {n: r.seconds for n, r in known.items() if r.seconds is not None and n != IN_TURN}
        if timed:
            best = min(timed, key=timed.__getitem__)
            lines.append(
                f"{agents:,} agents, world {world:g}: fastest is {best!r}, {seconds_text(timed[best])} a step"
                f"{_verdict(known.get(AUTOMATIC), timed, best)}"
            )
    return lines


def _verdict(automatic: Rung | None, timed: dict[str, float], best: str) -> str:
    """Whether the automatic choice is (nearly) the fastest; a rung that was not measured again names the one that it is."""
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
    return f"; {what} is as fast" if slower < NOISE else f"; {what} takes {slower:.2f} times as long"
