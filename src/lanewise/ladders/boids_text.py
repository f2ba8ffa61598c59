"""What the ladder `boids` shows beside the columns of all ladders, and what it says below its tables."""

from __future__ import annotations

from collections.abc import Callable

from lanewise.ladders.boids_versions import AUTOMATIC, IN_TURN
from lanewise.ladders.report import NOTHING, digits, factor_text, seconds_text
from lanewise.ladders.rung import Column, Rate, Rung

RATE = Rate("agent_steps_per_second", "millions of agents a second", 1e6)
NOISE = 1.03  # a rung that is slower by less is as fast


def number(rung: Rung, key: str) -> float | None:
    """An extra number of a rung, where it has one."""
    value = rung.extra.get(key)
    return float(value) if isinstance(value, (int, float)) else None


def _text(key: str, form: Callable[[float], str]) -> Callable[[Rung], str]:
    def text(rung: Rung) -> str:
        value = number(rung, key)
        return NOTHING if value is None else form(value)

    return text


def _time(seconds: float) -> str:
    return seconds_text(seconds or None)  # all pairs build nothing


COLUMNS = (
    Column("over all pairs", _text("over_all_pairs", factor_text)),
    Column("build", _text("build_seconds", _time)),
    Column("search", _text("search_seconds", seconds_text)),
    Column("update", _text("update_seconds", seconds_text)),
    Column("steps/s", _text("steps_per_second", digits)),
    Column("idle", _text("idle_share", "{:.1%}".format)),
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
