"""The ladder `lbm`: layouts, streaming, branches and storage of a lattice Boltzmann flow, and the
loop and branch splitting of a paper.

Every rung runs the same functions (`lbm_flow`), in a box whose sites are fluid, solid or at the
edge. A number of sites that is a square is a D2Q9 box, one that is a cube a D3Q19 box. The paper's
figures are for splitting loops and branches together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isqrt

import lanewise as lw
from lanewise.ladders.lbm_flow import SiteBox
from lanewise.ladders.lbm_run import SiteRunner
from lanewise.ladders.lbm_truth import FlowForm
from lanewise.ladders.rung import (
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
from lanewise.support.errors import InputError

RATE = Rate("sites_per_second", "millions of sites per second", 1e6)
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
        by_version = {r.name.partition(", ")[2]: r for r in rungs if _box(r) == box}
        timed = [
            r
            for r in by_version.values()
            if r.seconds is not None and r.extra.get("storage") == "f32"
        ]
        if timed:
            best = min(timed, key=lambda r: r.seconds or 0.0)
            lines.append(
                f"{box}: fastest in float32 is {best.name.partition(', ')[2]!r} with "
                f"{seconds_text(best.seconds)} per step "
                f"({digits(number(best, 'mlups') or 0.0)} MLUPS)"
            )
            lines += _splitting(box, by_version)
    return lines


def _box(rung: Rung) -> str:
    return f"{rung.extra['lattice']} {rung.extra['shape']}"


def _splitting(box: str, rungs: dict[str, Rung]) -> list[str]:
    """What each way of splitting gains, and whether the automatic choice is the one that the
    measurement would make.
    """
    one = rungs.get("one kernel")
    gains = {n: rungs[n].speedup for n in SPLIT if n in rungs}
    factors = {n: f for n, f in gains.items() if f is not None}
    if one is None or not factors:
        return []
    texts: list[str] = []
    for name, factor in factors.items():
        expected, paper = number(rungs[name], "equation_1"), rungs[name].paper
        also = [f"eq. 1 says {factor_text(expected)}"] if expected is not None else []
        also += [
            f"{figure:g} on the paper's {machine}" for machine, figure in (paper or {}).items()
        ]
        texts.append(f"{name} {factor_text(factor)}" + (f" ({', '.join(also)})" if also else ""))
    return [
        f"{box}: over one kernel: {'; '.join(texts)}",
        f"{box}: {_verdict(factors, rungs.get('automatic'))}",
    ]


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


SOURCE = (
    "S. Carrillo, J. Siegel, X. Li, Improving the execution time of a lattice-Boltzmann kernel "
    "using the NVIDIA G80 architecture (2010), GeForce 8"
)
GPU = "NVIDIA G80"
# of splitting both, by the shape of the box
GAINS: Mapping[tuple[int, ...], float] = {(128, 128): 1.301, (256, 256): 1.24}
LEAST = 16  # sites along an edge: less has no room for a disc
TOGETHER, APART = lw.Plan(branches="together"), lw.Plan(branches="apart")
ONE = "one kernel"
LOOPS = "loops split"
BRANCHES = "branches split"
BOTH = "loops and branches split"
SPLIT_FROM = {BRANCHES: ONE, BOTH: LOOPS}  # whose branches are split, for equation 1
AUTOMATIC, LAUNCHED, WALLS = "automatic", "launched from Python", "half-way walls"


# The paper's two boxes; beyond them 4096^2 and 256^3 sites on a GPU, 1024^2 and 96^3 on a CPU.
PAPER_SITES = (128**2, 256**2)
SIZES = Sizes(
    gpu=(*PAPER_SITES, 4096**2), cpu=(*PAPER_SITES, 1024**2, 96**3),
    quick_gpu=(*PAPER_SITES, 128**3), quick_cpu=(128**2,),
)  # fmt: skip


def boxes(sites: int) -> tuple[SiteBox, ...]:
    """The box or the two boxes of that many sites; raises `InputError` for a number that is neither
    a square nor a cube.
    """
    side, edge = isqrt(sites), round(sites ** (1 / 3))
    chosen = [SiteBox(lw.D2Q9, (side, side))] if side * side == sites else []
    chosen += [SiteBox(lw.D3Q19, (edge, edge, edge))] if edge**3 == sites else []
    chosen = [box for box in chosen if box.shape[0] >= LEAST]
    if not chosen:
        near = max(side, LEAST), max(edge, LEAST)
        raise InputError(
            f"{sites:,} sites: wanted a square for a D2Q9 box or a cube for a D3Q19 box, of edges "
            f"of {LEAST} or more; near are "
            f"{near[0]}^2 = {near[0] ** 2:,} and {near[1]}^3 = {near[1] ** 3:,}"
        )
    return tuple(chosen)


def layouts(device: str) -> Mapping[str, lw.Layout]:
    """By name, AoS first; the blocks of AoSoA are as wide as a warp or a SIMD register."""
    blocks = lw.AoSoA(target_of(device).lanes)
    return {
        str(x).partition("(")[0] if x is not blocks else str(x): x
        for x in (lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), blocks)
    }


def best_layout(device: str) -> str:
    """The name of the one that sites get by themselves."""
    return "AoSoA(32)" if target_of(device).has_blocks else "SoA"


def forms(device: str, quick: bool) -> Iterator[tuple[FlowForm, str | None]]:
    """The versions, each with the name of the one that it is compared with, which is before it."""
    all_layouts, best = layouts(device), best_layout(device)
    chosen = all_layouts[best]
    for name, layout in all_layouts.items():
        if not quick or name in ("AoS", best):
            yield (
                FlowForm(name=f"pull, {name}", layout=layout, streaming="pull"),
                None if name == "AoS" else "pull, AoS",
            )
    for streaming in ("push", "in-place"):
        yield (
            FlowForm(name=f"{streaming}, {best}", layout=chosen, streaming=streaming),
            f"pull, {best}",
        )
    split = FlowForm(name=ONE, layout=chosen, streaming="pull", plan=TOGETHER)
    yield split, None
    yield replace(split, name=LOOPS, loop="split"), ONE
    yield replace(split, name=BRANCHES, plan=APART), ONE
    yield replace(split, name=BOTH, loop="split", plan=APART), ONE
    automatic = FlowForm(name=AUTOMATIC)
    yield automatic, "pull, AoS"
    yield replace(automatic, name=WALLS, walls=True), AUTOMATIC
    yield replace(automatic, name="f16 storage", storage="f16"), AUTOMATIC
    yield replace(automatic, name="f64", storage="f64"), AUTOMATIC
    if target_of(device).has_blocks:
        yield replace(automatic, name=LAUNCHED, launched=True), AUTOMATIC


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    every = [box for sites in options.bodies for box in boxes(sites)]  # before anything is measured
    for box in every:
        yield from climb_box(options, box)


def climb_box(options: Options, box: SiteBox) -> Iterator[Rung]:
    """The rungs of one box; names begin with the lattice, as two boxes may have the same number of
    sites.
    """
    runner, climbed, earlier = SiteRunner(options, box), dict[str, FlowForm](), dict[str, Rung]()
    for form, under in forms(options.device, options.quick):
        rung = replace(runner.measure(form, earlier.get(under or "")), paper=paper_of(form, box))
        earlier[form.name], climbed[form.name] = rung, form
        branched = SPLIT_FROM.get(form.name)
        if (
            branched is not None
            and rung.seconds is not None
            and (before := earlier[branched].seconds) is not None
        ):
            equation = runner.equation(climbed[branched], before, form)
            rung = (
                rung
                if equation is None
                else replace(rung, extra={**rung.extra, **equation.as_extra()})
            )
        yield _named(box, rung)


def paper_of(form: FlowForm, box: SiteBox) -> Mapping[str, float] | None:
    """The paper's factor for this version in this box."""
    return {GPU: GAINS[box.shape]} if form.name == BOTH and box.shape in GAINS else None


def _named(box: SiteBox, rung: Rung) -> Rung:
    prefix = box.lattice.name
    return replace(
        rung,
        name=f"{prefix}, {rung.name}",
        over=None if rung.over is None else f"{prefix}, {rung.over}",
    )


LADDER = Ladder(
    name="lbm",
    title="lattice Boltzmann flow",
    source=f"{SOURCE}; one figure for splitting loops and branches together",
    sizes=SIZES,
    climb=climb,
    columns=COLUMNS,
    summary=summary,
    elements="sites",
    rate=RATE,
    expected={"equation_1": "eq. 1"},
)
