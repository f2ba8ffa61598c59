"""What the ladder `lbm` shows beside the columns of all ladders, and what it says below its tables."""

from __future__ import annotations

from lanewise.ladders.report import digits, factor_text, number, number_text, seconds_text
from lanewise.ladders.rung import Column, Rate, Rung

RATE = Rate("sites_per_second", "millions of sites a second", 1e6)
SPLIT = ("loops split", "branches split", "loops and branches split")
NOISE = 0.02  # a factor that differs from 1 by less says nothing


COLUMNS = (
    Column("eq. 1", number_text("equation_1", factor_text)),
    Column("MLUPS", number_text("mlups", digits)),
    Column("of copy", number_text("bandwidth_fraction", "{:.0%}".format)),
    Column("B/site", number_text("bytes_per_site", "{:.0f}".format)),
    Column("kernels", number_text("kernels", "{:.0f}".format)),
    Column("registers", number_text("registers", "{:.0f}".format)),
    Column("occupancy", number_text("occupancy", "{:.0%}".format)),
)


def summary(rungs: list[Rung]) -> list[str]:
    """For every box: the fastest version, and what splitting did to this device."""
    lines: list[str] = []
    for box in dict.fromkeys(_box(r) for r in rungs):
        known = {r.name.partition(", ")[2]: r for r in rungs if _box(r) == box}
        timed = [r for r in known.values() if r.seconds is not None and r.extra.get("storage") == "f32"]
        if timed:
            best = min(timed, key=lambda r: r.seconds or 0.0)
            lines.append(
                f"{box}: fastest in float32 is {best.name.partition(', ')[2]!r} with {seconds_text(best.seconds)} a step "
                f"({digits(number(best, 'mlups') or 0.0)} MLUPS)"
            )
            lines += _splitting(box, known)
    return lines


def _box(rung: Rung) -> str:
    return f"{rung.extra['lattice']} {rung.extra['shape']}"


def _splitting(box: str, rungs: dict[str, Rung]) -> list[str]:
    """What each way of splitting gains, and whether the automatic choice is the one that the measurement would make."""
    one = rungs.get("one kernel")
    gains = {n: rungs[n].speedup for n in SPLIT if n in rungs}
    factors = {n: f for n, f in gains.items() if f is not None}
    if one is None or not factors:
        return []
    texts: list[str] = []
    for name, factor in factors.items():
        expected, paper = number(rungs[name], "equation_1"), rungs[name].paper
        also = [f"eq. 1 says {factor_text(expected)}"] if expected is not None else []
        also += [f"{figure:g} on the paper's {machine}" for machine, figure in (paper or {}).items()]
        texts.append(f"{name} {factor_text(factor)}" + (f" ({', '.join(also)})" if also else ""))
    return [f"{box}: over one kernel: {'; '.join(texts)}", f"{box}: {_verdict(factors, rungs.get('automatic'))}"]


def _verdict(factors: dict[str, float], automatic: Rung | None) -> str:
    apart = [f for n, f in factors.items() if "branches" in n]
    pays = bool(apart) and max(apart) > 1 + NOISE
    loses = bool(apart) and max(apart) < 1 - NOISE
    text = (
        "splitting branches pays here"
        if pays
        else "splitting branches does not pay here" + ("" if loses else ": no change")
    )
    if not apart:
        text = "splitting branches is not possible here"
    if automatic is None or automatic.seconds is None:
        return text
    choice = str(automatic.extra.get("branches"))
    follows = not apart or not (pays or loses) or (choice == "apart") == pays
    return f"{text}; lanewise's automatic choice is branches={choice!r}" + (
        ", as the measurement says" if follows else ", which the measurement does not support"
    )
