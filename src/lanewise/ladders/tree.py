"""The ladder `tree`: forces of a star cluster by groups of bodies, from the first algorithm to
expansions of order 6.

Every rung is the same user function (`problem.attraction`) over another search: all pairs, and
trees whose groups are one body at their centre of mass (order 1, as order 0 with its centre there:
Barnes and Hut 1986), quadrupoles (order 2), and expansions of orders 3 to 6 that are derived from
the function. From order 3 on there are rungs where groups of sources meet groups of targets as well
(Dehnen 2002). Other libraries follow where they are installed (`tree_peers`). Times are of whole
calls, the order of the bodies and the groups included. Errors are those of |a| for 256 bodies
against all pairs in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders.problem import Law, Problem, attraction
from lanewise.ladders.run import RUNS, clock, skipped
from lanewise.ladders.rung import NOTHING, Column, Ladder, Options, Rung, Sizes, compared, number
from lanewise.ladders.tree_peers import PEERS, Peer
from lanewise.layouts import default_layout
from lanewise.plot.canvas import FAINT, GRID, TEXT, dark_axes, dark_figure, save_png
from lanewise.sims.common.devices import bring, get_device, to_host
from lanewise.sims.gravity import Body
from lanewise.support.numerals import counted

ALL_PAIRS = "all pairs"
ANGLES, QUICK_ANGLES = (0.8, 0.6, 0.4), (0.6,)
ORDERS = {
    1: "monopoles", 2: "quadrupoles", 3: "order 3", 4: "order 4", 5: "order 5", 6: "order 6",
}  # fmt: skip
PAIRS = ", pairs of groups"  # after the name of an order
PAIRED = (3, 4, 5, 6)  # orders that have such rungs; below them pairs of groups are too wrong
MOST_RUNS, ENOUGH = 15, 0.5  # runs of a rung, and seconds of them
LIMIT = 0.5  # of the 99 % error: what is worse is no force
UNSOFTENED = Law(attraction, {"softening2": 0.0})  # for libraries without a Plummer softening


def versions(options: Options) -> dict[str, lw.Tree | None]:
    """The searches by the names of their rungs, all pairs first."""
    named: dict[str, lw.Tree | None] = {ALL_PAIRS: None}
    angles = QUICK_ANGLES if options.quick else ANGLES
    orders = [o for o in ORDERS if o in (1, 2, 4) or not options.quick]
    walk, dual = partial(lw.Tree, method="walk"), partial(lw.Tree, method="dual")
    for search, words, some in ((walk, "", tuple(ORDERS)), (dual, PAIRS, PAIRED)):
        for order in (o for o in orders if o in some):
            for theta in angles:
                name = f"{ORDERS[order]}{words}, theta {theta}"
                named[name] = search(theta=theta, order=order)
    return named


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    for count in options.bodies:
        problem, base = Problem(count, options.seed), None
        for name, search in versions(options).items():
            rung = _measured(name, search, problem, options, base)
            base = base or rung
            yield rung
        for peer in (p for p in PEERS if p.on_gpu == options.on_gpu):
            yield from _beside(peer, problem, options, base)


def _measured(
    name: str, search: lw.Tree | None, problem: Problem, options: Options, base: Rung | None
) -> Rung:
    """The rung of a search: skipped where its forces are wrong."""
    device, law = options.device, problem.law
    layout = default_layout(Body.__record__, device)  # pyright: ignore[reportAttributeAccessIssue]
    bodies = problem.records(layout, device)
    result = bring(np.full((problem.bodies, 3), np.nan, np.float32), device)
    kernel = law.kernel if search is None else law.kernel.using(search=search)
    call = kernel.bind(bodies, bodies, **law.values, out=result)  # pyright: ignore[reportArgumentType]
    call.launch()
    blank = Rung(
        name=name, bodies=problem.bodies, skipped="not run", device=device, layout=str(layout),
        plan=call.compiled.plan.short(), extra=_numbers(search),
    )  # fmt: skip
    # a loop would keep the order of the bodies
    again = partial(get_device(device).seconds, call.launch)
    return _judged(blank, to_host(result), again, problem, base)


def _beside(peer: Peer, problem: Problem, options: Options, base: Rung | None) -> Iterator[Rung]:
    """The rungs of another library: skipped with one where it is not installed, or fails."""
    blank = Rung(
        name=peer.package, bodies=problem.bodies, skipped="not run", device=options.device,
        extra={**_numbers(None), "library": peer.package},
    )  # fmt: skip
    softening = problem.law.values["softening2"] ** 0.5 if peer.softened else 0.0
    if reason := peer.lacking(softening):
        yield skipped(blank, "absent", reason)
        return
    words = ""
    if not peer.softened:
        problem, words = Problem(problem.bodies, problem.seed, UNSOFTENED), ", unsoftened"
    position, mass = (x.astype(np.float64) for x in (problem.position, problem.mass))
    try:
        threads = get_device("cpu").units()
        versions = list(peer.versions(position, mass, softening, threads).items())
        for name, run in versions[: 1 if options.quick else None]:
            rung = replace(blank, name=name + words)
            yield _judged(rung, np.asarray(run()), partial(clock, run), problem, base)
    except Exception as error:  # of the library
        yield skipped(blank, "failed", f"{type(error).__name__}: {error}")


def _judged(
    blank: Rung, result: Any, again: Callable[[], float], problem: Problem, base: Rung | None
) -> Rung:
    """The rung with its errors, and with its time where the forces (n, 3) are not wrong. again:
    computes them once more, in so many seconds.
    """
    chosen, wanted = problem.answer()
    found = result[chosen].astype(np.float64)
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    middle, most, largest = (float(v) for v in np.percentile(errors, (50, 99, 100)))
    blank = replace(blank, relative_error=problem.error(result))
    if not most < LIMIT:
        wrong = f"wrong: 99 % of the errors are below {most:.1e}, and {LIMIT} is allowed"
        return skipped(blank, "wrong", wrong)
    seconds = median(_times(again))
    extra = {
        **blank.extra, "error_median": middle, "error_99": most, "error_largest": largest,
        "bodies_per_second": problem.bodies / seconds,
    }  # fmt: skip
    return compared(replace(blank, skipped=None, seconds=seconds, extra=extra), base)


def _times(again: Callable[[], float]) -> list[float]:
    """Of some runs, and of more where these are short."""
    times: list[float] = []
    while len(times) < RUNS or (len(times) < MOST_RUNS and sum(times) < ENOUGH):
        times.append(again())
    return times


def _numbers(search: lw.Tree | None) -> dict[str, float | int | str | None]:
    if search is None:
        return {"theta": None, "order": None, "method": None, "library": None}
    return {
        "theta": search.angle, "order": search.terms, "method": search.method, "library": None,
    }  # fmt: skip


def _error(key: str) -> Any:
    def text(rung: Rung) -> str:
        value = number(rung, key)
        return NOTHING if value is None else f"{value:.1e}"

    return text


def summary(rungs: list[Rung]) -> list[str]:
    """The fastest within each of some errors, at every size, and of other libraries the fastest."""
    lines: list[str] = []
    for count in dict.fromkeys(r.bodies for r in rungs):
        here = [r for r in rungs if r.bodies == count and r.seconds is not None]
        for limit in (1e-2, 1e-3, 1e-4):
            good = [r for r in here if (number(r, "error_99") or 0.0) <= limit]
            own = [r for r in good if r.extra.get("library") is None]
            best = [_fastest(some) for some in (own, [r for r in good if r not in own]) if some]
            if best:
                said = "; of other libraries ".join(best)
                bodies = counted(count, "body", "bodies")
                lines.append(f"{bodies}, 99 % of errors below {limit:.0e}: {said}")
    return lines


def _fastest(rungs: list[Rung]) -> str:
    best = min(rungs, key=lambda r: r.seconds or 0.0)
    return f"{best.name}, {best.bodies / (best.seconds or 1.0):.2e} bodies/s"


def draw(path: Path, ladder: Ladder, rungs: list[Rung], machine: str) -> None:
    """Bodies a second against errors, a panel a size: a line an order and a method, from its median
    to its 99 % error at every angle.
    """
    counts = list(dict.fromkeys(r.bodies for r in rungs))
    width = 1.2 + 5.6 * len(counts)
    figure = dark_figure(width + LEGEND, 5.6)
    figure.text(0.03, 0.94, f"{ladder.title}, measured on {machine}", color=TEXT, fontsize=13)
    wide = width / (width + LEGEND) / len(counts)
    lines: dict[str, Any] = {}
    for place, count in enumerate(counts):
        axes = figure.add_axes((place * wide + 0.16 * wide, 0.12, 0.78 * wide, 0.7))
        title = counted(count, "body", "bodies")
        dark_axes(axes, title, "relative error of a force", "bodies a second")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(color=GRID, linewidth=0.6)
        _draw_orders(axes, [r for r in rungs if r.bodies == count and r.seconds is not None])
        lines |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(
        lines.values(), lines.keys(), loc="center right", fontsize=8, facecolor="#0f131d",
        edgecolor=GRID, labelcolor=TEXT,
    )  # fmt: skip
    save_png(figure, path)


LEGEND = 2.6  # inches
SHADES = ("#ff6a3d", "#ffab4a", "#fbe3a1", "#9fdcf2", "#4f9df0", "#8b7bff")
OTHERS = ("#5fd38d", "#e377c2", "#c8ccd4")  # libraries


def _draw_orders(axes: Any, rungs: Sequence[Rung]) -> None:
    shades = dict(zip(ORDERS, SHADES, strict=True))
    for method, words, marker, line in (("walk", "", "o", "-"), ("dual", PAIRS, "s", "--")):
        for order, name in ORDERS.items():
            own = [
                r for r in rungs if (r.extra.get("order"), r.extra.get("method")) == (order, method)
            ]
            _draw_line(axes, own, f"{name}{words}", shades[order], marker, line)
    libraries = dict.fromkeys(r.extra.get("library") for r in rungs)
    for library, shade in zip(filter(None, libraries), OTHERS, strict=False):
        theirs = [r for r in rungs if r.extra.get("library") == library]
        _draw_line(axes, theirs, theirs[0].name.partition(" ")[0], shade, "^", "")
    for rung in (r for r in rungs if r.name == ALL_PAIRS):
        axes.axhline(number(rung, "bodies_per_second"), color=FAINT, linestyle=":", label=ALL_PAIRS)


def _draw_line(
    axes: Any, rungs: Sequence[Rung], name: str, shade: str, marker: str, line: str
) -> None:
    if not rungs:
        return
    rate = [number(r, "bodies_per_second") for r in rungs]
    middle, most = ([number(r, key) for r in rungs] for key in ("error_median", "error_99"))
    axes.hlines(rate, middle, most, color=shade, linewidth=1.2, alpha=0.6)
    shown = {"marker": marker, "markersize": 5, "linestyle": line}
    axes.plot(most, rate, color=shade, label=f"{name}: 99 %", **shown)
    axes.plot(middle, rate, color=shade, marker="|", markersize=9, linestyle="")


LADDER = Ladder(
    name="tree",
    title="Gravity of a star cluster by a tree",
    source="Barnes and Hut, Nature 324, 446 (1986), for the first rung; no figures are compared",
    sizes=Sizes(
        gpu=(262_144, 1_048_576), cpu=(20_000, 100_000), quick_gpu=(65_536,), quick_cpu=(10_000,)
    ),
    climb=climb,
    columns=(
        Column("error: median", _error("error_median")),
        Column("99 %", _error("error_99")),
        Column("largest", _error("error_largest")),
        Column("bodies/s", _error("bodies_per_second")),
    ),
    summary=summary,
    draw=draw,
)
